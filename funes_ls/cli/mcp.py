"""`funes mcp`: the server that a coding agent starts for each of its sessions."""

import argparse
import os
import sys

from funes_ls.cli.output import notice
from funes_ls.indexer.home import home_dir
from funes_ls.mcp.server import Server
from funes_ls.mcp.stdio import Answers, TooLong, lines_of, on_signal_to_end, taken_streams

#: After the client has closed stdin, calls under way may take so long.
_LAST_S = 5.0


def mcp(args: argparse.Namespace) -> int:
    """Answer a client until it closes stdin, or this process is told to end."""
    if sys.stdin is not None and sys.stdin.isatty():
        notice(
            "funes mcp speaks the Model Context Protocol on stdin and stdout. Agents start it: "
            "`funes add claude` tells one how.",
            quiet=args.quiet,
        )
    stream, out = taken_streams()
    answers = Answers(out)
    server = Server(
        answers.send,
        home=home_dir(os.environ).absolute(),
        memory=args.memory or "",
        tokens=args.tokens,
    )

    def end() -> None:
        server.finish(0)
        answers.close()
        os._exit(0)  # the main thread waits for a line that nobody sends

    on_signal_to_end(end)
    for line in lines_of(stream):
        if isinstance(line, TooLong):
            server.refuse_long()
        else:
            server.take(line)
    server.finish(_LAST_S)
    answers.close()
    return 0
