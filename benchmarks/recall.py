"""How good and how fast recall is on a labelled set; prints a table by group.

    FUNES_HOME=… python benchmarks/recall.py QUERIES.jsonl [-k 10] [--words | --vectors]

The memory of $FUNES_HOME must hold the traces the questions are about. A line of QUERIES has
`query`, `gold` (a list of {session_id, turn_uuid, quote}) and optional `style` and `kind`. A hit
answers a question when it is a gold turn or holds a gold quote; several chunks of one turn count
once, at the best rank. How fast an open memory is, on its own rows: `benchmarks/warm.py`.
"""

import argparse
import json
import math
import os
import re
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from funes_ls import service
from funes_ls.indexer.settings import load_settings
from funes_ls.memories import KeptOpen
from funes_ls.protocol import RecallParams
from funes_ls.retrieval.answers import Hit

CUTS = (1, 5, 10)
_LONG_ID = 16
_LONG_QUOTE = 20


def main() -> None:
    """Ask every question and print the means."""
    args = _arguments()
    settings, _ = load_settings(os.environ)
    weight = 0.0 if args.words else 1.0 if args.vectors else settings.vector_weight
    lines = Path(args.queries).read_text(encoding="utf-8").splitlines()
    groups: dict[str, list[dict[str, float]]] = defaultdict(list)
    took_ms: list[float] = []
    memories = KeptOpen(settings)
    for question in (json.loads(line) for line in lines if line.strip()):
        params = RecallParams(query=question["query"], k=args.k, vector_weight=weight, neighbors=0)
        started = time.perf_counter()
        answer = service.recall(params, memories)
        took_ms.append((time.perf_counter() - started) * 1000)
        scores = score(list(answer.hits), question["gold"])
        for group in ("all", *(f"{key} {question.get(key, '-')}" for key in ("style", "kind"))):
            groups[group].append(scores)
    memories.close()
    print_table(groups)
    ordered = sorted(took_ms)
    print(
        f"\nwarm recall: p50 {statistics.median(ordered):.0f} ms, "
        f"p95 {ordered[int(0.95 * (len(ordered) - 1))]:.0f} ms"
    )


def score(hits: list[Hit], gold: list[dict[str, Any]]) -> dict[str, float]:
    """Return hit@k, reciprocal rank and nDCG@10 of one answer."""
    found: set[int] = set()
    gains: list[int] = []
    first = 0
    for rank, hit in enumerate(distinct_turns(hits), start=1):
        matching = [n for n, one in enumerate(gold) if answers(hit, one)]
        fresh = [n for n in matching if n not in found]
        if matching and not first:
            first = rank
        found.update(fresh[:1])
        gains.append(1 if fresh else 0)
    ideal = sum(1 / math.log2(n + 2) for n in range(min(10, len(gold))))
    reached = sum(gain / math.log2(n + 2) for n, gain in enumerate(gains[:10]))
    scores = {f"hit@{cut}": float(0 < first <= cut) for cut in CUTS}
    return {**scores, "mrr": 1 / first if first else 0.0, "ndcg@10": reached / ideal}


def distinct_turns(hits: list[Hit]) -> list[Hit]:
    """Return the best hit of each turn, in order."""
    best: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        best.setdefault((hit.session_id, hit.turn_uuid), hit)
    return list(best.values())


def answers(hit: Hit, gold: dict[str, Any]) -> bool:
    """Tell whether a hit is a gold turn, by its id or by the quote it holds."""
    quote = squeezed(gold.get("quote") or "")
    if hit.turn_uuid == gold["turn_uuid"] and len(hit.turn_uuid) >= _LONG_ID:
        return True
    if len(quote) >= _LONG_QUOTE and quote in squeezed(hit.text):
        return True
    if hit.session_id != gold["session_id"]:
        return False
    return hit.turn_uuid == gold["turn_uuid"] or (bool(quote) and quote in squeezed(hit.text))


def squeezed(text: str) -> str:
    """Return text with every run of white space as one space."""
    return re.sub(r"\s+", " ", text).strip()


def print_table(groups: dict[str, list[dict[str, float]]]) -> None:
    """Print the mean of every measure for each group."""
    columns = [*(f"hit@{cut}" for cut in CUTS), "mrr", "ndcg@10"]
    print(f"| group | n | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 2)}")
    for name in sorted(groups, key=lambda one: (one != "all", one)):
        scores = groups[name]
        means = (sum(one[column] for one in scores) / len(scores) for column in columns)
        print(f"| {name} | {len(scores)} | {' | '.join(f'{mean:.3f}' for mean in means)} |")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries", help="labelled questions, one JSON object a line")
    parser.add_argument("-k", type=int, default=10)
    leg = parser.add_mutually_exclusive_group()
    leg.add_argument("--words", action="store_true", help="the words leg alone")
    leg.add_argument("--vectors", action="store_true", help="the vector leg alone")
    return parser.parse_args()


if __name__ == "__main__":
    main()
