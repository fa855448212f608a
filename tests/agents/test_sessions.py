"""Sessions of Claude Code that hang together: a sub-agent's, and one that goes on as another."""

import pytest
from msgspec import Struct

from tests.agents.actions import Action, Edit, Read, Write, calls
from tests.agents.agents import Place, Written, need
from tests.agents.blamed import facts_by_line
from tests.agents.kinds import CLAUDE
from tests.agents.wires import Call, Reply

LAMP = 'LAMP = "on the pier, lit at dusk"\n'
SHADE = 'SHADE = "of green glass"\n'
TASK = "Write lamp.py, which lights the pier."


def reply(text: str, action: Action) -> Reply:
    return Reply(text=text, calls=calls(CLAUDE, action))


class Told(Struct, frozen=True):
    """What blame says of a file: the turns of its lines, and their questions."""

    turns: dict[int, Written]
    asks: dict[Written, str]


def blamed(place: Place) -> Told:
    run = place.funes("index", "--yes")
    assert run.returncode == 0, run.stderr
    answer = place.funes_json("blame", "lamp.py")
    turns = {number: turn for number, (_, turn) in facts_by_line(answer).items()}
    asks = {
        Written(session_id=one["session_id"], turn_uuid=one["turn_uuid"]): str(one["ask"])
        for one in answer["turns"]
    }
    return Told(turns, asks)


def written(place: Place, call_id: str) -> Written:
    return CLAUDE.written(CLAUDE.trace_with(place, call_id), call_id)


@pytest.mark.timeout(200)
def test_a_line_of_a_sub_agent_is_its_own(place: Place) -> None:
    need(CLAUDE)
    given = {"description": "A lamp", "prompt": TASK, "subagent_type": "general-purpose"}
    replies = [
        Reply(text="I send somebody.", calls=(Call(name="Agent", given=given),)),
        Reply(text="Somebody is at it."),
        Reply(text="The pier is lit."),
    ]
    own = [reply("I light it.", Write(place.project / "lamp.py", LAMP)), Reply(text="Lit.")]
    # A sub-agent that is quick is done before its caller has asked on, which then asks once less.
    ran = CLAUDE.run(
        place, "Have the pier lit.", replies, beside={"lights the pier": own}, may_leave=1
    )
    assert ran.returncode == 0, ran.output
    by_reply = {said.reply.text: said.call_ids for said in ran.log.said}
    author = written(place, by_reply["I light it."][0])
    assert author.session_id != written(place, by_reply["I send somebody."][0]).session_id
    told = blamed(place)
    assert told.turns == {1: author}
    assert told.asks[author] == TASK


@pytest.mark.timeout(200)
def test_a_fork_leaves_the_lines_to_the_session_it_comes_from(place: Place) -> None:
    need(CLAUDE)
    file = place.project / "lamp.py"
    first = CLAUDE.run(
        place, "Light the pier.", [reply("I light it.", Write(file, LAMP)), Reply(text="Lit.")]
    )
    [begun] = first.log.said[0].call_ids
    light = written(place, begun)
    shaded = CLAUDE.run(
        place,
        "Now a shade.",
        [
            reply("I look.", Read(file)),
            reply("I add it.", Edit(file, ((LAMP, LAMP + SHADE),))),
            Reply(text="Shaded."),
        ],
        resume=light.session_id,
        flags=["--fork-session"],
    )
    assert shaded.returncode == 0, shaded.output
    shade = written(place, shaded.log.said[1].call_ids[0])
    assert shade.session_id != light.session_id
    told = blamed(place)
    assert told.turns == {1: light, 2: shade}
    assert told.asks == {light: "Light the pier.", shade: "Now a shade."}
