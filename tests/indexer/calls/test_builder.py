"""Which answer belongs to which call, and who had asked."""

import json
from typing import Any

from funes_ls.indexer.calls.builder import FactsBuilder, Piece
from funes_ls.indexer.facts_tables import CallFacts


class Talk:
    """A session, block by block; answers carry ids only if told so."""

    def __init__(self, *, ids: bool) -> None:
        self.builder = FactsBuilder("/w")
        self.ids = ids
        self.seq = 0
        self.found: list[CallFacts] = []

    def block(self, role: str, block_type: str, text: str, **more: Any) -> str:
        uuid = more.pop("uuid", f"t{self.seq}")
        id_ = more.pop("id", None)
        values = {"parent_uuid": None, "block_idx": 0, "ts_us": self.seq, "tool_name": None, **more}
        piece = Piece(
            turn_uuid=uuid,
            seq=self.seq,
            role=role,
            block_type=block_type,
            tool_use_id=id_ if self.ids else None,
            text=text,
            **values,
        )
        self.found += self.builder.add(piece)
        self.seq += 1
        return uuid

    def user(self, text: str) -> str:
        return self.block("user", "text", text)

    def say(self, text: str) -> str:
        return self.block("assistant", "text", text)

    def write(self, path: str, id_: str, **more: Any) -> str:
        text = json.dumps({"file_path": path, "content": f"of {path}\n"})
        return self.block("assistant", "tool_use", text, id=id_, tool_name="Write", **more)

    def run(self, script: str, id_: str, **more: Any) -> str:
        text = json.dumps({"command": script})
        return self.block("assistant", "tool_use", text, id=id_, tool_name="Bash", **more)

    def answer(self, text: str, id_: str, **more: Any) -> str:
        more.setdefault("tool_name", "Write")
        return self.block("user", "tool_result", text, id=id_, **more)

    def paths(self) -> list[str]:
        return [event.path for one in self.found for event in one.events]


def test_an_event_knows_who_asked_and_why() -> None:
    talk = Talk(ids=True)
    ask = talk.user("please write a")
    talk.say("first words")
    why = talk.block("assistant", "thinking", "a must be there")
    at = talk.write("/w/a", "1")
    talk.answer("File created successfully", "1")
    [facts] = talk.found
    assert (facts.at.turn_uuid, facts.at.ask_turn_uuid, facts.at.reason_turn_uuid) == (at, ask, why)


def test_what_the_harness_wrote_in_the_users_place_is_no_ask() -> None:
    talk = Talk(ids=True)
    ask = talk.user("please write a")
    for text in (
        "<system-reminder>x</system-reminder>",
        "[Request interrupted by user]",
        "<local-command-stdout>x</local-command-stdout>",
        "# AGENTS.md instructions",
    ):
        talk.user(text)
    talk.write("/w/a", "1")
    talk.answer("File created successfully", "1")
    assert talk.found[0].at.ask_turn_uuid == ask
    assert talk.found[0].at.reason_turn_uuid == ""


def test_ids_pair_answers_in_any_order() -> None:
    talk = Talk(ids=True)
    talk.write("/w/a", "1")
    talk.write("/w/b", "2")
    talk.answer("File created successfully", "2")
    assert talk.paths() == ["/w/b"]
    talk.answer("Error: disk full", "1")
    assert talk.paths() == ["/w/b"]


def test_without_ids_parents_pair_and_then_the_order() -> None:
    talk = Talk(ids=False)
    first = talk.write("/w/a", "1")
    second = talk.write("/w/b", "2", parent_uuid=first)
    talk.write("/w/c", "3", parent_uuid=second)
    talk.answer("File created successfully", "2", parent_uuid=second)
    talk.answer("Error: disk full", "1", parent_uuid=first)
    talk.answer("File created successfully", "3", parent_uuid="t2")
    assert talk.paths() == ["/w/b", "/w/c"]
    talk.write("/w/d", "4")
    talk.write("/w/e", "5")
    talk.answer("Error: disk full", "4")
    talk.answer("File created successfully", "5")
    assert talk.paths() == ["/w/b", "/w/c", "/w/e"]


def test_where_each_turn_follows_the_one_before_answers_come_in_order() -> None:
    talk = Talk(ids=False)
    first = talk.write("/w/a", "1", parent_uuid="t")
    second = talk.write("/w/b", "2", parent_uuid=first)
    answer = talk.answer("Error: disk full", "1", parent_uuid=second)
    talk.answer("File created successfully", "2", parent_uuid=answer)
    assert talk.paths() == ["/w/b"]


def test_a_call_without_an_answer_wrote_nothing() -> None:
    for ids in (True, False):
        talk = Talk(ids=ids)
        talk.user("one")
        talk.write("/w/a", "1")
        talk.user("no, something else")
        talk.say("well then")
        talk.write("/w/b", "2")
        talk.answer("File created successfully", "2")
        assert talk.paths() == ["/w/b"]


def test_a_script_that_printed_nothing_ran_once_the_agent_speaks_again() -> None:
    for ids in (True, False):
        talk = Talk(ids=ids)
        talk.user("go")
        talk.run("echo x > a", "1")
        assert talk.paths() == []
        talk.say("done")
        assert talk.paths() == ["/w/a"]
        talk.run("echo x > b", "2")
        talk.user("[Request interrupted by user for tool use]")
        talk.say("stopped")
        assert talk.paths() == ["/w/a"]


def test_a_kept_state_goes_on() -> None:
    talk = Talk(ids=True)
    ask = talk.user("please")
    talk.write("/w/a", "1")
    talk.builder = FactsBuilder("", talk.builder.state)
    talk.answer("File created successfully", "1")
    assert talk.paths() == ["/w/a"]
    assert talk.found[0].at.ask_turn_uuid == ask
    assert FactsBuilder("", b"not a state").state


def test_the_folder_may_stand_in_the_first_prompt() -> None:
    builder = FactsBuilder("")
    talk = Talk(ids=True)
    talk.builder = builder
    talk.user("<environment_context>\n  <cwd>/home/dev/x</cwd>\n</environment_context>")
    talk.run("echo x > a", "1")
    talk.answer("(no output)", "1", tool_name="Bash")
    assert talk.paths() == ["/home/dev/x/a"]


def test_a_call_of_another_message_tells_that_a_script_ran_without_a_word() -> None:
    for ids in (True, False):
        talk = Talk(ids=ids)
        first = talk.run("echo x > a", "1")
        second = talk.run("echo x > b && cat c.py", "2", parent_uuid=first)
        assert talk.paths() == [], "both were called at once"
        talk.run("make", "3", parent_uuid="the answer that is stored nowhere")
        assert talk.paths() == ["/w/a", "/w/b", "/w/c.py"]
        assert not talk.found[-1].events[-1].whole, "that nothing is shown of it says nothing"
        talk.answer("Exit code 1", "2", tool_name="Bash", parent_uuid=second)
        assert talk.paths() == ["/w/a", "/w/b", "/w/c.py"]
