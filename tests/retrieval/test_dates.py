"""Dates that questions name in words, and words that are none."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from funes_ls.indexer.times import format_us
from funes_ls.retrieval.dates import span_of

#: A Thursday.
NOW = int(datetime(2026, 12, 3, 10, 0, tzinfo=UTC).timestamp() * 1e6)


def days(text: str, zone: str = "UTC") -> tuple[str, str] | None:
    found = span_of(text, now_us=NOW, zone=ZoneInfo(zone))
    return None if found is None else (format_us(found.since_us), format_us(found.until_us))


def midnights(first: str, last: str) -> tuple[str, str]:
    return tuple(f"{day}T00:00:00Z" if day else "" for day in (first, last))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what did we decide on 2026-03-14", "2026-03-14", "2026-03-15"),
        ("the outage of 2026/06/02", "2026-06-02", "2026-06-03"),
        ("2026-06-02T03:58:11Z ERROR PoolTimeout", "2026-06-02", "2026-06-03"),
        ("retries, 14 March 2026", "2026-03-14", "2026-03-15"),
        ("on March 14th, 2026 we", "2026-03-14", "2026-03-15"),
        ("on the 14th of march", "2026-03-14", "2026-03-15"),
        ("what broke on Dec 24", "2025-12-24", "2025-12-25"),  # of the year that has passed
        ("why did we drop it in March", "2026-03-01", "2026-04-01"),
        ("in late December", "2026-12-01", "2027-01-01"),
        ("the plan of March 2025", "2025-03-01", "2025-04-01"),
        ("report for 2026-02", "2026-02-01", "2026-03-01"),
        ("what happened last Tuesday", "2026-12-01", "2026-12-02"),
        ("what happened last Thursday", "2026-11-26", "2026-11-27"),
        ("what did I ask on Thursday", "2026-12-03", "2026-12-04"),
        ("what broke yesterday", "2026-12-02", "2026-12-03"),
        ("the day before yesterday", "2026-12-01", "2026-12-02"),
        ("who was up last night", "2026-12-02", "2026-12-04"),
        ("all of last week", "2026-11-23", "2026-11-30"),
        ("this week", "2026-11-30", "2026-12-07"),
        ("last month's numbers", "2026-11-01", "2026-12-01"),
        ("in the past year", "2025-01-01", "2026-01-01"),
        ("three days ago", "2026-11-30", "2026-12-01"),
        ("about 2 weeks ago", "2026-11-16", "2026-11-23"),
        ("a month ago", "2026-11-01", "2026-12-01"),
        ("in 2025", "2025-01-01", "2026-01-01"),
        ("before March", "", "2026-03-01"),
        ("until March 2026", "", "2026-04-01"),
        ("since last week", "2026-11-23", "2026-12-04T10"),
        ("from 2026-03-01 to 2026-03-05", "2026-03-01", "2026-03-06"),
    ],
)
def test_a_date_is_read(text: str, first: str, last: str) -> None:
    found = days(text)
    assert found is not None
    if "T" in last:
        assert (found[0], found[1][:13]) == (f"{first}T00:00:00Z", last)
    else:
        assert found == midnights(first, last)


@pytest.mark.parametrize(
    "text",
    [
        "that may be why it may march on",
        "python 3.12 in 2 steps",
        "release 2026.03.14",
        "v2026-03-14-rc1",
        "error 2026-31-52",
        "on 2026-02-31",
        "the sunday school",
        "port 1990 in use",
        "/logs/2026-03-14/app.log",
        "a year of work",
        "mars rover",
        "sepia images",
        "",
    ],
)
def test_words_that_are_no_date(text: str) -> None:
    assert days(text) is None


def test_days_are_those_of_the_users_zone() -> None:
    assert days("yesterday", "Asia/Tokyo") == ("2026-12-01T15:00:00Z", "2026-12-02T15:00:00Z")


def test_the_words_are_told_as_they_were_typed() -> None:
    found = span_of("What of Last Tuesday?", now_us=NOW, zone=UTC)
    assert found is not None and found.said == "Last Tuesday"
