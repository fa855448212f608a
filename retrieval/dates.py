"""Finds the days, months and spans that a question names in words."""

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta, tzinfo

from msgspec import Struct

from funes_ls.retrieval.timespec import AHEAD_US, day_of, days_us

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip
_FIRST_YEAR, _LAST_YEAR = 1990, 2100
_MONTH = "|".join([*_MONTHS, *(f"{name[:3]}" for name in _MONTHS if len(name) > 3), "sept"])
_YEAR = r"(?:19|20)\d{2}"
#: What must stand before a word that is also a verb, a name or a part of other things.
_WHEN = r"(?:in|since|before|until|till|during|after|last|this|past)"

Days = tuple[date, date]


class Span(Struct, frozen=True, kw_only=True):
    """A stretch of time that a question names; a side is None where it is open.

    Attributes:
        said: The words that name it, as they are told back.
        words: The same, as they stand in the question.
        since_us: UTC microseconds, inclusive.
        until_us: Exclusive.
    """

    said: str
    words: tuple[str, ...]
    since_us: int | None
    until_us: int | None


def span_of(text: str, *, now_us: int, zone: tzinfo | None = None) -> Span | None:
    """Return the stretch of time that a question names, None when it names none.

    From the first to the last of several. `since`, `after`, `before` and `until` leave a side open.

    Args:
        text: A question.
        now_us: What "yesterday" counts from.
        zone: The user's zone; None for the machine's.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # letters that change their length: places would not fit
        lowered = text
    today = day_of(now_us, zone)
    found = sorted(_found(lowered, today), key=lambda one: one[0])
    if not found:
        return None
    words = tuple(text[start:end] for start, end, _ in found)
    said = ", ".join(words)
    first = min(days[0] for _, _, days in found)
    last = max(days[1] for _, _, days in found)
    since, until = days_us(first, zone), days_us(last, zone)
    side = _open_side(lowered[: found[0][0]]) if len(found) == 1 else ""
    if side in ("since", "after"):
        return Span(
            said=f"{side} {said}",
            words=words,
            since_us=until if side == "after" else since,
            until_us=now_us + AHEAD_US,
        )
    if side in ("before", "until", "till"):
        return Span(
            said=f"{side} {said}",
            words=words,
            since_us=None,
            until_us=since if side == "before" else until,
        )
    return Span(said=said, words=words, since_us=since, until_us=until)


def _open_side(before: str) -> str:
    word = re.search(r"(since|after|before|until|till)\s+(?:the\s+)?$", before)
    return word[1] if word else ""


def _found(text: str, today: date) -> Iterator[tuple[int, int, Days]]:
    """Yield the place of each date and its days, the last one exclusive; none within another."""
    taken: list[tuple[int, int]] = []
    for pattern, read in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span("said") if "said" in pattern.groupindex else match.span()
            if any(start < other_end and other < end for other, other_end in taken):
                continue
            try:
                days = read(match, today)
            except ValueError:  # 31 February
                continue
            if days is not None:
                taken.append((start, end))
                yield start, end, days


def _day(year: int, month: int, day: int) -> Days | None:
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    first = date(year, month, day)
    return first, first + timedelta(days=1)


def _whole_month(year: int, month: int) -> Days | None:
    if not (_FIRST_YEAR <= year <= _LAST_YEAR and 1 <= month <= 12):
        return None
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _numbered(match: re.Match[str], today: date) -> Days | None:
    return _day(int(match["y"]), int(match["m"]), int(match["d"]))


def _numbered_month(match: re.Match[str], today: date) -> Days | None:
    return _whole_month(int(match["y"]), int(match["m"]))


def _named_day(match: re.Match[str], today: date) -> Days | None:
    month = _month_of(match["month"])
    day = int(match["d"])
    if match["y"]:
        return _day(int(match["y"]), month, day)
    this_year = _day(today.year, month, day)
    if this_year is not None and this_year[0] > today:
        return _day(today.year - 1, month, day)
    return this_year


def _named_month(match: re.Match[str], today: date) -> Days | None:
    return _whole_month(int(match["y"]), _month_of(match["month"]))


def _latest_month(match: re.Match[str], today: date) -> Days | None:
    month = _month_of(match["month"])
    return _whole_month(today.year if month <= today.month else today.year - 1, month)


def _month_of(name: str) -> int:
    return next(n for n, known in enumerate(_MONTHS, start=1) if known.startswith(name[:3]))


def _weekday(match: re.Match[str], today: date) -> Days:
    back = (today.weekday() - _WEEKDAYS.index(match["day"])) % 7
    if back == 0 and match["when"] == "last":
        back = 7
    first = today - timedelta(days=back)
    return first, first + timedelta(days=1)


def _near_day(match: re.Match[str], today: date) -> Days:
    back = {"today": 0, "this morning": 0, "yesterday": 1, "last night": 1}.get(match["said"], 2)
    first = today - timedelta(days=back)
    # What was done last night may have been done after midnight.
    return first, first + timedelta(days=2 if match["said"] == "last night" else 1)


def _unit(match: re.Match[str], today: date) -> Days | None:
    back = 0 if match["when"] == "this" else 1
    return _units_back(back, match["unit"], today)


def _ago(match: re.Match[str], today: date) -> Days | None:
    count = _COUNTS.get(match["n"]) or int(match["n"])
    if match["unit"] != "week":
        return _units_back(count, match["unit"], today)
    about = today - timedelta(days=7 * count)  # a week ago is no calendar week
    return about - timedelta(days=3), about + timedelta(days=4)


def _units_back(count: int, unit: str, today: date) -> Days | None:
    if count > 10_000:
        return None
    if unit == "day":
        first = today - timedelta(days=count)
        return first, first + timedelta(days=1)
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * count)
        return monday, monday + timedelta(days=7)
    if unit == "month":
        months = today.year * 12 + today.month - 1 - count
        return _whole_month(months // 12, months % 12 + 1)
    return _whole_year(today.year - count)


def _named_year(match: re.Match[str], today: date) -> Days | None:
    return _whole_year(int(match["y"]))


def _whole_year(year: int) -> Days | None:
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    return date(year, 1, 1), date(year + 1, 1, 1)


Read = Callable[[re.Match[str], date], Days | None]
#: Longer forms first: what one has taken no later one takes again.
_PATTERNS: tuple[tuple[re.Pattern[str], Read], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (r"(?<![\w./-])(?P<y>\d{4})[-/](?P<m>\d{1,2})[-/](?P<d>\d{1,2})(?![\w/-]|\.\w)", _numbered),
        (r"(?<![\w./-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?=[t ]\d{2}:)", _numbered),
        (
            rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH})\b\.?"
            rf"(?:,?\s+(?P<y>{_YEAR}))?\b",
            _named_day,
        ),
        (
            rf"\b(?P<month>{_MONTH})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)"
            rf"(?:,?\s+(?P<y>{_YEAR}))?\b",
            _named_day,
        ),
        (rf"\b(?P<month>{_MONTH})\.?,?\s+(?P<y>{_YEAR})\b", _named_month),
        (r"(?<![\w./-])(?P<y>(?:19|20)\d{2})-(?P<m>\d{2})(?![\w/-]|\.\w)", _numbered_month),
        (
            rf"\b{_WHEN}\s+(?:early\s+|late\s+|mid\s*-?\s*)?(?P<said>(?P<month>{_MONTH}))\b",
            _latest_month,
        ),
        (
            rf"\b(?P<said>(?P<when>last|on|this|since|before|after|until)\s+"
            rf"(?P<day>{'|'.join(_WEEKDAYS)}))\b",
            _weekday,
        ),
        (
            r"\b(?P<said>today|this morning|the day before yesterday|yesterday|last night)\b",
            _near_day,
        ),
        (
            r"\b(?P<said>(?P<when>last|past|previous|this)\s+(?P<unit>week|month|year))\b",
            _unit,
        ),
        (
            rf"\b(?P<said>(?P<n>{'|'.join(_COUNTS)}|\d{{1,4}})\s+(?P<unit>day|week|month|year)s?"
            r"\s+ago)\b",
            _ago,
        ),
        (rf"\b{_WHEN}\s+(?P<said>(?P<y>{_YEAR}))\b(?![./-]\w)", _named_year),
    )
)
