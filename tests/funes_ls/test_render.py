"""Text for people and agents: what a terminal would obey never reaches it."""

import json
import subprocess
import sys

import pytest

from funes_ls import render
from funes_ls.render_human import get_human, terminal_width
from funes_ls.retrieval.answers import GetAnswer, RecallAnswer, TurnBlock, TurnView

NASTY = "a\x1b[31mred\x1b[0m\x07b\u202ec\u2066d\x9be\x00f\tg\r\nh\ri"


def view(*blocks: TurnBlock) -> GetAnswer:
    turn = TurnView(
        turn_uuid="u", seq=0, ts="2026-03-02T10:00:00Z", role="assistant", blocks=blocks
    )
    return GetAnswer(memory="local", session_id="s", turn_uuid="u", found=True, turns=(turn,))


def text_block(text: str) -> TurnBlock:
    return TurnBlock(block_type="text", tool_name=None, text=text)


def call(name: str, args: object) -> TurnBlock:
    return TurnBlock(
        block_type="tool_use", tool_name=name, text=f"[tool_use {name}] {json.dumps(args)}"
    )


def human(
    answer: GetAnswer, *, width: int = 60, highlight: str = "", color: bool = False
) -> list[str]:
    return get_human(answer, color=color, width=width, highlight=highlight).split("\n")


def test_control_and_bidi_characters_are_taken_out() -> None:
    assert render.safe(NASTY) == "a[31mred[0mbcdef\tg\nh\ni"


def test_they_are_escaped_in_json_and_survive_reading_it() -> None:
    text = render.to_json({"text": NASTY})
    assert not any(char in text for char in "\x1b\u202e\u2066\x9b\x00")
    assert json.loads(text) == {"text": NASTY}


def test_nothing_found_says_so() -> None:
    empty = RecallAnswer(memory="local", generation=1, note="", legs={}, hits=(), timings_ms={})
    assert render.recall_text(empty) == "no results\n"


def test_a_table_is_as_wide_as_its_cells_and_has_no_trailing_space() -> None:
    assert render.table([("a", "bb"), ("ccc", "")], header=("X", "Y")) == "X    Y\na    bb\nccc\n"


def test_a_reader_that_went_away_is_no_error() -> None:
    program = (
        "from funes_ls import render\nfor _ in range(20000): render.write('x' * 100)\n"
        "import sys; sys.exit(0)"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout is not None and run.stderr is not None
    run.stdout.readline()
    run.stdout.close()
    assert run.stderr.read() == b""
    assert run.wait(timeout=30) == 0
    run.stderr.close()


def test_prose_is_wrapped_and_short_lines_keep_their_indentation() -> None:
    lines = human(view(text_block("word " * 20 + "\n    code()")), width=40)
    assert lines[0] == "── 2026-03-02 10:00 · assistant ──"
    assert max(len(line) for line in lines) <= 40
    assert "    code()" in lines


def test_a_word_longer_than_the_line_is_cut() -> None:
    lines = human(view(text_block("x" * 95 + " end")), width=40)
    assert [len(line) for line in lines[1:4]] == [40, 40, 19]
    assert lines[3] == "x" * 15 + " end"


@pytest.mark.parametrize(
    ("name", "args", "head", "payload"),
    [
        (
            "Edit",
            {"file_path": "a.py", "old_string": "x", "new_string": "y\nz"},
            "Edit a.py",
            ["y", "z"],
        ),
        ("Write", {"file_path": "b.md", "content": "text"}, "Write b.md", ["text"]),
        ("Bash", {"command": "ls -l", "description": "List"}, "Bash List", ["ls -l"]),
        ("shell", {"command": ["bash", "-lc", "ls"]}, "shell", ["bash -lc ls"]),
        ("Read", {"file_path": "c.py", "limit": 3}, "Read c.py", []),
        ("Odd", {"n": 1}, 'Odd {"n": 1}', []),
    ],
)
def test_a_tool_call_is_a_headline_and_what_it_carries(
    name: str, args: object, head: str, payload: list[str]
) -> None:
    lines = human(view(call(name, args)))
    assert lines[1:-1] == [f"  {line}" for line in [head, *payload]]


def test_a_long_payload_shows_its_first_six_lines() -> None:
    content = "\n".join(str(n) for n in range(10))
    lines = human(view(call("Write", {"file_path": "f", "content": content})))
    assert lines[2:9] == [*(f"  {n}" for n in range(6)), "  … 4 more lines"]


def test_a_tool_result_is_one_line() -> None:
    block = TurnBlock(block_type="tool_result", tool_name="Bash", text="[tool_result Bash] a\nb  c")
    assert human(view(block))[1] == "  Bash ⇒ a b c"


@pytest.mark.parametrize(
    ("text", "mark", "shown"),
    [
        ("one two three", "two", "one \x1b[7mtwo\x1b[0m three"),
        ("one\ntwo  three", "one two", "\x1b[7mone\x1b[0m\n\x1b[7mtwo\x1b[0m three"),
        ("a b c d e f g", "ut a b c d e f", "\x1b[7ma\x1b[0m"),
        ("one two", "three", "one two"),
        ("one two", "", "one two"),
    ],
)
def test_the_highlight_is_reversed_whatever_the_white_space(
    text: str, mark: str, shown: str
) -> None:
    assert shown in get_human(view(text_block(text)), color=False, width=60, highlight=mark)


def test_headers_are_dim_only_in_colour() -> None:
    assert "\x1b[2m" in "".join(human(view(text_block("x")), color=True))
    assert "\x1b" not in "".join(human(view(text_block("x")), color=False))


@pytest.mark.parametrize(
    ("columns", "width"), [("80", 80), ("10", 40), ("500", 120), (None, 100), ("wide", 100)]
)
def test_the_width_follows_the_terminal_within_limits(columns: str | None, width: int) -> None:
    assert terminal_width(columns) == width
