"""Takes names apart the way people search for them.

The words index splits at every sign, so `src/core/flux.py` and `max_retry` are runs of words there,
and a name in a question is asked as such a run. What that loses is added here as further words:
the parts of `maxRetryCount` and `HTTPServer`, languages named by a sign (`C++`), and the pairs of
characters of scripts that are written without spaces.
"""

import itertools
import re
from functools import lru_cache

#: Bytes by kind, so that a change of case is found by plain search, at memory speed: `a` small or
#: digit, `A` capital, space for all else.
_KINDS = (
    bytes(
        ord("A") if chr(byte).isupper() else ord("a") if chr(byte).isalnum() else ord(" ")
        for byte in range(128)
    )
    + b" " * 128
)
_CHANGES = (b"aA", b"AAa")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
#: More parts than this, and it is not a name but encoded data.
_MOST_HUMPS = 8
_LONGEST = 80
#: Languages named by a letter and a sign, of which splitting would leave the letter.
_SIGNED = {
    "C++": ("cplusplus", re.compile(r"\bc\+\+", re.IGNORECASE)),
    "C#": ("csharp", re.compile(r"\bc#", re.IGNORECASE)),
    "F#": ("fsharp", re.compile(r"\bf#", re.IGNORECASE)),
}
#: What stands for such a language in the index: as good as a word of the text.
SIGNED_WORDS = frozenset(word for word, _ in _SIGNED.values())

#: Names as people type them: words joined by signs, with no space between.
_NAME = re.compile(r"[^\W_]+(?:[^\w\s,;()\[\]{}<>|\"“”?!]{0,3}_{0,3}[^\W_]+)+|\w+")
_HEX = re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{7,}")
#: Lengths to which people cut a commit's or a file's hash.
_SHORT_HASHES = (7, 8, 10, 12)

#: Scripts written without spaces between words, and Hangul, whose words carry endings.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007"
    "\u3040-\u30ff\u3100-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af]+"
)
_PICTOGRAPHS = re.compile("[\U0001f000-\U0001faff]")
#: Every byte but those that begin one of the above in UTF-8; most text that is not ASCII has none.
_OTHER_BYTES = bytes(set(range(256)) - {0xE0, 0xE1, *range(0xE3, 0xEE), 0xEF, 0xF0})


def further_words(text: str) -> list[str]:
    """Return words that a text holds but that splitting at signs does not give, in no order."""
    words: list[str] = []
    for humped in _humped(text):
        words += humps(humped.decode("ascii"))
    if "#" not in text and "++" not in text:
        return words
    for name, (word, pattern) in _SIGNED.items():
        # The plain look first: it costs nothing, and hardly any text has one of these.
        if (name in text or name.lower() in text) and pattern.search(text):
            words.append(word)
    return words


def _humped(text: str) -> dict[bytes, None]:
    """Return the words of ASCII letters and digits in which the case changes, each once."""
    data = text.encode("utf-8", "replace")
    kinds = data.translate(_KINDS)
    names: dict[bytes, None] = {}
    for change in _CHANGES:
        at = kinds.find(change)
        while at >= 0:
            end = kinds.find(b" ", at)
            if end < 0:
                end = len(kinds)
            names[data[kinds.rfind(b" ", 0, at) + 1 : end]] = None
            at = kinds.find(change, end)
    return names


@lru_cache(maxsize=65_536)
def humps(name: str) -> tuple[str, ...]:
    """Return the parts of a name in camel case, () when it has none worth finding."""
    if len(name) > _LONGEST:
        return ()
    parts = _HUMPS.findall(name)
    return tuple(part for part in parts if len(part) > 1) if 1 < len(parts) <= _MOST_HUMPS else ()


def joined_names(text: str) -> list[str]:
    """Return the names of a question that are made of several words, each once, in order."""
    return [name for name in dict.fromkeys(_NAME.findall(text)) if not name.isalnum()]


def hash_prefixes(word: str) -> list[str]:
    """Return the short forms of a lower-case hexadecimal id, [] for any other word."""
    if not _HEX.fullmatch(word):
        return []
    return [word[:size] for size in _SHORT_HASHES if size < len(word)]


def is_hash(word: str) -> bool:
    """Return whether a lower-case word looks like a hexadecimal id, whole or cut short."""
    return _HEX.fullmatch(word) is not None


def unspaced_terms(text: str, *, singles: bool = True) -> list[str]:
    """Return the bigrams of scripts without spaces, and pictographs; [] for ASCII text.

    Args:
        text: Any text, already normalised.
        singles: Also give each single character; without it only where a run has just one.
    """
    if text.isascii() or not text.encode("utf-8", "replace").translate(None, _OTHER_BYTES):
        return []
    terms = _PICTOGRAPHS.findall(text)
    for run in _UNSPACED.findall(text):
        terms.extend(first + second for first, second in itertools.pairwise(run))
        if singles or len(run) == 1:
            terms.extend(run)
    return terms
