"""Real agents recall through MCP what other agents were told a moment ago."""

import re
import shutil
from pathlib import Path

import pytest

from tests.agents.actions import Write, calls
from tests.agents.agents import Agent, Place, make_place, need
from tests.agents.gifted import SERVED, add, no_engine_after, recall, recalled, status
from tests.agents.kinds import CLAUDE, CODEX, PI
from tests.agents.wires import Asked, Call, Reply

DECISION = (
    "Decided: harbour dues are rounded up to whole guilders, because the customs office refuses "
    "cents."
)
QUESTION = "How do we round harbour dues, and why?"
ASKED = {"query": QUESTION, "k": 3}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a place whose name has spaces and letters of other alphabets."""
    return make_place(tmp_path / "a pláce 家")


def call_of(agent: Agent, tool: str, **given: object) -> Call:
    """Return the call of a tool of ours, as the agent names it."""
    if agent is CODEX:
        return Call(name=tool, given=given, namespace="mcp__funes")
    return Call(name=f"{'mcp__funes__' if agent is CLAUDE else 'funes_'}{tool}", given=given)


def allowed(agent: Agent) -> list[str]:
    return ["--allowedTools", "mcp__funes"] if agent is CLAUDE else []


def heard(asked: Asked) -> str:
    """Return what the model was told last."""
    return asked.texts[-1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(CLAUDE, CODEX, id="claude-codex"),
        pytest.param(CODEX, CLAUDE, id="codex-claude"),
        pytest.param(CLAUDE, PI, id="claude-pi"),
        pytest.param(PI, CODEX, id="pi-codex"),
    ],
)
@pytest.mark.timeout(200)
def test_what_one_agent_decides_another_recalls(first: Agent, second: Agent, place: Place) -> None:
    need(first)
    need(second)
    with no_engine_after(place):
        add(second, place)
        ran = first.run(place, "How shall we round harbour dues?", [Reply(text=DECISION)])
        assert ran.returncode == 0, ran.output
        [session] = {hit["session_id"] for hit in recalled(place, DECISION)}

        answer = f"Up, to whole guilders, says session {session}."
        replies = [
            Reply(text="I look it up.", calls=(call_of(second, "recall", **ASKED),)),
            Reply(text=answer),
        ]
        ran = second.run(place, QUESTION, replies, flags=allowed(second))
        assert ran.returncode == 0, ran.output
        told = heard(ran.log.asked[-1])
        assert DECISION in told
        head = next(line for line in told.splitlines() if session[:8] in line)
        assert f" {first.harness} " in head
        assert f"→ get {session} " in told
        assert_nothing_is_stored_twice(place, second, answer)


def assert_nothing_is_stored_twice(place: Place, asked: Agent, answer: str) -> None:
    """Insist that of a session that recalled neither the call nor its answer is kept."""
    recalled(place, answer)
    hits = recall(place, DECISION, "--harness", asked.harness, "-k", "50")
    kept = sorted((hit["block_type"], hit["text"]) for hit in hits)
    assert {kind for kind, _ in kept} == {"text"}
    assert not [text for _, text in kept if DECISION in text]


@pytest.mark.parametrize("agent", [CLAUDE, CODEX], ids=["claude", "codex"])
@pytest.mark.timeout(200)
def test_all_tools_work_and_no_engine_has_to_run_before(agent: Agent, place: Place) -> None:
    """The file is named as agents name it: by its path in the project."""
    need(CLAUDE)
    need(agent)
    rates = place.project / "rates.py"
    with no_engine_after(place):
        add(agent, place)
        replies = [
            Reply(text=DECISION, calls=calls(CLAUDE, Write(rates, "ROUND_UP = True\nUNIT = 1\n"))),
            Reply(text="It is written down."),
        ]
        ran = CLAUDE.run(place, "Write the rounding of harbour dues down.", replies)
        assert ran.returncode == 0, ran.output
        recalled(place, DECISION)
        place.funes("engine", "stop", more=SERVED)
        assert "pid" not in status(place)

        told: list[str] = []

        def following() -> Reply:
            found = re.search(r"→ get (\S+) (\S+)", told[-1])
            assert found is not None, told
            session_id, turn_uuid = found.groups()
            call = call_of(agent, "get", session_id=session_id, turn_uuid=turn_uuid, window=2)
            return Reply(text="I read on.", calls=(call,))

        asked = [
            Reply(text="I look.", calls=(call_of(agent, "recall", query=DECISION, k="2"),)),
            following,
            Reply(text="And the file.", calls=(call_of(agent, "related", file="rates.py"),)),
            Reply(text="And the line.", calls=(call_of(agent, "blame", file="rates.py", line=1),)),
            Reply(text="And the memory.", calls=(call_of(agent, "status"),)),
            Reply(text="That is all I wanted to know."),
        ]
        ran = agent.run(
            place,
            QUESTION,
            asked,
            flags=allowed(agent),
            before=lambda log: told.append(heard(log.asked[-1])) if log.asked else None,
        )
        assert ran.returncode == 0, ran.output
        passages, turns, sessions, line, memory = told[1:6]
        assert DECISION in passages
        assert DECISION in turns and "[tool_use Write]" in turns
        assert "claude_code" in sessions and "edited" in sessions
        assert "1\tROUND_UP = True" in line and "ask: Write the rounding" in line
        assert re.search(r"claude_code [12]\b", memory)  # this session may be read by now, too
        assert "pid" in status(place)


@pytest.mark.timeout(200)
def test_pi_reads_the_memory_that_it_names(place: Place) -> None:
    need(CLAUDE)
    need(PI)
    other = place.root / "other memory"
    with no_engine_after(place):
        add(PI, place)
        ran = CLAUDE.run(place, "How shall we round harbour dues?", [Reply(text=DECISION)])
        assert ran.returncode == 0, ran.output
        recalled(place, DECISION)
        place.funes("engine", "stop", more=SERVED)
        shutil.copytree(place.home / ".funes" / "memory", other)
        assert place.funes("forget", "--match", "guilders", "--yes").returncode == 0

        told: list[str] = []

        def following() -> Reply:
            found = re.search(
                r"→ get (\S+) (\S+) --memory .*other memory'$", told[-1], re.MULTILINE
            )
            assert found is not None, told
            given = {"session_id": found[1], "turn_uuid": found[2], "memory": str(other)}
            return Reply(text="I read on.", calls=(call_of(PI, "get", **given),))

        asked = [
            Reply(text="I look.", calls=(call_of(PI, "recall", query=DECISION),)),
            Reply(
                text="And there.", calls=(call_of(PI, "recall", query=DECISION, memory=str(other)),)
            ),
            following,
            Reply(text="That is all."),
        ]
        ran = PI.run(
            place,
            QUESTION,
            asked,
            before=lambda log: told.append(heard(log.asked[-1])) if log.asked else None,
        )
        assert ran.returncode == 0, ran.output
        here, there, turn = told[1:4]
        assert DECISION not in here
        assert DECISION in there and DECISION in turn
