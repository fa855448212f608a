"""Deciding what may be published: the file of decisions, options, and the review in a terminal."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import ContentSwitcher, OptionList, Static

from funes_ls.curate.review import Review
from funes_ls.hub.decisions import (
    Decisions,
    choice,
    decisions_path,
    read_decisions,
    write_decisions,
)
from funes_ls.hub.spec import MemorySpec, parse_spec
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.errors import BackendError
from funes_ls.indexer.settings import Settings
from funes_ls.memories import OpenEachTime
from tests.e2e.cli import funes, index
from tests.funes_ls.repositories import Repository
from tests.sessions import record, write

NAME = "acme/kb"
pytestmark = pytest.mark.timeout(300)


def spec() -> MemorySpec:
    return parse_spec(NAME, Settings(home=Path("/nowhere")))


def trace(home: Path, session: str) -> Path:
    return home / ".claude" / "projects" / "-home-dev-api" / f"{session}.jsonl"


def session(name: str, **more: Any) -> Session:
    return Session(session_id=name, **{"chunks": 5, "repo": "acme/api", **more})


# Decisions


def test_a_file_of_decisions_keeps_comments_and_order(tmp_path: Path) -> None:
    path = decisions_path(tmp_path, spec())
    path.parent.mkdir(parents=True)
    text = "# mine\nproject acme/api\n\nexclude s1  # no\ninclude s2 5\nwithhold 0123456789abcdef\n"
    path.write_text(text, encoding="utf-8")
    found = read_decisions(tmp_path, spec())
    assert (found.project, found.included, found.excluded) == ("acme/api", {"s2": 5}, {"s1"})
    assert found.withheld == {"0123456789abcdef"}
    found.decide("s3", "exclude")
    found.decide("s1", None)
    write_decisions(tmp_path, spec(), found)
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in text.splitlines() if "s1" not in line]
    assert lines == [*kept, "exclude s3"]


@pytest.mark.parametrize("name", ["my talk", 'a "b" #c', "x\ninclude y", "déjà vu", "#1", "5 6"])
def test_any_session_can_be_decided_on(tmp_path: Path, name: str) -> None:
    decisions = Decisions()
    decisions.decide(name, "exclude")
    decisions.decide(f"{name} 2", "include", chunks=7)
    write_decisions(tmp_path, spec(), decisions)
    found = read_decisions(tmp_path, spec())
    assert (found.excluded, found.included) == ({name}, {f"{name} 2": 7})
    found.decide(name, None)
    assert not any("exclude" in line for line in found.lines if not line.startswith("#"))


@pytest.mark.parametrize("line", ["exclud s1", "include", "project a b c", "withhold 0123"])
def test_a_line_that_is_no_decision_keeps_everything_here(tmp_path: Path, line: str) -> None:
    path = decisions_path(tmp_path, spec())
    path.parent.mkdir(parents=True)
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(BackendError, match="Line 1"):
        read_decisions(tmp_path, spec())


def test_everything_goes_that_is_not_excluded_and_subagents_follow() -> None:
    decisions = Decisions()
    decisions.decide("s1", "exclude")
    child = session("a1", subagent=True, parent_id="s1", repo="")
    grandchild = session("a2", subagent=True, parent_id="a1", repo="")
    made = choice(decisions, [session("s1"), child, grandchild, session("s2", repo="")])
    assert made.going == {"s2"}
    assert made.excluded == {"s1", "a1", "a2"}


def test_the_start_of_an_id_keeps_its_session_here() -> None:
    decisions = Decisions(excluded={"0ccf", "77"})
    every = [session("0ccf1a04"), session("0cc"), session("77aa01c2")]
    assert choice(decisions, every).excluded == {"0ccf1a04"}
    decisions.decide("0ccf1a04", "include", chunks=5)
    assert choice(decisions, every).excluded == set()


def test_a_project_takes_included_sessions_until_they_grow() -> None:
    decisions = Decisions(project="acme/api")
    decisions.decide("s1", "include", chunks=5)
    decisions.decide("s2", "include", chunks=4)
    every = [session("s1"), session("s2"), session("s3"), session("s4", repo="acme/web")]
    made = choice(decisions, every)
    assert made.going == {"s1"}
    assert made.pending == {"s2", "s3"}
    assert made.other == {"s4"}


# The command


@pytest.fixture
def two_sessions(own_home: Path) -> None:
    git = Repository(own_home / "api")
    git.git("remote", "add", "origin", "https://example.net/acme/api.git")
    for name in ("s1aaaaaa", "s2bbbbbb"):
        write(
            trace(own_home, name),
            [
                record(f"how hot is kettle {name}", uuid=f"{name}-u", cwd=str(own_home / "api")),
                record("<system-reminder>be nice</system-reminder>", uuid=f"{name}-x"),
                record(f"kettle {name} is warm", uuid=f"{name}-a", role="assistant"),
            ],
        )
    index()


def test_a_pipe_gets_a_plain_list(two_sessions: None) -> None:
    ran = funes("curate", NAME)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert [line[0] for line in lines[:2]] == ["+", "+"]
    assert "2 go (+), 0 stay (-), 0 to be decided on (?)." in ran.out


def test_a_project_is_named_once(two_sessions: None) -> None:
    bare = funes("curate", NAME, "api")
    assert bare.code == 2 and "acme/api" in bare.err
    ran = funes("curate", NAME, "acme/api")
    assert ran.code == 0 and "2 to be decided on" in ran.out
    other = funes("curate", NAME, "acme/web")
    assert other.code == 2 and "acme/api already" in other.err
    assert funes("curate", NAME, "acme/api").code == 0


def test_options_decide_and_are_recorded(two_sessions: None, funes_home: Path) -> None:
    ran = funes("curate", NAME, "acme/api", "--include", "s1aa", "--exclude", "s2bbbbbb", "--json")
    assert ran.code == 0, ran.err
    states = {one["session_id"]: one["state"] for one in ran.json["sessions"]}
    assert states == {"s1aaaaaa": "include", "s2bbbbbb": "exclude"}
    text = Path(ran.json["decisions"]).read_text(encoding="utf-8")
    assert "include s1aaaaaa" in text and "exclude s2bbbbbb" in text
    wrong = funes("curate", NAME, "--include", "nothing")
    assert wrong.code == 2 and "no session" in wrong.err


# The review


@contextmanager
def reviewing(home: Path) -> Iterator[tuple[Review, Decisions]]:
    settings = Settings(home=home)
    decisions = read_decisions(home, spec())
    with OpenEachTime(settings).reading("local") as memory, memory.snapshot() as view:
        yield (
            Review(view, decisions, NAME, lambda: write_decisions(home, spec(), decisions)),
            decisions,
        )


def drive(app: Review, act: Callable[[Pilot[None]], Awaitable[None]]) -> None:
    async def run() -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            await act(pilot)

    asyncio.run(run())


def test_arrows_decide_at_once_and_the_same_arrow_takes_it_back(
    two_sessions: None, funes_home: Path
) -> None:
    with reviewing(funes_home) as (app, decisions):

        async def act(pilot: Pilot[None]) -> None:
            await pilot.press("left")
            first = next(iter(decisions.excluded))
            assert first in decisions_path(funes_home, spec()).read_text(encoding="utf-8")
            await pilot.press("left")
            assert not decisions.excluded
            await pilot.press("down", "right")
            second = next(iter(decisions.included))
            assert second != first
            await pilot.press("escape")

        drive(app, act)
        assert not app.is_running


def test_the_preview_holds_what_the_user_wrote(two_sessions: None, funes_home: Path) -> None:
    with reviewing(funes_home) as (app, _decisions):

        async def act(pilot: Pilot[None]) -> None:
            await pilot.pause()
            shown = str(app.query_one("#prompts", Static).content)
            assert "how hot is kettle" in shown
            assert "be nice" not in shown and "is warm" not in shown

        drive(app, act)


def test_the_filter_finds_words_of_prompts(two_sessions: None, funes_home: Path) -> None:
    with reviewing(funes_home) as (app, _decisions):

        async def act(pilot: Pilot[None]) -> None:
            await pilot.press("slash", *"s2bb", "enter")
            sessions = app.query_one("#sessions", OptionList)
            assert [option.id for option in sessions.options] == ["s2bbbbbb"]

        drive(app, act)


def test_single_passages_are_kept_back(two_sessions: None, funes_home: Path) -> None:
    with reviewing(funes_home) as (app, decisions):

        async def act(pilot: Pilot[None]) -> None:
            await pilot.press("p")
            assert app.query_one("#right", ContentSwitcher).current == "passages"
            await app.workers.wait_for_complete()
            await pilot.pause()
            passages = app.query_one("#passages", OptionList)
            assert all(str(one.prompt).startswith("+") for one in passages.options)
            await pilot.press("down", "space")
            assert len(decisions.withheld) == 1
            await pilot.press("space")
            assert not decisions.withheld
            await pilot.press("space", "escape", "escape")

        drive(app, act)
    assert len(read_decisions(funes_home, spec()).withheld) == 1
