"""Compressed traces that were cut: what there is is read, and it is told that more is missing."""

import io
import os
import random
from pathlib import Path

import pytest
import zstandard

from funes_ls.indexer.traces import source_for, zst
from tests.e2e.cli import index, problems, recall
from tests.indexer.traces.reading import read_all, turns_of, unit_at, write_lines
from tests.indexer.traces.records import SESSION, codex_header, codex_text

SOURCE = source_for("codex")
TURNS = 400


def whole(folder: Path) -> bytes:
    """Return a rollout, compressed as Codex does; it does not shrink much."""
    chance = random.Random(5)
    texts = [f"turn {n} " + chance.randbytes(400).hex() for n in range(TURNS)]
    lines = (codex_text(n, text) for n, text in enumerate(texts))
    plain = write_lines(folder / "plain.jsonl", codex_header(), *lines)
    data = plain.read_bytes()
    plain.unlink()
    return zstandard.ZstdCompressor().compress(data)


def rollout(folder: Path) -> Path:
    return folder / f"rollout-2026-03-02T11-00-00-{SESSION}.jsonl.zst"


def test_what_a_cut_trace_holds_is_given_with_a_problem(tmp_path: Path) -> None:
    data, path = whole(tmp_path), rollout(tmp_path)
    path.write_bytes(data)
    turns, found, _ = read_all(SOURCE, path)
    assert (len(turns), found) == (TURNS, [])
    path.write_bytes(data[:-1_000])
    cut, found, _ = read_all(SOURCE, path)
    assert 0 < len(cut) < TURNS
    assert cut == turns[: len(cut)]
    (problem,) = found
    assert (problem.kind, problem.line) == ("unreadable", 0)
    assert "ends early" in problem.message
    reading = SOURCE.read(unit_at(SOURCE, path))
    list(reading)
    assert (reading.failed, reading.resume) == (True, b"")


def test_a_cut_trace_is_read_again_and_takes_nothing_back(tmp_path: Path) -> None:
    data, path = whole(tmp_path), rollout(tmp_path)
    path.write_bytes(data[:-100_000])
    first = index(str(path), "--words-only")
    assert 0 < first["chunks"] < TURNS
    assert ["ends early" in one["message"] for one in problems()] == [True]
    assert len(recall("turn")) > 0
    path.write_bytes(data)
    second = index(str(path), "--words-only")
    assert first["chunks"] + second["chunks"] == TURNS
    assert problems() == []
    path.write_bytes(data[:-100_000])
    third = index(str(path), "--words-only")
    assert (third["chunks"], third["removed"]) == (0, 0)
    assert len(problems()) == 1


def frames() -> dict[str, bytes]:
    chance = random.Random(6)
    text = b"some words\n" * 40_000 + chance.randbytes(200_000) + b"\0" * 300_000
    plain = zstandard.ZstdCompressor(write_checksum=False, write_content_size=False)
    checked = zstandard.ZstdCompressor(level=1, write_checksum=True)
    skippable = b"\x53\x2a\x4d\x18\x05\0\0\0hello"
    streamed = io.BytesIO()
    with checked.stream_writer(streamed, closefd=False) as writer:
        writer.write(text)
    return {
        "plain": plain.compress(text),
        "checked": checked.compress(text),
        "streamed": streamed.getvalue(),
        "several": skippable + checked.compress(text) + plain.compress(b"") + skippable,
        "small": plain.compress(b"x"),
    }


@pytest.mark.parametrize("name", frames())
def test_every_cut_within_a_frame_is_noticed(name: str) -> None:
    data = frames()[name]
    ends = {0, len(data)}
    if name == "several":
        checked, empty = len(frames()["checked"]), len(data) - 26 - len(frames()["checked"])
        ends |= {13, 13 + checked, 13 + checked + empty}
    cuts = {*range(min(40, len(data))), *range(max(0, len(data) - 60), len(data) + 1), *ends}
    cuts |= set(random.Random(7).choices(range(len(data)), k=60))
    for cut in sorted(cuts):
        assert zst.ends_early(io.BytesIO(data[:cut])) == (cut not in ends), cut


def test_what_is_no_frame_is_left_to_the_decompressor(tmp_path: Path) -> None:
    for data in (b"prose, and no frame", b"\x28", os.urandom(0)):
        assert zst.ends_early(io.BytesIO(data)) == (data == b"\x28")
    path = rollout(tmp_path)
    path.write_bytes(b"prose, and no frame")
    assert [problem.kind for problem in read_all(SOURCE, path)[1]] == ["unreadable"]
    path.write_bytes(b"")
    assert turns_of(SOURCE, path) == []
