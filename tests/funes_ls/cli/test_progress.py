"""What a long run says, to a log and in its summary."""

import pytest

from funes_ls.cli.index import summary, warnings
from funes_ls.cli.output import confirm, use_color
from funes_ls.cli.progress import duration, shown
from funes_ls.index_run import IndexReport
from funes_ls.indexer.progress import IndexEvent, Meter


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (60, "60 s"), (150, "2 min"), (3600, "60 min"), (7_500, "2 h 5 min")],
)
def test_time_spans(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_log_gets_a_line_a_phase_not_one_a_session(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(quiet=False) as progress:
        for done in range(100):
            progress(IndexEvent(phase="words", done=done, total=100, chunks=done * 10))
        progress(IndexEvent(phase="vectors", done=5, total=50, rate=31.4, eta_s=150.0, tier=2))
    assert capsys.readouterr().err.splitlines() == [
        "Reading sessions (words), 0 of 100",
        "Embedding chunks (vectors), 5 of 50, tool calls, 31 a second, about 2 min left",
    ]


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(quiet=True) as progress:
        progress(IndexEvent(phase="words", done=1, total=2))
    assert capsys.readouterr().err == ""


def test_an_estimate_waits_for_some_seconds_and_then_follows_the_rate() -> None:
    now = [100.0]
    meter = Meter(1_000, clock=lambda: now[0])
    now[0] = 101.0
    meter.advance(50)
    assert meter.eta_s() is None
    now[0] = 110.0
    meter.advance(500)
    assert meter.rate == pytest.approx(50.0)
    assert meter.eta_s() == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("report", "lines"),
    [
        (IndexReport(memory="m", current=3), ["Up to date: 3 traces, nothing new."]),
        (
            IndexReport(memory="m", sessions=1, chunks=1, embedded=1, model="test/tiny"),
            ["1 trace read, 1 new chunk.", "1 chunk embedded with test/tiny."],
        ),
        (
            IndexReport(memory="m", sessions=2, chunks=9, words_only=4, stopped="budget"),
            [
                "2 traces read, 9 new chunks.",
                "4 chunks are findable by words only. "
                "Run `funes index` again to go on, or `funes index --yes` to finish.",
            ],
        ),
        (
            IndexReport(memory="m", failed=1, problems=1),
            [
                "0 traces read, 0 new chunks, 1 could not be read.",
                "1 problem; `funes status --problems` lists it.",
            ],
        ),
    ],
)
def test_the_summary_says_what_was_done_and_what_is_next(
    report: IndexReport, lines: list[str]
) -> None:
    assert summary(report).splitlines() == lines


def test_warnings_name_the_first_traces_and_count_the_rest() -> None:
    report = IndexReport(memory="m", troubled={f"/t/{n}": n for n in range(7)})
    assert warnings(report) == [
        "/t/0: could not be read.",
        "/t/1: 1 unreadable line skipped.",
        "/t/2: 2 unreadable lines skipped.",
        "/t/3: 3 unreadable lines skipped.",
        "/t/4: 4 unreadable lines skipped.",
        "2 more traces could not be read whole.",
    ]


@pytest.mark.parametrize(
    ("typed", "default", "answer"),
    [
        ("\n", True, True),
        ("\n", False, False),
        ("y\n", False, True),
        ("YES\n", False, True),
        ("n\n", True, False),
        ("perhaps\n", True, False),
        ("", True, False),
    ],
)
def test_a_question_takes_its_default_and_no_for_anything_unclear(
    typed: str, default: bool, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert confirm("Go on?", default=default) is answer


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert use_color(True) and not use_color(False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not use_color(True)
