"""Symbols of texts: in every language of the table, whatever the text; in a process of its own."""

import asyncio
from pathlib import Path

import pytest

from funes_ls.handlers import outlines
from funes_ls.handlers.outlines import Outlines
from funes_ls.handlers.symbol_ranges import GRAMMARS, Symbol, grammar_of, symbols

PYTHON = """\
@decorated
class Queue:
    @property
    def size(self):
        def inner(): ...
        return 1


async def main(): ...


if True:
    def late(): ...
"""
#: Grammar -> a text and the names of its symbols.
SAMPLES = {
    "bash": ("f() { echo; }\nfunction g { echo; }\n", "f g"),
    "c": ("static char *f(int a) { return 0; }\nstruct S { int a; };\nstruct S x;\n", "f S"),
    "cpp": (
        "namespace n { class A { ~A() {} int m() const { return 1; } }; }\n"
        "int n::A::k() { return 2; }\ntemplate <typename T> T f(T a) { return a; }\n",
        "A A.~A A.m n::A::k f",
    ),
    "csharp": ("namespace N { class A { A() {} void M() {} interface I {} } }", "A A.A A.M A.I"),
    "dart": ("class A { void m() {} }\nvoid f() {}\nmixin M {}\n", "A A.m f M"),
    "elixir": ("defmodule A do\n  def f(x) do\n  x\n  end\n  defp g, do: 1\nend\n", "A A.f A.g"),
    "go": ("package a\nfunc f() {}\nfunc (r *R) M() {}\ntype R struct { a int }\n", "f M R"),
    "haskell": ("f 1 = 2\nf 2 = 3\ndata D = D\ng = 2\n", "f D g"),
    "hcl": ('resource "a" "b" {\n x = 1\n}\n', "resource"),
    "java": ("class A { A() {} void m() {} enum E { X } }\n", "A A.A A.m A.E"),
    "javascript": (
        "export default function f(){}\nclass A { m(){} static s = () => {} }\n"
        "export const g = async () => {};\nconst no = 1;\n",
        "f A A.m A.s g",
    ),
    "kotlin": ("class A { fun m() {} }\nobject O {}\nfun f() = 1\n", "A A.m O f"),
    "lua": ("function M.h() end\nM.k = function() end\nx = 1\n", "M.h M.k"),
    "nix": ("{\n  f = x: x + 1;\n  version = 2;\n  g = { a, b }: a;\n}\n", "f g"),
    "php": ("<?php\nfunction f() {}\nclass B { public function m() {} }\n", "f B B.m"),
    "python": (PYTHON, "Queue Queue.size main late"),
    "ruby": (
        "module M\n class A\n  def m; end\n  def self.s; end\n end\nend\n",
        "M M.A M.A.m M.A.s",
    ),
    "rust": (
        "impl A { fn m(&self) {} }\nstruct B;\nfn f() {}\nmod x { fn g() {} }\n",
        "A A.m B f x x.g",
    ),
    "scala": ("class A { def m = 1 }\nobject O\ndef f = 1\n", "A A.m O f"),
    "solidity": ("contract A { function f() public {} }\nlibrary L {}\n", "A A.f L"),
    "swift": ("class A { func m() {} init() {} }\nfunc f() {}\n", "A A.m A.init f"),
    "tsx": ("export const C = () => <a/>;\nfunction D(){return <b/>}\n", "C D"),
    "zig": (
        "const S = struct {\n fn m(self: S) void {}\n};\nconst n = 1;\npub fn f() void {}\n",
        "S S.m f",
    ),
    "typescript": ("interface I { a(): void }\nabstract class A { m(): void {} }\n", "I A A.m"),
}


def test_every_grammar_has_a_sample() -> None:
    assert sorted(SAMPLES) == sorted(GRAMMARS)


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_names_of_each_language(grammar: str) -> None:
    text, names = SAMPLES[grammar]
    assert [one.name for one in symbols(text, grammar)] == names.split()


def test_ranges_begin_at_decorators_and_end_with_the_body() -> None:
    assert symbols(PYTHON, "python") == [
        Symbol("Queue", 0, 5, 1),
        Symbol("Queue.size", 2, 5, 3),
        Symbol("main", 8, 8, 8),
        Symbol("late", 12, 12, 12),
    ]


@pytest.mark.parametrize(
    ("language", "path", "grammar"),
    [
        ("python", "/x/a", "python"),
        ("typescriptreact", "/x/a.tsx", "tsx"),
        ("plaintext", "/x/a.RS", "rust"),
        ("", "/x/a.go", "go"),
        ("", "/x/python", ""),
        ("", "/x.go/notes", ""),
    ],
)
def test_the_grammar_of_a_document(language: str, path: str, grammar: str) -> None:
    assert grammar_of(language, path) == grammar


@pytest.mark.parametrize("grammar", GRAMMARS)
@pytest.mark.parametrize(
    "text", ["", "\x00\xff\x00", "(" * 5_000, "class " * 500, "🐍 = 1\n", "def f(:\n  x\nclass"]
)
def test_broken_texts_have_symbols_within_them(grammar: str, text: str) -> None:
    for one in symbols(text, grammar):
        assert 0 <= one.first <= one.named <= one.last <= text.count("\n")


async def asked(*questions: tuple[str, str]) -> list[list[Symbol]]:
    found = Outlines()
    try:
        return [await found.of(*one) for one in questions]
    finally:
        await found.close()


def test_in_a_process_of_its_own() -> None:
    text = SAMPLES["go"][0]
    assert asyncio.run(asked((text, "go"), ("def f(): ...", "python"))) == [
        symbols(text, "go"),
        [Symbol("f", 0, 0, 0)],
    ]


def test_what_cannot_be_had_is_no_symbol_and_harms_nothing() -> None:
    good = ("def f(): ...", "python")
    found = asyncio.run(
        asked(good, ("x", "no such grammar"), good, ("x = 1\n" * 200_000, "python"))
    )
    assert [len(one) for one in found] == [1, 0, 1, 0]


def test_a_text_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlines, "_ANSWER_S", 0.4)
    endless = "x = [" + "1," * 400_000
    found = asyncio.run(asked((endless, "javascript")))
    assert found == [[]]


def test_the_folder_it_is_started_in_has_no_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(1)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert asyncio.run(asked(("def f(): ...", "python"))) == [[Symbol("f", 0, 0, 0)]]
