"""`funes pull`: brings a memory from elsewhere to this machine, where indexing goes on in it."""

import argparse
import os
from typing import Any

from funes_ls import render
from funes_ls.cli.long import long_answer
from funes_ls.cli.output import confirm, is_terminal
from funes_ls.cli.progress import shown
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.progress import Progress
from funes_ls.render import counted
from funes_ls.sending import as_object


def pull(args: argparse.Namespace) -> int:
    """Fetch a memory and take it in; 1 when it was not the one meant."""
    from funes_ls.indexer.settings import check_whole, load_settings
    from funes_ls.pulling import fetched

    settings, _ = load_settings(os.environ)
    check_whole(settings)
    with shown(quiet=args.quiet) as progress:
        params = fetched(args.memory, settings, os.environ, progress)
    found = _taken_in(args, params, accept=args.yes)
    if as_object(found).state == "strange" and _is_meant(params.memory):
        found = _taken_in(args, params, accept=True)
    answer = as_object(found)
    if args.json:
        render.write_json(found)
    else:
        render.write(_text(answer))
    return 1 if answer.state == "strange" else 0


def _taken_in(args: argparse.Namespace, params: Any, *, accept: bool) -> Any:
    from msgspec.structs import replace

    def here(progress: Progress) -> Any:
        from funes_ls.indexer.settings import load_settings
        from funes_ls.memories import OpenEachTime
        from funes_ls.pulling import pull

        settings, _ = load_settings(os.environ)
        asked = replace(params, accept=accept)
        return pull(asked, OpenEachTime(settings), progress=progress)

    sent = {
        "memory": params.memory,
        "base": params.base,
        "revision": params.revision,
        "version": params.version,
        "accept": accept,
    }
    return long_answer("engine/pull", sent, args, here)


def _is_meant(name: str) -> bool:
    """Ask whether to mix memories that have nothing in common.

    Raises:
        UsageError: nobody is there to ask.
    """
    shown_name = render.safe(name)
    if not is_terminal():
        raise UsageError(
            f"{shown_name} shares nothing with the local memory; nothing was taken in.",
            hint="Pass `--yes` to put them together, or name it with `--memory` to read it.",
            kind="strange_memory",
        )
    question = f"{shown_name} shares nothing with the local memory. Put them together?"
    return confirm(question, default=False)


def _text(answer: Any) -> str:
    name = render.safe(answer.memory)
    if answer.state == "strange":
        return "Nothing was taken in."
    if answer.state == "up_to_date":
        lines = [f"Up to date: all {answer.known:,} chunks of {name} are here."]
    else:
        came = f"{counted(answer.chunks, 'chunk')} of {counted(answer.sessions, 'session')}"
        lines = [f"{came} came from {name}."]
        if answer.known:
            lines.append(f"{answer.known:,} were here already.")
    if answer.forgotten:
        lines.append(f"{counted(answer.forgotten, 'chunk')} of forgotten sessions stayed away.")
    if answer.odd:
        lines.append(f"{counted(answer.odd, 'chunk')} left out: no chunk of its session.")
    return "\n".join([*lines, *filter(None, [answer.note])])
