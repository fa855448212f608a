"""One file written by each real agent: its session is found, and read as it was."""

import pytest

from tests.agents.actions import Write, calls
from tests.agents.agents import Agent, Place, need
from tests.agents.kinds import CLAUDE, CODEX, CODEX_SHELL, PI
from tests.agents.truth import Witness
from tests.agents.wires import Reply

AGENTS = [
    pytest.param(CLAUDE, id="claude"),
    pytest.param(CODEX, id="codex"),
    pytest.param(CODEX_SHELL, id="codex-shell"),
    pytest.param(PI, id="pi"),
]
PROMPT = "Write a program that greets the harbour master."
SAID = "A greeting needs one line; I write it."
TEXT = 'print("Good tide to you, harbour master")\n'


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.timeout(200)
def test_a_session_is_indexed_as_it_was(agent: Agent, place: Place) -> None:
    need(agent)
    file = place.project / "greet.py"
    witness = Witness(place.project)
    watch = witness.watch(agent, PROMPT)
    replies = [
        Reply(text=SAID, calls=calls(agent, Write(file, TEXT))),
        Reply(text="The greeting is in greet.py."),
    ]
    ran = agent.run(place, PROMPT, replies, before=watch)
    assert ran.returncode == 0, ran.output
    assert file.read_text(encoding="utf-8") == TEXT
    [author] = watch.authors
    assert [line.author for line in witness.files[file]] == [author]
    written = agent.written(agent.trace_with(place, author.call_id), author.call_id)

    indexed = place.funes("index", "--yes")
    assert indexed.returncode == 0, indexed.stderr
    status = place.funes_json("status")
    assert status["sessions"] == 1, status
    turn = place.funes("get", "--window", "0", written.session_id, written.turn_uuid)
    assert turn.returncode == 0, turn.stderr
    assert "Good tide to you" in turn.stdout
    found = place.funes_json("recall", "greets the harbour master")
    told = [hit for hit in found["hits"] if hit["text"] == PROMPT]
    assert [hit["session_id"] for hit in told] == [written.session_id]
