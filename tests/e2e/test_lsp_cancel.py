"""Withdrawn requests, answers of an older state, and load."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import env_of
from tests.e2e.engines import Engines, until
from tests.e2e.lsp_client import LspError, Server, Servers, obliging
from tests.sessions import append, record, tool_result, tool_use, write

pytestmark = pytest.mark.timeout(120)
FILE = "/work/demo/src/boiler.py"
URI = f"file://{FILE}"
LENS = {"textDocument": {"uri": URI}}
HOVER = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
TEXT = "def whistle(hour: int) -> bool:\n    return hour == NOON_OF_THE_BOILER\n"


def session_about(path: Path, number: int, *, turns: int = 4, file: str = FILE) -> Path:
    """Write a session that writes a file, that of these tests as a rule."""
    said = [
        record(f"the boiler {number} whistles at noon, take {turn}", uuid=f"{number}-u-{turn}")
        for turn in range(turns)
    ]
    call = tool_use("Write", {"file_path": file, "content": TEXT}, id="t-1")
    done = tool_result(f"File created successfully at: {file}", id="t-1")
    called = record(call, uuid=f"{number}-a", role="assistant")
    answered = record(done, uuid=f"{number}-r", toolUseResult={"type": "create"})
    return write(path / f"session-{number}.jsonl", [*said, called, answered])


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    return tmp_path / "own" / ".claude" / "projects" / "-work-demo"


@pytest.fixture
def engines(tmp_path: Path, traces: Path, tiny_model: Path) -> Iterator[Engines]:
    """An engine of this test's own, on one session."""
    session_about(traces, 1)
    home = tmp_path / "own"
    with Engines(home / ".funes", env_of(home, tiny_model)) as found:
        assert found.ask("funes/index")["sessions"] == 1
        yield found


@pytest.fixture
def own(engines: Engines, tmp_path: Path) -> Iterator[Servers]:
    with Servers(engines.env, tmp_path) as found:
        yield found


def lens_of(server: Server) -> Any:
    """Return the file's lens; an engine that is only just reached may be too slow at first."""
    [lens] = until(lambda: server.request("textDocument/codeLens", LENS))
    return lens


def with_document(own: Servers) -> Server:
    """Return a server with the file of these tests open."""
    server = own.ready()
    server.open(URI, TEXT)
    return server


def outcome(server: Server, number: int) -> Any:
    try:
        return server.answer(number)
    except LspError as exc:
        return exc.code


def test_s16_every_cancelled_request_gets_one_answer(server: Server) -> None:
    numbers = []
    for turn in range(40):
        method = ("funes/recall", "funes/sessions", "textDocument/hover")[turn % 3]
        params = HOVER if method == "textDocument/hover" else {}
        asked = {"query": f"poller {turn}"} if method == "funes/recall" else params
        numbers.append(server.begin(method, asked))
        server.notify("$/cancelRequest", {"id": numbers[-1]})
        server.notify("$/cancelRequest", {"id": numbers[-1]})
    found = [outcome(server, number) for number in numbers]
    assert all(one == -32800 or not isinstance(one, int) for one in found)
    assert -32800 in found
    server.notify("$/cancelRequest", {"id": numbers[0]})
    server.notify("$/cancelRequest", {"id": "never asked"})
    assert server.request("funes/status", {})["state"] == "ready"
    assert server.is_silent()


def test_s17_a_cancelled_recall_is_over_within_250_ms(own: Servers, engines: Engines) -> None:
    server = own.ready()
    server.request("funes/recall", {"query": "boiler"})
    os.kill(engines.pid, signal.SIGSTOP)  # whatever the engine does, the client is not kept
    try:
        number = server.begin("funes/recall", {"query": "boiler whistles"})
        assert server.is_silent()
        began = time.monotonic()
        server.notify("$/cancelRequest", {"id": number})
        assert outcome(server, number) == -32800
        assert time.monotonic() - began < 0.25
    finally:
        os.kill(engines.pid, signal.SIGCONT)
    assert server.request("funes/recall", {"query": "boiler"})["hits"]


def test_s18_a_change_of_a_document_withdraws_nothing(own: Servers, engines: Engines) -> None:
    server = own.ready()
    server.open(URI, "one\n")
    server.request("funes/recall", {"query": "boiler"})
    os.kill(engines.pid, signal.SIGSTOP)
    try:
        number = server.begin("funes/recall", {"query": "boiler whistles"})
        for version in range(2, 12):
            changed = {"uri": URI, "version": version}
            change = {"textDocument": changed, "contentChanges": [{"text": f"{version}\n"}]}
            server.notify("textDocument/didChange", change)
        assert server.is_silent()
    finally:
        os.kill(engines.pid, signal.SIGCONT)
    assert server.answer(number)["hits"]


def test_s19_a_lens_of_an_older_state_is_not_resolved(own: Servers, traces: Path) -> None:
    server = own.ready()
    lens = lens_of(server)
    assert "command" not in lens
    resolved = server.request("codeLens/resolve", lens)
    assert resolved["command"]["title"].startswith("1 past session · last ")
    server.unheard.clear()
    session_about(traces, 2)
    news = server.told("funes/didIndex")
    assert news["generation"] > lens["data"]["generation"]
    with pytest.raises(LspError) as caught:
        server.request("codeLens/resolve", lens)
    assert (caught.value.code, caught.value.kind) == (-32801, "content_modified")
    server.unheard.add("funes/didIndex")

    def now() -> str:
        lens = lens_of(server)
        try:
            return str(server.request("codeLens/resolve", lens)["command"]["title"])
        except LspError as exc:
            assert exc.code == -32801
            return ""

    until(lambda: now().startswith("2 past sessions"), what="the lens counts both sessions")
    server.waiting("funes/didIndex")


def test_s20_hover_and_status_answer_while_a_full_index_runs(
    own: Servers, traces: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "many"
    for number in range(2, 402):
        session_about(elsewhere, number, turns=20, file=f"/work/demo/src/{number}.py")
    server = with_document(own)
    assert until(lambda: server.request("textDocument/hover", HOVER))
    index = server.begin("funes/index", {"target": str(elsewhere), "workDoneToken": "work"})
    assert server.progress("work")["kind"] == "begin"
    took, during = [], 0
    while len(took) < 200:
        began = time.monotonic()
        assert server.request("textDocument/hover", HOVER)
        took.append(time.monotonic() - began)
        if len(took) % 20 == 0:
            assert server.request("funes/status", {})["state"] == "ready"
        if any(not one.get("method") and one.get("id") == index for one in server.leftovers()):
            break
        during += 1
    assert during > 20
    assert sorted(took)[int(len(took) * 0.95)] < 0.2
    server.notify("$/cancelRequest", {"id": index})
    outcome(server, index)
    while server.progress("work")["kind"] != "end":
        pass


def test_s21_a_burst_of_writes_is_one_pass(own: Servers, traces: Path) -> None:
    server = own.ready()
    server.request("funes/status", {})
    server.unheard.clear()
    path = traces / "session-1.jsonl"
    for turn in range(40):
        append(path, [record(f"burst of steam {turn}", uuid=f"burst-{turn}")])
    first = server.told("funes/didIndex")
    until(
        lambda: (
            len(server.request("funes/recall", {"query": "burst of steam", "k": 60})["hits"]) >= 40
        ),
        what="every turn of the burst is found",
    )
    server.unheard.add("funes/didIndex")
    passes = [first, *server.waiting("funes/didIndex")]
    # Words once, vectors once; twice of each where the disk was slower than the debounce.
    assert len(passes) <= 4


def test_s22_a_document_that_is_gone_is_tolerated(own: Servers, traces: Path) -> None:
    server = own.ready()
    server.open(URI, "steam\n")
    lens = lens_of(server)
    asked = server.begin("textDocument/codeLens", LENS)
    server.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    server.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    changed = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": "x"}]}
    server.notify("textDocument/didChange", changed)
    assert "internal error" in server.told("window/logMessage")["message"]
    assert len(server.answer(asked)) == 1
    session_about(traces, 2).unlink()
    (traces / "session-1.jsonl").unlink()
    assert server.request("textDocument/hover", HOVER) is None  # nor is there such a file
    outcome(server, server.begin("codeLens/resolve", lens))
    argument = {"uri": URI, "range": None}
    with pytest.raises(LspError):
        params = {"command": "funes.recallSelection", "arguments": [argument]}
        server.request("workspace/executeCommand", params)
    assert server.request("funes/status", {})["state"] == "ready"


def test_a_line_is_told_of_while_its_session_still_runs(own: Servers, traces: Path) -> None:
    server = with_document(own)
    until(lambda: server.request("textDocument/hover", HOVER))
    added = "def silence(hour: int) -> bool:\n    return not whistle(hour + 12)\n"
    call = tool_use("Write", {"file_path": FILE, "content": TEXT + added}, id="t-2")
    done = tool_result(f"The file {FILE} has been updated.", id="t-2")
    session = [
        record("And is there a quiet hour?", uuid="1-u-9"),
        record(call, uuid="1-a-9", role="assistant"),
        record(done, uuid="1-r-9", toolUseResult={"type": "update"}),
    ]
    append(traces / "session-1.jsonl", session)
    change = {
        "textDocument": {"uri": URI, "version": 2},
        "contentChanges": [{"text": TEXT + added}],
    }
    server.notify("textDocument/didChange", change)
    place = {"line": TEXT.count("\n"), "character": 0}

    def asked(place: dict[str, int]) -> str:
        found = server.request("textDocument/hover", {**HOVER, "position": place})
        return str(found["contents"]["value"]) if found else ""

    until(lambda: "quiet hour" in asked(place), what="the new line has its ask")
    assert "take 3" in asked(HOVER["position"])


def test_what_is_forgotten_lies_nowhere_for_editors_to_show(own: Servers, traces: Path) -> None:
    server = own.ready({})
    until(lambda: server.request("funes/related", {"path": FILE})["total"])
    about = {"command": "funes.showRelated", "arguments": [{"uri": URI}]}
    shown = server.request("workspace/executeCommand", about)
    server.waiting("window/showMessage")
    path = Path(shown["uri"].removeprefix("file://"))
    assert "the boiler 1 whistles" in path.read_text(encoding="utf-8")
    assert server.request("funes/forget", {"session": "session-1"})["forgotten"]
    assert list(path.parent.iterdir()) == []


def test_s23_answers_of_one_generation_are_identical(server: Server) -> None:
    first, second = (server.request("funes/recall", {"query": "gauge poller"}) for _ in "12")
    assert first["generation"] == second["generation"] > 0
    for answer in (first, second):
        answer.pop("timings_ms")
        for hit in answer["hits"]:
            hit.pop("age_s")
    assert json.dumps(first) == json.dumps(second)


def test_partial_results_come_before_the_answer_and_never_after(server: Server) -> None:
    params = {"query": "gauge poller", "partialResultToken": "partial-1"}
    number = server.begin("funes/recall", params)
    words = server.progress("partial-1")
    answer = server.answer(number)
    assert words["legs"]["words"] == "ran" and words["legs"]["vector"] == "pending"
    assert answer["legs"]["vector"] == "ran" and answer["hits"]
    assert server.is_silent()


def test_a_slow_engine_costs_an_editor_little(own: Servers, engines: Engines) -> None:
    server = with_document(own)
    assert until(lambda: server.request("textDocument/hover", HOVER))
    os.kill(engines.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        hover, lens = (
            server.begin("textDocument/hover", HOVER),
            server.begin("textDocument/codeLens", LENS),
        )
        assert server.answer(hover) is None
        assert server.answer(lens) == []
        assert time.monotonic() - began < 3
    finally:
        os.kill(engines.pid, signal.SIGCONT)
    until(lambda: server.request("textDocument/hover", HOVER))


def test_a_killed_engine_is_replaced_without_the_editor_noticing(
    own: Servers, engines: Engines
) -> None:
    server = with_document(own)
    before = until(lambda: server.request("textDocument/hover", HOVER))
    engines.kill()
    until(lambda: server.request("textDocument/hover", HOVER) == before)
    engines.connect()
    assert server.request("funes/recall", {"query": "boiler"})["hits"]


def test_an_engine_that_cannot_be_had_is_told_of_once(own: Servers, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "run").write_text("in the way")
    own.env["FUNES_HOME"] = str(blocked)
    server = obliging(own.start())
    server.initialize()
    assert "funes" in server.told("window/showMessage")["message"]
    for _ in range(3):
        assert server.request("textDocument/hover", HOVER) is None
        with pytest.raises(LspError) as caught:
            server.request("funes/recall", {"query": "boiler"})
        assert caught.value.code == -32803
    assert server.is_silent()
