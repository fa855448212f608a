"""A second process reads what reading here would give, and may die without harm."""

from pathlib import Path

import pytest

from funes_ls.indexer import readahead
from funes_ls.indexer.errors import TraceError
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import Problem, Turn
from funes_ls.indexer.pipeline import plan, run_words
from funes_ls.indexer.progress import IndexEvent, ignore_progress
from funes_ls.indexer.readahead import Wanted, reading_ahead
from funes_ls.indexer.traces import detect
from tests.sessions import record, write

SAMPLES = Path(__file__).resolve().parents[1] / "traces" / "home"


@pytest.fixture(autouse=True)
def always_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readahead, "WORTH_BYTES", 0)


def wanted_of(root: Path) -> list[Wanted]:
    source = detect(root)
    units = [unit for unit in source.units(root) if not isinstance(unit, Problem)]
    return [(unit, source, None) for unit in units]


def test_every_sample_reads_the_same(own_home: Path) -> None:
    wanted = wanted_of(SAMPLES)
    assert len(wanted) > 20
    with reading_ahead(wanted) as ahead:
        for unit, source, _ in wanted:
            here, there = source.read(unit), ahead.read(unit, source, resume=None)
            assert list(there) == list(here)
            assert (there.session, there.offset) == (here.session, here.offset)
            if not unit.container:
                assert list(source.read(unit, resume=there.resume)) == []
            assert (there.restarted, there.late_names, there.failed) == (
                here.restarted,
                here.late_names,
                here.failed,
            )


def test_a_resumed_reading_goes_on(own_home: Path) -> None:
    records = [record(f"turn {n}", uuid=f"u{n}") for n in range(4)]
    path = write(own_home / "p" / "s.jsonl", records[:2])
    [(unit, source, _)] = wanted_of(own_home / "p")
    first = source.read(unit)
    assert len(list(first)) == 2
    write(path, records)
    [(unit, source, _)] = wanted_of(own_home / "p")
    with reading_ahead([(unit, source, first.resume)]) as ahead:
        turns = list(ahead.read(unit, source, resume=first.resume))
    assert [turn.seq for turn in turns if isinstance(turn, Turn)] == [2, 3]


def many(folder: Path) -> list[Wanted]:
    for n in range(4):
        records = [record(f"{n} {'word ' * 900} {t}", uuid=f"s{n}t{t}") for t in range(200)]
        write(folder / f"s{n}.jsonl", records, mtime_s=1_000 - n)
    return wanted_of(folder)


def test_a_reading_given_up_half_way_does_not_disturb_the_next(own_home: Path) -> None:
    wanted = many(own_home / "p")
    with reading_ahead(wanted) as ahead:
        first = iter(ahead.read(wanted[0][0], wanted[0][1], resume=None))
        next(first)
        again = list(ahead.read(wanted[2][0], wanted[2][1], resume=None))
    assert again == list(wanted[2][1].read(wanted[2][0]))


def test_when_the_worker_dies_the_rest_is_read_here(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readahead, "_FRAMES_AHEAD", 1)
    wanted = many(own_home / "p")
    with reading_ahead(wanted) as ahead:
        items = iter(ahead.read(wanted[0][0], wanted[0][1], resume=None))
        next(items)
        assert ahead._worker is not None
        ahead._worker.kill()
        with pytest.raises(TraceError, match="ended"):
            list(items)
        rest = list(ahead.read(wanted[1][0], wanted[1][1], resume=None))
    assert rest == list(wanted[1][1].read(wanted[1][0]))


@pytest.mark.timeout(60)
def test_when_frames_cannot_be_taken_the_rest_is_read_here(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(_stream: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(readahead, "read_message", too_large)
    wanted = many(own_home / "p")
    with reading_ahead(wanted) as ahead:
        for unit, source, _ in wanted:
            try:
                turns = list(ahead.read(unit, source, resume=None))
            except TraceError as exc:
                assert exc.kind == "reader_died"
            else:
                assert len(turns) == 200


def test_a_run_whose_worker_dies_ends_well_and_the_next_one_finishes(
    memory: Memory, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(own_home / "p")
    source = detect(own_home / "p")
    started = readahead._started
    workers = []

    def remembered() -> object:
        workers.append(started())
        return workers[-1]

    def kill_once(event: IndexEvent) -> None:
        if event.phase == "words" and event.done == 1:
            workers[0].kill()
            workers[0].wait()

    monkeypatch.setattr(readahead, "_started", remembered)
    for progress in (kill_once, ignore_progress):
        tasks, report = plan(((source, unit) for unit in source.units(own_home / "p")), memory)
        run_words(tasks, memory, report=report, progress=progress)
    assert memory.catalog.session_count() == 4
    assert sum(session.turns for session in memory.catalog.sessions()) == 800
    assert memory.catalog.problems() == []
