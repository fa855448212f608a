"""Other ways to read a text, in which a secret stands in one piece, and the way back.

Colours stand between a name and its value, quotes are escaped (once or more), a line was wrapped, a
string is put together from two.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

#: The characters in front let the search pass over all others quickly.
_ESCAPES = re.compile(
    r"[\x1b\\\x00&%\u200b\ufeff\u00ad](?:"
    r"(?<=\x1b)(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\))"
    r"|(?<=\\)(?<!\\\\)\\*(?:(?:u001[bB]|x1[bB]|033|e)\[[0-9;?]*[ -/]*[@-~]"
    r"|u[0-9a-fA-F]{4}|x[2-7][0-9a-fA-F]|[\"'/nrt])"
    r"|(?<=&)(?:quot|apos|amp|#34|#39|#x27);|(?<=%)(?:3[ADad]|2[267BbFf]|40)"
    r"|(?<=[\x00\u200b\ufeff\u00ad]))"
)
_PARTED = re.compile(f"({_ESCAPES.pattern})")
_SPACES = {"n": "\n", "r": "\r", "t": "\t"}
_ENTITIES = {"&quot;": '"', "&#34;": '"', "&apos;": "'", "&#39;": "'", "&#x27;": "'", "&amp;": "&"}
#: A wrapped line, or two strings put together. Which of them part a token is looked at afterwards.
_RUN = r"[A-Za-z0-9_+/=.~!@#%^&*-]"
_JOINS = re.compile(
    r"[\"'`\n\r\\](?:"
    rf"(?<={_RUN}{{6}}[\"'`])[ \t]*(?:\+|\.|\\|\|\||&|,)?[ \t]*(?:\r?\n)?[ \t]*(?:\+|\.|&)?"
    r"[ \t]*[bfru]?[\"'`](?=[\w+/.=~!@#%^&*-]{4})"
    rf"|(?:(?<={_RUN}{{6}}\n)|(?<={_RUN}{{6}}[\r\\])\n)"
    r"[ \t]*(?:[+>|][ \t]?|\d+(?:→|\t|:[ \t]?))?[ \t]*(?=[A-Za-z0-9_+/=.-]{6}))"
)
_RUN_BACK = re.compile(rf"{_RUN}*")
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[A-Za-z]")
_RUN_AFTER = re.compile(r"[A-Za-z0-9_+/=.~-]*")
#: How tokens begin that tell what they are; any word may be the rest of one.
_KNOWN = re.compile(
    r"(?:\b|_)(?:gh[pousr]_|github_pat_|gl[a-z]{2,5}-|sk[-_]|[rp]k_|xox[a-z]-|xapp-|hf_|npm_|pypi-"
    r"|AKIA|ASIA|AIza|SG\.|ya29\.|eyJ|hv[sb]\.|dop_v1_|shp[a-z]{2}_)[\w.-]*$"
)
_MARKED = re.compile(r"[_.-]|A[KIS]I|eyJ")
#: Shortest piece before a join, widest text around one, most joins looked at together.
_LEAST, _AROUND = 6, 400
#: No name before a `=` is so long.
_NAME = 32


Piece = tuple[int, int, str]


class View:
    """A text with pieces replaced, and where each character of it came from.

    Where that was is made out when it is first asked: most views hold nothing.
    """

    def __init__(
        self, text: str, pieces: Callable[[], Iterable[Piece]], *, offset: int = 0
    ) -> None:
        """Keep what a text has become.

        Args:
            text: With its pieces replaced.
            pieces: Returns them: start and end in what it was, what stands instead; in order.
            offset: Of what it was.
        """
        self.text = text
        self._pieces = pieces
        self._offset = offset
        self._at: list[int] = []
        self._from: list[int] = []
        self._len: list[int] = []

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return where a span of the view stands in the text."""
        if not self._at:
            self._make_out()
        first = bisect_right(self._at, start) - 1
        last = bisect_right(self._at, end - 1) - 1
        size = self._len[last] or 1
        return (
            self._from[first] + (0 if self._len[first] else start - self._at[first]),
            self._from[last] + (0 if self._len[last] else end - 1 - self._at[last]) + size,
        )

    def _make_out(self) -> None:
        self._note(0, self._offset, 0)
        position = length = 0
        for start, end, instead in self._pieces():
            length += start - position
            if instead:
                self._note(length, start + self._offset, end - start)
            length += len(instead)
            self._note(length, end + self._offset, 0)
            position = end

    def _note(self, at: int, origin: int, size: int) -> None:
        self._at.append(at)
        self._from.append(origin)
        self._len.append(size)


def plain(text: str) -> View | None:
    """Return the text without colours and escapes; None where it has none."""
    if not _may_have_escapes(text):
        return None
    parts = _PARTED.split(text)
    if len(parts) == 1:
        return None
    parts[1::2] = map(_meant, parts[1::2])  # quicker than a call for each
    return View("".join(parts), lambda: _escapes(text))


def _may_have_escapes(text: str) -> bool:
    """Return whether there is what one begins with: each looked for is quicker than all at once."""
    if "\\" in text or "%" in text or "&" in text or "\x1b" in text or "\x00" in text:
        return True
    if text.isascii():
        return False
    return "\u200b" in text or "\ufeff" in text or "\u00ad" in text


def _escapes(text: str) -> Iterator[Piece]:
    for found in _ESCAPES.finditer(text):
        yield found.start(), found.end(), _meant(found[0])


@lru_cache(maxsize=4096)
def _meant(escape: str) -> str:
    if escape[0] == "\\":
        name = escape.lstrip("\\")
        if len(name) > 1 and "[" in name:
            return ""  # a colour
        if name[0] in "ux" and len(name) in (3, 5):
            char = chr(int(name[1:], 16))
            return char if char.isascii() and char != "\x00" else " "
        return _SPACES.get(name, name)
    if escape[0] == "%":
        return chr(int(escape[1:], 16))
    return _ENTITIES.get(escape, "")


def joined(text: str) -> Iterator[View]:
    """Yield pieces of the text in which what a wrap or a concatenation parts is put together."""
    group: list[Piece] = []
    reach = -1
    for found in _JOINS.finditer(text):
        start, end = found.span()
        if not _parts_a_token(text, start, end):
            continue
        if group and start > reach:
            yield _window(text, group)
            group = []
        group.append((start, end, ""))
        reach = end + _AROUND
    if group:
        yield _window(text, group)


def _window(text: str, joins: list[Piece]) -> View:
    start = max(0, joins[0][0] - _AROUND)
    end = min(len(text), joins[-1][1] + _AROUND)
    parts, position = [], start
    for a, b, _ in joins:
        parts.append(text[position:a])
        position = b
    parts.append(text[position:end])
    pieces = [(a - start, b - start, instead) for a, b, instead in joins]
    return View("".join(parts), lambda: pieces, offset=start)


def _parts_a_token(text: str, start: int, end: int) -> bool:
    """Return whether both sides look like halves of one value."""
    after = _RUN_AFTER.match(text, end, end + 120)
    right = after[0] if after else ""
    if len(right) < 4:
        return False
    is_dense = _is_dense(right)
    if not (is_dense or right.isalnum()):
        return False
    before = _RUN_BACK.match(text[max(0, start - 120) : start][::-1])
    left = before[0][::-1] if before else ""
    if len(left) < _LEAST:
        return False
    if not (is_dense and _is_dense(left)) and not _is_known(left):
        return False
    name, parted, _ = right.rstrip("=").partition("=")
    if parted and (len(name) < _NAME or not _is_dense(name)):
        return False  # a name, and not the rest of a value
    return text[end + len(right) : end + len(right) + 1] not in (":", "(")


def _is_known(run: str) -> bool:
    """Return whether a token that tells what it is ends there; few runs have signs of one."""
    return _MARKED.search(run) is not None and _KNOWN.search(run) is not None


def _is_dense(run: str) -> bool:
    return _DIGIT.search(run) is not None and _LETTER.search(run) is not None
