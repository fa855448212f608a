"""How lines and who wrote them are shown: widths, wide characters, what is odd in an answer."""

import pytest

from funes_ls.protocol import BlameAnswer, BlameLines, BlameTurn
from funes_ls.render_blame import blame_human, blame_text, columns_of, fit

ASK = "Make the poller retry three times with full jitter, and honour Retry-After 再試行する"
SOURCE = ["import os", "def poll():", "\treturn '漢字' * 2", "", "y = 3", "e\u0301 = 1", "last"]


def turn(name: str, ask: str = ASK) -> BlameTurn:
    return BlameTurn(
        session_id="8845927a-3cb6",
        turn_uuid=name,
        seq=3,
        ts="2026-05-07T16:22:19Z",
        harness="claude_code",
        title="The gauge\npoller dies",
        cwd="/home/dev/tidewater",
        branch="main",
        ask=ask,
        ask_get="",
        reason="",
        reason_get="",
        get=f"funes get 8845927a-3cb6 {name}",
    )


def run(start: int, end: int, name: str, word: str = "exact", **more: str) -> BlameLines:
    return BlameLines(
        start=start,
        end=end,
        confidence=word,
        session_id="8845927a-3cb6",
        turn_uuid=name,
        seq=3,
        ts="2026-05-07T16:22:19Z",
        harness="claude_code",
        **more,
    )


def answer(
    *lines: BlameLines, turns: tuple[BlameTurn, ...] = (turn("a"), turn("b", ""))
) -> BlameAnswer:
    return BlameAnswer(path="/x.py", memory="local", generation=1, lines=lines, turns=turns)


MIXED = answer(
    run(2, 3, "a"),
    run(5, 5, "b", "similar"),
    run(6, 6, "a", "moved", from_path="/home/dev/old.py"),
    run(7, 7, "b", evidence="git-ai"),
)


@pytest.mark.parametrize("width", [40, 50, 63, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    out = blame_human(MIXED, SOURCE, (1, 7), color=False, width=width)
    beside, _, rest = out.partition("\n\n")
    assert len(beside.splitlines()) == len(SOURCE)
    assert max(map(columns_of, beside.splitlines())) <= width
    tall = [line for line in rest.splitlines() if not line.startswith("  funes get")]
    assert max(map(columns_of, tall)) <= width
    places = {columns_of(line[: line.index("│")]) for line in beside.splitlines()}
    assert len(places) == 1


def test_signs_tell_how_sure_it_is_and_nobodys_lines_have_none() -> None:
    out = blame_human(MIXED, SOURCE, (1, 7), color=False, width=100)
    signs = [line[41] for line in out.split("\n\n")[0].splitlines()]
    assert signs == [" ", "=", "=", " ", "~", ">", "="]


def test_only_the_lines_that_were_asked_about_are_shown() -> None:
    out = blame_human(answer(run(2, 3, "a")), SOURCE, (3, 3), color=False, width=100)
    assert out.split("\n\n")[0].startswith("1 2026-05-07 claude_code")
    assert "def poll" not in out
    assert "return '漢字'" in out


def test_blocks_say_where_from_and_by_what() -> None:
    out = blame_text(MIXED, SOURCE, (1, 7))
    heads = [line.split("8845927a ")[1] for line in out.splitlines() if line.startswith("[")]
    assert heads == [
        "lines 2-3 exact",
        "line 5 similar",
        "line 6 moved from /home/dev/old.py",
        "line 7 exact by git-ai",
    ]
    assert out.count("ask: ") == 1
    assert out.count("---\n") == 4


@pytest.mark.parametrize(
    ("odd", "turns"),
    [
        (run(6, 900, "a"), (turn("a"),)),
        (run(900, 901, "a"), (turn("a"),)),
        (run(1, 2, "gone"), ()),
        (run(1, 1, "a", "a new word"), (turn("a"),)),
    ],
)
def test_an_answer_to_another_text_is_shown_as_far_as_it_goes(
    odd: BlameLines, turns: tuple[BlameTurn, ...]
) -> None:
    found = answer(odd, turns=turns)
    assert blame_text(found, SOURCE, (1, 7)).startswith("[2026-05-07T16:22:19Z] claude_code")
    assert "import os" in blame_human(found, SOURCE, (1, 7), color=False, width=80)


def test_nothing_known() -> None:
    nothing = answer(turns=())
    assert blame_text(nothing, SOURCE, (2, 2)) == "nothing is known of line 2 of /x.py"
    shown = blame_human(nothing, SOURCE, (2, 3), color=True, width=80)
    assert shown.endswith("\n\nnothing is known of lines 2-3 of /x.py")
    assert blame_text(nothing, [], (1, 0)) == "/x.py has no lines"


@pytest.mark.parametrize(
    ("text", "columns", "cut"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("漢字かな", 8, "漢字かな"),
        ("漢字かな", 7, "漢字か…"),
        ("漢字かな", 6, "漢字…"),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
        ("", 0, ""),
    ],
)
def test_wide_characters_take_two_columns(text: str, columns: int, cut: str) -> None:
    assert fit(text, columns) == cut
