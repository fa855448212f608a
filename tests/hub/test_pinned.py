"""Snapshots of a memory elsewhere: opened as they were pinned, and the next one only extends."""

from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
import pytest

from funes_ls.indexer import memory_pinned
from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.dataset import open_dataset
from funes_ls.indexer.lexical import LexicalQuery
from funes_ls.indexer.memory import Memory, Pinned, open_snapshot, take_in_snapshot
from funes_ls.indexer.memory_pinned import open_pinned, tamed
from tests.hub.published import Encode, extend, publish, row, rows_of, schema, talk


def snapshot(base: Path, tmp_path: Path, revision: str, **more: object) -> Pinned:
    version = open_dataset(base).version
    return Pinned(base=base, place=tmp_path / "place", revision=revision, version=version, **more)  # type: ignore[arg-type]  # a few of its fields


def found(memory: Memory, words: str) -> set[str]:
    with memory.snapshot() as now:
        hits = now.search_words(LexicalQuery(text=words), 50)
        return {one.session_id for one in now.rows([id_ for id_, _ in hits])}


def test_a_snapshot_is_read_and_nothing_is_written_into_it(tmp_path: Path, encode: Encode) -> None:
    base = publish(tmp_path / "made", talk("alpha", 8), encode)
    before = {path: path.stat().st_mtime_ns for path in base.rglob("*")}
    with open_snapshot(snapshot(base, tmp_path, "one")) as memory:
        assert memory.state().embedded == memory.state().words == 8
        assert found(memory, "kettles") == {"alpha"}
        [session] = memory.catalog.sessions()
        assert (session.harness, session.chunks, session.turns) == ("claude_code", 8, 8)
        held = memory.vectors()
        assert held is not None and len(held) == 8
    assert {path: path.stat().st_mtime_ns for path in base.rglob("*")} == before


def test_what_others_wrote_into_a_snapshot_is_not_read(tmp_path: Path, encode: Encode) -> None:
    base = publish(tmp_path / "made", talk("alpha", 8), encode)
    pinned = snapshot(base, tmp_path, "one")
    extend(base, talk("intruder", 4), encode)
    lancedb.connect(base).open_table("chunks").delete("seq = 0")
    with open_snapshot(pinned) as memory:
        assert memory.state().embedded == 8
        assert found(memory, "intruder") == set()
        held = memory.vectors()
        assert held is not None and len(held) == 8


def test_a_newer_snapshot_only_adds_what_is_new(
    tmp_path: Path, encode: Encode, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = publish(tmp_path / "one", talk("alpha", 8), encode)
    second = publish(tmp_path / "two", talk("alpha", 8), encode)
    extend(second, [*talk("alpha", 10)[8:], *talk("beta", 4, about="anvils")], encode)
    read: list[int] = []
    real = memory_pinned.tamed
    monkeypatch.setattr(memory_pinned, "tamed", lambda one: read.append(1) or real(one))
    with open_snapshot(snapshot(first, tmp_path, "one")) as memory:
        with memory.snapshot() as at_first:
            held = at_first.vectors()
        newer = snapshot(second, tmp_path, "two")
        read.clear()
        assert take_in_snapshot(newer)
        assert len(read) <= 6 + 10 + 4  # the new rows, and the sessions they belong to
        memory.move_to(newer.base, open_pinned(newer))
        assert found(memory, "anvils") == {"beta"}
        assert memory.state().embedded == 14
        with memory.snapshot() as later:
            now = later.vectors()
        assert now is not None and held is not None and len(now) == 14 and now._room is held._room
        assert {one.session_id: one.chunks for one in memory.catalog.sessions()} == {
            "alpha": 10,
            "beta": 4,
        }
    with open_snapshot(newer) as again:
        assert again.state().words == 14 and again.state().embedded == 14


def test_a_snapshot_that_lost_rows_is_derived_anew(tmp_path: Path, encode: Encode) -> None:
    first = publish(tmp_path / "one", [*talk("alpha", 8), *talk("beta", 4)], encode)
    second = publish(tmp_path / "two", talk("beta", 4), encode)
    open_snapshot(snapshot(first, tmp_path, "one")).close()
    newer = snapshot(second, tmp_path, "two")
    assert not take_in_snapshot(newer)
    with open_snapshot(newer) as memory:
        assert memory.state().words == 4
        assert [one.session_id for one in memory.catalog.sessions()] == ["beta"]
        assert found(memory, "alpha") == set()


def test_a_text_that_was_changed_under_its_id_is_read_anew(tmp_path: Path, encode: Encode) -> None:
    first = publish(tmp_path / "one", [row("alpha", 0, "the old anvil")], encode)
    second = publish(tmp_path / "two", [row("alpha", 0, "the new kettle")], encode)
    open_snapshot(snapshot(first, tmp_path, "one")).close()
    newer = snapshot(second, tmp_path, "two")
    assert not take_in_snapshot(newer)
    with open_snapshot(newer) as memory:
        assert found(memory, "anvil") == set() and found(memory, "kettle") == {"alpha"}


def test_what_is_told_of_sessions_is_kept_and_made_harmless(tmp_path: Path, encode: Encode) -> None:
    base = publish(tmp_path / "made", talk("alpha", 4), encode)
    told = {
        "alpha": {
            "title": "Kettles\x1b[2J\n### boil",
            "branch": "main",
            "started_us": 2**70,
            "turns": 999,
        }
    }
    with open_snapshot(snapshot(base, tmp_path, "one", told=lambda: told)) as memory:
        session = memory.catalog.session("alpha")
    assert session is not None
    assert session.title.isprintable() and session.title.startswith("Kettles")
    assert session.branch == "main" and session.turns == 4
    assert session.started_us is not None and session.started_us < 2**53


def test_rows_of_others_are_made_harmless(tmp_path: Path) -> None:
    from funes_ls.indexer.dataset import _chunk

    wild = row(
        "s\n[2026] fake header", -5, "x" * 10_000_000, workdir="\x1b]0;owned\x07", ts="y" * 9_000
    )
    found = tamed(_chunk(wild))
    names = (found.session_id, found.workdir, found.ts, found.turn_uuid)
    assert all(name.isprintable() and len(name) <= 1_000 for name in names)
    assert len(found.text) < 50_000 and found.seq == 0


def test_rows_that_lack_things_are_read(tmp_path: Path, encode: Encode) -> None:
    rows = talk("alpha", 6)
    for name in ("ts", "role", "workdir", "harness", "seq", "block_type", "source_path"):
        rows[3][name] = None
    base = publish(tmp_path / "made", rows, encode, without=("repo",), indexed=False)
    with open_snapshot(snapshot(base, tmp_path, "one")) as memory:
        assert memory.state().words == 6
        assert len(rows_of(base)) == 6


def test_vectors_that_are_none_or_no_unit_vectors_win_nothing(
    tmp_path: Path, encode: Encode
) -> None:
    rows = talk("alpha", 6)
    columns = schema(stamp="")
    vectors = np.asarray(encode([one["text"] for one in rows]), np.float32)
    wild: list[list[float] | None] = [one.tolist() for one in vectors]
    wild[1] = None
    wild[2] = [float("nan")] * 384
    wild[3] = [1e30] * 384
    wild[4] = (vectors[4] * 1000).tolist()
    given = [{**one, "vector": vector} for one, vector in zip(rows, wild, strict=True)]
    base = tmp_path / "made"
    base.mkdir()
    table = pa.Table.from_pylist(given, schema=columns)
    lancedb.connect(base).create_table("chunks", data=table, on_bad_vectors="fill")
    with open_snapshot(snapshot(base, tmp_path, "one")) as memory:
        held = memory.vectors()
        assert held is not None
        places, scores = held.nearest(vectors[0], 6)
        assert places[0] == 0 and scores[0] == pytest.approx(1.0, abs=1e-3)
        assert np.isfinite(scores).all() and scores.max() <= 1.001
        found = held.cosines(vectors[4], np.array([4]))
        assert found[0] == pytest.approx(1.0, abs=1e-3)


def test_what_was_cut_short_is_done_again_and_counts_once(
    tmp_path: Path, encode: Encode, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = publish(tmp_path / "one", talk("alpha", 8), encode)
    second = publish(tmp_path / "two", talk("alpha", 8), encode)
    extend(second, talk("alpha", 12)[8:], encode)
    open_snapshot(snapshot(first, tmp_path, "one")).close()
    newer = snapshot(second, tmp_path, "two")
    real = Catalog.put

    def cut_short(self: Catalog, key: str, value: int | str | bytes | None) -> None:
        if key == "pinned_digest":
            raise KeyboardInterrupt
        real(self, key, value)

    with monkeypatch.context() as patched:
        patched.setattr(Catalog, "put", cut_short)
        with pytest.raises(KeyboardInterrupt):
            take_in_snapshot(newer)
    with open_snapshot(newer) as memory:
        assert memory.state().words == memory.state().embedded == 12
        assert memory.catalog.embedded_count("alpha") == 12
        assert [one.chunks for one in memory.catalog.sessions()] == [12]
