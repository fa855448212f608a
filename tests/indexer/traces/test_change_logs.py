"""Traces that are logs of changes to a document, records that come later, edits as blocks."""

from pathlib import Path

from funes_ls.indexer.calls.replaced import searched_and_replaced
from funes_ls.indexer.traces import source_for
from tests.indexer.traces.reading import read_all, read_in_steps, turns_of
from tests.indexer.traces.samples_more import (
    ANSWER,
    PROMPT,
    copilot,
    gemini,
    gemini_head,
    gemini_messages,
    qwen,
    vscode,
    vscode_document,
    write_log,
)


def test_the_last_record_of_a_gemini_message_counts(tmp_path: Path) -> None:
    source, path = source_for("gemini"), gemini(tmp_path)
    whole = turns_of(source, path)
    first, _, called, last = gemini_messages()
    log = path.with_suffix(".jsonl")
    unfinished = {**called, "toolCalls": []}
    write_log(log, gemini_head(), first, unfinished, called, {"$set": {"messages": []}}, last)
    turns, problems, session = read_all(source, log)
    assert problems == []
    assert [turn.blocks for turn in turns] == [turn.blocks for turn in whole]
    assert session.inner_id == "g-1"
    write_log(log, gemini_head(), first, called, last, {"$rewindTo": first["id"]})
    assert len(turns_of(source, log)) == 3


def test_a_log_of_changes_gives_the_document(tmp_path: Path) -> None:
    source, path = source_for("vscode"), vscode(tmp_path)
    whole = turns_of(source, path)
    document = vscode_document()
    (request,) = document["requests"]
    log = path.with_suffix(".jsonl")
    write_log(
        log,
        {"kind": 0, "v": {**document, "requests": []}},
        {"kind": 2, "k": ["requests"], "v": [{**request, "result": None, "response": []}]},
        {"kind": 1, "k": ["requests", 0, "result"], "v": request["result"]},
        {"kind": 1, "k": ["requests", 9, "result"], "v": "there is no such request"},
    )
    turns, problems, _ = read_all(source, log)
    assert [turn.blocks for turn in turns] == [turn.blocks for turn in whole]
    assert [one.kind for one in problems] == ["bad_line"]


def test_records_that_come_later_are_added(tmp_path: Path) -> None:
    for name, path in (("qwen", qwen(tmp_path)), ("copilot", copilot(tmp_path))):
        data = path.read_bytes()
        whole = turns_of(source_for(name), path)
        cuts = [len(data) // 4, len(data) // 2, len(data) - 5]
        turns, session = read_in_steps(source_for(name), path, data, cuts)
        assert turns == whole
        assert session.title == PROMPT
        assert turns[-1].blocks[0].text == ANSWER


def test_edits_as_blocks_of_search_and_replace() -> None:
    cline = "------- SEARCH\na\nb\n=======\nc\n+++++++ REPLACE\n"
    roo = "<<<<<<< SEARCH\n:start_line:7\n-------\nx\n=======\n>>>>>>> REPLACE\n"
    assert searched_and_replaced(cline + roo) == [("a\nb\n", "c\n"), ("x\n", "")]
    assert searched_and_replaced("------- SEARCH\na\n=======\nREPLACE") == []
    assert searched_and_replaced("a diff of nothing") == []
