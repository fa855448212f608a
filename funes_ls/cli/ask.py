"""`funes ask`: one answer by a coding agent, from what past sessions said."""

import argparse
import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from funes_ls import render
from funes_ls.cli.asking import answer_to
from funes_ls.cli.output import is_terminal, notice
from funes_ls.cli.questions import session_filters
from funes_ls.indexer.errors import UsageError
from funes_ls.sending import as_object

if TYPE_CHECKING:
    from funes_ls.protocol import AskAnswer

_TICK_S = 0.5


def ask(args: argparse.Namespace) -> int:
    """Print an agent's answer as it comes, then the sessions it rests on."""
    from funes_ls.ask import answered, chosen, refuse_empty

    name, question = _who_and_what(args.words)
    agent = chosen(name, os.environ, needed=not args.dry_run)
    params = {"query": question, "k": args.k, "onlyNamed": True, **session_filters(args)}
    found = as_object(answer_to("funes/recall", params, args))
    if not found.hits:
        refuse_empty(as_object(answer_to("funes/status", {"memory": args.memory}, args)))
    with _Waiting(f"{agent.name} is reading", quiet=args.quiet or args.json) as waiting:
        shown = _Streamed(waiting, quiet=args.json)
        answer = answered(
            question,
            found,
            agent,
            dry_run=args.dry_run,
            env=os.environ,
            on_text=shown.take,
        )
    _print(answer, args, gap=shown.gap)
    return 0


def _who_and_what(words: list[str]) -> tuple[str, str]:
    from funes_ls.agents.registry import AGENTS

    name = words[0] if words and words[0] in AGENTS else ""
    question = " ".join(words[1:] if name else words)
    if name and not question.strip():
        raise UsageError(
            f"What do you want to ask {name}?",
            hint=f'Such as: funes ask {name} "why did we drop the cache"',
        )
    return name, question


class _Streamed:
    """Writes an answer piece by piece; nothing when it is to come as one JSON object."""

    def __init__(self, waiting: "_Waiting", *, quiet: bool) -> None:
        self.gap = "\n\n"
        self._waiting = waiting
        self._quiet = quiet

    def take(self, text: str) -> None:
        self._waiting.stop()
        self.gap = "\n" if text.endswith("\n") else "\n\n"
        if not self._quiet:
            render.write_piece(render.safe(text))


class _Waiting:
    """Shows on a person's terminal that somebody is at work, until it is stopped."""

    def __init__(self, text: str, *, quiet: bool) -> None:
        self._text = text
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._shows = not quiet and is_terminal() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> "_Waiting":
        if self._shows:
            self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the line off the terminal; nothing else may be written before this returns."""
        self._done.set()
        if self._shows:
            self._thread.join()

    def _show(self) -> None:
        started = time.monotonic()
        line = ""
        while not self._done.wait(_TICK_S):
            line = f"{self._text}, {time.monotonic() - started:.0f} s"
            _to_terminal(f"\r{line}")
        if line:
            _to_terminal(f"\r{' ' * len(line)}\r")


def _to_terminal(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _print(answer: "AskAnswer", args: argparse.Namespace, *, gap: str) -> None:
    if args.json:
        render.write_json(answer)
        return
    notice(answer.note, quiet=args.quiet)
    if args.dry_run and answer.prompt:
        whom = answer.agent
        whom += "" if whom in answer.installed else ", which is not installed here"
        render.write(f"This would be sent to {whom}:\n\n{render.safe(answer.prompt)}")
        return
    if answer.answer:
        render.write(gap + sources_text(answer))


def sources_text(answer: "AskAnswer") -> str:
    """Return the passages that an answer names, or all where it names none; then what it made up.

    A session that was handed over by several passages stands once, with the best of them.
    """
    from funes_ls.ask import short_names

    named = [one for one in answer.sources if one.cited]
    title = "sources" if named else "handed over (the answer names none of them)"
    names = short_names(one.session_id for one in answer.sources)
    first = {one.session_id: one for one in reversed(named or answer.sources)}
    shown = sorted(first.values(), key=lambda one: one.rank)
    lines = [f"  [{names[one.session_id]}] {one.ts} {one.harness}  {one.get}" for one in shown]
    lines += [f"not handed over, do not rely on it: [{name}]" for name in answer.unknown]
    return "\n".join([f"{title}:", *map(render.safe, lines)])
