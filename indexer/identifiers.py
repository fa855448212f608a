"""Takes names apart the way people search for them: whole, by last part, and by parts.

Names are what a stemmed word index loses: `maxRetryCount`, `src/core/flux.py`, `--half-life`,
`C++`, `#4821`, `ops@example.org`. Each is kept whole, lower-cased, and split; plain words are left
to the word index.
"""

import itertools
import re
from collections.abc import Iterable
from functools import lru_cache

#: Characters that end a name wherever they stand; all others may be part of one.
_BREAKS = "\"'`,;(){}[]<>|=&?!\u2018\u2019\u201c\u201d\u2026"
_TABLE = str.maketrans({char: " " for char in _BREAKS})
_EDGE = ".:"
_WORD_EDGE = _EDGE + "*-_/\\~$^"
_PIECES = re.compile(r"[^\W_]+")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_A-Za-z]+")
_HEX = re.compile(r"(?=[0-9a-f]*[0-9])[0-9a-f]{7,}")
_SEPARATORS = re.compile(r"[/\\]+")
_LONGEST = 250
_MOST_HUMPS = 8
_MOST_PIECES = 24
#: Lengths at which people shorten a commit or content hash.
_SHORT_HASHES = (7, 8)


def code_terms(text: str) -> list[str]:
    """Return the terms of every name in a text, each once, in no fixed order."""
    terms: set[str] = set()
    for word in set(text.translate(_TABLE).split()):
        terms.update(split_name(word))
    return list(terms)


@lru_cache(maxsize=65_536)
def split_name(word: str) -> tuple[str, ...]:
    """Return the lower-cased terms of one name, the whole first; () for a plain word."""
    word = word.rstrip(_EDGE)
    if not word or _is_plain(word):
        return ()
    terms: dict[str, None] = {}
    _add(terms, word)
    bare = word.strip(_WORD_EDGE)
    _add(terms, bare)
    _add_path(terms, bare)
    for piece in _PIECES.findall(bare)[:_MOST_PIECES]:
        _add_piece(terms, piece)
    return tuple(terms)


def _is_plain(word: str) -> bool:
    """Tell a word the stemmed index holds as it is: one case, or a capital then small letters."""
    if word.isdigit():
        return True
    if not word.isalpha():
        return False
    return word.islower() or word.isupper() or word[1:].islower()


def _add(terms: dict[str, None], term: str) -> None:
    if 1 < len(term) <= _LONGEST:
        terms[term.lower()] = None


def _add_path(terms: dict[str, None], name: str) -> None:
    """Add the last one, two and three components, and the last name without line or suffix."""
    parts = [part for part in _SEPARATORS.split(name) if part]
    for count in (2, 3):
        if len(parts) > count:
            _add(terms, "/".join(parts[-count:]))
    last = parts[-1] if parts else name
    _add(terms, last)
    head = last.split(":", 1)[0]
    _add(terms, head)
    for dotted in last.replace("::", ".").split(":"):
        names = dotted.split(".")
        if len(names) > 2:
            _add(terms, ".".join(names[-2:]))


def _add_piece(terms: dict[str, None], piece: str) -> None:
    lower = piece.lower()
    _add(terms, lower)
    if _HEX.fullmatch(lower):
        _add_all(terms, (lower[:size] for size in _SHORT_HASHES))
        return
    humps = _HUMPS.findall(piece)
    if 1 < len(humps) <= _MOST_HUMPS:
        _add_all(terms, humps)


def _add_all(terms: dict[str, None], some: Iterable[str]) -> None:
    for term in some:
        _add(terms, term)


#: Scripts written without spaces between words (and Hangul, whose words carry endings).
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007"
    "\u3040-\u30ff\u3100-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af]+"
)
_SYMBOLS = re.compile("[\u2190-\u2bff\U0001f000-\U0001faff]")


def unspaced_terms(text: str, *, singles: bool = True) -> list[str]:
    """Return the bigrams of scripts without spaces, and pictographs; [] for ASCII text.

    Args:
        text: Any text, already normalised.
        singles: Also give each single character; without it only where a run has just one.
    """
    if text.isascii():
        return []
    terms = _SYMBOLS.findall(text)
    for run in _UNSPACED.findall(text):
        terms.extend(first + second for first, second in itertools.pairwise(run))
        if singles or len(run) == 1:
            terms.extend(run)
    return terms
