"""Names in code and logs: which are worth asking for, and how much each weighs."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

#: A word of code; names of two letters say nothing.
_NAME = re.compile(r"[^\W\d]\w{2,79}")
#: Words of the grammars of common languages, and what stands everywhere in code.
_GRAMMAR = frozenset(
    """
    abstract and any are args array assert async auto await bool boolean break but byte case catch
    char class const constexpr continue crate data declare def default defer del delete double dyn
    elif else end enum err error except export extends extern false file final finally float fmt
    fn for foreach from func function get global goto has have host if impl implements import in
    include index init inline instanceof int interface internal into is item items key keyof kwargs
    lambda len let list local long loop main map match mod module move mut namespace native new
    nil none nonlocal not null nullptr number object operator option or out override package pass
    path print println private protected pub public raise range readonly ref require result return
    self set short signed sizeof some static std str string struct super switch test the this
    throw throws trait true try tuple type typedef typename typeof undefined union unknown unsafe
    unsigned use using value var vec virtual void volatile was where while with yield you your
    """.split()  # noqa: SIM905 (a hundred literals are not easier to read)
)
#: Blobs and ids: long runs of hexadecimal or of capitals and digits mixed.
_BLOB = re.compile(r"(?=\w*\d)[0-9a-fA-F]{8,}|(?=(?:\w*\d){4})(?=\w*[a-z])(?=\w*[A-Z])\w{20,}")


def names_in(text: str) -> Iterator[str]:
    """Yield the names of a text in order, without words of grammars, hashes and encoded data."""
    for found in _NAME.finditer(text):
        name = found[0].strip("_")
        if len(name) > 2 and name.lower() not in _GRAMMAR and not _BLOB.fullmatch(name):
            yield name


def file_words(path: str) -> str:
    """Return the last two names of a path: what tells a file from others wherever it lies."""
    return "/".join([name for name in path.replace("\\", "/").split("/") if name][-2:])


class Weights:
    """Gathers names with weights; a name that comes often weighs more, but never much more."""

    def __init__(self) -> None:
        """Begin with none."""
        self._weight: dict[str, float] = {}
        self._count: defaultdict[str, int] = defaultdict(int)

    def add(self, names: Iterable[str], weight: float) -> None:
        """Count names; each weighs as in the most telling place it was seen in."""
        for name in names:
            self._weight[name] = max(self._weight.get(name, 0.0), weight)
            self._count[name] += 1

    def of(self, name: str) -> float:
        """Return what a name weighs."""
        often = min(1.0 + math.log10(self._count[name] or 1) / 2, 1.5)
        return self._weight.get(name, 0.0) * often

    def heaviest(self, limit: int) -> tuple[tuple[str, float], ...]:
        """Return names with their weights, heaviest first, in the order seen where equal."""
        rated = [(name, round(self.of(name), 3)) for name in self._weight]
        return tuple(sorted(rated, key=lambda one: -one[1])[:limit])


def most_telling(lines: Iterable[str], weights: Weights, *, chars: int) -> str:
    """Return those lines, in their order, whose names weigh most, at most `chars` characters."""
    rated: list[tuple[float, int, str]] = []
    seen: set[str] = set()
    for place, line in enumerate(lines):
        text = " ".join(line.split())[:200]
        if text and text not in seen:
            seen.add(text)
            rated.append((sum(weights.of(name) for name in set(names_in(text))), place, text))
    kept: list[tuple[int, str]] = []
    for _, place, text in sorted(rated, key=lambda one: (-one[0], one[1])):
        if len(text) < chars:
            kept.append((place, text))
            chars -= len(text) + 1
        if chars < 20:
            break
    return "\n".join(text for _, text in sorted(kept))
