"""What an answer is worth: hits, ranks and gains of labelled questions.

A hit answers a question when it is a gold turn or holds a gold quote. Several chunks of one turn
count once, at the best rank; so do several hits for the same gold entry.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

CUTS = (1, 5, 10)
COLUMNS = ("hit@1", "hit@5", "hit@10", "mrr", "ndcg@10", "recall@10")
#: Shorter turn ids are counters, and shorter quotes stand in many places.
_TELLING_ID, _TELLING_QUOTE = 16, 20


class Gold(Struct, frozen=True, kw_only=True):
    """A turn that answers a question, and words that stand in it."""

    session_id: str
    turn_uuid: str
    quote: str = ""


class Labelled(Struct, frozen=True, kw_only=True):
    """A question with the turns that answer it, none for one that nothing answers.

    Attributes:
        style: How it is put: `exact` words of the text, a `paraphrase`, or one that is `named` by
            when or where it was.
        kind: What is asked for.
        memory: Name of the memory it is about, where a set has several.
        session: Name of the session that answers it, where the set tells.
        without: Ids of rows that are out of the search.
    """

    qid: str
    query: str
    gold: tuple[Gold, ...] = ()
    style: str = "-"
    kind: str = "-"
    memory: str = ""
    session: str = ""
    without: frozenset[str] = frozenset()


class Found(Struct, frozen=True, kw_only=True):
    """A passage that some system returned."""

    session_id: str
    turn_uuid: str
    text: str


def score(found: Sequence[Found], gold: Sequence[Gold]) -> dict[str, float]:
    """Return every measure of one answer."""
    seen: set[int] = set()
    gains: list[int] = []
    first = 0
    for rank, one in enumerate(distinct_turns(found), start=1):
        matching = [n for n, entry in enumerate(gold) if answers(one, entry)]
        fresh = [n for n in matching if n not in seen]
        if matching and not first:
            first = rank
        seen.update(fresh[:1])
        gains.append(1 if fresh else 0)
    ideal = sum(1 / math.log2(n + 2) for n in range(min(10, len(gold))))
    reached = sum(gain / math.log2(n + 2) for n, gain in enumerate(gains[:10]))
    hits = {f"hit@{cut}": float(0 < first <= cut) for cut in CUTS}
    return {
        **hits,
        "mrr": 1 / first if first else 0.0,
        "ndcg@10": reached / ideal if ideal else 0.0,
        "recall@10": sum(gains[:10]) / len(gold) if gold else 0.0,
    }


def distinct_turns(found: Sequence[Found]) -> list[Found]:
    """Return the best passage of each turn, in order."""
    best: dict[tuple[str, str], Found] = {}
    for one in found:
        best.setdefault((one.session_id, one.turn_uuid or squeezed(one.text)[:200]), one)
    return list(best.values())


def answers(one: Found, gold: Gold) -> bool:
    """Tell whether a passage is a gold turn, by its id or by the quote it holds.

    Session ids count only where neither says enough: the name of a file and the id in it may both
    name a session.
    """
    same_turn = one.turn_uuid == gold.turn_uuid
    quote = squeezed(gold.quote)
    if same_turn and len(one.turn_uuid) >= _TELLING_ID:
        return True
    holds = bool(quote) and quote in squeezed(one.text)
    if holds and len(quote) >= _TELLING_QUOTE:
        return True
    ours, theirs = one.session_id, gold.session_id
    if ours and ours not in theirs and theirs not in ours:
        return False
    return same_turn or holds


def squeezed(text: str) -> str:
    """Return text with every run of white space as one space."""
    return re.sub(r"\s+", " ", text).strip()


def means(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of every measure; none of no answers."""
    return (
        {name: sum(one[name] for one in scores) / len(scores) for name in COLUMNS} if scores else {}
    )


def groups_of(
    questions: Iterable[Labelled], scores: Mapping[str, dict[str, float]]
) -> dict[str, list[dict[str, float]]]:
    """Return the scores of answerable questions by group: all, each style, each kind."""
    groups: dict[str, list[dict[str, float]]] = {"all": []}
    for question in sorted(questions, key=lambda one: (one.style, one.kind)):
        if question.gold:
            for name in ("all", f"style {question.style}", f"kind {question.kind}"):
                groups.setdefault(name, []).append(scores[question.qid])
    return dict(sorted(groups.items(), key=lambda one: (one[0] != "all", one[0])))


def table(rows: Mapping[str, Sequence[Mapping[str, float]]], *, first: str = "group") -> str:
    """Return groups of scores as a Markdown table of their means."""
    lines = [f"| {first} | n | {' | '.join(COLUMNS)} |", "|" + "---|" * (len(COLUMNS) + 2)]
    for name, scores in rows.items():
        mean = means(scores)
        cells = " | ".join(f"{mean.get(column, 0.0):.3f}" for column in COLUMNS)
        lines.append(f"| {name} | {len(scores)} | {cells} |")
    return "\n".join(lines)


def of_json(raw: Mapping[str, Any], number: int) -> Labelled:
    """Return a question of a labelled file; unknown keys mean nothing here."""
    gold = tuple(
        Gold(
            session_id=str(one.get("session_id", "")),
            turn_uuid=str(one.get("turn_uuid", "")),
            quote=str(one.get("quote") or ""),
        )
        for one in raw.get("gold", ())
    )
    return Labelled(
        qid=str(raw.get("qid", number)),
        query=str(raw["query"]),
        gold=gold,
        style=str(raw.get("style", "-")),
        kind=str(raw.get("kind", "-")),
        session=str((raw.get("gold") or [{}])[0].get("session", "")),
    )
