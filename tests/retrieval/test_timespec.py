"""`--since` and `--until`: which words mean which instants."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from funes_ls.indexer.errors import UsageError
from funes_ls.retrieval.timespec import AHEAD_US, time_range

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


def us(*parts: int, zone: timezone = UTC) -> int:
    moment = datetime(*parts, tzinfo=zone) - datetime(1970, 1, 1, tzinfo=UTC)  # type: ignore[arg-type,misc]
    return moment // timedelta(microseconds=1)


NOW = us(2026, 3, 10, 15, 30)


def span(since: str = "", until: str = "") -> tuple[int | None, int | None]:
    return time_range(since, until, now_us=NOW, zone=UTC)


def test_nothing_asked_is_open_on_both_sides() -> None:
    assert span() == (None, None)


@pytest.mark.parametrize(
    ("word", "start"),
    [
        ("2026-03-02", us(2026, 3, 2)),
        ("2026/3/2", us(2026, 3, 2)),
        ("2026-02", us(2026, 2, 1)),
        ("2026-03-02T10:00", us(2026, 3, 2, 10)),
        ("2026-03-02 10:00:30", us(2026, 3, 2, 10, 0, 30)),
        ("2026-03-02T10:00:00+02:00", us(2026, 3, 2, 8)),
        ("2026-03-02T10:00:00Z", us(2026, 3, 2, 10)),
        ("today", us(2026, 3, 10)),
        ("Yesterday", us(2026, 3, 9)),
        ("7d", NOW - 7 * DAY_US),
        ("12h", NOW - 12 * HOUR_US),
        ("90m", NOW - 90 * 60_000_000),
        ("2w", NOW - 14 * DAY_US),
        ("3 days ago", NOW - 3 * DAY_US),
    ],
)
def test_since_starts_where_the_word_starts(word: str, start: int) -> None:
    assert span(since=word)[0] == start


@pytest.mark.parametrize(
    ("word", "end"),
    [
        ("2026-03-02", us(2026, 3, 3)),
        ("20260302", us(2026, 3, 3)),
        ("2026-02", us(2026, 3, 1)),
        ("2025-12", us(2026, 1, 1)),
        ("2026-03-02T10", us(2026, 3, 2, 11)),
        ("2026-03-02T10:00", us(2026, 3, 2, 10, 1)),
        ("2026-03-02T10:00+01:00", us(2026, 3, 2, 9, 1)),
        ("2026-03-02T10:00:30", us(2026, 3, 2, 10, 0, 31)),
        ("2026-03-02T10:00:30.5", us(2026, 3, 2, 10, 0, 30) + 500_001),
        ("today", us(2026, 3, 11)),
        ("now", NOW + 1),
    ],
)
def test_until_takes_in_the_whole_of_what_is_named(word: str, end: int) -> None:
    assert span(until=word) == (None, end)


def test_since_alone_does_not_reach_the_far_future() -> None:
    assert span(since="today") == (us(2026, 3, 10), NOW + AHEAD_US)


def test_words_without_a_zone_are_in_the_users_own() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert time_range("today", "", now_us=NOW, zone=tokyo)[0] == us(2026, 3, 11, zone=tokyo)
    assert time_range("2026-03-02", "", now_us=NOW, zone=tokyo)[0] == us(2026, 3, 2, zone=tokyo)


@pytest.mark.parametrize("word", ["soon", "2026-13-01", "2026-02-30", "7 parsecs", "d7", "-3d"])
def test_other_words_are_refused_by_name(word: str) -> None:
    with pytest.raises(UsageError, match="is not a time") as caught:
        span(since=word)
    assert word in caught.value.message
    assert "7d" in caught.value.hint


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing can match"):
        span(since="2026-03-05", until="2026-03-01")
    with pytest.raises(UsageError, match="nothing can match"):
        span(since="2031-01-01")


def test_one_day_is_a_range() -> None:
    assert span("2026-03-02", "2026-03-02") == (us(2026, 3, 2), us(2026, 3, 3))


@pytest.mark.parametrize("text", ["0001-01-01", "1066-10-14T09:00"])
def test_a_time_before_all_clocks_lets_everything_through(text: str) -> None:
    since_us, _ = time_range(text, "", now_us=NOW, zone=UTC)
    assert since_us is not None
    assert since_us < 100_000_000_000_000


@pytest.mark.parametrize("text", ["9999-12-31", "9999-12-31T23:59"])
def test_a_time_after_all_clocks_lets_everything_through(text: str) -> None:
    _, until_us = time_range("", text, now_us=NOW, zone=UTC)
    assert until_us is not None
    assert until_us > 10_000_000_000_000_000
