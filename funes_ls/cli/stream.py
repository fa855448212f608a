"""`funes recall --stream`: what words find at once, then the final order in its place."""

import argparse
import os
import sys
import unicodedata
from collections.abc import Mapping
from typing import Any

from funes_ls import render
from funes_ls.cli.asking import answer_to
from funes_ls.cli.output import notice, use_color
from funes_ls.sending import Params, as_object

_WAITING = {
    "words": "… by words so far; the final order follows",
    "fused": "… the best are being read; the final order follows",
}
_DIM, _RESET = "\x1b[2m", "\x1b[0m"


def stream(params: Params, args: argparse.Namespace) -> int:
    """Print an answer in stages: redrawn for a person, else a JSON line for each stage."""
    if args.json or not can_redraw():
        _json_lines(params, args)
    else:
        _redrawn(params, args)
    return 0


def can_redraw() -> bool:
    """Return whether stdout is a terminal whose cursor can be moved."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def _json_lines(params: Params, args: argparse.Namespace) -> None:
    def partial(answer: Any) -> None:
        render.write_json(_staged(_stage_of(as_object(answer).legs), answer))

    answer = answer_to("funes/recall", params, args, on_partial=partial)
    render.write_json(_staged("final", answer))


def _stage_of(legs: Mapping[str, str]) -> str:
    """Return what an answer is of that is not the last: words alone, or all but a reranker."""
    return "words" if legs.get("vector") == "pending" else "fused"


def _staged(stage: str, answer: Any) -> dict[str, Any]:
    """Return an answer with its stage before all else."""
    if isinstance(answer, dict):
        return {"stage": stage, **answer}
    return {"stage": stage, **{name: getattr(answer, name) for name in answer.__struct_fields__}}


def _redrawn(params: Params, args: argparse.Namespace) -> None:
    rows = 0

    def partial(answer: Any) -> None:
        nonlocal rows
        size = os.get_terminal_size(1)
        found = as_object(answer)
        text = render.recall_text(found, explain=args.explain)
        lines = fitted(text, columns=size.columns, rows=size.lines - 2)
        dim, reset = (_DIM, _RESET) if use_color(True) else ("", "")
        waiting = clipped(_WAITING[_stage_of(found.legs)], size.columns)
        render.erase(rows)
        render.write("\n".join([*lines, f"{dim}{waiting}{reset}"]))
        rows = len(lines) + 1

    try:
        answer = as_object(answer_to("funes/recall", params, args, on_partial=partial))
    finally:
        render.erase(rows)
    notice(answer.note, quiet=args.quiet)
    render.write(render.recall_text(answer, explain=args.explain))


def fitted(text: str, *, columns: int, rows: int) -> list[str]:
    """Return the lines of a text that fit a screen, each cut to one row."""
    return [clipped(line, columns) for line in text.rstrip("\n").split("\n")[: max(rows, 1)]]


def clipped(line: str, columns: int) -> str:
    """Return as much of a line as one row of a terminal shows."""
    width = 0
    for index, char in enumerate(line.expandtabs()):
        width += _width(char)
        if width >= columns:  # the last column stays free: some terminals wrap when it is filled
            return line.expandtabs()[:index]
    return line.expandtabs()


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
