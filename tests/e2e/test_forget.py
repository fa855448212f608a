"""`funes forget`: which sessions go, that they are gone to the last byte, and stay away."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli import funes, index, recall, status
from tests.e2e.engines import Asking, Engines, until
from tests.leftovers import traces_of, within
from tests.sessions import append, record, tool_use, write

WORD = "Qz7flamingoRex"


@pytest.fixture
def projects(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNES_REDACTION", "off")  # no scanner is needed to forget
    return own_home / ".claude" / "projects"


@pytest.fixture(params=["engine", "alone"])
def either(
    request: pytest.FixtureRequest, own_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Answer through an engine of its own, or without one; give the home."""
    home = own_home / ".funes"
    if request.param == "alone":
        yield home
        return
    if os.name == "nt":
        pytest.skip("processes and signals of POSIX")
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(home, os.environ):
        yield home


def turns(name: str, *texts: str, cwd: str = "/work/demo", day: int = 2) -> list[dict[str, object]]:
    return [
        record(text, uuid=f"{name}-{n}", cwd=cwd, ts=f"2026-03-{day:02}T10:00:{n:02}.000Z",
               sessionId=name)
        for n, text in enumerate(texts)
    ]  # fmt: skip


def four_sessions(projects: Path) -> None:
    write(projects / "p" / "s1.jsonl", turns("s1", f"the {WORD} is pink", "and tall"))
    write(projects / "p" / "s2.jsonl", turns("s2", "plain talk of kettles", day=9))
    write(projects / "q" / "s3.jsonl", turns("s3", "other folder", cwd="/work/secretive", day=4))
    write(
        projects / "p" / "s1" / "subagents" / "agent-a1.jsonl",
        [
            {**one, "isSidechain": True, "agentId": "a1", "sessionId": "s1"}
            for one in turns("a1", f"look at {WORD}s legs")
        ],
    )
    index()


def gone(*argv: str) -> list[str]:
    """Forget, and return the ids of what went."""
    answer = funes("forget", *argv, "--yes", "--json").json
    assert answer["forgotten"]
    assert answer["pure"]
    return sorted(one["session_id"] for one in answer["sessions"])


def test_a_session_goes_with_its_subagents_to_the_last_byte(either: Path, projects: Path) -> None:
    four_sessions(projects)
    assert len(list(traces_of(either, WORD, "flamingo"))) > 1
    would = funes("forget", "s1", "--dry-run")
    assert would.code == 0
    assert f"the {WORD} is pink" in would.out
    assert "1 session of sub-agents goes with the sessions that started them." in would.out
    assert status()["sessions"] == 4
    assert gone("s1") == ["agent-a1", "s1"]
    assert list(traces_of(either, WORD, "flamingo")) == []
    assert list(within(either, WORD)) == []
    assert {hit["session_id"] for hit in recall("flamingo legs pink")} <= {"s2", "s3"}
    assert status()["sessions"] == 2
    index()
    assert status()["sessions"] == 2
    assert list(traces_of(either, WORD, "flamingo")) == []


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        (["--project", "secretive"], ["s3"]),
        (["--project", "/work/secretive"], ["s3"]),
        (["--match", "KETTLES"], ["s2"]),
        (["--match", WORD.upper()], ["agent-a1", "s1"]),
        (["--before", "2026-03-05"], ["agent-a1", "s1", "s3"]),
        (["--before", "2026-03-05", "--match", "folder"], ["s3"]),
        (["--project", "demo", "--before", "2026-03-05", "--match", "tall"], ["agent-a1", "s1"]),
    ],
    ids=" ".join,
)
def test_filters_are_met_all_together(
    own_home: Path, projects: Path, filters: list[str], ids: list[str]
) -> None:
    four_sessions(projects)
    assert gone(*filters) == ids
    assert status()["sessions"] == 4 - len(ids)


def test_what_matches_no_session_takes_nothing(own_home: Path, projects: Path) -> None:
    four_sessions(projects)
    ran = funes("forget", "--match", "no such words", "--yes")
    assert (ran.code, ran.out) == (0, "No session matches; nothing was forgotten.\n")
    assert funes("forget").code == 2
    assert funes("forget", "--before", "some day", "--yes").code == 2
    assert status()["sessions"] == 4


def test_text_within_json_and_across_chunks_is_matched(own_home: Path, projects: Path) -> None:
    long = "x" * 1150 + " the seam of two chunks " + "y " * 700
    write(projects / "p" / "s1.jsonl", turns("s1", long))
    call = tool_use("Bash", {"command": 'say "hello\tthere"'}, id="t1")
    write(projects / "p" / "s2.jsonl", [record(call, uuid="u1", role="assistant")])
    write(projects / "p" / "s3.jsonl", turns("s3", "nothing of it"))
    index()
    assert gone("--match", "X" * 300 + " the SEAM of two chunks y y") == ["s1"]
    assert gone("--match", 'say "hello\tthere"') == ["s2"]
    assert status()["sessions"] == 1


def test_no_trace_of_it_brings_it_back(own_home: Path, projects: Path) -> None:
    four_sessions(projects)
    gone("s1")
    trace = projects / "p" / "s1.jsonl"
    append(trace, turns("s1", "", "", f"more of the {WORD}")[2:])
    index()
    shutil.copy(trace, projects / "q" / "s1.jsonl")
    shutil.copy(trace, projects / "q" / "renamed.jsonl")
    index()
    (projects / "moved").mkdir()
    trace.rename(projects / "moved" / "s1.jsonl")
    index()
    resumed = turns("s1", f"the {WORD} is pink", "and tall", "and it goes on")
    write(projects / "p" / "later.jsonl", [{**one, "sessionId": "later"} for one in resumed])
    other = {**turns("a2", f"another look at the {WORD}")[0], "isSidechain": True}
    write(
        projects / "p" / "s1" / "subagents" / "agent-a2.jsonl",
        [{**other, "agentId": "a2", "sessionId": "s1"}],
    )
    index()
    index(str(projects / "moved" / "s1.jsonl"))
    assert status()["sessions"] == 2
    assert list(traces_of(own_home / ".funes", WORD, "flamingo")) == []
    write(projects / "p" / "s9.jsonl", turns("s9", "a new one"))
    index()
    assert status()["sessions"] == 3


def test_the_fork_that_stays_may_be_forked_again(own_home: Path, projects: Path) -> None:
    begun = turns("s1", "one beginning", "and on")
    write(projects / "p" / "s1.jsonl", begun)
    write(projects / "p" / "s2.jsonl", [{**one, "sessionId": "s2"} for one in begun])
    index()
    assert gone("s2") == ["s2"]
    write(projects / "p" / "s3.jsonl", [{**one, "sessionId": "s3"} for one in begun])
    index()
    assert status()["sessions"] == 2


@pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")
def test_the_watcher_brings_nothing_back_and_goes_on(
    own_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    home = own_home / ".funes"
    with Engines(home, os.environ):
        four_sessions(projects)
        gone("s1")
        append(projects / "p" / "s1.jsonl", turns("s1", "", "", f"more of the {WORD}")[2:])
        append(projects / "p" / "s2.jsonl", turns("s2", "", "the samovar sings", day=9)[1:])
        until(lambda: recall("samovar"), what="other sessions are followed")
        assert {hit["session_id"] for hit in recall(WORD)} <= {"s2", "s3"}
        assert list(traces_of(home, WORD, "flamingo")) == []


def big_memory(projects: Path, sessions: int = 40, turns_each: int = 60) -> None:
    for n in range(sessions):
        texts = [f"session {n} turn {turn} speaks of valve {turn}" for turn in range(turns_each)]
        write(projects / "p" / f"b{n}.jsonl", turns(f"b{n}", *texts))
    index()


@pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")
def test_questions_asked_meanwhile_are_answered(
    own_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(own_home / ".funes", os.environ) as engines:
        big_memory(projects)
        asked = 0
        for n in range(6):
            with engines.connect() as working, engines.connect() as other:
                doing = Asking(working, "funes/forget", session=f"b{n}")
                while not doing.over:
                    hits = other.request("funes/recall", {"query": "valve 7"}, timeout_s=20)["hits"]
                    assert len(hits) == 8
                    got = other.request(
                        "funes/get", {"sessionId": "b30", "turnUuid": "b30-3"}, timeout_s=20
                    )
                    assert got["found"]
                    asked += 1
                doing.join()
                assert doing.error is None
                assert doing.answer["chunks"] == 60
                assert [one["kind"] for one in doing.told][:: len(doing.told) - 1] == [
                    "begin",
                    "end",
                ]
        assert asked >= 6
        assert status()["sessions"] == 34


@pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")
def test_what_is_withdrawn_leaves_a_whole_memory(
    own_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    home = own_home / ".funes"
    with Engines(home, os.environ) as engines:
        big_memory(projects, sessions=10)
        write(projects / "p" / "s1.jsonl", turns("s1", f"the {WORD} is pink"))
        index()
        with engines.connect() as working:
            doing = Asking(working, "funes/forget", session="s1")
            until(lambda: doing.told or doing.over, what="it has begun")
            working.cancel()
            doing.join()
        assert len(recall("valve 7")) == 8
        if doing.error is not None:
            assert doing.error.kind == "cancelled"
        # Withdrawn before it began it is not done; once the session is out, its bytes follow.
        if status()["sessions"] == 10:
            funes("engine", "stop")
            index()
            until(lambda: not list(traces_of(home, WORD)), what="its bytes are gone, too")
        else:
            assert gone("s1") == ["s1"]


@pytest.mark.skipif(os.name == "nt", reason="processes and signals of POSIX")
def test_an_engine_killed_over_it_is_followed_by_one_that_finishes(
    own_home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    home = own_home / ".funes"
    with Engines(home, os.environ) as engines:
        big_memory(projects, sessions=10)
        write(projects / "p" / "s1.jsonl", turns("s1", f"the {WORD} is pink"))
        index()
        with engines.connect() as working:
            doing = Asking(working, "funes/forget", session="s1")
            until(lambda: any("event" in one for one in doing.told) or doing.over)
            engines.kill()
            doing.join()
        index()
        until(lambda: not list(traces_of(home, WORD)), what="its bytes are gone")
        assert status()["sessions"] == 10
        assert len(recall("valve 7")) == 8


def test_too_little_of_an_id_forgets_nothing(projects: Path) -> None:
    write(projects / "p" / "deafbeef-1.jsonl", turns("deafbeef-1", "plain talk"))
    index()
    ran = funes("forget", "d", "--yes")
    assert ran.code == 2
    assert "too little of an id" in ran.err and "at least 6 characters" in ran.err
    assert funes("forget", "deafbe", "--yes", "-q").code == 0
    assert status()["sessions"] == 0


def test_status_lists_what_is_kept_out_and_why(projects: Path) -> None:
    write(projects / "p" / "s1.jsonl", turns("s1", "funes:private", "the flamingo"))
    write(projects / "p" / "s2.jsonl", turns("s2", "plain talk"))
    index()
    assert "excluded  1 session kept out" in funes("status", "-q").out
    (one,) = funes("status", "--excluded", "--json").json["excluded"]
    assert (one["session_id"], one["reason"]) == ("s1", "marker")
    assert one["path"].endswith("s1.jsonl")
    told = funes("status", "--excluded", "-q").out
    assert told == f"{one['path']}: kept out by funes:private\n"


def test_nothing_is_kept_out_is_said(projects: Path) -> None:
    write(projects / "p" / "s2.jsonl", turns("s2", "plain talk"))
    index()
    assert funes("status", "--excluded", "-q").out == "nothing is kept out\n"
