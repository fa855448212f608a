"""`funes-ls`: the language server's command line; also `funes serve` and `python -m`."""

import argparse
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from funes_ls import __version__
from funes_ls.indexer.errors import FunesError, UsageError

if TYPE_CHECKING:
    from funes_ls.handlers.streams import Channel

_LEVELS = ("error", "warning", "info", "debug")
_HELP = """\
Serve past coding-agent sessions to an editor, as a language server.

examples:
  funes-ls                          over standard input and output, as editors start it
  funes-ls --tcp 127.0.0.1:7777     wait for one client at a port of this machine
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve one client and end the process; return the exit code where none could be served."""
    options = _parser().parse_args(argv)
    try:
        _run(_connector(options), options.clientProcessId, options.log_level)
    except FunesError as exc:
        sys.stderr.write(f"funes-ls: {exc}\n")
        return exc.exit_code


def _run(
    connect: "Callable[[], Awaitable[Channel]]", parent: int | None, log_level: str
) -> NoReturn:
    """Run the server and end the process; everything heavy is loaded here."""
    import asyncio

    from funes_ls.handlers.logs import log_to_stderr
    from funes_ls.handlers.serving import leave, serve

    log_to_stderr(log_level)
    asyncio.run(_served(serve(connect, os.environ, parent=parent), leave))


async def _served(serving: Awaitable[int], leave: Callable[[int], NoReturn]) -> NoReturn:
    """Serve, then leave from inside the loop, whose end would wait for threads."""
    code = await serving
    logging.shutdown()
    leave(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="funes-ls",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    how = parser.add_argument_group("how the client is reached").add_mutually_exclusive_group()
    how.add_argument("--stdio", action="store_true", help="standard input and output (default)")
    how.add_argument("--pipe", metavar="PATH", help="a socket file that the client listens at")
    how.add_argument(
        "--socket", metavar="PORT", type=_port, help="a local port that the client listens at"
    )
    how.add_argument("--tcp", metavar="HOST:PORT", help="listen for one client at a local port")
    how.add_argument("--port", metavar="PORT", type=_port, help="the same as --tcp 127.0.0.1:PORT")
    parser.add_argument(
        "--clientProcessId", metavar="PID", type=int, help="end when this process is gone"
    )
    parser.add_argument(
        "--log-level", choices=_LEVELS, default="warning", help="what goes to stderr"
    )
    parser.add_argument("--version", action="version", version=f"funes-ls {__version__}")
    return parser


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text} is no port")
    return int(text)


def _connector(options: argparse.Namespace) -> "Callable[[], Awaitable[Channel]]":
    """Return what connects to the client.

    Raises:
        UsageError: the address to listen at is none.
    """
    host, port = "127.0.0.1", options.port
    if options.tcp is not None:
        host, _, digits = options.tcp.rpartition(":")
        if not digits.isdigit() or int(digits) > 65_535:
            raise UsageError(f"{options.tcp} is no HOST:PORT.")
        host, port = host.strip("[]") or host, int(digits)
        host = host or "127.0.0.1"

    async def connect() -> "Channel":
        from funes_ls.handlers import streams

        if options.pipe is not None:
            return await streams.pipe(options.pipe)
        if options.socket is not None:
            return await streams.socket_of(options.socket)
        if port is not None:
            return await streams.listening(host, port, announce=_announce)
        return await streams.standard()

    return connect


def _announce(address: str) -> None:
    sys.stderr.write(f"funes-ls: listening at {address}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
