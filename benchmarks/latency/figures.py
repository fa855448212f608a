"""What was measured, as numbers with a target each, and the table of them."""

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Figure(Struct, frozen=True, kw_only=True):
    """One thing measured, once or many times.

    Attributes:
        name: What, with the load it was measured under.
        values: Milliseconds, or `unit`.
        most: Quantile (`p50`, `p95`, `p99`, `max`) -> what it may be at most; nothing is promised
            of the others.
        faults: What went wrong meanwhile; each is a missed target.
    """

    name: str
    values: tuple[float, ...]
    unit: str = "ms"
    most: dict[str, float] = {}
    faults: tuple[str, ...] = ()

    def at(self, quantile: str) -> float:
        """Return a quantile by its name, by nearest rank; NaN when nothing was measured."""
        if not self.values:
            return math.nan
        ordered = sorted(self.values)
        rank = math.ceil(QUANTILES.get(quantile, 1.0) * len(ordered))
        return ordered[max(0, rank - 1)]

    def missed(self) -> list[str]:
        """Return a line for each target that is not reached."""
        over = [
            f"{self.name}: {name} is {self.at(name):.1f} {self.unit}, at most {most:g} wanted"
            for name, most in self.most.items()
            if not self.at(name) <= most
        ]
        return over + [f"{self.name}: {fault}" for fault in self.faults]


def table(figures: Iterable[Figure]) -> str:
    """Return the figures as a Markdown table; a missed target stands in bold."""
    lines = ["| what | n | p50 | p95 | p99 | max | target |", "|---|---|---|---|---|---|---|"]
    return "\n".join([*lines, *(_line(figure) for figure in figures)])


def as_objects(figures: Iterable[Figure]) -> list[dict[str, object]]:
    """Return the figures for `--json`, without the single values."""
    return [
        {
            "name": one.name,
            "unit": one.unit,
            "n": len(one.values),
            **{name: _rounded(one.at(name)) for name in (*QUANTILES, "max")},
            "target": one.most,
            "missed": one.missed(),
        }
        for one in figures
    ]


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 2)


def _line(figure: Figure) -> str:
    single = len(figure.values) == 1
    cells = [
        "" if single and name != "max" else _cell(figure, name) for name in (*QUANTILES, "max")
    ]
    wanted = ", ".join(f"{_bare(name)}≤ {most:g}" for name, most in figure.most.items())
    unit = "" if figure.unit == "ms" else f", {figure.unit}"
    return f"| {figure.name}{unit} | {len(figure.values)} | {' | '.join(cells)} | {wanted} |"


def _bare(name: str) -> str:
    return "" if name == "max" else f"{name} "


def _cell(figure: Figure, name: str) -> str:
    value = figure.at(name)
    if math.isnan(value):
        return "–"
    text = f"{value:.0f}" if value >= 100 else f"{value:.1f}"
    missed = name in figure.most and not value <= figure.most[name]
    return f"**{text}**" if missed else text


def milliseconds(values: Sequence[float]) -> tuple[float, ...]:
    """Return seconds as milliseconds."""
    return tuple(value * 1000 for value in values)
