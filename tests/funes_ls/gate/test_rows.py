"""Rows that leave: every string of theirs passes the gate, or none of them goes."""

import re

import pytest
from msgspec.structs import replace

from funes_ls.gate.canaries import canaries
from funes_ls.gate.check import check
from funes_ls.gate.rows import allowed_rows, blocks_to_check
from funes_ls.indexer.blocks import StoredBlock, blocks_of_rows
from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.model import Block, Chunk, Turn


def rows(text: str, turn_uuid: str = "u1") -> list[Chunk]:
    turn = Turn(
        session_id="0ccf1a04-1b4c-43b6-8aa5-79e41db43a68",
        turn_uuid=turn_uuid,
        parent_uuid=None,
        seq=0,
        ts="2026-01-05T10:00:00Z",
        role="user",
        blocks=(Block(block_type="tool_use", text=text, tool_name="Bash"),),
        workdir="/home/dev/api",
        source_path="/home/dev/.claude/projects/p/s.jsonl",
        harness="claude",
        record=0,
    )
    return list(chunks_of(turn, repo="acme/api"))


def stored(made: list[Chunk]) -> list[StoredBlock]:
    return list(blocks_of_rows(made))


def test_rows_without_secrets_leave() -> None:
    (block,) = stored(rows("cat kettles.txt " * 200))
    assert len(block.rows) > 2
    report = check(blocks_to_check([block]))
    assert report.withheld == {}
    assert allowed_rows(block, report) == block.rows


def test_a_secret_cut_in_two_withholds_the_whole_block() -> None:
    made = canaries()[2]  # longer than the overlap of chunks
    (block,) = stored(rows(f"{'word ' * 150}\n{made}\n{'word ' * 400}"))
    assert len(block.rows) > 1
    report = check(blocks_to_check([block]))
    assert report.withheld == {block.key: ["private-key"]}
    assert allowed_rows(block, report) == ()


@pytest.mark.parametrize(
    "field", ["workdir", "tool_name", "source_path", "repo", "session_id", "turn_uuid", "role"]
)
def test_a_secret_beside_the_text_withholds_its_rows(field: str) -> None:
    token = canaries()[0].partition("=")[2]
    clean = rows("plain")
    dirty = [replace(row, **{field: f"/srv/{token}/x"}) for row in rows("other", "u2")]
    good, bad = stored([*clean, *dirty])
    report = check(blocks_to_check([good, bad]))
    assert report.withheld
    assert token not in str(report.withheld)
    assert allowed_rows(good, report) == good.rows
    assert allowed_rows(bad, report) == ()


@pytest.mark.parametrize("field", ["workdir", "source_path"])
def test_a_folder_named_after_one_with_a_secret_withholds_its_rows(field: str) -> None:
    token = canaries()[0].partition("=")[2]
    assert "_" in token
    named = re.sub("[^A-Za-z0-9]", "-", f"/srv/{token}/a-b")
    (block,) = stored([replace(row, **{field: named}) for row in rows("plain")])
    assert allowed_rows(block, check(blocks_to_check([block]))) == ()


def test_what_was_changed_after_the_scan_stays() -> None:
    (block,) = stored(rows("plain"))
    report = check(blocks_to_check([block]))
    for other in (
        StoredBlock(text=block.text, rows=(replace(block.rows[0], workdir="/elsewhere"),)),
        StoredBlock(text=block.text, rows=(replace(block.rows[0], text="other"),)),
        StoredBlock(text="other", rows=block.rows),
    ):
        assert allowed_rows(other, report) == ()
