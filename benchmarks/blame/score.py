"""Counts right and wrong claims, line by line."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from benchmarks.blame.variants import EDITED, HUMAN, Case

FACTS = ("exact", "moved")
COLUMNS = (
    "cases",
    "lines",
    "P(exact)",
    "P(moved)",
    "P(similar)",
    "recall",
    "recall moved",
    "false human",
    "false base",
    "edited exact",
)


class Score:
    """Sums of one variant."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._count: Counter[str] = Counter()

    def add(self, case: Case, answer: Mapping[str, Any]) -> None:
        """Count a case's lines against an answer of `funes/blame`."""
        asks = {(turn["session_id"], turn["turn_uuid"]): turn["ask"] for turn in answer["turns"]}
        claims: dict[int, tuple[str, str]] = {}
        for one in answer["lines"]:
            ask = asks[one["session_id"], one["turn_uuid"]]
            for line in range(one["start"] - 1, one["end"]):
                claims[line] = (one["confidence"], ask)
        self._count["cases"] += 1
        for line, (truth, kind) in enumerate(zip(case.truth, case.kinds, strict=True)):
            if kind != "soft":
                self._line(kind, truth, *claims.get(line, ("", "")))

    def _line(self, kind: str, truth: str, word: str, ask: str) -> None:
        count = self._count
        count["lines"] += 1
        is_right = bool(word) and ask == truth
        if word and kind != EDITED:
            count[f"said {word}"] += 1
            count[f"rightly {word}"] += is_right
        if kind == EDITED:
            count["edited"] += 1
            count["edited exact"] += word == "exact"
        elif kind == HUMAN or not truth:
            name = kind or "base"
            count[name] += 1
            count[f"{name} claimed"] += word in FACTS
        else:
            name = kind or "agent"
            count[name] += 1
            count[f"{name} found"] += is_right

    def row(self) -> dict[str, float | None]:
        """Return the figures by column; shares are from 0 to 1, None where nothing was counted."""
        count = self._count

        def share(part: str, whole: str) -> float | None:
            return round(count[part] / count[whole], 4) if count[whole] else None

        return {
            "cases": count["cases"],
            "lines": count["lines"],
            "P(exact)": share("rightly exact", "said exact"),
            "P(moved)": share("rightly moved", "said moved"),
            "P(similar)": share("rightly similar", "said similar"),
            "recall": share("agent found", "agent"),
            "recall moved": share("moved found", "moved"),
            "false human": share("human claimed", "human"),
            "false base": share("base claimed", "base"),
            "edited exact": share("edited exact", "edited"),
        }


def table(rows: Mapping[str, Mapping[str, float | None]]) -> str:
    """Return figures as a Markdown table, one row a variant."""
    lines = ["| variant | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, row in rows.items():
        cells = ["–" if row[column] is None else f"{row[column]:g}" for column in COLUMNS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
