"""Turns answers into text, and is the one place that writes to stdout.

The agent layouts of `recall` and `get` are a contract (README, "Output"; pinned by tests/golden).
Recalled text is data: control sequences and bidirectional overrides never reach a terminal.

An answer is a struct, or an object with the same attributes read from an engine's JSON; nothing
here needs more than the standard library.
"""

import contextlib
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from funes_ls.indexer.errors import BackendError

if TYPE_CHECKING:
    from funes_ls.retrieval.answers import GetAnswer, Hit, RecallAnswer, Revisit, TurnView
    from funes_ls.retrieval.artefact import Asked

#: C0 but tab and newline, DEL, C1, and the characters that reorder or hide text.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NEIGHBOR_CHARS = 160
_SHORT_ID = 8


def write(text: str) -> None:
    """Write an answer to stdout, with a final newline; a reader that went away is no error.

    Raises:
        BackendError: stdout is closed, or what it leads to cannot be written.
    """
    if text:
        _emit(text if text.endswith("\n") else text + "\n")


def write_piece(text: str) -> None:
    """Write a part of an answer that goes on; nothing is added to it."""
    if text:
        _emit(text)


def erase(rows: int) -> None:
    """Take the last rows that were written off the terminal, the cursor standing below them."""
    if rows:
        _emit(f"\x1b[{rows}A\r\x1b[J")


def _emit(text: str) -> None:
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    if sys.stdout is None:
        raise BackendError("Standard output is closed; there is nowhere to write the answer to.")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as exc:
        # The interpreter flushes stdout once more at exit; give it something that works.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(exc, BrokenPipeError):
            reason = exc.strerror or "error"
            raise BackendError(f"The answer could not be written ({reason}).") from exc


def write_json(answer: object) -> None:
    """Write one JSON object on one line; characters a terminal would obey are escaped."""
    write(to_json(answer))


def to_json(answer: object) -> str:
    """Return compact JSON in which unsafe characters stand as escapes.

    The same for a struct and for what its JSON was read into.
    """
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _plain(value: object) -> object:
    """Return a struct as dicts and lists."""
    import msgspec

    return msgspec.to_builtins(value, enc_hook=str)  # a path is no JSON


def safe(text: str) -> str:
    """Return recalled text without what a terminal would obey instead of show."""
    return _UNSAFE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 session`, `2,000 sessions`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


#: Stands before hits that may be no answer.
WEAK_TEXT = "? weak match: perhaps nothing here answers; these are the nearest passages\n---\n"


def recall_text(answer: "RecallAnswer", *, explain: bool = False) -> str:
    """Return hits in the agent layout, the same in a terminal and in a pipe."""
    asked = asked_text(answer.asked) if answer.asked else ""
    asked += WEAK_TEXT if answer.weak else ""
    if not answer.hits:
        return f"{asked}no results\n"
    return asked + "".join(_hit_text(hit, explain=explain) for hit in answer.hits)


def _suffix(memory: str) -> str:
    """Return what names a memory on a command line."""
    return "" if memory in ("", "local") else f" --memory {shlex.quote(safe(memory))}"


def asked_text(asked: "Asked") -> str:
    """Return, as one line, what an artefact was understood to ask."""
    more = asked.files_total - len(asked.files)
    files = [_one_line(path) for path in asked.files]
    parts = (
        _one_line(asked.said),
        ", ".join([*files, f"{more} more"] if more > 0 else files),
        " ".join(_one_line(name) for name in asked.names),
    )
    return f"? {asked.kind}: {' · '.join(part for part in parts if part)}\n---\n"


def _hit_text(hit: "Hit", *, explain: bool) -> str:
    suffix = _suffix(hit.memory)
    place = safe(hit.cwd or hit.workdir or "-")
    session = safe(hit.session_id)
    turn = shlex.quote(safe(hit.turn_uuid)) if hit.turn_uuid else "''"
    lines = [
        f"[{safe(hit.ts)}] {safe(hit.harness) or '-'} {place}/{session[:_SHORT_ID]} "
        f"{safe(hit.block_type)}  score={hit.score:.3f}",
        f"  → get {shlex.quote(session)} {turn}{suffix}",
    ]
    if explain:
        lines.append(f"  {_explain_text(hit)}")
    lines.append(safe(hit.text))
    if hit.also_in:
        lines.append(f"  = also in {' '.join(safe(other) for other in hit.also_in)}")
    if hit.revisited:
        lines.append(_revisit_text(hit.revisited, suffix))
    lines += [
        f"  ~ [{safe(near.role)} {safe(near.block_type)} seq{near.seq}] {_one_line(near.text)}"
        for near in hit.neighbors
    ]
    return "\n".join([*lines, "---", ""])


def _revisit_text(later: "Revisit", suffix: str) -> str:
    what = f"{_one_line(later.path)} changed" if later.how == "file" else "said"
    turn = shlex.quote(safe(later.turn_uuid)) if later.turn_uuid else "''"
    get = f"get {shlex.quote(safe(later.session_id))} {turn}{suffix}"
    return f"  > revisited [{safe(later.ts)}] {what} again → {get}"


def _one_line(text: str) -> str:
    return " ".join(safe(text)[:_NEIGHBOR_CHARS].split())


def _explain_text(hit: "Hit") -> str:
    why = hit.explain
    legs = [
        f"{name} #{rank} ({score:.3f})" if rank is not None and score is not None else f"{name} -"
        for name, rank, score in (
            ("words", why.words, why.words_score),
            ("vector", why.vector, why.vector_score),
        )
    ]
    return f"? {', '.join(legs)}; fused {why.fused:.3f} × prior {why.prior:g} × age {why.age:.3f}"


def get_text(answer: "GetAnswer") -> str:
    """Return turns in the agent layout; a fixed sentence when the turn is not there."""
    if not answer.found:
        if not answer.harness:
            return f"no session {safe(answer.session_id)}\n"
        return f"no turn {safe(answer.turn_uuid)} in session {safe(answer.session_id)}\n"
    return "".join(_turn_text(turn) for turn in answer.turns)


def _turn_text(turn: "TurnView") -> str:
    body = "\n\n".join(safe(block.text) for block in turn.blocks)
    head = f"[{safe(turn.ts)}] {turn.role} seq{turn.seq} turn={safe(turn.turn_uuid)}"
    return f"{head}\n{body}\n---\n"


def table(rows: Iterable[tuple[str, ...]], *, header: tuple[str, ...]) -> str:
    """Return left-aligned columns as wide as their widest cell, two spaces apart."""
    cells = [header, *[tuple(safe(cell).replace("\n", " ") for cell in row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in cells
    )
