"""How well a diff or an error finds what was said around it; prints a line for each kind.

    FUNES_HOME=… python benchmarks/artefact.py TRACES [--raw]

The memory of $FUNES_HOME must hold TRACES, a folder of traces. Of every session some outputs with
errors and some edits, three in a row made a diff, are asked with. The turns they come from do not
count as hits, nor do copies of their text. *near*: the first other hit within 12 steps of them,
where the error was talked of and mended, the edit asked for and explained. *session*: the first
of the same session. `--raw` asks with the text as it stands, as a typed question.
"""

import argparse
import difflib
import json
import os
import random
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from funes_ls import parsing, service
from funes_ls.indexer.model import Problem, Turn
from funes_ls.indexer.settings import load_settings
from funes_ls.memories import KeptOpen
from funes_ls.protocol import ArtefactParams, RecallParams
from funes_ls.retrieval.answers import Hit

_ERROR = re.compile(
    r"Traceback \(most|^error(\[E\d+\])?:|error TS\d+|panicked at|\bException\b.*\n\s+at |^FAILED "
    r"|^E   |npm ERR!|\w+Error: |: error: |--- FAIL|SyntaxError|command not found|ENOENT",
    re.MULTILINE,
)
#: Tools whose output quotes files and pages.
_READERS = ("Read", "read", "Grep", "Glob", "WebFetch", "WebSearch")
_FEWEST_TURNS = 8
_ERRORS, _DIFFS, _EDITS = 40, 16, 3
_K, _CUT, _NEAR = 40, 10, 12
#: A typed question may not be longer.
_RAW_CHARS = 19_000


class Case(Struct, frozen=True, kw_only=True):
    """What is asked with, and the turns it comes from."""

    kind: Literal["diff", "trace"]
    text: str
    session_id: str
    turns: frozenset[str]
    seqs: tuple[int, ...]


class Edit(Struct, frozen=True, kw_only=True):
    """One replacement in a file."""

    turn: Turn
    path: str
    old: str
    new: str


def main() -> None:
    """Ask with every case and print the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("traces", type=Path)
    parser.add_argument("--raw", action="store_true", help="ask with the text as it stands")
    args = parser.parse_args()
    settings, _ = load_settings(os.environ)
    memories = KeptOpen(settings)
    service.recall(RecallParams(query="warm up"), memories)
    ranks: dict[str, list[tuple[int | None, int | None]]] = defaultdict(list)
    took_ms: dict[str, list[float]] = defaultdict(list)
    for case in cases(args.traces):
        started = time.perf_counter()
        answer = service.recall(asked(case, raw=args.raw), memories)
        took_ms[case.kind].append((time.perf_counter() - started) * 1000)
        ranks[case.kind].append(ranks_of(answer.hits, case))
    memories.close()
    print("| asked with | cases | near MRR | near hit@5 | session MRR | p50 ms |")
    print("|---|---|---|---|---|---|")
    for kind, found in ranks.items():
        near, session = [one for one, _ in found], [one for _, one in found]
        print(
            f"| {kind} | {len(found)} | {mrr(near):.3f} | {hits(near, 5):.3f} "
            f"| {mrr(session):.3f} | {statistics.median(took_ms[kind]):.0f} |"
        )


def asked(case: Case, *, raw: bool) -> RecallParams:
    """Return the question; age does not count."""
    if raw:
        return RecallParams(query=case.text[:_RAW_CHARS], k=_K, neighbors=0, half_life=0.0)
    artefact = ArtefactParams(kind=case.kind, text=case.text)
    return RecallParams(artefact=artefact, k=_K, neighbors=0, half_life=0.0)


def cases(traces: Path) -> Iterator[Case]:
    """Yield what is asked with, the same for the same traces."""
    chance = random.Random(7)
    for parsed in parsing.parse(traces):
        if isinstance(parsed, Problem):
            continue
        turns = [one for one in parsing.items_of(parsed) if not isinstance(one, Problem)]
        if len(turns) < _FEWEST_TURNS:
            continue
        errors, edits = list(errors_of(turns)), list(edits_of(turns))
        yield from chance.sample(errors, min(_ERRORS, len(errors)))
        diffs = [diff_of(edits[at : at + _EDITS]) for at in range(0, len(edits), _EDITS)]
        yield from chance.sample(diffs, min(_DIFFS, len(diffs)))


def errors_of(turns: Sequence[Turn]) -> Iterator[Case]:
    """Yield the outputs of tools that tell of errors."""
    for turn in turns:
        for block in turn.blocks:
            is_output = block.block_type == "tool_result" and block.tool_name not in _READERS
            if is_output and 80 < len(block.text) < 60_000 and _ERROR.search(block.text):
                yield Case(
                    kind="trace",
                    text=block.text,
                    session_id=turn.session_id,
                    turns=frozenset([turn.turn_uuid]),
                    seqs=(turn.seq,),
                )


def edits_of(turns: Sequence[Turn]) -> Iterator[Edit]:
    """Yield the replacements that calls of Claude Code and pi ask for."""
    for turn in turns:
        for block in turn.blocks:
            if block.block_type == "tool_use" and block.tool_name in ("Edit", "edit"):
                found = _decoded(block.text)
                old, new = (
                    found.get(f"{side}_string") or found.get(f"{side}Text")
                    for side in ("old", "new")
                )
                path = found.get("file_path") or found.get("path")
                if isinstance(old, str) and isinstance(new, str) and isinstance(path, str):
                    yield Edit(turn=turn, path=path.lstrip("/"), old=old, new=new)


def _decoded(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def diff_of(edits: Sequence[Edit]) -> Case:
    """Return edits as one diff."""
    text = ""
    for edit in edits:
        names = (f"a/{edit.path}", f"b/{edit.path}")
        lines = difflib.unified_diff(
            edit.old.splitlines(), edit.new.splitlines(), *names, lineterm=""
        )
        text += f"diff --git {' '.join(names)}\n" + "\n".join(lines) + "\n"
    return Case(
        kind="diff",
        text=text,
        session_id=edits[0].turn.session_id,
        turns=frozenset(edit.turn.turn_uuid for edit in edits),
        seqs=tuple(edit.turn.seq for edit in edits),
    )


def ranks_of(found: Sequence[Hit], case: Case) -> tuple[int | None, int | None]:
    """Return the ranks of the first hit near the case and of the first of its session."""
    source = _plain(case.text)
    others = [hit for hit in found if not _is_source(hit, case, source)]
    near = session = None
    for rank, hit in enumerate(others, 1):
        if case.session_id not in (hit.session_id, *hit.also_in):
            continue
        session = session or rank
        if min(abs(hit.seq - seq) for seq in case.seqs) <= _NEAR:
            return rank, session
    return near, session


def _is_source(hit: Hit, case: Case, source: str) -> bool:
    """Tell whether a hit is what is asked with, a copy of it, or an edit's own output."""
    is_output = hit.session_id == case.session_id and hit.seq - 1 in case.seqs
    return (
        hit.turn_uuid in case.turns
        or _plain(hit.text.split("] ", 1)[-1])[:300] in source
        or (case.kind == "diff" and is_output)
    )


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text)


def mrr(ranks: Sequence[int | None]) -> float:
    """Return the mean of 1/rank, 0 for what is not among the first ten."""
    return sum(1 / rank for rank in ranks if rank and rank <= _CUT) / max(len(ranks), 1)


def hits(ranks: Sequence[int | None], cut: int) -> float:
    """Return the share of ranks up to a cut."""
    return sum(1 for rank in ranks if rank and rank <= cut) / max(len(ranks), 1)


if __name__ == "__main__":
    main()
