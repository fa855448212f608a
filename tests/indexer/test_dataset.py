"""The dataset: its columns, its rows and its states."""

from pathlib import Path

import lancedb
import pyarrow as pa
import pytest

from funes_ls.indexer import dataset as lance
from funes_ls.indexer.dataset import COLUMNS, Dataset
from funes_ls.indexer.errors import BackendError, MemoryStateError
from tests.indexer.making import DIM, STAMP, row, rows, run_apart, vectors


@pytest.fixture
def filled(tmp_path: Path) -> Dataset:
    made = lance.create(tmp_path, stamp=STAMP, dim=DIM)
    chunks = [*rows(20), *rows(3, session="s2")]
    made.append(chunks, vectors(chunks))
    return made


def test_the_columns_are_those_that_other_programs_share(filled: Dataset, tmp_path: Path) -> None:
    schema = lancedb.connect(tmp_path).open_table("chunks").schema
    assert schema.names == [
        "id", "text", "session_id", "workdir", "turn_uuid", "parent_uuid", "seq", "ts", "role",
        "block_type", "tool_name", "source_path", "block_idx", "split_idx", "vector", "harness",
        "repo",
    ]  # fmt: skip
    kinds = {name: str(schema.field(name).type) for name in schema.names}
    assert {name for name, kind in kinds.items() if kind == "int64"} == {
        "seq", "block_idx", "split_idx",
    }  # fmt: skip
    assert schema.field("vector").type == pa.list_(pa.field("item", pa.float32()), DIM)
    assert {kind for name, kind in kinds.items() if name != "vector"} == {"int64", "string"}
    assert all(schema.field(name).nullable for name in COLUMNS)
    assert schema.metadata == {b"embedding_model": STAMP.encode()}


def test_rows_come_back_whole_and_in_the_order_asked(filled: Dataset) -> None:
    wanted = [row(7).id, "nothing", row(2, session="s2").id, row(0).id, row(7).id]
    found = filled.rows(wanted)
    assert found == [row(7), row(2, session="s2"), row(0)]


def test_many_rows_are_read_at_once(tmp_path: Path) -> None:
    made = lance.create(tmp_path, stamp=STAMP, dim=DIM)
    chunks = rows(2500)
    made.append(chunks, vectors(chunks))
    assert made.rows([chunk.id for chunk in reversed(chunks)]) == chunks[::-1]
    assert len(made.session_rows("s1")) == 2500
    assert sum(len(batch) for batch in made.scan_rows()) == 2500


def test_a_session_reads_in_its_order(tmp_path: Path) -> None:
    made = lance.create(tmp_path, stamp=STAMP, dim=DIM)
    chunks = [row(2), row(0, block_idx=1), row(1), row(0)]
    made.append(chunks, vectors(chunks))
    assert [(c.seq, c.block_idx) for c in made.session_rows("s1")] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (2, 0),
    ]


def test_nearest_obeys_its_condition_before_the_cut(filled: Dataset) -> None:
    vector = vectors([row(4)])[0]
    assert filled.nearest(vector, 1)[0] == (row(4).id, pytest.approx(1.0, abs=1e-5))
    elsewhere = filled.nearest(vector, 2, where="session_id = 's2'")
    assert {id_ for id_, _ in elsewhere} < {chunk.id for chunk in rows(3, session="s2")}


def test_deleting(filled: Dataset) -> None:
    filled.delete_ids([row(0).id, row(1).id, "it's not there"])
    filled.delete_session("s2")
    assert filled.count() == 18
    assert filled.existing([row(0).id, row(2).id]) == {row(2).id}


def test_merging_fragments_keeps_rows_and_stamp(tmp_path: Path) -> None:
    made = lance.create(tmp_path, stamp=STAMP, dim=DIM)
    for chunk in rows(12):
        made.append([chunk], vectors([chunk]))
    made.optimize(keep_s=3600)
    again = lance.open_dataset(tmp_path)
    assert (again.count(), again.stamp, again.dim) == (12, STAMP, DIM)


def test_what_is_kept_of_old_versions_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine writes one every second or two, for days; by itself lancedb keeps 1 GB of them."""
    sessions: list[lancedb.Session] = []
    make_session = lancedb.Session

    def noted(**sizes: int) -> lancedb.Session:
        sessions.append(make_session(**sizes))
        return sessions[-1]

    monkeypatch.setattr(lancedb, "Session", noted)
    monkeypatch.setattr(lance, "_METADATA_CACHE_BYTES", 256 << 10)
    dataset = lance.create(tmp_path, stamp=STAMP, dim=DIM)
    for chunk in rows(40):  # each leaves some 30 KB
        dataset.append([chunk], vectors([chunk]))
        assert dataset.existing([chunk.id])
    assert dataset.count() == 40
    assert max(session.size_bytes for session in sessions) <= 300 << 10


def test_rows_are_found_by_index_too(filled: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lance, "_INDEXED_FROM", 10)
    filled.optimize()
    late = row(90)
    filled.append([late], vectors([late]))
    filled.delete_ids([row(3).id])
    filled.optimize()
    assert filled.rows([late.id, row(3).id, row(4).id]) == [late, row(4)]
    assert len(filled.session_rows("s2")) == 3
    assert (filled.count(), filled.stamp) == (23, STAMP)


def test_state_is_asked_of_the_disk(filled: Dataset, tmp_path: Path) -> None:
    found = lance.state(tmp_path)
    assert (found.kind, found.stamp, found.dim, found.rows) == ("ok", STAMP, DIM, 23)
    assert lance.state(tmp_path / "chunks.lance") == found
    assert lance.state(tmp_path / "elsewhere").kind == "missing"
    other = tmp_path / "other"
    lancedb.connect(other).create_table("chunks", data=pa.table({"a": [1]}))
    assert lance.state(other).kind == "foreign"
    broken = tmp_path / "broken" / "chunks.lance" / "_versions"
    broken.mkdir(parents=True)
    (broken / "1.manifest").write_bytes(b"no manifest")
    assert lance.state(tmp_path / "broken").kind == "damaged"


@pytest.mark.parametrize(
    ("stamp", "dim", "kind", "hint"),
    [
        ("other/model", DIM, "wrong_model", "another FUNES_HOME"),
        (STAMP, DIM + 1, "wrong_width", "funes model list"),
    ],
)
def test_another_model_is_refused_with_the_next_command(
    filled: Dataset, tmp_path: Path, stamp: str, dim: int, kind: str, hint: str
) -> None:
    with pytest.raises(MemoryStateError) as raised:
        lance.open_dataset(tmp_path, stamp=stamp, dim=dim)
    assert raised.value.kind == kind
    assert hint in raised.value.hint
    assert lance.open_dataset(tmp_path, stamp=STAMP, dim=DIM).count() == 23


def test_absent_and_damaged_datasets_are_named(tmp_path: Path) -> None:
    with pytest.raises(MemoryStateError) as raised:
        lance.open_dataset(tmp_path / "none")
    assert (raised.value.kind, raised.value.hint) == ("missing", "Run `funes index`.")
    assert str(tmp_path / "none") in raised.value.message


def test_memories_from_before_some_columns_are_read(tmp_path: Path) -> None:
    schema = lance.row_schema(stamp="", dim=DIM)
    old = pa.schema([field for field in schema if field.name not in ("harness", "repo")])
    chunk = row(0)
    values = {name: [getattr(chunk, name)] for name in old.names if name != "vector"}
    table = pa.Table.from_pydict({**values, "vector": vectors([chunk]).tolist()}, schema=old)
    lancedb.connect(tmp_path).create_table("chunks", data=table)
    opened = lance.open_dataset(tmp_path, stamp="any/model", dim=DIM)  # no stamp: tolerated
    read = opened.rows([chunk.id])[0]
    assert (read.harness, read.repo, read.text) == ("", "", chunk.text)
    assert opened.take([0], ["harness", "seq"]).column_names == ["seq"]


def test_vectors_that_do_not_fit_are_refused(filled: Dataset) -> None:
    with pytest.raises(ValueError, match="expected"):
        filled.append(rows(2, start=50), vectors(rows(3)))
    assert filled.count() == 23


def test_no_room_for_rows_is_a_disk_error_and_adds_none(tmp_path: Path) -> None:
    lance.create(tmp_path, stamp=STAMP, dim=DIM)
    script = """
import resource
from funes_ls.indexer.dataset import open_dataset
from funes_ls.indexer.errors import BackendError
made = open_dataset(HOME_DIR)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    made.append(rows(500), vectors(rows(500)))
except BackendError as exc:
    print(exc.kind)
"""
    assert run_apart(script, tmp_path).stdout == "disk\n"
    assert lance.open_dataset(tmp_path).count() == 0


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BackendError) as raised:
        lance.create(tmp_path / "file", stamp=STAMP, dim=DIM)
    assert raised.value.kind == "disk"


def test_one_that_is_being_made_is_none_yet(tmp_path: Path) -> None:
    path = lance.dataset_path(tmp_path)
    (path / "_transactions").mkdir(parents=True)
    (path / "_transactions" / ".tmpx").touch()
    (path / "_versions").mkdir()
    (path / "_versions" / "1.manifest#1").touch()
    assert not lance.is_there(tmp_path)
    assert lance.state(tmp_path).kind == "missing"
    assert lance.create(tmp_path, stamp=STAMP, dim=DIM).count() == 0
    assert lance.is_there(tmp_path)


def test_rows_without_a_version_are_damage(tmp_path: Path) -> None:
    (lance.dataset_path(tmp_path) / "data").mkdir(parents=True)
    (lance.dataset_path(tmp_path) / "data" / "0.lance").touch()
    assert lance.state(tmp_path).kind == "damaged"
