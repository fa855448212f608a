"""The public traces beside the checkout, through the command line; skipped where they are not."""

import csv
import gzip
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.e2e.cli import funes, index, recall, status

QUESTIONS = [
    "--no-verify commit hook",
    "#4821 what was that issue",
    '"path normalization" for sessions',
    "'quoted' and (unclosed [brackets",
    "why",
    "pomodoro timer",
    "как починить сборку",
    "なぜセッションが見つからないのか",
    "为什么 会话 导入 失败",
    "لماذا فشل البناء",
    "η συνεδρία δεν βρέθηκε",
    "세션을 다시 열 수 없는 이유",
    "ทำไมเซสชันหาย session",
    "🚀 deploy",
    "AND OR NOT NEAR",
    "what did we decide about the way that sessions are stored on disk and how they are found "
    "again when the folder has an underscore in its name and somebody wants to resume the work "
    "the next morning on another machine without losing anything of it",
]


def test_compat_rows_equal_an_independent_readers(shared: Path) -> None:
    """`funes parse --rows` prints what `expected_rows.tsv.gz` holds, file by file."""
    wanted: dict[str, list[list[str]]] = defaultdict(list)
    with gzip.open(shared / "traces" / "expected_rows.tsv.gz", "rt", encoding="utf-8") as file:
        for name, *cells in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            wanted[name].append(cells)
    del wanted["file"]
    different = [name for name, rows in wanted.items() if printed(shared / "traces" / name) != rows]
    assert different == []


def printed(path: Path) -> list[list[str]]:
    ran = funes("parse", str(path), "--rows")
    assert ran.code == 0, ran.err
    return [line.split("\t")[1:] for line in ran.out.splitlines()[1:]]


@pytest.mark.timeout(300)
def test_every_sentinel_of_the_damaged_home_is_found(shared: Path, own_home: Path) -> None:
    """Each sound record of each damaged transcript is recalled by its own word."""
    script = shared / "kits" / "history" / "make_broken.py"
    made = subprocess.run(
        [sys.executable, script, own_home], capture_output=True, check=True, text=True
    )
    index("--yes", "--words-only")
    sentinels = set(made.stdout.split())
    assert len(sentinels) > 15
    missed = [
        word for word in sorted(sentinels) if not any(word in h["text"] for h in recall(word))
    ]
    assert missed == []


@pytest.fixture(scope="module")
def real_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home whose memory holds every public trace, by words."""
    home = tmp_path_factory.mktemp("real")
    folder = Path(os.environ.get("FUNES_SHARED") or Path(__file__).parents[3] / "shared")
    if not (folder / "traces" / "real").is_dir():
        pytest.skip("the public traces are not beside this checkout (set FUNES_SHARED)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUNES_HOME", str(home))
        index(str(folder / "traces" / "real"), "--words-only")
    return home


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_as_people_type_them(
    question: str, real_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNES_HOME", str(real_memory))
    ran = funes("recall", question, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["legs"]["words"] == "ran"


def test_every_file_is_a_session_or_holds_none(
    real_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNES_HOME", str(real_memory))
    told = status()
    assert set(told["harnesses"]) >= {"claude_code", "codex", "hermes", "pi"}
    assert told["chunks"] > 8_000
    listed = funes("sessions", "--limit", "500", "--json").json
    assert listed["total"] == told["sessions"] == len(listed["sessions"])
    assert all(one["chunks"] > 0 and one["turns"] > 0 for one in listed["sessions"])
