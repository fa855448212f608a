"""Times as traces write them."""

import pytest

from funes_ls.indexer.times import format_us, parse_ts

US = 1_772_445_600_000_000  # 2026-03-02T10:00:00Z


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-02T10:00:00.000Z",
        "2026-03-02T10:00:00Z",
        "2026-03-02T10:00:00",
        "2026-03-02T10:00:00+00:00",
        "2026-03-02T12:00:00+02:00",
        "2026-03-02T10:00:00.000000000Z",
        " 2026-03-02 10:00:00 ",
        "1772445600",
        "1772445600.0",
        "1772445600000",
        "1772445600000000",
        "1772445600000000000",
    ],
)
def test_one_moment_in_many_spellings(text: str) -> None:
    assert parse_ts(text) == US


@pytest.mark.parametrize(
    "text", ["", " ", "soon", "0", "-5", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "12345"]
)
def test_what_says_no_time(text: str) -> None:
    assert parse_ts(text) is None


def test_fractions_are_kept_to_the_microsecond() -> None:
    assert parse_ts("2026-03-02T10:00:00.123456Z") == US + 123_456


def test_shown_in_utc() -> None:
    assert format_us(US) == "2026-03-02T10:00:00Z"
    assert format_us(None) == ""
