"""Names of homes in paths and work directories, on every system they come from."""

from pathlib import Path

import pytest

from funes_ls.hub.folding import folded, folded_path
from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.model import Block, Turn


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/alex/api/x.py", "~/api/x.py"),
        ("/home/alex", "~"),
        ("/Users/alex/api", "~/api"),
        ("/var/home/alex/api", "~/api"),
        ("/root/api", "~/api"),
        ("/mnt/c/Users/alex/api", "~/api"),
        ("C:\\Users\\alex\\api", "~\\api"),
        ("/home/anna-maria/.claude/projects/-home-anna-maria-api/s.jsonl",
         "~/.claude/projects/~-api/s.jsonl"),
        ("/opt/work/mine/api", "~/api"),
        ("/opt/work/mine2/api", "/opt/work/mine2/api"),
        ("/srv/api", "/srv/api"),
        ("/homes/alex", "/homes/alex"),
        ("/rooted/api", "/rooted/api"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_home_becomes_a_tilde(path: str, expected: str) -> None:
    assert folded_path(path, home="/opt/work/mine") == expected


@pytest.mark.parametrize(
    ("source", "workdir", "expected"),
    [
        ("/home/anna-maria/.codex/s.jsonl", "-home-anna-maria-api", "~-api"),
        ("/home/alex/.codex/s.jsonl", "-home-alex", "~"),
        ("/srv/import/s.jsonl", "-Users-sam-api", "~-api"),
        ("/srv/import/s.jsonl", "-srv-home-api", "-srv-home-api"),
        ("C:\\Users\\alex\\s.jsonl", "C--Users-alex-api", "~-api"),
    ],
)
def test_work_directories_are_folded_with_their_dashes(
    source: str, workdir: str, expected: str, own_home: Path
) -> None:
    turn = Turn(
        session_id="s", turn_uuid="u", parent_uuid=None, seq=0, ts="", role="user",
        blocks=(Block(block_type="text", text="/home/alex said so"),), workdir=workdir,
        source_path=source, harness="codex", record=0,
    )  # fmt: skip
    row = next(iter(chunks_of(turn)))
    assert folded(row).workdir == expected
    assert (folded(row).text, folded(row).id) == (row.text, row.id)
