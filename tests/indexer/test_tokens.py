"""Token vectors: kept beside the vectors of prose, made for older rows, gone with their rows."""

import secrets
import sqlite3
import string
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.embedding_tokens import DIRECTIONS, Basis, Sample, max_sims, unpacked
from funes_ls.indexer.forget import forget_steps
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.memory_tokens import TOKENS, TokenReader, TokenStore
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.pipeline import VectorsReport, run_vectors
from funes_ls.indexer.progress import ignore_progress
from funes_ls.indexer.purge import purge
from funes_ls.indexer.token_work import Backfill, TokenWork
from tests.indexer.living import SmallEmbedder, living, until
from tests.indexer.making import row, rows, writing
from tests.indexer.test_scrub import StandIn, scrub_in
from tests.leftovers import traces_of
from tests.sessions import record, write
from tests.token_model import DIM, WordEmbedder

TALK = [row(seq, f"word{seq} about kettle{seq % 7} and spout{seq % 5}") for seq in range(40)]
CALL = row(50, "[tool_use Bash] ls", role="assistant", block_type="tool_use")


def basis(stamp: str = "test/words") -> Basis:
    return Basis(
        stamp=stamp,
        centre=np.zeros(DIM, dtype=np.float32),
        matrix=np.eye(DIM, DIRECTIONS, dtype=np.float32),
        texts=30,
    )


def packed(seed: int, words: int = 3) -> bytes:
    drawn = np.random.default_rng(seed).integers(-127, 127, (words, DIRECTIONS))
    return drawn.astype(np.int8).tobytes()


def embed(
    memory: Memory, chunks: Sequence[Chunk], *, tokens: bool, model: WordEmbedder | None = None
) -> WordEmbedder:
    """Queue rows and give them their vectors."""
    model = model or WordEmbedder()
    memory.queue(list(chunks))
    memory.commit_words()
    run_vectors(memory, model, report=VectorsReport(), progress=ignore_progress, tokens=tokens)
    return model


def kept(memory: Memory, chunks: Sequence[Chunk]) -> set[str]:
    """Return which rows have token vectors of the text they hold."""
    found = memory.tokens([one.id for one in chunks], [one.text for one in chunks])
    return set(found[1]) if found is not None else set()


def ids(chunks: Sequence[Chunk]) -> set[str]:
    return {one.id for one in chunks}


def fill(memory: Memory, model: WordEmbedder | SmallEmbedder) -> None:
    """Do all there is to be done for older rows."""
    backfill = Backfill(TokenWork(is_on=lambda: True))
    steps = 0
    while backfill.step(memory, model, interrupted=lambda: False):
        steps += 1
        assert steps < 1_000


# What they are


def test_the_best_word_of_a_passage_counts_for_each_of_the_question() -> None:
    asked = np.eye(2, DIRECTIONS, dtype=np.float32)
    both = np.zeros((3, DIRECTIONS), dtype=np.int8)
    both[0, 0], both[2, 1] = 127, 64
    one = np.zeros((1, DIRECTIONS), dtype=np.int8)
    one[0, 1] = 127
    found = max_sims(asked, [both, one])
    assert found == pytest.approx([(1 + 64 / 127) / 2, 0.5], abs=1e-6)


def test_a_basis_keeps_the_directions_in_which_texts_differ() -> None:
    sample, random = Sample(), np.random.default_rng(3)
    shared = np.zeros(DIRECTIONS + 40, dtype=np.float32)
    shared[5] = 2.0  # what all have in common tells none from another
    own = np.zeros((30, 12, len(shared)), dtype=np.float32)
    own[:, :, 20 : 20 + DIRECTIONS] = random.standard_normal((30, 12, DIRECTIONS))
    own -= own.mean(axis=(0, 1))
    own /= np.linalg.norm(own, axis=2, keepdims=True)
    for one in own:
        sample.add(shared + one)
    fitted = sample.basis("test/words")
    assert fitted is not None
    assert fitted.centre == pytest.approx(shared, abs=0.05)
    assert fitted.matrix.T @ fitted.matrix == pytest.approx(np.eye(DIRECTIONS), abs=1e-5)
    turned = unpacked(fitted.packed(shared + own[0])).astype(np.float32) / 127
    assert turned @ turned.T == pytest.approx(own[0] @ own[0].T, abs=0.1)


def test_too_few_texts_make_no_basis() -> None:
    sample = Sample()
    for _ in range(3):
        sample.add(np.eye(DIM, dtype=np.float32))
    assert sample.basis("test/words") is None


# The file


def test_what_is_put_is_read_by_others_and_counted(tmp_path: Path) -> None:
    store, reader = TokenStore(tmp_path), TokenReader(tmp_path)
    assert reader.read(["a"], ["x"], stamp="test/words") is None
    store.put({"a": ("x", packed(1))})  # nothing to keep it by yet
    assert not (tmp_path / TOKENS).exists()
    store.begin(basis())
    store.put({"a": ("text of a", packed(1)), "b": ("text of b", packed(2, words=5))})
    store.put({"a": ("text of a", packed(3))})
    found = reader.read(["a", "b", "c"], ["text of a", "another", ""], stamp="test/words")
    assert found is not None
    assert found[1].keys() == {"a"}  # b says something else by now
    assert found[1]["a"].tobytes() == packed(3)
    assert (reader.state().chunks, reader.state().size_bytes) == (2, 8 * DIRECTIONS)
    assert reader.read(["a"], ["text of a"], stamp="test/other") is None
    store.begin(basis("test/other"))
    assert reader.state().chunks == 0
    store.close()
    reader.close()


def test_what_is_taken_out_is_overwritten(tmp_path: Path) -> None:
    store = TokenStore(tmp_path)
    store.begin(basis())
    store.put({f"row-{n}": (f"text {n}", packed(n, words=40)) for n in range(60)})
    store.delete([f"row-{n}" for n in range(0, 60, 2)])
    assert store.empty_log()
    data = b"".join(one.read_bytes() for one in _files(tmp_path))
    for n in range(60):
        assert (packed(n, words=40) in data) == bool(n % 2)
        assert (f"row-{n}".encode() in data) or not n % 2
    assert store.state().chunks == 30
    store.close()


@pytest.mark.parametrize("damage", ["start", "middle", "all"])
def test_a_damaged_file_is_dropped_and_made_anew(tmp_path: Path, damage: str) -> None:
    with writing(tmp_path) as memory:
        embed(memory, TALK, tokens=True)
        assert kept(memory, TALK) == ids(TALK)
    path = tmp_path / "memory" / TOKENS
    data = path.read_bytes()
    begin = {"start": 0, "middle": 100, "all": 0}[damage]
    end = 100 if damage == "start" else len(data)
    path.write_bytes(data[:begin] + b"\xa5" * (end - begin) + data[end:])
    model = WordEmbedder()
    with writing(tmp_path) as memory:
        assert kept(memory, TALK) == set()  # no error either
        fill(memory, model)
        assert kept(memory, TALK) == ids(TALK)
        assert memory.token_state().is_whole
    assert model.with_tokens == len(TALK)


@pytest.mark.parametrize("other", [1, 99])
def test_those_of_another_format_are_not_read_and_made_anew(tmp_path: Path, other: int) -> None:
    """Format 1 had no centre, so that its bytes mean something else."""
    with writing(tmp_path) as memory:
        embed(memory, TALK, tokens=True)
    path = tmp_path / "memory" / TOKENS
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM meta WHERE key = 'centre'")
        db.execute(f"PRAGMA user_version = {other}")
        db.commit()
    reader = TokenReader(tmp_path / "memory")
    assert reader.read([TALK[0].id], [TALK[0].text], stamp="test/words") is None
    assert reader.state().chunks == 0
    model = WordEmbedder()
    with writing(tmp_path) as memory:
        assert kept(memory, TALK) == set()
        fill(memory, model)
        assert kept(memory, TALK) == ids(TALK)
    assert model.with_tokens == len(TALK)
    assert reader.state().chunks == len(TALK)
    reader.close()


# Rows and theirs


def test_prose_has_them_from_the_pass_of_its_vector_and_nothing_else(tmp_path: Path) -> None:
    with writing(tmp_path) as memory:
        model = embed(memory, [*TALK, CALL], tokens=True)
        assert kept(memory, [*TALK, CALL]) == ids(TALK)
        state = memory.token_state()
        assert (state.chunks, state.size_bytes) == (40, 40 * 5 * DIRECTIONS)
    assert (model.calls, model.with_tokens) == (41, 40)


def test_without_them_nothing_is_kept(tmp_path: Path) -> None:
    with writing(tmp_path) as memory:
        model = embed(memory, TALK, tokens=False)
        assert kept(memory, TALK) == set()
    assert model.with_tokens == 0
    assert not list(tmp_path.rglob(f"{TOKENS}*"))


def test_older_rows_get_theirs_and_a_model_without_gives_none(tmp_path: Path) -> None:
    with writing(tmp_path) as memory:
        embed(memory, [*TALK, CALL], tokens=False)
        fill(memory, SmallEmbedder())
        assert memory.token_state().chunks == 0
        model = WordEmbedder()
        fill(memory, model)
        assert kept(memory, [*TALK, CALL]) == ids(TALK)
        assert memory.token_state().is_whole
        fill(memory, model)
        assert model.calls == 40
        later = rows(30, session="s2")
        embed(memory, later, tokens=False, model=model)
        assert not memory.token_state().is_whole
        fill(memory, model)
        assert kept(memory, [*TALK, *later]) == ids([*TALK, *later])
        assert model.with_tokens == 70


def test_an_idle_engine_gives_older_rows_theirs(funes_home: Path, projects: Path) -> None:
    turns = [record(one.text, uuid=f"u{one.seq}") for one in TALK]
    write(projects / "p" / "s.jsonl", turns)
    on: list[bool] = []
    model = WordEmbedder()
    with living(
        funes_home, projects, embedder=lambda _memory: model, tokens=lambda: bool(on)
    ) as one:
        one.index.run(one.job())
        one.settle()
        reader = TokenReader(funes_home / "memory")
        assert reader.state().chunks == 0
        on.append(True)
        one.index.wake()
        until(lambda: reader.state().is_whole, what="every row has its own")
        assert reader.state().chunks == len(TALK)
        reader.close()


# What leaves


@pytest.fixture
def word() -> str:
    return "Qz" + "".join(secrets.choice(string.ascii_lowercase) for _ in range(12))


@pytest.mark.parametrize("way", ["forget", "remove and purge", "scrub"])
def test_no_byte_of_what_leaves_is_left(tmp_path: Path, word: str, way: str) -> None:
    word = f"sesame-{word}{word}"  # what the stand-in for a scanner finds
    told = [row(seq, f"the {word} is number{seq}", session="s9") for seq in range(5)]
    with writing(tmp_path) as memory:
        memory.catalog.put_session(Session(session_id="s9", chunks=5))
        embed(memory, [*TALK, *told], tokens=True)
        found = memory.tokens([one.id for one in told], [one.text for one in told])
        assert found is not None
        theirs = [vectors.tobytes() for vectors in found[1].values()]
        assert len(theirs) == 5
    assert any(theirs[0] in file.read_bytes() for file in _files(tmp_path))
    assert list(traces_of(tmp_path, word))
    with writing(tmp_path) as memory:
        if way == "forget":
            for _ in forget_steps(memory, tmp_path, ["s9"], told=lambda *_: None):
                pass
        elif way == "scrub":
            assert scrub_in(memory, tmp_path, StandIn()).pure
        else:
            memory.remove([one.id for one in told])
            memory.commit_words()
            assert purge(memory, tmp_path, told=lambda *_: None)
        assert kept(memory, TALK) == ids(TALK)
    leaving = () if way == "scrub" else ids(told)
    assert list(traces_of(tmp_path, word, *leaving)) == []
    for file in _files(tmp_path):
        data = file.read_bytes()
        assert not [one for one in theirs if one in data], file


def test_a_text_that_changes_leaves_none_of_the_old_one(tmp_path: Path, word: str) -> None:
    with writing(tmp_path) as memory:
        embed(memory, [*TALK, row(60, f"the {word} opens it")], tokens=True)
        old = memory.tokens([row(60).id], [f"the {word} opens it"])
        assert old is not None
        packed_before = old[1][row(60).id].tobytes()
        memory.remove([row(60).id])
        embed(memory, [row(60, "the [removed] opens it")], tokens=True)
        assert purge(memory, tmp_path, told=lambda *_: None)
        assert kept(memory, [row(60, "the [removed] opens it")]) == {row(60).id}
        assert kept(memory, [row(60, f"the {word} opens it")]) == set()
    assert list(traces_of(tmp_path, word)) == []
    assert not [one for one in _files(tmp_path) if packed_before in one.read_bytes()]


def _files(home: Path) -> list[Path]:
    return [one for one in home.rglob("*") if one.is_file()]
