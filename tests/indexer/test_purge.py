"""What was taken out of a memory is in no byte of its home."""

from pathlib import Path

import pytest

from funes_ls.indexer import dataset, purge
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.dataset import open_dataset
from funes_ls.indexer.forget import forget_steps
from funes_ls.indexer.lexical import LexicalQuery
from funes_ls.indexer.memory import Memory
from tests.indexer.making import STAMP, reading, row, rows, run_apart, vectors, writing
from tests.leftovers import traces_of, within

LEFT, RIGHT = "Vx9QzanzibarK3", "mW7quuxotic2Lp"
SECRET = f'{LEFT}"{RIGHT}'


def quiet(_phase: str, _done: int, _total: int) -> None:
    """Tell nobody."""


def spread(home: Path, *, embedded: int = 30) -> None:
    """Write a secret into every part of a memory; `s1` has it, `s2` does not."""
    with writing(home) as memory:
        told = [row(0, f"the key is {SECRET}"), row(40, f"again {SECRET}"), *rows(20, start=1)]
        memory.queue([*told, *rows(30, session="s2")])
        for name in ("s1", "s2"):
            memory.catalog.put_session(
                Session(session_id=name, title=f"{name} {SECRET if name == 's1' else ''}")
            )
        memory.catalog.put_files("s1", [f"/work/{LEFT}.py"])
        for _ in range(3):
            if batch := memory.catalog.next_pending(-(-embedded // 3)):
                memory.move(batch, vectors(batch), stamp=STAMP)
    copy = home / "memory" / "catalog.db.damaged-20260101T000000"
    copy.write_bytes((home / "memory" / "catalog.db").read_bytes())
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "engine.log").write_text("one\nsession s1 is odd\ntwo\n", encoding="utf-8")


def forget(memory: Memory, home: Path, *names: str) -> bool:
    steps = forget_steps(memory, home, names, told=quiet)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return bool(end.value.pure)


def check_only_s2(home: Path) -> None:
    with reading(home) as memory:
        assert [one.seq for one in memory.session_rows("s2")] == list(range(30))
        assert memory.session_rows("s1") == []
        assert memory.catalog.session("s1") is None
        assert memory.words.count() == memory.embedded_count() + memory.catalog.pending_count()
        found = [id_ for id_, _ in memory.search_words(LexicalQuery(text="word7"), 9)]
        assert found[0] == row(7, session="s2").id


@pytest.mark.parametrize("embedded", [0, 30, 52])
def test_no_byte_of_a_forgotten_session_is_left(tmp_path: Path, embedded: int) -> None:
    spread(tmp_path, embedded=embedded)
    assert len(list(traces_of(tmp_path, LEFT, RIGHT, "zanzibar"))) > 2
    with writing(tmp_path) as memory:
        assert forget(memory, tmp_path, "s1")
        assert list(traces_of(tmp_path, LEFT, RIGHT, "zanzibar")) == []
        assert purge.is_pure(memory)
    assert list(traces_of(tmp_path, LEFT, RIGHT, "zanzibar")) == []
    assert list(within(tmp_path, LEFT, RIGHT)) == []
    assert (tmp_path / "logs" / "engine.log").read_text(encoding="utf-8") == "one\ntwo\n"
    check_only_s2(tmp_path)


def test_vectors_of_what_stays_are_kept_as_they_are(tmp_path: Path) -> None:
    spread(tmp_path, embedded=52)
    base = tmp_path / "memory"

    def kept() -> dict[str, list[float]]:
        found = {}
        for batch in open_dataset(base).scan(("id", "session_id", "vector")):
            for one in batch.to_pylist():
                if one["session_id"] == "s2":
                    found[one["id"]] = one["vector"]
        return found

    before = kept()
    with writing(tmp_path) as memory:
        forget(memory, tmp_path, "s1")
    assert len(before) == 30
    assert kept() == before
    left = open_dataset(base)
    assert (left.stamp, left.count()) == (STAMP, 30)
    assert len(list((base / "chunks.lance" / "_versions").glob("*.manifest"))) == 1


def test_rows_of_many_fragments_and_pages_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "_PAGE_ROWS", 7)

    def order(memory: Memory) -> list[tuple[str, list[float]]]:
        assert memory.dataset is not None
        batches = memory.dataset.scan(("id", "vector"))
        return [(one["id"], one["vector"]) for batch in batches for one in batch.to_pylist()]

    with writing(tmp_path) as memory:
        memory.queue(rows(100))
        while batch := memory.catalog.next_pending(23):
            memory.move(batch, vectors(batch), stamp=STAMP)
        memory.remove([row(seq).id for seq in (0, 5, 6, 22, 23, 50, 99)])
        memory.commit_words()
        before = order(memory)
        assert purge.purge(memory, tmp_path, told=quiet)
        assert len(before) == 93
        assert order(memory) == before


def test_a_memory_of_which_nothing_stays(tmp_path: Path) -> None:
    spread(tmp_path, embedded=52)
    with writing(tmp_path) as memory:
        assert forget(memory, tmp_path, "s1", "s2")
    assert list(traces_of(tmp_path, LEFT, "word7")) == []
    with writing(tmp_path) as memory:
        assert memory.state().words == memory.state().embedded == 0
        memory.queue(rows(3, session="s3"))
        batch = memory.catalog.next_pending(9)
        memory.move(batch, vectors(batch), stamp=STAMP)
    with reading(tmp_path) as memory:
        assert len(memory.session_rows("s3")) == 3


def test_readers_of_before_go_on(tmp_path: Path) -> None:
    spread(tmp_path, embedded=52)
    with reading(tmp_path) as memory, memory.snapshot() as before:
        old = before.dataset
        assert old is not None
        with writing(tmp_path) as writer:
            # The snapshot's own transaction keeps the old pages of the catalog.
            assert not forget(writer, tmp_path, "s1")
            assert not purge.is_pure(writer)
        ids = [row(3, session="s2").id]
        assert [one.id for one in old.rows(ids)] == ids
        assert len(list(old.scan(("id", "vector")))) > 0
        assert [one.id for one in before.rows(ids)] == ids
        held = before.vectors()
        assert held is not None
        assert len(held) == 30
    with writing(tmp_path) as writer:
        assert purge.is_due(writer)
        assert purge.purge(writer, tmp_path, told=quiet)
    assert list(traces_of(tmp_path, LEFT, RIGHT)) == []


_DEATHS = {
    "rows noted": "memory._strike = die",
    "rows out, dataset not written": "Dataset.rewrite = die",
    "dataset written, old files there": "Dataset.keep_newest = die",
    "dataset written": "LexicalIndex.rewrite = die",
    "words not committed": "real = memory.lexical.commit; memory.lexical.commit = lambda: "
    "die() if again() else real()",
    "words committed": "LexicalIndex.drop_unused = die",
    "catalog to be written": "memory.catalog.rewrite = die",
    "written": "memory.close = die",
}
_FORGETTER = """
from funes_ls.indexer.dataset import Dataset
from funes_ls.indexer.lexical import LexicalIndex
from tests.indexer.test_purge import forget
def die(*args, **named): os._exit(9)
def again(calls=[]):
    calls.append(1)
    return len(calls) > 1
with writing(HOME_DIR) as memory:
    {death}
    forget(memory, HOME_DIR, "s1")
"""


@pytest.mark.parametrize("death", _DEATHS.values(), ids=_DEATHS)
def test_a_kill_leaves_a_memory_that_is_whole_and_purged_later(tmp_path: Path, death: str) -> None:
    spread(tmp_path, embedded=45)
    died = run_apart(_FORGETTER.format(death=death), tmp_path)
    assert died.returncode == 9, died.stderr
    check_only_s2(tmp_path)
    with writing(tmp_path) as memory:
        assert purge.is_pure(memory) or purge.purge(memory, tmp_path, told=quiet)
    assert list(traces_of(tmp_path, LEFT, RIGHT)) == []
    check_only_s2(tmp_path)


class _EnoughError(Exception):
    """Ends the work from outside."""


@pytest.mark.parametrize("phase", ["vectors", "words", "catalog"])
def test_stopped_it_is_as_if_killed(tmp_path: Path, phase: str) -> None:
    spread(tmp_path, embedded=45)

    def stop(now: str, _done: int, _total: int) -> None:
        if now == phase:
            raise _EnoughError

    with writing(tmp_path) as memory:
        with pytest.raises(_EnoughError):
            for _ in forget_steps(memory, tmp_path, ["s1"], told=stop):
                pass
        memory.queue(rows(1, session="s3"))
        memory.commit_words()
        assert memory.words.count() == 31
        assert purge.is_due(memory)
    with reading(tmp_path) as reader:
        assert reader.words.count() == 31
    with writing(tmp_path) as memory:
        assert purge.purge(memory, tmp_path, told=quiet)
    assert list(traces_of(tmp_path, LEFT, RIGHT)) == []
