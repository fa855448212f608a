"""Memories stay open, show what is newest, and let go of what is gone or not asked for."""

import os
import threading
import time
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from funes_ls import memories as module
from funes_ls import service
from funes_ls.indexer.errors import MemoryStateError, UsageError
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.settings import load_settings
from funes_ls.memories import KeptOpen, OpenEachTime
from funes_ls.protocol import RecallParams
from tests.e2e.cli import index
from tests.sessions import append, record, write

SAID = "the lamp burns in the tower"


@pytest.fixture
def trace(own_home: Path) -> Path:
    path = own_home / ".claude" / "projects" / "p" / "s.jsonl"
    write(path, [record(SAID, uuid="u-1")])
    index("--yes")
    return path


@pytest.fixture
def kept(own_home: Path) -> Any:
    settings, _ = load_settings(os.environ)
    found = KeptOpen(settings)
    yield found
    found.close()


def recalled(kept: KeptOpen, query: str) -> list[str]:
    return [hit.text for hit in service.recall(RecallParams(query=query), kept).hits]


def test_both_kinds_answer_alike(trace: Path, kept: KeptOpen) -> None:
    params = RecallParams(query=SAID)
    ours = service.recall(params, kept)
    theirs = service.recall(params, OpenEachTime(kept.settings))
    same = [
        [(hit.session_id, hit.turn_uuid, hit.text) for hit in one.hits] for one in (ours, theirs)
    ]
    assert same[0] == same[1]
    assert same[0]
    assert ours.legs == theirs.legs


def test_it_is_opened_once_and_kept_current(trace: Path, kept: KeptOpen) -> None:
    assert recalled(kept, SAID) == [SAID]
    with kept.reading("local") as first:
        pass
    append(trace, [record("a second lamp is lit", uuid="u-2")])
    index("--yes")
    assert "a second lamp is lit" in recalled(kept, "second lamp")
    with kept.reading("local") as second:
        assert second is first


def test_a_memory_made_anew_is_seen(trace: Path, kept: KeptOpen, funes_home: Path) -> None:
    assert recalled(kept, SAID) == [SAID]
    rmtree(funes_home / "memory")
    with pytest.raises(MemoryStateError) as caught:
        recalled(kept, SAID)
    assert caught.value.kind == "missing"
    append(trace, [record("lit once more", uuid="u-2")])
    index("--yes")
    assert "lit once more" in recalled(kept, "lit once more")


def test_it_stays_open_for_who_reads_while_it_is_let_go(trace: Path, kept: KeptOpen) -> None:
    with kept.reading("local") as memory:
        kept.close()
        assert memory.state().sessions == 1
    assert recalled(kept, SAID) == [SAID]


def test_other_memories_are_closed_when_nobody_asks(
    trace: Path, kept: KeptOpen, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(funes_home / "memory" / "chunks.lance")
    with kept.reading(other) as first, kept.reading("local") as own:
        pass
    monkeypatch.setattr(module, "_IDLE_S", 0.0)
    kept.close_idle()
    with kept.reading(other) as second, kept.reading("local") as still:
        assert second is not first
        assert still is own


@pytest.mark.parametrize("spec", ["/nowhere", "hf://a", "s4://a/b", "a\0b", "x" * 5000])
def test_what_is_no_memory_is_refused(kept: KeptOpen, spec: str) -> None:
    with pytest.raises(UsageError) as caught, kept.reading(spec):
        pass
    assert caught.value.kind == "no_such_memory"


def test_what_a_writer_is_making_ready_is_not_waited_for_long(
    trace: Path, kept: KeptOpen, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WRITER_S", 0.05)
    rmtree(funes_home / "memory" / "lexical")
    with writer_lock(funes_home):
        with pytest.raises(MemoryStateError) as caught, kept.reading("local"):
            pass
        assert service.status(kept).state == "locked"
    assert caught.value.kind == "locked"
    assert recalled(kept, SAID) == [SAID]


def test_many_threads_read_at_once(trace: Path, kept: KeptOpen) -> None:
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(recalled(kept, SAID))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [[SAID]] * 8


def test_words_are_there_while_the_rest_is_loaded(
    trace: Path, kept: KeptOpen, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, let_go = threading.Event(), threading.Event()
    real = module.open_memory

    def slow(*args: Any, **more: Any) -> Any:
        begun.set()
        assert let_go.wait(20)
        return real(*args, **more)

    monkeypatch.setattr(module, "open_memory", slow)
    warming = threading.Thread(target=kept.warm_up)
    warming.start()
    assert begun.wait(20)
    stages = service.recall_staged(RecallParams(query=SAID), kept)
    first = next(stages)
    assert [hit.text for hit in first.hits] == [SAID]
    assert first.legs["vector"] == "pending"
    stages.close()
    monkeypatch.setattr(kept, "_whole_by", 0.0)
    impatient = service.recall(RecallParams(query=SAID), kept)
    assert [hit.text for hit in impatient.hits] == [SAID]
    assert (impatient.legs["vector"], "still being loaded" in impatient.note) == ("loading", True)
    monkeypatch.setattr(kept, "_whole_by", time.monotonic() + 20)
    stages = service.recall_staged(RecallParams(query=SAID), kept)
    assert next(stages).legs["vector"] == "pending"
    let_go.set()
    assert next(stages).legs["vector"] == "ran"
    stages.close()
    warming.join(20)
    assert kept.known()[0] > 0


def test_a_model_that_is_not_here_is_asked_for_again_only_after_a_while(
    trace: Path, kept: KeptOpen, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []
    monkeypatch.setattr(module, "_embedder", lambda *_: tries.append(1))
    for _ in range(3):
        assert service.recall(RecallParams(query=SAID), kept).legs["vector"] == "no_model"
    assert len(tries) == 1
    monkeypatch.setattr(module, "_RETRY_S", 0.0)
    service.recall(RecallParams(query=SAID), kept)
    assert len(tries) == 2
