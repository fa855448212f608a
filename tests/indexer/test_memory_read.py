"""Reading while somebody writes: every snapshot is of one moment."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from funes_ls.indexer import memory_held
from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.lexical import LexicalQuery
from funes_ls.indexer.memory import Memory, MemoryView, open_for_words
from tests.indexer.making import STAMP, reading, row, rows, run_apart, vectors, writing


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with ten rows, six of them in the dataset."""
    with writing(tmp_path) as memory:
        memory.queue(rows(10))
        move(memory, 6)
    return tmp_path


def move(memory: Memory, count: int) -> None:
    batch = memory.catalog.next_pending(count)
    memory.move(batch, vectors(batch), stamp=STAMP)


def seen(view: MemoryView) -> list[tuple[str, bool]]:
    """Return every row that a view holds, and check that words and vectors lead to it."""
    by_session = [(one.id, one.embedded) for one in view.session_rows("s1")]
    assert len(by_session) == len({id_ for id_, _ in by_session})
    found = view.search_words(LexicalQuery(text="spoken in turn"), 10_000)
    by_words = {(one.id, one.embedded) for one in view.rows([id_ for id_, _ in found])}
    assert by_words <= set(by_session)
    embedded = {id_ for id_, is_embedded in by_session if is_embedded}
    assert embedded <= {id_ for id_, _ in by_words}  # what has words to come is not embedded
    held = view.vectors()
    assert held is not None
    by_vector = view.rows(held.ids(range(len(held))))
    assert embedded <= {one.id for one in by_vector} <= {id_ for id_, _ in by_session}
    return [*by_session, *sorted(by_words), *((one.id, True) for one in by_vector)]


def test_a_snapshot_stays_as_it_was(home: Path) -> None:
    with reading(home) as reader, writing(home) as writer, reader.snapshot() as before:
        was = seen(before)
        generation = before.generation
        move(writer, 2)
        writer.queue(rows(3, start=10))
        writer.commit_words()
        assert seen(before) == was
        assert before.generation == generation
        with reader.snapshot() as after:
            seen(after)
            embedded = [one.embedded for one in after.session_rows("s1")]
            assert embedded == [True] * 8 + [False] * 5
            assert after.generation > generation


def test_a_row_between_queue_and_dataset_is_there_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reading(home) as reader, writing(home) as writer:
        with reader.snapshot() as view:
            was = seen(view)

        def die(*_: object) -> None:
            with reader.snapshot() as view:  # appended, and still in the queue
                assert seen(view) == was
            raise BackendError("no room", kind="disk")

        monkeypatch.setattr(writer.catalog, "finish_moving", die)
        with pytest.raises(BackendError):
            move(writer, 2)
        monkeypatch.undo()
        with reader.snapshot() as view:
            assert seen(view) == was


def test_removed_rows_are_gone_at_once_and_stay_in_older_snapshots(home: Path) -> None:
    with reading(home) as reader, writing(home) as writer, reader.snapshot() as before:
        was = seen(before)
        writer.remove([row(0).id, row(9).id])
        with reader.snapshot() as after:
            assert [one.seq for one in after.session_rows("s1")] == list(range(1, 9))
            assert after.rows([row(0).id, row(1).id]) == after.session_rows("s1")[:1]
        assert seen(before) == was
        writer.commit_words()
        with reader.snapshot() as after:
            seen(after)
            assert len(after.session_rows("s1")) == 8


def test_a_row_that_comes_back_otherwise_has_its_new_vector(home: Path) -> None:
    with reading(home) as reader, writing(home) as writer:
        with reader.snapshot() as view:
            seen(view)
        writer.remove([row(0).id])
        writer.queue([row(0, "spoken in turn otherwise")])
        batch = writer.catalog.next_pending(10)
        turned = -vectors(batch)
        writer.move(batch, turned, stamp=STAMP)
        with reader.snapshot() as view:
            held = view.vectors()
            assert held is not None
            (place,) = held.places([row(0).id])
            at = [one.id for one in batch].index(row(0).id)
            assert place is not None
            np.testing.assert_allclose(held.vectors(np.array([place]))[0], turned[at], atol=3e-5)
            assert view.rows([row(0).id])[0].text == "spoken in turn otherwise"


def test_another_process_s_writing_is_seen(home: Path) -> None:
    with reading(home) as reader:
        with reader.snapshot() as view:
            seen(view)
        script = (
            "with writing(HOME_DIR) as memory:\n"
            "    memory.queue(rows(3, start=10))\n"
            "    batch = memory.catalog.next_pending(5)\n"
            "    memory.move(batch, vectors(batch), stamp=STAMP)\n"
        )
        done = run_apart(script, home)
        assert done.returncode == 0, done.stderr
        with reader.snapshot() as view:
            seen(view)
            assert [one.embedded for one in view.session_rows("s1")] == [True] * 11 + [False] * 2


def test_what_a_writer_tells_is_not_read_from_the_disk(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reading(home) as reader, writing(home) as writer:
        with reader.snapshot() as view:
            seen(view)

        def unreadable(*_: object) -> None:
            raise AssertionError("vectors were read")

        monkeypatch.setattr(memory_held, "_parts", unreadable)
        batch = writer.catalog.next_pending(3)
        reader.refresh(writer.move(batch, vectors(batch), stamp=STAMP))
        with reader.snapshot() as view:
            held = view.vectors()
            assert held is not None
            assert len(held) == 9


def test_a_memory_opened_for_words_has_its_rows_and_gets_its_vectors_later(home: Path) -> None:
    opened = open_for_words(home / "memory")
    assert opened is not None
    with opened as memory:
        with memory.snapshot() as view:
            assert not view.attached
            assert view.dataset is None
            assert view.vectors() is None
            rows_then = view.session_rows("s1")
            assert [one.embedded for one in rows_then] == [True] * 6 + [False] * 4
            assert view.rows([row(0).id, row(9).id]) == [rows_then[0], rows_then[9]]
        assert memory.state().embedded == 6
        memory.attach_dataset()
        with memory.snapshot() as view:
            assert view.attached
            assert view.session_rows("s1") == rows_then
            seen(view)


def test_a_memory_that_must_be_mended_is_not_opened_for_words(home: Path) -> None:
    with writing(home) as memory:
        memory.catalog.add_removals([row(0).id])
    assert open_for_words(home / "memory") is None
    assert open_for_words(home / "none") is None


def test_words_are_answered_without_lancedb(home: Path) -> None:
    script = (
        "import sys\n"
        "from funes_ls.indexer.lexical import LexicalQuery\n"
        "from funes_ls.indexer.memory import open_for_words\n"
        "memory = open_for_words(HOME_DIR / 'memory')\n"
        "with memory.snapshot() as view:\n"
        "    found = view.search_words(LexicalQuery(text='word3'), 5)\n"
        "    print(view.rows([id_ for id_, _ in found])[0].text)\n"
        "print([name for name in ('lancedb', 'pyarrow') if name in sys.modules])\n"
    )
    done = run_apart(script, home)
    assert done.stdout.splitlines() == ["word3 spoken in turn 3", "[]"], done.stderr


def test_rows_around_a_place_take_their_time_from_rows_before(tmp_path: Path) -> None:
    with writing(tmp_path) as memory:
        chunks = [row(0), row(1, ts="", ts_us=None), row(2)]
        memory.queue(chunks)
        memory.move(chunks, vectors(chunks), stamp=STAMP)
        (near,) = memory.session_rows("s1", first=1, last=1)
        assert near.ts_us == row(0).ts_us


@pytest.fixture
def busy(home: Path) -> Iterator[Path]:
    """A home that a thread writes into without pause: rows come, move and go."""
    stop = threading.Event()

    def write() -> None:
        with writing(home) as memory:
            for turn in range(10, 10_000):
                if stop.is_set():
                    return
                memory.queue([row(turn)])
                memory.commit_words()
                move(memory, 1)
                if turn % 5 == 0:
                    memory.remove([row(turn - 3).id])

    thread = threading.Thread(target=write)
    thread.start()
    yield home
    stop.set()
    thread.join(timeout=60)
    assert not thread.is_alive()


def test_many_threads_read_what_is_being_written(busy: Path) -> None:
    until = time.monotonic() + 3.0
    answers: dict[int, list[tuple[str, bool]]] = {}
    lock = threading.Lock()

    def look(reader: Memory) -> int:
        count = 0
        while time.monotonic() < until:
            with reader.snapshot() as view:
                found = seen(view)
                generation = view.generation
            with lock:
                assert answers.setdefault(generation, found) == found
            count += 1
        return count

    with reading(busy) as reader, ThreadPoolExecutor(4) as pool:
        looked = [pool.submit(look, reader) for _ in range(4)]
        assert all(one.result(timeout=60) > 0 for one in looked)
    assert len(answers) > 3
