"""The `funes` command: argv in, text or JSON out; heavy imports wait until they are needed."""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from funes_ls.cli.output import notice
from funes_ls.indexer.errors import FunesError

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 usage, 130 interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except FunesError as exc:
        notice(f"funes: {exc}")
        return exc.exit_code
    except KeyboardInterrupt:
        notice("funes: interrupted; what is stored stays, run the command again to go on.")
        return _INTERRUPTED
    except SystemExit as exc:  # argparse leaves this way after --help and --version
        return exc.code if isinstance(exc.code, int) else 0
    except Exception:
        return _report_bug()


def _run(words: list[str]) -> int:
    if words and words[0] == "hook" and "-h" not in words and "--help" not in words:
        from funes_ls.hook import main as hook  # a turn waits for it: no parser, no more than this

        return hook(words[1:])
    from funes_ls.cli.parser import QUESTION_COMMANDS, build_parser, split_question

    if not words:
        from funes_ls.cli.welcome import welcome

        return welcome()
    if words[0] == "serve" and "-h" not in words[1:] and "--help" not in words[1:]:
        from funes_ls.server import main as serve

        return serve(words[1:])
    parser = build_parser(words[0])
    if words[0] in QUESTION_COMMANDS:
        words = split_question(parser, words)
    args = parser.parse_args(words)
    if args.command is None:
        from funes_ls.cli.welcome import welcome

        return welcome()
    from funes_ls.cli import commands

    _interrupt_on_term()
    return commands.run(args)


def _interrupt_on_term() -> None:
    """Let SIGTERM end a command the way Ctrl-C does: the current batch is finished or undone."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        return  # not the main thread: whoever runs us handles signals


def _report_bug() -> int:
    """Keep the traceback in the log, out of the user's sight."""
    from datetime import UTC, datetime

    from funes_ls.indexer.home import home_dir, make_private

    path = home_dir(os.environ) / "logs" / "funes.log"
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        make_private(path.parent)
        with path.open("a", encoding="utf-8") as log:
            log.write(f"{stamp} internal error\n{_frames_only()}\n")
    except OSError:
        notice("funes: internal error (and the log cannot be written).")
        return 1
    notice(f"funes: internal error, see the log at {path}.")
    return 1


def _frames_only() -> str:
    """Return the traceback without the message, which may quote a session."""
    import traceback

    kind, _, frames = sys.exc_info()
    lines = traceback.format_tb(frames)
    return "".join(lines) + (kind.__name__ if kind else "")
