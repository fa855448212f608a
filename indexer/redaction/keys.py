"""Private keys in blocks: PEM, PGP, OpenSSH, PuTTY; whole, cut off, numbered, quoted, escaped."""

import re
from collections.abc import Iterator

Span = tuple[int, int, str]

_NAMES = r"(?:[A-Z0-9 ]*?(?:PRIVATE KEY|SECRET KEY)(?: BLOCK)?|OpenVPN Static key V\d)"
_BEGIN = re.compile(rf"-{{4,5}} ?BEGIN {_NAMES} ?-{{4,5}}")
_END = re.compile(rf"-{{4,5}} ?END {_NAMES} ?-{{4,5}}")
_PUTTY = re.compile(r"(?:Public|Private)-Lines: ?\d+")
_MAC = re.compile(r"Private-(?:MAC|Hash): ?[0-9a-f]+")
_RUN = re.compile(r"[A-Za-z0-9+/=]{12,}")
#: What may stand between two lines of a key: numbers of lines, quotes, escapes, headers.
_BETWEEN = re.compile(
    r"(?:[\s\"'`+,>|\\]|\\+[nrt]|→|\d{1,6}(?:→|\t|: ?|\|)|"
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\r\n\\]{0,200}|\x1b\[[0-9;]*m|[A-Za-z0-9+/=]{1,11}(?=[\s\"'\\]|$))*"
)
#: No key is longer.
_LONGEST = 40_000


def blocks(text: str) -> Iterator[Span]:
    """Yield where the inside of a private key stands."""
    if "PRIVATE KEY" in text or "SECRET KEY" in text or "Static key" in text:
        yield from _pem(text)
    if "-Lines:" in text:
        yield from _putty(text)


def _pem(text: str) -> Iterator[Span]:
    ends = [(end.start(), end.end()) for end in _END.finditer(text)]
    begins = [(begin.start(), begin.end()) for begin in _BEGIN.finditer(text)]
    done = next_end = 0
    for number, (start, body) in enumerate(begins):
        if start < done:
            continue
        while next_end < len(ends) and ends[next_end][0] < body:
            if ends[next_end][0] >= done:
                yield from _before(text, done, ends[next_end][0])
                done = ends[next_end][1]
            next_end += 1
        stop = begins[number + 1][0] if number + 1 < len(begins) else len(text)
        if next_end < len(ends) and ends[next_end][0] <= min(stop, body + _LONGEST):
            stop, done = ends[next_end]
        else:
            stop = done = min(stop, _reach(text, body))
        yield from _inside(text, body, stop, "funes.private-key")
    for start, after in ends[next_end:]:
        if start >= done:
            yield from _before(text, done, start)
            done = after


def _before(text: str, first: int, end: int) -> Iterator[Span]:
    """Yield the inside of a key that has an end only."""
    yield from _inside(text, _back(text, first, end), end, "funes.private-key")


def _inside(text: str, start: int, stop: int, rule: str) -> Iterator[Span]:
    runs = [
        run for run in _RUN.finditer(text, start, stop) if not run[0].isalpha() or len(run[0]) > 30
    ]
    if not runs or sum(len(run[0]) for run in runs) * 2 < runs[-1].end() - runs[0].start():
        return  # a program that writes keys
    last = runs[-1].end()
    tail = re.compile(
        r"(?:\\+[nrt]|[\s\"'`+,>|\\])*[A-Za-z0-9+/=]{1,11}(?=\s*(?:\\+[nr]\s*)*$)"
    ).match(text, last, stop)
    yield runs[0].start(), (tail.end() if tail else last), rule


def _reach(text: str, start: int) -> int:
    """Return where a key that has no end breaks off."""
    position = start
    while position < start + _LONGEST:
        between = _BETWEEN.match(text, position)
        run = _RUN.match(text, between.end() if between else position)
        if run is None:
            return position
        position = run.end()
    return position


def _back(text: str, first: int, end: int) -> int:
    """Return where the lines of a key begin that has no beginning."""
    position = end
    for line in reversed(re.split(r"(?<=\n)", text[max(first, end - _LONGEST) : end])):
        body = re.sub(r"^\s*(?:\d+(?:→|\t|:|\|))?[\s+>|]*|[\s\"'\\,+]+$", "", line)
        if body and not re.fullmatch(r"[A-Za-z0-9+/=]{12,}|[A-Za-z0-9+/]*={1,2}", body):
            break
        position -= len(line)
    return position


def _putty(text: str) -> Iterator[Span]:
    for head in _PUTTY.finditer(text):
        mac = _MAC.search(text, head.end(), head.end() + _LONGEST)
        stop = mac.start() if mac else _reach(text, head.end())
        other = _PUTTY.search(text, head.end(), stop)
        yield from _inside(text, head.end(), other.start() if other else stop, "funes.putty")
        if mac and not other:
            yield mac.start() + mac[0].index(":") + 2, mac.end(), "funes.putty"
