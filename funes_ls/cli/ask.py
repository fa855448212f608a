"""`funes ask`: one answer by a coding agent, from what past sessions said."""

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from funes_ls import render
from funes_ls.cli.asking import answer_to, as_object
from funes_ls.cli.output import is_terminal, notice
from funes_ls.cli.questions import session_filters

if TYPE_CHECKING:
    from funes_ls.protocol import AskAnswer

_TICK_S = 0.5


def ask(args: argparse.Namespace) -> int:
    """Print an agent's answer as it comes, then the sessions it rests on."""
    from funes_ls.agents.registry import AGENTS
    from funes_ls.ask import answered, chosen, refuse_empty

    words = list(args.words)
    name = words.pop(0) if len(words) > 1 and words[0] in AGENTS else ""
    question = " ".join(words)
    agent = chosen(name, os.environ, needed=not args.dry_run)
    params = {"query": question, "k": args.k, **session_filters(args)}
    found = as_object(answer_to("funes/recall", params, args))
    if not found.hits:
        refuse_empty(as_object(answer_to("funes/status", {"memory": args.memory}, args)))
    shown = _Streamed(quiet=args.json)
    with _waiting(f"{agent.name} is reading", quiet=args.quiet or args.json, until=shown.begun):
        answer = answered(
            question,
            found,
            agent,
            dry_run=args.dry_run,
            env=os.environ,
            on_text=shown.take,
        )
    _print(answer, args)
    return 0


class _Streamed:
    """Writes an answer piece by piece; nothing when it is to come as one JSON object."""

    def __init__(self, *, quiet: bool) -> None:
        self.begun = threading.Event()
        self._quiet = quiet

    def take(self, text: str) -> None:
        self.begun.set()
        if not self._quiet:
            render.write_piece(render.safe(text))


def _print(answer: "AskAnswer", args: argparse.Namespace) -> None:
    if args.json:
        render.write_json(answer)
        return
    notice(answer.note, quiet=args.quiet)
    if args.dry_run and answer.prompt:
        render.write(f"This would be sent to {answer.agent}:\n\n{render.safe(answer.prompt)}")
        return
    if answer.answer:
        render.write("\n" + sources_text(answer))


def sources_text(answer: "AskAnswer") -> str:
    """Return the passages that an answer names, or all where it names none."""
    named = [one for one in answer.sources if one.cited]
    title = "sources" if named else "handed over (the answer names none of them)"
    lines = [f"  [{one.session_id[:8]}] {one.ts} {one.harness}  {one.get}" for one in named]
    if not named:
        lines = [f"  [{one.session_id[:8]}] {one.ts}  {one.get}" for one in answer.sources]
    return "\n".join([f"{title}:", *map(render.safe, lines)])


@contextmanager
def _waiting(text: str, *, quiet: bool, until: threading.Event) -> Iterator[None]:
    """Show on a person's terminal that somebody is at work, until the first word comes."""
    if quiet or not is_terminal():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(text, done, until), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(text: str, done: threading.Event, begun: threading.Event) -> None:
    started = time.monotonic()
    plain = os.environ.get("TERM") == "dumb"
    while not done.wait(_TICK_S) and not begun.is_set():
        if not plain:
            sys.stderr.write(f"\r{text}, {time.monotonic() - started:.0f} s")
            sys.stderr.flush()
    if not plain:
        sys.stderr.write(f"\r{' ' * (len(text) + 12)}\r")
        sys.stderr.flush()
