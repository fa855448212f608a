"""`funes mcp` as a process: raw lines, the official client, engines that come and go."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from funes_ls import __version__
from tests.e2e.engines import Engines, alive, peak_rss_mb, until
from tests.e2e.mcp_client import COMMAND, McpClient

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

SESSION = "8845927a-3cb6-420d-ad22-3a9129b12318"
TURN = "7d88b2a0-8309-40ed-a292-0bce9ac82846"
QUESTION = "three attempts with full jitter"
ANSWER = "Two changes: full jitter"


@pytest.fixture(scope="module")
def agent(served: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpClient]:
    """Keep one server on the sample sessions for the tests of this module."""
    errors = tmp_path_factory.mktemp("mcp") / "errors"
    with McpClient(served.env, errors=errors) as client:
        client.initialize()
        yield client
        assert client.end() == 0
        assert client.lines == []
    assert errors.read_text() == ""


def quoted(text: str) -> str:
    """Return what stands within the fence of an answer."""
    found = re.search(r"lines marked ([0-9a-f]{16}) .*?<<<\1\n(.*)\n\1>>>", text, re.DOTALL)
    assert found is not None, text
    return found[2]


def through_cli(served: Engines, *words: str) -> str:
    """Return what the command prints."""
    ran = subprocess.run([*COMMAND, *words], env=served.env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_hello_is_answered_at_once_and_takes_little(served: Engines) -> None:
    took_s = []
    for _ in range(3):
        with McpClient(served.env) as client:
            result = client.initialize()
            took_s.append(time.monotonic() - client.started)
            assert result["serverInfo"] == {"name": "funes", "version": __version__}
            client.call("recall", query=QUESTION)
            client.call("related", file="http.py")
            client.call("status")
            assert peak_rss_mb(client.process.pid) < 60
            assert client.end() == 0
    assert min(took_s) < 0.5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"query": QUESTION}, [QUESTION]),
        ({"query": QUESTION, "k": "2", "harness": "codex"}, ["-k", "2", "--harness", "codex"]),
        ({"query": QUESTION, "block_type": "tool_use"}, ["--type", "tool_use"]),
        (
            {"query": QUESTION, "project": "tidewater", "k": 3},
            ["--project", "tidewater", "-k", "3"],
        ),
        (
            {"query": QUESTION, "since": "2026-04-01", "until": "2026-05-01"},
            ["--since", "2026-04-01", "--until", "2026-05-01"],
        ),
        ({"query": QUESTION, "path": "http.py"}, ["--path", "http.py"]),
    ],
)
def test_recall_says_what_the_command_says(
    served: Engines, agent: McpClient, given: dict[str, Any], words: list[str]
) -> None:
    text = agent.call("recall", **given, max_tokens=50_000)
    printed = through_cli(served, "recall", *words, *([] if QUESTION in words else [QUESTION]))
    assert quoted(text) == printed.rstrip("\n")
    assert printed.count("\n---\n") > 1


def test_get_says_what_the_command_says(served: Engines, agent: McpClient) -> None:
    text = agent.call("get", session_id=SESSION, turn_uuid=TURN, window=2)
    assert quoted(text) == through_cli(served, "get", SESSION, TURN, "--window", "2").rstrip("\n")
    assert "session 8845927a" in text and "claude_code" in text


def test_a_passage_leads_to_its_turn(agent: McpClient) -> None:
    found = quoted(agent.call("recall", query=QUESTION, k=1))
    _, session, turn = re.search(r"→ (get) (\S+) (\S+)", found).groups()  # type: ignore[union-attr]
    assert ANSWER in found
    assert ANSWER in quoted(agent.call("get", session_id=session, turn_uuid=turn, window=0))
    assert ANSWER in quoted(agent.call("get", session_id=session[:8], turn_uuid=turn))


def test_status_and_related_say_what_the_commands_say(served: Engines, agent: McpClient) -> None:
    sessions = quoted(agent.call("status")).splitlines()[1]
    assert sessions == through_cli(served, "status").splitlines()[1]
    text = agent.call("related", file="http.py")
    assert quoted(text) == through_cli(served, "related", "http.py").rstrip("\n")


def test_pages_of_recall_are_all_of_it(agent: McpClient) -> None:
    whole = quoted(agent.call("recall", query=QUESTION, k=8, max_tokens=50_000))
    pieces, offset = [], 0
    for _ in range(9):
        text = agent.call("recall", query=QUESTION, k=8 - offset, offset=offset, max_tokens=500)
        pieces.append(quoted(text))
        more = re.search(r"offset=(\d+)", text)
        assert more is not None
        offset = int(more[1])
        if offset >= 8:
            break
    assert len(pieces) > 2
    assert "\n".join(pieces) == whole


def test_a_long_turn_is_read_in_parts(agent: McpClient, served: Engines) -> None:
    found = json.loads(through_cli(served, "recall", "jitter", "-k", "50", "--json"))
    hit = max(found["hits"], key=lambda one: len(one["text"]))
    ids = {"session_id": hit["session_id"], "turn_uuid": hit["turn_uuid"]}
    whole = quoted(agent.call("get", **ids, window=0, max_tokens=50_000)) + "\n"
    parts, offset = "", 0
    while True:
        text = agent.call("get", **ids, window=0, offset=offset, max_tokens=500)
        part = quoted(text)
        more = re.search(r"offset=(\d+) for the rest", text)
        offset = int(more[1]) if more else len(whole)
        parts = (parts + part).ljust(offset, "\n")
        if more is None:
            break
    assert parts == whole


def test_turns_that_do_not_fit_are_named(agent: McpClient) -> None:
    text = agent.call("get", session_id=SESSION, turn_uuid=TURN, window=20, max_tokens=500)
    assert f"turn={TURN}" in quoted(text)
    before = re.search(r"turn_uuid=(\S+) for what was before", text)
    assert before is not None
    assert before[1] not in quoted(text)
    further = agent.call("get", session_id=SESSION, turn_uuid=before[1], window=0)
    assert f"turn={before[1]}" in quoted(further)


def test_blame_of_a_file_that_a_session_wrote(served: Engines, tmp_path: Path) -> None:
    home = Path(served.env["HOME"])
    folder = home / "src" / "quay"
    traces = home / ".claude" / "projects" / "-quay"
    folder.mkdir(parents=True)
    traces.mkdir(parents=True)
    path = folder / "rates.py"
    text = "RATES = {\n    'quay': 7,\n    'crane': 11,\n}\n"
    path.write_text(f"import sys\n{text}", encoding="utf-8")
    base = {"sessionId": "quay-1", "cwd": str(folder), "timestamp": "2026-03-02T10:00:00Z"}
    written = {"file_path": str(path), "content": text}
    use = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": written}
    done = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "File written."}
    records = [
        {"type": "user", "uuid": "q1", "message": {"role": "user", "content": "Add quay rates."}},
        {"type": "assistant", "uuid": "q2", "message": {"role": "assistant", "content": [use]}},
        {"type": "user", "uuid": "q3", "message": {"role": "user", "content": [done]}},
    ]
    lines = "".join(json.dumps({**base, **one}) + "\n" for one in records)
    (traces / "quay-1.jsonl").write_text(lines, encoding="utf-8")
    served.ask("funes/index")
    with McpClient(served.env, cwd=folder) as client:
        client.initialize()
        text = client.call("blame", file="rates.py", line=3)
        assert "quay-1" in quoted(text) and "ask: Add quay rates." in quoted(text)
        assert "3\t    'quay': 7," in quoted(text)
        assert "nothing is known of line 1" in client.call("blame", file=str(path), line="1")
        assert "2\tRATES" in quoted(client.call("blame", file="./rates.py"))
        assert "5 lines" in client.failure("blame", file="rates.py", line=9)
        assert "count from 1" in client.failure("blame", file="rates.py", line=0)
        assert "not before" in client.failure("blame", file="rates.py", line=4, end_line=2)
        assert "no file" in client.failure("blame", file="gone.py")
        assert "folder" in client.failure("blame", file=".")
        assert "edited" in quoted(client.call("related", file="rates.py"))


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("recall", {"query": "?!"}, ""),
        ("recall", {"query": "x", "harness": "emacs"}, "emacs"),
        ("recall", {"query": "x", "since": "the other day"}, "not a time"),
        ("recall", {"query": "x", "memory": "/no/such/memory"}, "No memory at /no/such/memory"),
        ("recall", {"query": "x", "block_type": "prose"}, "tool_result"),
        ("recall", {}, "`query`"),
        ("get", {"session_id": "8845927a"}, "`turn_uuid`"),
        ("related", {"file": ""}, "`file`"),
    ],
)
def test_a_failure_is_a_text_that_says_what_to_do(
    agent: McpClient, tool: str, given: dict[str, Any], said: str
) -> None:
    text = agent.failure(tool, **given)
    assert said in text
    assert "<<<" not in text and "Internal" not in text


def test_nothing_found_is_no_failure(agent: McpClient) -> None:
    text = agent.call("recall", query="zebrafish quokka", since="1d")
    assert text.startswith("no results") and "without since" in text
    assert "no turn" in agent.call("get", session_id=SESSION, turn_uuid="no-such-turn")
    missing = agent.call("get", session_id="no-such-session", turn_uuid="no-such-turn")
    assert missing.startswith("no session no-such-session. The two ids")
    assert "no session" in agent.call("related", file="no/such/file.zig")


def test_what_a_tool_has_not_is_left_out_and_named(agent: McpClient) -> None:
    text = agent.call("recall", query=QUESTION, rerank=True)
    assert ANSWER in quoted(text)
    assert "rerank" in text.splitlines()[-1]


def test_a_budget_comes_from_option_variable_or_file(served: Engines) -> None:
    def size(env: dict[str, str], *words: str) -> int:
        with McpClient(env, *words) as client:
            return len(quoted(client.call("recall", query=QUESTION)))

    usual = size(served.env)
    assert size(served.env, "--tokens", "500") < usual / 2
    assert size({**served.env, "FUNES_MCP_TOKENS": "500"}) < usual / 2
    assert size({**served.env, "FUNES_MCP_TOKENS": "much"}) == usual


def test_a_memory_named_at_the_start_is_the_one_that_is_read(served: Engines) -> None:
    with McpClient(served.env, "/no/such/memory") as client:
        assert "/no/such/memory" in client.failure("recall", query=QUESTION)
        assert ANSWER in client.call("recall", query=QUESTION, memory="local")
        assert "/no/such/memory" in client.failure("recall", query=QUESTION, memory=" ")


def test_many_calls_at_once_are_all_answered(agent: McpClient) -> None:
    given = {"name": "recall", "arguments": {"query": QUESTION, "k": 1}}
    numbers = [agent.begin("tools/call", given) for _ in range(30)]
    for number in reversed(numbers):
        assert ANSWER in agent.next(number)["result"]["content"][0]["text"]


def test_after_its_engine_is_killed_the_next_call_works(served: Engines) -> None:
    with McpClient(served.env) as client:
        client.initialize()
        assert ANSWER in client.call("recall", query=QUESTION)
        old = served.pid
        served.kill()
        assert ANSWER in client.call("recall", query=QUESTION)
        assert served.pid not in (0, old)
        served.ask("engine/stop")
        assert ANSWER in client.call("recall", query=QUESTION)
        served.connect().close()


def test_an_engine_that_cannot_start_is_told_of_and_hello_does_not_wait(
    served: Engines, tmp_path: Path
) -> None:
    home = tmp_path / "funes"
    (home / "memory").mkdir(parents=True)
    (home / "run").write_text("in the way")
    with McpClient({**served.env, "FUNES_HOME": str(home)}) as client:
        client.initialize()
        assert len(client.ask("tools/list")["result"]["tools"]) == 5
        text = client.failure("recall", query=QUESTION)
        assert str(home / "run") in text
        assert "Traceback" not in text


def test_hello_does_not_wait_for_an_engine_that_starts(served: Engines, tmp_path: Path) -> None:
    """The engine is held up for seconds; what needs none is answered meanwhile."""
    home = tmp_path / "funes"
    (home / "memory").mkdir(parents=True)
    slow = tmp_path / "slow"
    slow.mkdir()
    code = "import sys, time\nif sys.orig_argv[-1] == 'funes_ls.engine': time.sleep(3)\n"
    (slow / "sitecustomize.py").write_text(code, encoding="utf-8")
    env = {**served.env, "FUNES_HOME": str(home), "PYTHONPATH": str(slow)}
    with Engines(home, env) as engines, McpClient(env) as client:
        client.initialize()
        number = client.begin("tools/call", {"name": "status", "arguments": {}})
        assert client.ask("ping")["result"] == {}
        assert client.ask("tools/list")["result"]["tools"]
        assert time.monotonic() - client.started < 2.5
        result = client.next(number)["result"]
        assert time.monotonic() - client.started > 2.5
        assert "memory" in result["content"][0]["text"]
        engines.connect().close()


def test_an_engine_in_the_same_process_answers_too(served: Engines) -> None:
    served.ask("engine/stop")
    with McpClient({**served.env, "FUNES_ENGINE": "inline"}) as client:
        client.initialize()
        assert ANSWER in client.call("recall", query=QUESTION)
        assert client.end() == 0
    served.connect().close()


def test_stdout_carries_the_protocol_alone(served: Engines, tmp_path: Path) -> None:
    """Whatever is printed inside the process goes to stderr."""
    code = (
        "import os, sys, threading\n"
        "if 'mcp' in sys.orig_argv:\n"
        "    def shout():\n"
        "        for _ in range(50):\n"
        "            threading.Event().wait(0.01)\n"
        "            if os.fstat(1) == os.fstat(2):\n"
        "                print('noise', flush=True)\n"
        "                os.write(1, b'more noise')\n"
        "    threading.Thread(target=shout, daemon=True).start()\n"
    )
    (tmp_path / "sitecustomize.py").write_text(code, encoding="utf-8")
    errors = tmp_path / "errors"
    env = {**served.env, "PYTHONPATH": str(tmp_path)}
    with McpClient(env, errors=errors) as client:
        client.initialize()
        assert ANSWER in client.call("recall", query=QUESTION)
        until(lambda: b"noise" in errors.read_bytes(), what="something is printed")
        assert client.end() == 0
        assert client.lines == []


def test_damaged_lines_do_not_end_it(served: Engines) -> None:
    with McpClient(served.env) as client:
        client.initialize()
        client.raw(b'{"jsonrpc":"2.0","id":9,"method":\n\xff\xfe\n\n\r\n[1,2\n')
        codes = [client.next(None)["error"]["code"] for _ in range(3)]
        assert codes == [-32700] * 3
        client.raw(b'{"x":"' + b"y" * (5 << 20) + b'"}\n')
        assert client.next(None)["error"]["code"] == -32600
        assert client.ask("ping")["result"] == {}
        assert client.end() == 0


def test_the_end_of_stdin_ends_it_once_calls_are_answered(served: Engines) -> None:
    call = {"name": "recall", "arguments": {"query": QUESTION, "k": 1}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    sent = "\n".join(map(json.dumps, lines))  # no newline at the end
    ran = subprocess.run(
        [*COMMAND, "mcp"], input=sent, env=served.env, capture_output=True, text=True, timeout=30
    )
    assert ran.returncode == 0
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == [1, 2]
    assert ANSWER in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once(served: Engines, number: signal.Signals) -> None:
    with McpClient(served.env) as client:
        client.initialize()
        began = time.monotonic()
        os.kill(client.process.pid, number)
        assert client.process.wait(10) == 0
        assert time.monotonic() - began < 2


def test_it_ends_with_a_client_that_is_killed(served: Engines, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        f"server = subprocess.Popen({[*COMMAND, 'mcp']!r}, stdin=-1, stdout=-1)\n"
        f"open({str(pid_file)!r}, 'w').write(str(server.pid))\n"
        "time.sleep(60)\n"
    )
    client = subprocess.Popen([sys.executable, "-c", code], env=served.env)
    pid = int(until(lambda: pid_file.is_file() and pid_file.read_text(), what="a server runs"))
    client.kill()
    client.wait()
    until(lambda: not alive(pid), seconds=10, what="the server has ended too")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_from_the_start(served: Engines, closed: str) -> None:
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    words = " ".join(f"'{word}'" for word in [*COMMAND, "mcp"])
    script = f"printf '%s\\n' '{ping}' | {words} {closed}"
    ran = subprocess.run(
        ["sh", "-c", script], env=served.env, capture_output=True, text=True, timeout=30
    )
    assert "Traceback" not in ran.stderr
    if closed == "2>&-":
        assert json.loads(ran.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client(served: Engines, tmp_path: Path, mode: str) -> None:
    asyncio.run(_with_official_client(served, tmp_path, mode))


async def _with_official_client(served: Engines, tmp_path: Path, mode: str) -> None:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    (tmp_path / "notes.txt").write_text("x\n")
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=served.env, cwd=tmp_path
    )
    async with Client(server, mode=mode) as client:
        assert client.protocol_version == "2025-11-25"
        assert "recall" in (client.instructions or "")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"recall", "get", "status", "related", "blame"}
        hints = tools["recall"].annotations
        assert hints is not None and hints.read_only_hint and hints.open_world_hint is False
        found = await client.call_tool("recall", {"query": QUESTION, "k": "1"})
        assert not found.is_error
        assert ANSWER in quoted(found.content[0].text)  # type: ignore[union-attr]
        several = await asyncio.gather(
            *(client.call_tool("related", {"file": "http.py"}) for _ in range(8))
        )
        assert all("edited" in one.content[0].text for one in several)  # type: ignore[union-attr]
        failed = await client.call_tool("recall", {"query": "x", "harness": "emacs"})
        assert failed.is_error
        blamed = await client.call_tool("blame", {"file": "notes.txt"})
        assert "nothing is known" in blamed.content[0].text  # type: ignore[union-attr]
