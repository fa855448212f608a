"""Filters: which sessions and rows each of them lets through."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.indexer.catalog import Session
from funes_ls.indexer.embedding import Embedder
from funes_ls.indexer.errors import MemoryStateError, UsageError
from funes_ls.indexer.memory import Memory
from funes_ls.retrieval.answers import RecallFilter, RecallRequest
from funes_ls.retrieval.filters import find_session, matching_ids, resolve, tool_names
from funes_ls.retrieval.recall import recall
from tests.retrieval.building import NOW_US, memory_of, said

SESSIONS = [
    Session(session_id="s-proxy", cwd="/work/api-proxy", workdir="-work-api-proxy",
            repo="acme/proxy", branch="main", harness="claude_code"),
    Session(session_id="s-nested", cwd="/work/api/proxy", workdir="-work-api-proxy",
            repo="acme/api", branch="dev", harness="codex"),
    Session(session_id="s-old", cwd="/old/place/tool", workdir="-old-place-tool",
            repo="acme/tool fork/tool", harness="pi"),
    Session(session_id="s-win", cwd="C:\\Work\\Notes", workdir="C--Work-Notes",
            harness="claude_code"),
    Session(session_id="s-none", workdir="-work-bare", harness="hermes"),
    Session(session_id="agent-7", cwd="/work/api/proxy", workdir="-work-api-proxy", subagent=True,
            parent_id="s-nested", link="subagent", harness="claude_code", inner_id="inner-7"),
]  # fmt: skip
FILES = {
    "s-proxy": ["/work/api-proxy/src/core/flux.py", "README.md"],
    "s-nested": ["src/core/flux.py"],
    "s-old": ["/old/place/tool/src/corex/flux.py"],
}
ROWS = [said(one.session_id, 0, "timeout of the proxy") for one in SESSIONS]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    home = tmp_path_factory.mktemp("filters")
    with memory_of(home, ROWS, sessions=SESSIONS, files=FILES) as opened:
        yield opened


def ids(memory: Memory, **fields: object) -> set[str]:
    found = matching_ids(RecallFilter(**fields), memory.catalog)  # type: ignore[arg-type]
    assert found is not None
    return set(found)


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        ("/work/api-proxy", {"s-proxy"}),
        ("/work/api-proxy/", {"s-proxy"}),
        ("/work/api/proxy", {"s-nested", "agent-7"}),
        ("/work/api", {"s-nested", "agent-7"}),
        ("api/proxy", {"s-nested", "agent-7"}),
        ("api-proxy", {"s-proxy"}),
        ("proxy", {"s-nested", "agent-7"}),
        ("tool", {"s-old"}),
        ("TOOL", {"s-old"}),
        ("acme/api", {"s-nested"}),
        ("-work-api-proxy", {"s-proxy", "s-nested", "agent-7"}),
        ("/work/api/proxy/src/open_file.py", {"s-nested", "agent-7"}),
        ("c:/work/notes", {"s-win"}),
        ("C:\\Work\\Notes", {"s-win"}),
        ("notes", {"s-win"}),
        ("/work/bare", {"s-none"}),
        ("bare", {"s-none"}),
        ("/WORK/API-PROXY", {"s-proxy"}),
        ("/nowhere", set()),
    ],
)
def test_a_project_is_a_folder_its_last_names_or_a_repository(
    memory: Memory, project: str, expected: set[str]
) -> None:
    assert ids(memory, project=project) == expected


def test_a_moved_project_is_found_by_its_repository(memory: Memory) -> None:
    assert ids(memory, project="/new/place/tool", project_repos=("acme/tool",)) == {"s-old"}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("repo", "acme/proxy", {"s-proxy"}),
        ("repo", "ACME/Proxy.git", {"s-proxy"}),
        ("repo", "tool", {"s-old"}),
        ("repo", "fork/tool", {"s-old"}),
        ("repo", "roxy", set()),
        ("cwd", "/work/api", {"s-nested", "agent-7"}),
        ("cwd", "/work/api/proxy", {"s-nested", "agent-7"}),
        ("cwd", "proxy", set()),
        ("branch", "dev", {"s-nested"}),
        ("session", "s-pro", {"s-proxy"}),
        ("session", "inner-7", {"agent-7"}),
        ("session", "nothing", set()),
        ("path", "/work/api-proxy/src/core/flux.py", {"s-proxy"}),
        ("path", "/work/api/proxy/src/core/flux.py", {"s-nested"}),
        ("path", "flux.py", {"s-proxy", "s-nested", "s-old"}),
        ("path", "core/flux.py", {"s-proxy", "s-nested"}),
        ("path", "src/core", {"s-proxy", "s-nested"}),
        ("path", "/work/api-proxy/src", {"s-proxy"}),
        ("path", "lux.py", set()),
    ],
)
def test_each_filter_lets_through(
    memory: Memory, field: str, value: str, expected: set[str]
) -> None:
    assert ids(memory, **{field: value}) == expected


def test_filters_add_up_and_sub_agents_can_be_left_out(memory: Memory) -> None:
    assert ids(memory, project="api/proxy", no_subagents=True) == {"s-nested"}
    assert ids(memory, project="api/proxy", branch="main") == set()
    assert ids(memory, no_subagents=True) == {one.session_id for one in SESSIONS} - {"agent-7"}


def test_no_session_filter_is_no_limit(memory: Memory) -> None:
    assert matching_ids(RecallFilter(tool="Bash", since="7d"), memory.catalog) is None


def test_an_ambiguous_session_names_the_candidates(memory: Memory) -> None:
    with pytest.raises(UsageError, match="several sessions: s-nested, s-none, s-old, …") as caught:
        find_session("s-", memory.catalog)
    assert caught.value.kind == "ambiguous_session"
    assert find_session("S-PROXY", memory.catalog) is None
    assert find_session("", memory.catalog) is None


def test_an_id_in_full_wins_over_longer_ones(funes_home: Path) -> None:
    rows = [said("session-1", 0, "a"), said("session-1-7f", 0, "b")]
    with memory_of(funes_home, rows) as memory:
        found = find_session("session-1", memory.catalog)
    assert found is not None
    assert found.session_id == "session-1"


@pytest.mark.parametrize("name", ["claude", "Claude", "claude_code"])
def test_harness_names(memory: Memory, name: str) -> None:
    limits = resolve(RecallFilter(harness=name), memory, now_us=NOW_US).limits
    assert limits.harnesses == {"claude_code"}


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        (RecallFilter(harness="emacs"), "claude, codex, pi, hermes"),
        (RecallFilter(block_type="prose"), "text, thinking, tool_use, tool_result"),
        (RecallFilter(since="soon"), "2026-03-02"),
    ],
)
def test_unknown_values_are_errors_that_list_the_valid_ones(
    memory: Memory, limits: RecallFilter, named: str
) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(limits, memory, now_us=NOW_US)
    assert named in caught.value.hint


def test_a_memory_without_harnesses_says_so_when_filtered_and_answers_else(
    funes_home: Path,
) -> None:
    rows = [said("old", 0, "timeout of the proxy", harness="")]
    with memory_of(funes_home, rows, sessions=[Session(session_id="old")]) as memory:
        answer = recall(RecallRequest(query="proxy"), memory, None, now_us=NOW_US)
        assert len(answer.hits) == 1
        with pytest.raises(MemoryStateError, match="before harnesses were recorded"):
            resolve(RecallFilter(harness="codex"), memory, now_us=NOW_US)


def test_a_value_with_a_quote_is_only_a_value(funes_home: Path, embedder: Embedder) -> None:
    rows = [said("it's", 0, "timeout of the proxy"), said("its", 0, "timeout of a proxy")]
    with memory_of(funes_home, rows, embedder=embedder) as memory:
        request = RecallRequest(query="proxy", filter=RecallFilter(session="it's"))
        answer = recall(request, memory, embedder, now_us=NOW_US)
    assert [hit.session_id for hit in answer.hits] == ["it's"]


def test_tools_are_found_in_any_case() -> None:
    assert "Bash" in tool_names("bash")
    assert "MultiEdit" in tool_names("multiedit")
    assert "exec_command" in tool_names("exec_command")


def test_block_types_tools_and_times_limit_both_legs(funes_home: Path, embedder: Embedder) -> None:
    day = "2026-03-0{}T10:00:00Z"
    rows = [
        said("one", 0, "valve note", ts=day.format(1)),
        said("one", 1, "valve note call", block_type="tool_use", tool="Bash", ts=day.format(2)),
        said("one", 2, "valve note reply", block_type="tool_result", tool="Bash", ts=day.format(3)),
        said("one", 3, "valve note read", block_type="tool_use", tool="Read", ts="1772704800"),
        said("one", 4, "valve note later", ts=""),
        said("one", 5, "valve note someday", ts="2031-01-01T00:00:00Z"),
    ]  # fmt: skip

    def seqs(memory: Memory, **fields: str) -> list[int]:
        request = RecallRequest(query="valve note", filter=RecallFilter(**fields))  # type: ignore[arg-type]
        answer = recall(request, memory, embedder, now_us=NOW_US)
        assert answer.legs == {"words": "ran", "vector": "ran"}
        return sorted(hit.seq for hit in answer.hits)

    with memory_of(funes_home, rows, embedder=embedder) as memory:
        assert seqs(memory, block_type="text") == [0, 4, 5]
        assert seqs(memory, tool="bash") == [1, 2]
        assert seqs(memory, tool="bash", block_type="tool-use") == [1]
        assert seqs(memory, since="2026-03-02", until="2026-03-03") == [1, 2]
        assert seqs(memory, until="2026-03-01") == [0]
        assert 5 not in seqs(memory, since="2026-03-01")
        assert seqs(memory, since="2030-01-01", until="2032-01-01") == [5]
