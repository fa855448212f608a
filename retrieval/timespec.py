"""Reads the words of `--since` and `--until`: dates, times and relative spans."""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo

from funes_ls.indexer.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPAN = re.compile(r"(\d{1,6})\s*([a-z]+?)s?(?:\s+ago)?")
_UNITS = {
    **dict.fromkeys(("m", "min", "minute"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hr", "hour"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day"), timedelta(days=1)),
    **dict.fromkeys(("w", "week"), timedelta(weeks=1)),
    **dict.fromkeys(("mo", "month"), timedelta(days=30)),
    **dict.fromkeys(("y", "yr", "year"), timedelta(days=365)),
}
_DAY_WORDS = {"today": 0, "yesterday": 1}
_FIRST_YEAR, _LAST_YEAR = 1971, 2400
_DATE = re.compile(r"(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2}))?")
_CLOCK = re.compile(r".*[T ]\d{2}(?P<minute>:\d{2})?(?P<second>:\d{2})?(?P<fraction>[.,]\d+)?.*")

#: How far ahead of now an open-ended `--since` reaches: clocks differ, but the far future is
#: never "since yesterday".
AHEAD_US = 24 * 3600 * 1_000_000


def time_range(
    since: str, until: str, *, now_us: int, zone: tzinfo | None = None
) -> tuple[int | None, int | None]:
    """Return `[since, until)` in UTC microseconds, None where a side is open.

    Takes `2026-03-02`, `2026-03`, `2026-03-02T10:00[:00[.5]][Z|+01:00]`, `today`, `yesterday`,
    `now`, and spans back from now: `90m`, `12h`, `7d`, `2w`, `6mo`, `1y`, `3 days ago`. Times
    without a zone are the user's own. A date, month, minute or second as `until` counts whole.
    `since` alone does not reach more than a day past now.

    Args:
        since: Words as typed, "" for none.
        until: Words as typed, "" for none.
        now_us: What spans count back from.
        zone: The user's zone; None for the machine's.

    Raises:
        UsageError: A word is not a time, or the range is empty.
    """
    since_us = _span(since, "--since", now_us, zone)[0] if since.strip() else None
    until_us = _span(until, "--until", now_us, zone)[1] if until.strip() else None
    if since_us is not None and until_us is None:
        until_us = now_us + AHEAD_US
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise UsageError(
            f"--since {since} lies after {'--until ' + until if until.strip() else 'now'}, "
            "so nothing can match."
        )
    return since_us, until_us


def moment_of(text: str, flag: str, *, now_us: int, zone: tzinfo | None = None) -> int:
    """Return the first microsecond of what a text names, in UTC; see `time_range`.

    Raises:
        UsageError: It is not a time.
    """
    return _span(text, flag, now_us, zone)[0]


def day_of(now_us: int, zone: tzinfo | None) -> date:
    """Return the day that a moment falls on in a zone, None for the machine's."""
    return (_EPOCH + timedelta(microseconds=now_us)).astimezone(zone).date()


def days_us(day: date, zone: tzinfo | None) -> int:
    """Return the first microsecond of a day in a zone, in UTC."""
    return _us(datetime(day.year, day.month, day.day), zone)


def _span(text: str, flag: str, now_us: int, zone: tzinfo | None) -> tuple[int, int]:
    """Return the first microsecond of what `text` names and the first one after it."""
    word = text.strip()
    try:
        span = _relative(word.lower(), now_us, zone) or _absolute(word, zone)
    except (ValueError, OverflowError):
        span = None
    if span is None:
        raise UsageError(
            f"{flag} {text!r} is not a time.",
            hint="Give a date (2026-03-02), a time (2026-03-02T10:00), today, yesterday, "
            "or a span such as 12h, 7d or 2w.",
        )
    return span


def _relative(word: str, now_us: int, zone: tzinfo | None) -> tuple[int, int] | None:
    if word == "now":
        return now_us, now_us + 1
    if word in _DAY_WORDS:
        day = day_of(now_us, zone) - timedelta(days=_DAY_WORDS[word])
        return _days(day.year, day.month, day.day, zone)
    found = _SPAN.fullmatch(word)
    unit = _UNITS.get(found.group(2)) if found else None
    if found is None or unit is None:
        return None
    start = now_us - int(found.group(1)) * (unit // timedelta(microseconds=1))
    return start, start + 1


def _absolute(word: str, zone: tzinfo | None) -> tuple[int, int] | None:
    found = _DATE.fullmatch(word)
    if found is not None:
        year, month = _known_year(int(found.group(1))), int(found.group(2))
        return _days(year, month, int(found.group(3)) if found.group(3) else None, zone)
    moment = datetime.fromisoformat(word)
    moment = moment.replace(year=_known_year(moment.year))
    start = _us(moment, zone)
    return start, start + _grain_us(word)


def _known_year(year: int) -> int:
    """Return a year that clocks can tell: all that is earlier or later lets the same through."""
    return min(max(year, _FIRST_YEAR), _LAST_YEAR)


def _days(year: int, month: int, day: int | None, zone: tzinfo | None) -> tuple[int, int]:
    """Return a day, or a month when `day` is None, between the midnights of the zone."""
    start = datetime(year, month, day or 1)
    if day is not None:
        end = start + timedelta(days=1)
    else:
        end = datetime(year + month // 12, month % 12 + 1, 1)
    return _us(start, zone), _us(end, zone)


def _grain_us(word: str) -> int:
    """Return the length of the finest part that an ISO time spells out."""
    clock = _CLOCK.fullmatch(word)
    if clock is None:
        return 86_400_000_000
    if clock.group("fraction"):
        return 1
    if clock.group("second"):
        return 1_000_000
    return 60_000_000 if clock.group("minute") else 3_600_000_000


def _us(moment: datetime, zone: tzinfo | None) -> int:
    if moment.tzinfo is None:
        # astimezone() on a naive time means the machine's zone, with its summer time.
        moment = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
    return (moment - _EPOCH) // timedelta(microseconds=1)
