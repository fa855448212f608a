"""One answer by a coding agent: what it is handed, what is made of its answer, how it ends."""

import json
import os
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from funes_ls import ask as asking
from funes_ls.indexer.errors import BackendError, FunesError, MemoryStateError, UsageError
from funes_ls.indexer.settings import load_settings
from funes_ls.memories import OpenEachTime
from funes_ls.protocol import AskAnswer, AskParams
from tests.e2e.cli import index

SAMPLES = Path(__file__).resolve().parents[1] / "traces" / "home"
QUESTION = "which rounding do banks use for fees"
#: A stand-in for `claude -p`: its flags, its events, an answer that a test dictates.
CLAUDE = """\
#!{python}
import json, os, sys, time
from pathlib import Path
here = Path({here!r})
prompt = sys.stdin.read()
(here / "seen.json").write_text(json.dumps(
    {{"argv": sys.argv[1:], "prompt": prompt, "cwd": os.getcwd(), "pid": os.getpid()}}))
{body}
"""
SAYS = """\
for piece in {pieces!r}:
    event = {{"type": "stream_event",
             "event": {{"delta": {{"type": "text_delta", "text": piece}}}}}}
    print(json.dumps(event), flush=True)
print(json.dumps({{"type": "assistant", "message": {{"content": "all of it again"}}}}))
"""


@pytest.fixture
def bin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only directory on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def memories(tmp_path: Path) -> OpenEachTime:
    index(str(SAMPLES / ".codex"))
    return OpenEachTime(load_settings(os.environ)[0])


def install(folder: Path, body: str, *, name: str = "claude") -> None:
    program = folder / name
    text = CLAUDE.format(python=sys.executable, here=str(folder), body=body)
    program.write_text(text, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def seen(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "seen.json").read_text(encoding="utf-8"))
    return found


def put(memories: OpenEachTime, question: str = QUESTION, **more: object) -> AskAnswer:
    params = AskParams(question=question, **more)  # type: ignore[arg-type] # as a test names them
    return asking.ask(params, memories, on_text=lambda _: None)


def test_the_agent_is_handed_passages_and_asked_once(bin_dir: Path, memories: OpenEachTime) -> None:
    install(bin_dir, SAYS.format(pieces=["Half away ", "from zero."]))
    heard: list[str] = []
    answer = asking.ask(AskParams(question=QUESTION), memories, on_text=heard.append)
    assert heard == ["Half away ", "from zero."]
    assert answer.answer == "Half away from zero."
    sent = seen(bin_dir)
    assert sent["prompt"] == answer.prompt
    assert "half away from zero" in answer.prompt
    assert answer.prompt.rstrip().endswith(f"Question: {QUESTION}")
    assert [one.session_id[:8] in answer.prompt for one in answer.sources] == [True] * 8


def test_the_agent_has_no_tools_and_no_project(bin_dir: Path, memories: OpenEachTime) -> None:
    install(bin_dir, SAYS.format(pieces=["Yes."]))
    put(memories)
    argv = seen(bin_dir)["argv"]
    assert isinstance(argv, list)
    assert argv[argv.index("--tools") + 1] == ""
    assert {"--strict-mcp-config", "--no-session-persistence"} <= set(argv)
    assert QUESTION not in " ".join(argv)  # others on the machine can read arguments
    assert not Path(str(seen(bin_dir)["cwd"])).exists()


def test_cited_and_unknown_sessions_are_told_apart(bin_dir: Path, memories: OpenEachTime) -> None:
    handed = put(memories, dry_run=True).sources[0].session_id
    text = f"As in [{handed[:8]}], and in [deadbeef-0000]; see [note] and [the docs]."
    install(bin_dir, SAYS.format(pieces=[text]))
    answer = put(memories)
    assert {one.session_id for one in answer.sources if one.cited} == {handed}
    assert answer.unknown == ("deadbeef-0000",)
    assert "deadbeef-0000" in answer.note


def test_a_dry_run_asks_nobody(bin_dir: Path, memories: OpenEachTime) -> None:
    answer = put(memories, dry_run=True)
    assert answer.agent == "claude"
    assert "half away from zero" in answer.prompt
    assert answer.answer == ""


def test_no_passage_can_close_its_fence(bin_dir: Path, memories: OpenEachTime) -> None:
    fences = {put(memories, dry_run=True).prompt.split("<<<passage ")[1][:16] for _ in range(3)}
    assert len(fences) == 3


def test_nothing_found_is_said_and_nobody_asked(bin_dir: Path, memories: OpenEachTime) -> None:
    install(bin_dir, SAYS.format(pieces=["I was asked."]))
    answer = put(memories, cwd="/no/such/folder")
    assert (answer.answer, answer.sources) == ("", ())
    assert "nobody was asked" in answer.note
    assert not (bin_dir / "seen.json").exists()


def test_a_missing_memory_stops_before_any_agent(bin_dir: Path) -> None:
    install(bin_dir, SAYS.format(pieces=["I was asked."]))
    with pytest.raises(MemoryStateError) as caught:
        put(OpenEachTime(load_settings(os.environ)[0]))
    assert caught.value.kind == "missing"
    assert not (bin_dir / "seen.json").exists()


def test_a_missing_agent_names_the_others(bin_dir: Path, memories: OpenEachTime) -> None:
    install(bin_dir, SAYS.format(pieces=["Yes."]))
    with pytest.raises(UsageError, match=r"codex is not installed.*funes ask claude"):
        put(memories, agent="codex")
    with pytest.raises(UsageError, match="no agent 'vim'"):
        put(memories, agent="vim")


def test_no_agent_at_all(bin_dir: Path, memories: OpenEachTime) -> None:
    with pytest.raises(UsageError, match=r"not installed.*npm install"):
        put(memories)


def test_a_failing_agent_gives_its_reason(bin_dir: Path, memories: OpenEachTime) -> None:
    install(bin_dir, "print('x' * 100_000, file=sys.stderr)\nsys.exit('Not logged in')")
    with pytest.raises(BackendError, match="ended with code 1: Not logged in") as caught:
        put(memories)
    assert len(caught.value.message) < 200


def test_silence_is_a_failure(bin_dir: Path, memories: OpenEachTime) -> None:
    install(bin_dir, "print('no event', flush=True)")
    with pytest.raises(BackendError, match="answered nothing"):
        put(memories)


def test_a_hanging_agent_is_ended(
    bin_dir: Path, memories: OpenEachTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(bin_dir, "time.sleep(600)")
    monkeypatch.setattr(asking, "LIMIT_S", 1.0)
    started = time.monotonic()
    with pytest.raises(BackendError) as caught:
        put(memories)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < 20
    assert not Path(f"/proc/{seen(bin_dir)['pid']}").exists()


def test_a_withdrawn_question_ends_the_agent(bin_dir: Path, memories: OpenEachTime) -> None:
    install(bin_dir, SAYS.format(pieces=["So far"]) + "time.sleep(600)")
    withdrawn = threading.Event()
    with pytest.raises(FunesError) as caught:
        asking.ask(
            AskParams(question=QUESTION),
            memories,
            on_text=lambda _: withdrawn.set(),
            cancelled=withdrawn.is_set,
        )
    assert caught.value.kind == "cancelled"
    assert not Path(f"/proc/{seen(bin_dir)['pid']}").exists()
