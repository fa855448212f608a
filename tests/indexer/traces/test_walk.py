"""Finding traces: links, loops, odd files, order; and telling whose a trace is."""

import os
import time
from pathlib import Path

import pytest

from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.model import Problem, Turn
from funes_ls.indexer.traces import Unit, detect, source_for, sources
from tests.e2e.cli import funes
from tests.indexer.traces.reading import write_lines
from tests.indexer.traces.records import claude, codex_header, pi_header, sample

SOURCE = source_for("claude")


def listed(root: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the names found, and the kind and name of each problem."""
    items = list(SOURCE.units(root))
    units = [
        Path(item.key).relative_to(root).as_posix() for item in items if isinstance(item, Unit)
    ]
    problems = [(item.kind, Path(item.path).name) for item in items if isinstance(item, Problem)]
    return sorted(units), sorted(problems)


def talk(path: Path) -> Path:
    return write_lines(path, claude(1, "hello"))


def test_links_are_followed_and_each_real_file_is_found_once(tmp_path: Path) -> None:
    root = tmp_path / "projects"
    talk(root / "zz-real" / "one.jsonl")
    talk(tmp_path / "elsewhere" / "two.jsonl")
    single = talk(tmp_path / "single" / "three.jsonl")
    (root / "aa-again").symlink_to(root / "zz-real")
    (root / "bb-link").symlink_to(tmp_path / "elsewhere")
    (root / "cc-link").symlink_to(tmp_path / "elsewhere")
    (root / "dangling").symlink_to(tmp_path / "gone")
    (root / "loop").mkdir()
    (root / "loop" / "up").symlink_to(root)
    (root / "loop" / "above").symlink_to(tmp_path)
    (root / "loop" / "itself").symlink_to(root / "loop" / "itself")
    (root / "three-again.jsonl").symlink_to(single)
    (root / "zz-real" / "one-again.jsonl").symlink_to(root / "zz-real" / "one.jsonl")
    units, problems = listed(root)
    assert units == ["bb-link/two.jsonl", "three-again.jsonl", "zz-real/one.jsonl"]
    assert problems == [("dangling_link", "dangling"), ("dangling_link", "itself")]


def test_a_linked_file_is_read_from_where_it_is_under_the_name_it_has_here(tmp_path: Path) -> None:
    real = talk(tmp_path / "else" / "real.jsonl")
    link = tmp_path / "projects" / "-work-demo" / "linked.jsonl"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    (unit,) = [unit for unit in SOURCE.units(tmp_path / "projects") if isinstance(unit, Unit)]
    assert (unit.key, unit.path) == (str(link), real)
    (turn,) = SOURCE.read(unit)
    assert isinstance(turn, Turn)
    assert (turn.session_id, turn.source_path) == ("linked", str(link))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_no_file_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    talk(tmp_path / "one.jsonl")
    assert listed(tmp_path) == (
        ["one.jsonl"],
        [("not_a_file", "folder.jsonl"), ("not_a_file", "pipe.jsonl")],
    )


def test_a_place_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    (problem,) = SOURCE.units(tmp_path / "gone")
    assert isinstance(problem, Problem)


def test_newest_first(tmp_path: Path) -> None:
    base = time.time_ns()
    for age, name in enumerate(("c", "a", "b")):
        path = talk(tmp_path / f"{name}.jsonl")
        os.utime(path, ns=(base, base - age * 10**9))
    units = [unit for unit in SOURCE.units(tmp_path) if isinstance(unit, Unit)]
    assert [Path(unit.key).stem for unit in units] == ["c", "a", "b"]
    assert [unit.mtime_ns for unit in units] == [base - age * 10**9 for age in range(3)]


@pytest.mark.parametrize(
    ("first", "harness"),
    [
        (codex_header(), "codex"),
        ({"id": "x", "timestamp": "t", "instructions": None}, "codex"),
        ({"record_type": "state"}, "codex"),
        (pi_header(), "pi"),
        ({"type": "summary", "summary": "x"}, "claude_code"),
        (claude(1, "x"), "claude_code"),
        ("not json", "claude_code"),
    ],
)
def test_a_file_is_told_by_its_records(tmp_path: Path, first: object, harness: str) -> None:
    path = write_lines(tmp_path / "x.jsonl", "null", "7", first)
    assert detect(path).harness == harness


def test_places_are_told_by_their_names(tmp_path: Path) -> None:
    for place, harness in [
        (".claude/projects", "claude_code"),
        (".codex/sessions", "codex"),
        (".codex/archived_sessions", "codex"),
        (".pi/agent/sessions", "pi"),
        (".hermes", "hermes"),
    ]:
        folder = tmp_path / place
        folder.mkdir(parents=True)
        write_lines(folder / "odd.jsonl", {"type": "session"})
        assert detect(folder).harness == harness
    assert detect(tmp_path / "x.PARQUET").harness == ""


def test_a_mixed_tree_is_read_file_by_file(tmp_path: Path) -> None:
    for harness in ("claude", "codex", "pi"):
        path = tmp_path / harness / "session.jsonl"
        path.parent.mkdir()
        path.write_bytes(b"".join(sample(harness)))
    source = detect(tmp_path)
    units = [unit for unit in source.units(tmp_path) if isinstance(unit, Unit)]
    found = {unit.harness: len(list(source.read(unit))) for unit in units}
    assert found == {"claude_code": 5, "codex": 7, "pi": 5}


def test_readers_by_name() -> None:
    names = ["claude_code", "codex", "pi", "hermes"]
    names += ["gemini", "qwen", "opencode", "copilot", "cline", "vscode"]
    assert [source.harness for source in sources()] == names
    assert [source_for(name).harness for name in ("claude", *names)] == ["claude_code", *names]
    with pytest.raises(UsageError, match="claude, codex, pi, hermes"):
        source_for("cursor")


def odd_places(folder: Path) -> list[Path]:
    """Return pipes with several names, a link to one, and a device."""
    names = ("pipe.jsonl", "pipe", "rollout-pipe.jsonl.zst", "pipe.parquet", "state.db")
    for name in names:
        os.mkfifo(folder / name)
    (folder / "link.jsonl").symlink_to(folder / "pipe")
    return [*(folder / name for name in names), folder / "link.jsonl", Path(os.devnull)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.timeout(60)
def test_a_pipe_or_a_device_that_is_named_is_refused_at_once(tmp_path: Path) -> None:
    for path in odd_places(tmp_path):
        for command in (["parse"], ["parse", "--harness", "codex"], ["index", "--words-only"]):
            ran = funes(*command, str(path))
            assert (ran.code, ran.out) == (1, ""), (command, path)
            assert f"{path}: It is not a regular file." in ran.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.timeout(60)
def test_a_file_that_became_a_pipe_is_not_opened(tmp_path: Path) -> None:
    path = talk(tmp_path / "one.jsonl")
    (unit,) = [unit for unit in SOURCE.units(path) if isinstance(unit, Unit)]
    path.unlink()
    os.mkfifo(path)
    reading = SOURCE.read(unit)
    (problem,) = reading
    assert isinstance(problem, Problem)
    assert (problem.message, reading.failed) == ("It is not a regular file.", True)
