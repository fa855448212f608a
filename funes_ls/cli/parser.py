"""The command line as argparse sees it; every command's help opens with two runnable examples."""

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module

from funes_ls import __version__
from funes_ls.cli.parsers.base import Commands, Help, Parser, example_lines
from funes_ls.cli.slips import refuse_slip

#: Commands whose positionals are a question: unknown words that look like options belong to it.
QUESTION_COMMANDS = ("recall", "ask")

#: Command -> module of `funes_ls.cli.parsers` with the function that adds it; in order of help.
_COMMANDS = {
    "index": "keep",
    "recall": "read",
    "ask": "read",
    "get": "read",
    "status": "read",
    "sessions": "read",
    "related": "read",
    "blame": "read",
    "memories": "read",
    "forget": "secrets",
    "scrub": "secrets",
    "scan": "secrets",
    "push": "publish",
    "pull": "publish",
    "unpublish": "publish",
    "curate": "publish",
    "parse": "keep",
    "model": "keep",
    "engine": "keep",
    "add": "agents",
    "remove": "agents",
    "hook": "agents",
    "mcp": "agents",
    "serve": "keep",
}


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Args:
        command: Build the part of this command alone, if there is such a one; help and errors
            about commands need the whole.
    """
    parser = Parser(
        prog="funes",
        description=example_lines("funes index", 'funes recall "why did we drop the cache"')
        + "Recall what your coding agents said and did, from the traces they leave on disk.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"funes {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in [command] if command in _COMMANDS else _COMMANDS:
        _adder(name)(commands)
    return parser


def _adder(name: str) -> Callable[[Commands], None]:
    """Return what adds a command; the other modules' are not imported."""
    module = import_module(f"funes_ls.cli.parsers.{_COMMANDS[name]}")
    adder: Callable[[Commands], None] = getattr(module, name)
    return adder


def split_question(parser: argparse.ArgumentParser, argv: Sequence[str]) -> list[str]:
    """Return argv with what belongs to a question moved behind `--`.

    A question may begin with `--` or hold words such as `--no-verify`: only exact option names
    of the command are options; every other word, and all after `--`, is part of the question.

    Raises:
        UsageError: a word alone is an option but for a slip of the keyboard.
    """
    takes_value = _option_arity(parser, argv[0])
    options: list[str] = []
    words: list[str] = []
    rest = list(argv[1:])
    while rest:
        word = rest.pop(0)
        name = word.split("=", 1)[0]
        if word == "--":
            words += rest
            break
        if word in takes_value:
            options.append(word)
            if takes_value[word] and rest:
                options.append(rest.pop(0))
        elif "=" in word and takes_value.get(name):
            options.append(word)  # --since=7d
        elif word[2:].isdigit() and takes_value.get(word[:2]):
            options.append(word)  # -k5
        else:
            refuse_slip(argv[0], name, list(takes_value))
            words.append(word)
    return [argv[0], *options, "--", *words]


def _option_arity(parser: argparse.ArgumentParser, command: str) -> dict[str, bool]:
    """Return each option string of a command with whether a value follows it."""
    subparsers = next(
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    return {
        option: action.nargs != 0
        for action in subparsers.choices[command]._actions
        for option in action.option_strings
    }
