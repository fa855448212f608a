"""Who wrote a line: replay of what sessions did to a file, and the search for what is left."""

import time
from typing import Any

import pytest

from funes_ls.indexer.facts import FileEvent
from funes_ls.retrieval.blame import Document, blame
from funes_ls.retrieval.blame_moved import blame_moved
from funes_ls.retrieval.replay import History, replay

PROGRAM = """\
import sys

def main(argv):
    total = add_numbers(argv)
    print("the sum is", total)
    return 0

def add_numbers(texts):
    return sum(int(text) for text in texts)
"""


class Did(FileEvent, frozen=True, kw_only=True):
    """What a call did, and in which turn."""

    turn: str
    path: str = "/w/a.py"
    ts_us: int | None = None


def wrote(turn: str, new: str, **more: Any) -> Did:
    return Did(turn=turn, kind="write", new=new, **more)


def edited(turn: str, old: str, new: str, **more: Any) -> Did:
    return Did(turn=turn, kind="edit", old=old, new=new, **more)


def saw(turn: str, new: str, **more: Any) -> Did:
    return Did(turn=turn, kind="read", new=new, **{"whole": True, "first_line": 1, **more})


def blamed(text: str, *events: Did) -> list[tuple[str, str]]:
    document = Document(text)
    blame(document, replay(events))
    return told(document)


def told(document: Document) -> list[tuple[str, str]]:
    """Return the turn and the word of every line."""
    return [(c.event.turn, c.word) if c else ("", "") for c in document.claims]


def turns(text: str, *events: Did) -> list[str]:
    return [turn for turn, _ in blamed(text, *events)]


def test_a_written_file_is_of_its_turn() -> None:
    assert set(blamed(PROGRAM, wrote("t1", PROGRAM))) == {("t1", "exact")}


def test_only_what_an_edit_added_is_its_own() -> None:
    after = PROGRAM.replace("    return 0", "    sys.stdout.flush()\n    return 0")
    edit = edited(
        "t2", '", total)\n    return 0', '", total)\n    sys.stdout.flush()\n    return 0'
    )
    assert turns(after, wrote("t1", PROGRAM), edit) == ["t1"] * 5 + ["t2"] + ["t1"] * 4


def test_a_rewrite_keeps_the_authors_of_lines_that_stay() -> None:
    after = PROGRAM.replace("the sum is", "the total is")
    found = turns(after, wrote("t1", PROGRAM), wrote("t2", after))
    assert found == ["t1"] * 4 + ["t2"] + ["t1"] * 4


def test_what_was_read_before_is_nobodys() -> None:
    after = PROGRAM.replace("return 0", "return total")
    found = turns(after, saw("t1", PROGRAM), edited("t2", "return 0", "return total"))
    assert found == [""] * 5 + ["t2"] + [""] * 3


def test_a_rewrite_after_a_read_claims_only_what_is_new() -> None:
    after = PROGRAM + "\nif __name__ == '__main__':\n    sys.exit(main(sys.argv[1:]))\n"
    found = turns(after, saw("t1", PROGRAM), wrote("t2", after))
    assert found[:9] == [""] * 9 and found[10:] == ["t2", "t2"]


def test_edits_of_a_file_never_seen_whole_are_known_again() -> None:
    edit = edited(
        "t1", "    total = 0\n    return 0", "    total = add_numbers(argv)\n    return 0"
    )
    found = turns(PROGRAM, edit)
    assert found[3] == "t1"
    assert set(found[:3] + found[4:]) == {""}


def test_every_place_is_changed_where_the_call_said_so() -> None:
    was = "alpha = 1\nbeta = alpha\ngamma = alpha\n"
    now = was.replace("alpha", "omega")
    found = turns(now, wrote("t1", was), edited("t2", "alpha", "omega", every=True))
    assert found == ["t2"] * 3


def test_an_older_state_of_a_file_is_known_again() -> None:
    second = PROGRAM.replace("the sum is", "the total is")
    events = [wrote("t1", PROGRAM), wrote("t2", second), wrote("t3", "something_else = True\n")]
    assert turns(second, *events) == ["t1"] * 4 + ["t2"] + ["t1"] * 4


def test_lines_that_people_put_in_are_not_claimed() -> None:
    after = PROGRAM.replace("    return 0", "    audit_everything(total)\n    return 0")
    found = turns(after, wrote("t1", PROGRAM))
    assert found[5] == "" and found.count("t1") == 9


def test_a_formatted_line_is_found_again() -> None:
    after = PROGRAM.replace(
        'print("the sum is", total)', "print(\n        'the sum is',\n        total,\n    )"
    )
    found = blamed(after, wrote("t1", PROGRAM))
    assert found[4:7] == [("t1", "similar")] * 3


def test_spaces_and_quotes_are_no_change() -> None:
    after = PROGRAM.replace('"', "'").replace("    ", "\t")
    assert set(blamed(after, wrote("t1", PROGRAM))) == {("t1", "exact")}


def test_a_changed_line_is_never_exact() -> None:
    after = PROGRAM.replace("add_numbers(argv)", "add_numbers(argv[1:])")
    assert blamed(after, wrote("t1", PROGRAM))[3] == ("t1", "similar")


def test_windows_line_ends_are_no_change() -> None:
    found = turns(PROGRAM.replace("\n", "\r\n"), wrote("t1", PROGRAM))
    assert set(found) == {"t1"}


def test_a_lonely_short_line_that_stands_twice_proves_nothing() -> None:
    text = "alpha\nx = max(a, b)\nbeta_gamma\nx = max(a, b)\nomega_delta\n"
    edit = edited("t1", "y = 0\nz = 1", "y = 0\nx = max(a, b)\nz = 1")
    assert turns(text, edit) == [""] * 5


def test_a_person_changed_the_file_between_two_edits() -> None:
    second = PROGRAM.replace("return 0", "return total").replace("import sys", "import os")
    events = [
        wrote("t1", PROGRAM),
        saw("t2", PROGRAM.replace("import sys", "import os")),
        edited("t3", "return 0", "return total"),
    ]
    assert turns(second, *events) == ["", *["t1"] * 4, "t3", *["t1"] * 3]


def test_a_line_as_it_was_before_it_was_indented_is_not_the_edits() -> None:
    old = "    total = add_numbers(argv)\n    print(total)"
    new = "    if argv:\n        total = add_numbers(argv)\n        print(total)"
    before = f"def main(argv):\n{old}\n"
    assert turns(before, edited("t1", old, new)) == [""] * 3
    assert turns(before.replace(old, new), edited("t1", old, new)) == [""] + ["t1"] * 3


def test_a_line_that_a_person_brought_back_has_its_first_author() -> None:
    second = PROGRAM.replace("total = add_numbers(argv)", "total = sum_up(argv, strict=True)")
    events = [wrote("t1", PROGRAM), wrote("t2", second), saw("t3", PROGRAM)]
    assert set(turns(PROGRAM, *events)) == {"t1"}


def test_what_was_appended_is_of_its_turn() -> None:
    events = [wrote("t1", PROGRAM), Did(turn="t2", kind="append", new="# the end of it all\n")]
    assert turns(PROGRAM + "# the end of it all\n", *events) == ["t1"] * 9 + ["t2"]


def test_a_deleted_file_written_anew_keeps_the_authors_of_lines_that_come_back() -> None:
    after = PROGRAM.replace("return 0", "return total")
    events = [wrote("t1", PROGRAM), Did(turn="t2", kind="delete"), wrote("t3", after)]
    assert turns(after, *events) == ["t1"] * 5 + ["t3"] + ["t1"] * 3


def test_what_sed_changed_is_of_its_turn() -> None:
    after = PROGRAM.replace("numbers", "texts")
    events = [wrote("t1", PROGRAM), Did(turn="t2", kind="sed", new="s/numbers/texts/g")]
    assert turns(after, *events) == ["t1"] * 3 + ["t2"] + ["t1"] * 3 + ["t2"] + ["t1"]


def test_an_edit_that_did_not_fit_is_remembered_when_the_file_is_seen() -> None:
    after = PROGRAM.replace("    return 0", "    flush_it_all()\n    return 0") + "one_more = 1\n"
    edit = edited("t2", "what_nobody_saw()\n    return 0", "    flush_it_all()\n    return 0")
    assert turns(after, wrote("t1", PROGRAM), edit, saw("t3", after))[5] == "t2"


def test_a_renamed_file_keeps_its_authors() -> None:
    events = [wrote("t1", PROGRAM, path="/w/old.py")]
    events.append(Did(turn="t2", kind="move", source="/w/old.py"))
    events.append(edited("t3", "return 0", "return total"))
    found = turns(PROGRAM.replace("return 0", "return total"), *events)
    assert found == ["t1"] * 5 + ["t3"] + ["t1"] * 3


def moved(text: str, *others: History) -> list[tuple[str, str]]:
    document = Document(text)
    blame_moved(document, others)
    return told(document)


def test_a_block_moved_to_another_file_is_known_again() -> None:
    block = "\n".join(PROGRAM.split("\n")[2:6])
    text = f"import os\n\n{block}\n\ndef my_own_function():\n    os.abort()\n"
    found = moved(text, replay([wrote("t1", PROGRAM)]))
    assert [turn for turn, _ in found[2:6]] == ["t1"] * 4
    assert {word for _, word in found[2:6]} == {"moved"}
    assert {turn for turn, _ in found[:1] + found[7:]} == {""}


def test_code_is_likelier_of_code_than_of_a_plan() -> None:
    plan = replay([wrote("t1", f"# The plan\n\nWe write this:\n\n{PROGRAM}", path="/w/plan.md")])
    code = replay([wrote("t2", PROGRAM[: PROGRAM.index("def add")], path="/w/a.py")])
    document = Document(PROGRAM)
    blame_moved(document, [plan, code], suffix=".py")
    assert [turn for turn, _ in told(document)][2:6] == ["t2"] * 4


def test_one_line_is_not_a_block() -> None:
    line = "    total = add_numbers(argv)"
    text = "\n".join(f"other_line_{n} = {n}" for n in range(9)) + f"\n{line}\n"
    assert {turn for turn, _ in moved(text, replay([wrote("t1", PROGRAM)]))} == {""}


def test_a_file_under_a_new_name_keeps_what_was_nobodys() -> None:
    after = PROGRAM.replace("return 0", "return total")
    history = replay([saw("t1", PROGRAM), edited("t2", "return 0", "return total")])
    assert [turn for turn, _ in moved(after, history)] == [""] * 5 + ["t2"] + [""] * 3


@pytest.mark.parametrize("text", ["", "\n", "\x00\x01\xff", "}" * 100_000, "\r\r\n\n" * 50])
@pytest.mark.parametrize("kind", ["write", "edit", "append", "read", "delete", "sed", "?"])
def test_odd_texts_do_no_harm(text: str, kind: str) -> None:
    event = Did(turn="t1", kind=kind, old="", new=text)
    blamed(text, event)
    blamed(PROGRAM, wrote("t0", PROGRAM), event, edited("t2", "return 0", ""))


def test_a_later_turn_cannot_have_written_an_older_line() -> None:
    events = [wrote("t1", PROGRAM, ts_us=10), wrote("t2", "", ts_us=20)]
    events.append(wrote("t3", PROGRAM, ts_us=30))
    document = Document(PROGRAM, not_after=[15] * 5 + [None] * 4)
    blame(document, replay(events))
    assert [turn for turn, _ in told(document)] == ["t1"] * 5 + ["t3"] * 4


def test_the_end_of_a_text_is_no_blank_line() -> None:
    text = PROGRAM + "\ndef by_hand():\n    return somebody_else()\n"
    assert turns(text, wrote("t1", PROGRAM)) == ["t1"] * 9 + [""] * 3
    assert turns(text, wrote("t1", ""), edited("t2", "", PROGRAM)) == ["t2"] * 9 + [""] * 3


def test_a_replacement_everywhere_is_everywhere() -> None:
    before = "first = rate * 2\nrate\nlast = rate + rate\n"
    after = before.replace("rate", "ratio_of_all")
    found = turns(after, wrote("t1", before), edited("t2", "rate", "ratio_of_all", every=True))
    assert found == ["t2"] * 3


def test_replacements_in_many_places_take_no_time() -> None:
    lines = [f"value_{n} = total_of(rate, {n})" for n in range(20_000)]
    text = "\n".join(lines)
    start = time.monotonic()
    found = turns(
        text.replace("rate", "ratio"),
        wrote("t1", text),
        edited("t2", "rate", "ratio", every=True),
    )
    assert set(found) == {"t2"}
    assert time.monotonic() - start < 10


def test_many_equal_lines_take_no_time() -> None:
    line = "    the very same line again\n"
    edits = [edited(f"t{n}", f"gone {n}", line * 3000) for n in range(4)]
    start = time.monotonic()
    assert set(turns(line * 20_000, *edits)) <= {"", "t0", "t1", "t2", "t3"}
    assert time.monotonic() - start < 10


def test_a_long_file_keeps_its_authors_through_edits_and_its_end() -> None:
    lines = [f"value_{n} = total_of(rate, {n})" for n in range(20_500)]
    events = [wrote("t0", "\n".join(lines))]
    for n in range(0, 200, 10):
        events.append(edited(f"t{n}", f"{lines[n]}\n", f"changed_{n} = {n}\n"))
        lines[n] = f"changed_{n} = {n}"
    text = "\n".join(lines)
    found = turns(text, *events, Did(turn="gone", kind="delete"))
    assert found[:200] == [f"t{n}" if n % 10 == 0 else "t0" for n in range(200)]
    assert set(found[200:]) == {"t0"}


def test_a_line_in_another_checkout_as_it_was_before_is_not_the_edits_either() -> None:
    old = "    total = add_numbers(argv)\n    print_it_all(total)\n    return total_of(total)"
    new = "    if argv:\n" + "\n".join(f"    {line}" for line in old.split("\n"))
    document = Document(f"def main(argv):\n{old}\n")
    blame_moved(document, [replay([edited("t1", old, new)])], word="exact")
    assert {turn for turn, _ in told(document)} == {""}
