"""Where the functions, classes and methods of a text are, by the grammars of ast-grep.

Run as a program it answers a text a line (JSON in, JSON out) until its input ends: a grammar that
is wrong about a text can end or stop the process it runs in, which is not to be the server's.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ast_grep_py import SgNode


class Symbol(NamedTuple):
    """A symbol; lines from 0.

    Attributes:
        name: With those of what it is in: `Queue.take`.
        first: Its first line, decorators included.
        last: Its last line, included.
        named: The line that its name is on.
    """

    name: str
    first: int
    last: int
    named: int


class Grammar(NamedTuple):
    """What a language calls its definitions.

    Attributes:
        groups: Kinds of nodes that are symbols and hold others.
        leaves: Kinds of nodes that are symbols; what is in them is nobody else's business.
        values: Kinds of nodes that are symbols if their value is a function, or a type.
        inside: Kinds of nodes that only hold others.
    """

    groups: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()


_SCRIPT = Grammar(
    groups=("class_declaration", "abstract_class_declaration", "internal_module", "module"),
    leaves=(
        "function_declaration",
        "generator_function_declaration",
        "method_definition",
        "interface_declaration",
        "enum_declaration",
        "type_alias_declaration",
    ),
    values=("variable_declarator", "field_definition", "public_field_definition"),
)
_C = Grammar(
    groups=("class_specifier", "struct_specifier"),
    leaves=("function_definition", "enum_specifier", "union_specifier"),
    inside=("namespace_definition",),
)
_JVM = (
    "class_declaration",
    "interface_declaration",
    "enum_declaration",
    "record_declaration",
    "struct_declaration",
    "object_declaration",
    "protocol_declaration",
)
GRAMMARS: dict[str, Grammar] = {
    "bash": Grammar(leaves=("function_definition",)),
    "c": _C,
    "cpp": _C,
    "csharp": Grammar(
        groups=_JVM,
        leaves=("method_declaration", "constructor_declaration", "property_declaration"),
    ),
    "dart": Grammar(
        groups=("class_declaration", "mixin_declaration", "extension_declaration"),
        leaves=("function_declaration", "method_declaration", "enum_declaration"),
    ),
    "elixir": Grammar(),
    "go": Grammar(leaves=("function_declaration", "method_declaration", "type_spec")),
    "haskell": Grammar(leaves=("function", "bind", "data_type", "class", "instance")),
    "hcl": Grammar(leaves=("block",)),
    "java": Grammar(groups=_JVM, leaves=("method_declaration", "constructor_declaration")),
    "javascript": _SCRIPT,
    "kotlin": Grammar(groups=_JVM, leaves=("function_declaration", "secondary_constructor")),
    "lua": Grammar(leaves=("function_declaration",), values=("assignment_statement",)),
    "nix": Grammar(values=("binding",)),
    "php": Grammar(
        groups=(*_JVM, "trait_declaration"), leaves=("function_definition", "method_declaration")
    ),
    "python": Grammar(groups=("class_definition",), leaves=("function_definition",)),
    "ruby": Grammar(groups=("class", "module"), leaves=("method", "singleton_method")),
    "rust": Grammar(
        groups=("impl_item", "trait_item", "mod_item"),
        leaves=("function_item", "struct_item", "enum_item", "union_item", "macro_definition"),
    ),
    "scala": Grammar(
        groups=("class_definition", "object_definition", "trait_definition", "enum_definition"),
        leaves=("function_definition",),
    ),
    "solidity": Grammar(
        groups=("contract_declaration", "library_declaration", "interface_declaration"),
        leaves=("function_definition", "modifier_definition", "struct_declaration"),
    ),
    "swift": Grammar(groups=_JVM, leaves=("function_declaration", "init_declaration")),
    "tsx": _SCRIPT,
    "typescript": _SCRIPT,
    "zig": Grammar(
        groups=("variable_declaration",),
        leaves=("function_declaration",),
        values=("variable_declaration",),
    ),
}
#: What editors call languages, and how file names end, where it is not the grammar's own name.
_NAMES = {
    "bash": "bash shellscript sh zsh ksh",
    "c": "c h",
    "cpp": "cpp c++ cc cxx hpp hh hxx cuda objective-cpp",
    "csharp": "csharp cs c#",
    "dart": "dart",
    "elixir": "elixir ex exs",
    "go": "go",
    "haskell": "haskell hs",
    "hcl": "hcl terraform tf",
    "java": "java",
    "javascript": "javascript javascriptreact js jsx mjs cjs",
    "kotlin": "kotlin kt kts",
    "lua": "lua",
    "nix": "nix",
    "php": "php",
    "python": "python py pyi",
    "ruby": "ruby rb rake",
    "rust": "rust rs",
    "scala": "scala sc",
    "solidity": "solidity sol",
    "swift": "swift",
    "tsx": "tsx typescriptreact typescript-tsx",
    "typescript": "typescript ts mts cts",
    "zig": "zig",
}
_GRAMMAR_OF = {name: grammar for grammar, names in _NAMES.items() for name in names.split()}
#: Wrappers whose first line is that of the symbol: decorators, `export`, `template <…>`.
_WRAPPERS = {
    "decorated_definition",
    "export_statement",
    "template_declaration",
    "lexical_declaration",
    "variable_declaration",
    "type_declaration",
}
_VALUES = {
    "arrow_function",
    "function_expression",
    "generator_function",
    "function_definition",
    "class",
    "struct_declaration",
    "enum_declaration",
    "union_declaration",
}
_NAME_KINDS = {
    "identifier",
    "type_identifier",
    "simple_identifier",
    "field_identifier",
    "qualified_identifier",
    "operator_name",
    "destructor_name",
    "attrpath",
}
_MOST = 2_000
_MOST_CHARS = 80
_ELIXIR = {"def", "defp", "defmacro", "defmacrop", "defmodule", "defprotocol", "defimpl"}


def grammar_of(language: str, path: str) -> str:
    """Return the grammar for what an editor calls a language, or by the file's name; "" if none."""
    _, dot, ending = path.rpartition("/")[2].rpartition(".")
    by_name = _GRAMMAR_OF.get(ending.lower(), "") if dot else ""
    return _GRAMMAR_OF.get(language.lower()) or by_name


def symbols(text: str, grammar: str) -> list[Symbol]:
    """Return the symbols of a text (its lines end at LF), in its order."""
    from ast_grep_py import SgRoot

    found = itertools.islice(_within(SgRoot(text, grammar).root(), grammar, ""), _MOST)
    return _joined(sorted(found, key=lambda one: (one.first, -one.last)))


def _joined(found: list[Symbol]) -> list[Symbol]:
    """Make one of equations of one function, as Haskell has them."""
    joined: list[Symbol] = []
    for one in found:
        before = joined[-1] if joined else None
        if before and before.name == one.name and one.first == before.last + 1:
            joined[-1] = before._replace(last=one.last)
        else:
            joined.append(one)
    return joined


def _within(node: "SgNode", grammar: str, outer: str) -> Iterator[Symbol]:
    """Yield the symbols below a node; deep trees of expressions cost no stack."""
    known = GRAMMARS[grammar]
    waiting = node.children()[::-1]
    while waiting:
        one = waiting.pop()
        named = _name(one, grammar)
        if named is None:
            if one.kind() not in known.leaves:
                waiting += one.children()[::-1]
            continue
        name = " ".join(named.text().split())[:_MOST_CHARS]
        whole = f"{outer}.{name}" if outer else name
        yield _symbol(one, whole, named.range().start.line)
        if one.kind() in known.groups or _is_elixir_module(one, grammar):
            yield from _within(one, grammar, whole)


def _name(node: "SgNode", grammar: str) -> "SgNode | None":
    """Return the name of a node that is a symbol, None for any other."""
    known, kind = GRAMMARS[grammar], node.kind()
    if grammar == "elixir":
        return _elixir_name(node)
    if kind in known.values:
        value = node.field("value") or node.field("right") or _last(node)
        if value is None or not _is_value(value):
            return None
    elif kind not in known.groups and kind not in known.leaves:
        return None
    if kind.endswith("_specifier") and node.field("body") is None:
        return None  # a use of the type, not its definition
    return _named(node)


def _is_value(node: "SgNode") -> bool:
    inner = _last(node) if node.kind() == "expression_list" else node
    return inner is not None and inner.kind() in _VALUES


def _named(node: "SgNode") -> "SgNode | None":
    for field in ("name", "left", "property", "type"):
        found = node.field(field)
        if found is not None and (field != "type" or node.kind() == "impl_item"):
            return found
    declared = node.field("declarator")
    while declared is not None and declared.kind() not in _NAME_KINDS:
        declared = declared.field("declarator") or _first_name(declared)
    return declared if declared is not None else _first_name(node)


def _first_name(node: "SgNode") -> "SgNode | None":
    for child in node.named_children():
        if child.kind() in _NAME_KINDS:
            return child
        if child.kind().endswith(("_signature", "variable_list")):
            found = child.field("name") or _first_name(child)
            if found is not None:
                return found
    return None


def _last(node: "SgNode") -> "SgNode | None":
    children = node.named_children()
    return children[-1] if children else None


def _is_elixir_module(node: "SgNode", grammar: str) -> bool:
    target = node.field("target") if grammar == "elixir" else None
    return target is not None and target.text() in ("defmodule", "defprotocol", "defimpl")


def _elixir_name(node: "SgNode") -> "SgNode | None":
    target = node.field("target") if node.kind() == "call" else None
    if target is None or target.text() not in _ELIXIR:
        return None
    for child in node.named_children()[1:2]:
        head = (child.named_children() or [child])[0]
        return head.field("target") or head
    return None


def _symbol(node: "SgNode", name: str, named: int) -> Symbol:
    place = node.range()
    first, last = place.start.line, place.end.line
    if place.end.column == 0 and last > first:
        last -= 1
    parent = node.parent()
    while parent is not None and parent.kind() in _WRAPPERS:
        first = min(first, parent.range().start.line)
        parent = parent.parent()
    return Symbol(name, first, last, named)


def main() -> int:
    """Answer texts, a line each, until the input ends."""
    with open(0, "rb") as questions, open(1, "wb", buffering=0) as answers:
        for line in questions:
            asked: Any = json.loads(line)
            found = symbols(asked["text"], asked["grammar"])
            answers.write(json.dumps(found).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
