"""Finds the turns of hand-written questions: `python -m benchmarks.quality.label DRAFT > FILE`.

A line of DRAFT is `style kind | question | session#quote ;; session#quote`; style is `p`
(paraphrase), `x` (exact), `d` (it names a date, an agent or a session) or `n` (a question nobody
answered), a session the number of its script. Every quote must stand in that session, or the draft
is refused.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.quality.measures import squeezed
from benchmarks.quality.sample_memory import make_memory, scripts
from funes_ls.indexer.memory import open_memory
from funes_ls.indexer.model import Chunk
from tests.traces import claude, codex, hermes, parquet, pi
from tests.traces.ids import digest
from tests.traces.script import Script

_IDS: dict[str, Callable[[Script], str]] = {
    "claude": claude.session_id,
    "codex": codex.session_id,
    "pi": pi.stem,
    "hermes": hermes.session_id,
    "parquet": parquet.session_id,
}
_STYLES = {"p": "paraphrase", "x": "exact", "d": "named", "n": "paraphrase"}


def main() -> None:
    """Print one JSON object for each line of the draft."""
    draft = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory(prefix="funes-label-") as folder:
        settings = make_memory(Path(folder), model=None)
        memory = open_memory(settings.memory_dir, derived=settings.home / "derived")
        rows = list(memory.catalog.next_pending(1_000_000))
        memory.close()
    for number, line in enumerate(one for one in draft if one.strip()):
        print(json.dumps(_question(number, line, rows), ensure_ascii=False))


def _question(number: int, line: str, rows: list[Chunk]) -> dict[str, Any]:
    head, query, *rest = (part.strip() for part in line.split(" | "))
    style, kind = head.split()
    gold = [one for spot in (rest[0].split(" ;; ") if rest else []) for one in _gold(spot, rows)]
    return {
        "qid": f"q{number:03d}",
        "query": query,
        "style": _STYLES[style],
        "kind": kind,
        "gold": gold,
    }


def _gold(spot: str, rows: list[Chunk]) -> list[dict[str, str]]:
    number, _, quote = spot.strip().partition("#")
    script = next(one for one in scripts() if one.name.startswith(f"{number}-"))
    ends_with = known_as(script)
    found = [row for row in rows if squeezed(quote) in squeezed(row.text)]
    there = {(row.session_id, row.turn_uuid) for row in found if ends_with in row.session_id}
    if not there:
        raise SystemExit(f"{script.name} ({ends_with}) does not hold {quote!r}")
    return [
        {"session": script.name, "session_id": session, "turn_uuid": turn, "quote": quote}
        for session, turn in sorted(there)
    ]


def known_as(script: Script) -> str:
    """Return what the session id of a script is, or ends with."""
    if "subagent" in script.head.get("variant", "") and script.head["harness"] == "claude":
        return f"agent-{digest('agent', script.name)[:8]}"
    return _IDS[script.head["harness"]](script)


if __name__ == "__main__":
    main()
