"""A memory as a whole: nothing lost, nothing doubled, whatever happens to it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.indexer import dataset as lance
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.errors import MemoryStateError
from funes_ls.indexer.lexical import LexicalQuery
from funes_ls.indexer.memory import Memory, open_memory
from tests.indexer.making import (
    DIM,
    STAMP,
    reading,
    row,
    rows,
    run_apart,
    vectors,
    writing,
)


def words_find(memory: Memory, question: str) -> list[str]:
    found = [id_ for id_, _ in memory.search_words(LexicalQuery(text=question), 50)]
    assert len(found) == len(set(found)), "a row is found twice"
    return [row.id for row in memory.rows(found)]


def check_whole(memory: Memory, count: int) -> None:
    """Every row of s1 is there once, in order, and is found by its own word."""
    assert [one.seq for one in memory.session_rows("s1")] == list(range(count))
    state = memory.state()
    assert state.embedded + state.words_only == count
    assert state.words == count
    for seq in range(count):
        assert words_find(memory, f"word{seq}")[0] == row(seq).id


@pytest.fixture
def half_embedded(tmp_path: Path) -> Path:
    """A home with ten rows, six of them in the dataset."""
    with writing(tmp_path) as memory:
        memory.queue(rows(10))
        memory.catalog.put_session(Session(session_id="s1", title="kept title", cwd="/work/demo"))
        batch = memory.catalog.next_pending(6)
        memory.move(batch, vectors(batch), stamp=STAMP)
    return tmp_path


def test_rows_are_read_across_queue_and_dataset(half_embedded: Path) -> None:
    with reading(half_embedded) as memory:
        check_whole(memory, 10)
        state = memory.state()
        assert (state.embedded, state.words_only, state.stamp, state.dim) == (6, 4, STAMP, DIM)
        assert [one.embedded for one in memory.session_rows("s1")] == [True] * 6 + [False] * 4
        asked = [row(9).id, "unknown", row(0).id]
        assert [one.id for one in memory.rows(asked)] == [row(9).id, row(0).id]


def test_known_rows_are_not_queued_again(half_embedded: Path) -> None:
    with writing(half_embedded) as memory:
        generation = memory.generation
        assert memory.queue(rows(10)) == 0
        assert memory.generation == generation
        assert memory.queue([*rows(12), row(11)]) == 2
        memory.commit_words()
        check_whole(memory, 12)


def test_a_row_without_time_takes_that_of_the_row_before(tmp_path: Path) -> None:
    with writing(tmp_path) as memory:
        chunks = [row(0, ts="", ts_us=None), row(1), row(2, ts="soon", ts_us=None)]
        memory.catalog.put_session(Session(session_id="s1", started_us=1_700_000_000_000_000))
        memory.queue(chunks)
        memory.move(chunks, vectors(chunks), stamp=STAMP)
        times = [one.ts_us for one in memory.session_rows("s1")]
        assert times == [1_700_000_000_000_000, row(1).ts_us, row(1).ts_us]
        assert memory.rows([row(2).id])[0].ts_us == row(1).ts_us


def test_removing_and_replacing_rows(half_embedded: Path) -> None:
    with writing(half_embedded) as memory:
        memory.remove([row(0).id, row(9).id])
        memory.queue([row(0, "word0 said otherwise")])
        memory.commit_words()
        assert [one.seq for one in memory.session_rows("s1")] == list(range(9))
        assert memory.rows([row(0).id])[0].text == "word0 said otherwise"
        assert words_find(memory, "word9") == []
        batch = memory.catalog.next_pending(50)
        memory.move(batch, vectors(batch), stamp=STAMP)
    with reading(half_embedded) as memory:
        check_whole(memory, 9)
        assert memory.rows([row(0).id])[0].text == "word0 said otherwise"


def test_a_forgotten_session_is_gone_and_remembered_as_such(half_embedded: Path) -> None:
    with writing(half_embedded) as memory:
        memory.queue(rows(2, session="s2"))
        assert memory.forget_session("s1") == 10
    with reading(half_embedded) as memory:
        assert memory.session_rows("s1") == []
        assert memory.catalog.session("s1") is None
        assert memory.catalog.tombstones() == {"s1"}
        assert memory.state().words == 2


#: Where a writer dies, as code run before its last step in a process of its own.
_DEATHS = {
    "queued, words not added": "m.lexical.add = die",
    "words added, not committed": "m.lexical.commit = die",
    "words committed, not noted": "m.catalog.put = lambda *a: die() if 'upto' in a[0] else put(*a)",
    "noted as moving": "Dataset.append = die",
    "appended, still queued": "m.catalog.finish_moving = die",
    "left the queue": "m.tidy = die",
}
_WRITER = """
from funes_ls.indexer.dataset import Dataset
def die(*args, **named): os._exit(9)
with writing(HOME_DIR) as m:
    put = m.catalog.put
    {death}
    m.queue(rows(20))
    m.commit_words()
    batch = m.catalog.next_pending(8)
    m.move(batch, vectors(batch), stamp=STAMP)
    m.tidy()
"""


@pytest.mark.parametrize("death", _DEATHS.values(), ids=_DEATHS)
def test_a_writer_killed_at_any_point_loses_and_doubles_nothing(
    half_embedded: Path, death: str
) -> None:
    died = run_apart(_WRITER.format(death=death), half_embedded)
    assert died.returncode == 9, died.stderr
    with reading(half_embedded) as memory:
        check_whole(memory, 20)
    with writing(half_embedded) as memory:
        assert memory.queue(rows(20)) == 0
        while batch := memory.catalog.next_pending(7):
            memory.move(batch, vectors(batch), stamp=STAMP)
        assert memory.dataset is not None
        assert memory.dataset.count() == 20
    with reading(half_embedded) as memory:
        check_whole(memory, 20)


_REMOVALS = {
    "noted": "Dataset.delete_ids = die",
    "out of the dataset": "m.lexical.delete_ids = die",
    "out of the queue": "m.queue = die",
    "queued anew": "m.lexical.commit = die",
}
_REMOVER = """
from funes_ls.indexer.dataset import Dataset
def die(*args, **named): os._exit(9)
with writing(HOME_DIR) as m:
    {death}
    m.remove([row(0).id, row(9).id])
    m.queue([row(0, "word0 said otherwise"), row(9, "word9 said otherwise")])
    m.commit_words()
"""


@pytest.mark.parametrize("death", _REMOVALS.values(), ids=_REMOVALS)
def test_a_removal_begun_is_finished(half_embedded: Path, death: str) -> None:
    died = run_apart(_REMOVER.format(death=death), half_embedded)
    assert died.returncode == 9, died.stderr
    with writing(half_embedded) as memory:
        memory.queue([row(0, "word0 said otherwise"), row(9, "word9 said otherwise")])
        memory.commit_words()
        check_whole(memory, 10)
        texts = {one.seq: one.text for one in memory.session_rows("s1")}
        assert (texts[0], texts[9]) == ("word0 said otherwise", "word9 said otherwise")


def test_a_damaged_words_index_is_rebuilt_by_the_next_reader(half_embedded: Path) -> None:
    for file in (half_embedded / "memory" / "lexical").glob("*/meta.json"):
        file.write_text("?", encoding="utf-8")
    with reading(half_embedded) as memory:
        check_whole(memory, 10)
    shutil.rmtree(half_embedded / "memory" / "lexical")
    with reading(half_embedded) as memory:
        check_whole(memory, 10)
    assert len(list((half_embedded / "memory" / "lexical").iterdir())) == 1


def test_a_lost_catalog_is_made_from_the_rows(half_embedded: Path) -> None:
    (half_embedded / "memory" / "catalog.db").unlink()
    with writing(half_embedded) as memory:
        check_whole(memory, 6)  # the queue was the catalog's own; its traces are read anew
        session = memory.catalog.session("s1")
        assert session is not None
        assert (session.title, session.turns, session.chunks) == ("word0 spoken in turn 0", 6, 6)
        assert (session.started_us, session.ended_us) == (row(0).ts_us, row(5).ts_us)
        assert memory.queue(rows(10)) == 4
        memory.commit_words()
        check_whole(memory, 10)


def test_a_damaged_catalog_is_set_aside_and_its_queue_saved(half_embedded: Path) -> None:
    path = half_embedded / "memory" / "catalog.db"
    data = bytearray(path.read_bytes())
    data[100:200] = b"\xff" * 100  # the root of the schema table
    path.write_bytes(data)
    with reading(half_embedded) as memory:
        assert "damaged" in memory.notes[0]
        assert [one.seq for one in memory.session_rows("s1")][:6] == list(range(6))
    assert list(path.parent.glob("catalog.db.damaged-*"))


def test_rows_that_two_writers_doubled_are_made_one(half_embedded: Path) -> None:
    other = lance.open_dataset(half_embedded / "memory")
    other.append(rows(3), vectors(rows(3)))
    assert other.count() == 9
    with writing(half_embedded) as memory:
        check_whole(memory, 10)
        while batch := memory.catalog.next_pending(50):
            memory.move(batch, vectors(batch), stamp=STAMP)
        assert memory.dataset is not None
        assert memory.dataset.count() == 10


def test_merging_fragments_is_not_taken_for_a_strange_change(half_embedded: Path) -> None:
    index = next((half_embedded / "memory" / "lexical").iterdir())
    with writing(half_embedded) as memory:
        memory.tidy()
    with writing(half_embedded) as memory:
        check_whole(memory, 10)
    assert index.is_dir(), "the words index was rebuilt without need"


def test_another_model_is_refused_and_its_rows_wait(half_embedded: Path) -> None:
    with writing(half_embedded) as memory:
        batch = memory.catalog.next_pending(4)
        for stamp, dim, kind in (("other", DIM, "wrong_model"), (STAMP, 5, "wrong_width")):
            with pytest.raises(MemoryStateError) as raised:
                memory.move(batch, vectors(batch, dim=dim), stamp=stamp)
            assert raised.value.kind == kind
        check_whole(memory, 10)
        assert memory.catalog.next_pending(4) == batch


def test_a_foreign_memory_is_only_read_and_its_indexes_kept_apart(
    half_embedded: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    theirs = tmp_path_factory.mktemp("theirs")
    shutil.copytree(half_embedded / "memory" / "chunks.lance", theirs / "chunks.lance")
    before = sorted(str(path) for path in theirs.rglob("*"))
    derived = tmp_path_factory.mktemp("mine") / "derived"
    for base in (theirs, theirs / "chunks.lance"):
        with open_memory(base, derived=derived) as memory:
            check_whole(memory, 6)
            assert memory.catalog.sessions()[0].session_id == "s1"
    assert len(list(derived.iterdir())) == 1
    assert sorted(str(path) for path in theirs.rglob("*")) == before
    with pytest.raises(MemoryStateError) as raised:
        open_memory(theirs, derived=derived, writable=True)
    assert raised.value.kind == "read_only"


def test_no_memory_is_said(tmp_path: Path) -> None:
    home = tmp_path / "nobody's"
    with pytest.raises(MemoryStateError) as raised, reading(home):
        pass
    assert (raised.value.kind, raised.value.hint) == ("missing", "Run `funes index`.")
    assert not home.exists()


def test_readers_read_while_a_writer_writes(half_embedded: Path) -> None:
    with writing(half_embedded) as writer, reading(half_embedded) as memory:
        check_whole(memory, 10)
        generation = memory.generation
        writer.queue(rows(5, start=10))
        writer.commit_words()
        batch = writer.catalog.next_pending(9)
        writer.move(batch, vectors(batch), stamp=STAMP)
        assert memory.generation > generation
        memory.refresh()
        check_whole(memory, 15)
        with reading(half_embedded) as late:
            check_whole(late, 15)


_FULL = """
import resource
from funes_ls.indexer.errors import BackendError
with writing(HOME_DIR) as m:
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    try:
        m.queue([row(n, f"word{{n}} " + "x" * 900) for n in range(10, 1500)])
        m.commit_words()
        batch = m.catalog.next_pending(1400)
        m.move(batch, vectors(batch), stamp=STAMP)
    except BackendError as exc:
        print(exc.kind, flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize("limit", [60_000, 2_500_000, 3_400_000])
def test_a_full_disk_is_said_and_loses_nothing(half_embedded: Path, limit: int) -> None:
    said = run_apart(_FULL.format(limit=limit), half_embedded)
    assert said.stdout == "disk\n" or limit > 3_000_000, said.stderr
    with writing(half_embedded) as memory:
        memory.queue([row(n, f"word{n} " + "x" * 900) for n in range(10, 1500)])
        memory.commit_words()
        assert len(memory.session_rows("s1")) == 1500
        assert memory.state().words == 1500


@pytest.fixture
def as_nobody() -> Iterator[None]:
    """Give up root's right to write anywhere, for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def _close_for_writing(home: Path) -> None:
    """Leave a home readable by anybody, down from the folder of temporary files, and no more."""
    temporary = Path(tempfile.gettempdir())
    for parent in home.parents:
        if parent.is_relative_to(temporary) and parent != temporary:
            parent.chmod(0o755)
    for path in sorted(home.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    home.chmod(0o555)


def test_a_read_only_home_is_read(half_embedded: Path, request: pytest.FixtureRequest) -> None:
    _close_for_writing(half_embedded)
    request.getfixturevalue("as_nobody")
    with reading(half_embedded) as memory:
        check_whole(memory, 10)


def test_a_read_only_home_with_a_broken_words_index_is_read(
    half_embedded: Path, request: pytest.FixtureRequest
) -> None:
    shutil.rmtree(half_embedded / "memory" / "lexical")
    _close_for_writing(half_embedded)
    request.getfixturevalue("as_nobody")
    with reading(half_embedded) as memory:
        check_whole(memory, 10)
        assert "for this call only" in memory.notes[0]


def test_words_of_an_interrupted_change_are_dropped_with_its_rows(tmp_path: Path) -> None:
    with writing(tmp_path) as memory:
        with memory.one_change():
            memory.queue(rows(3))
        with pytest.raises(KeyboardInterrupt), memory.one_change():
            memory.queue(rows(4, start=3))
            raise KeyboardInterrupt
        memory.commit_words()
        assert (memory.state().words, memory.state().words_only) == (3, 3)


def test_rows_queued_before_an_interruption_of_their_words_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_rows: object) -> int:
        raise KeyboardInterrupt

    with writing(tmp_path) as memory:
        with monkeypatch.context() as patch:
            patch.setattr(memory.lexical, "add", interrupted)
            with pytest.raises(KeyboardInterrupt):
                memory.queue(rows(3))
        memory.commit_words()
        assert memory.state().words == 3
