"""Questions as typed: what is refused, what is kept, how a long paste is cut."""

import pytest

from funes_ls.indexer.errors import UsageError
from funes_ls.retrieval.answers import RecallFilter
from funes_ls.retrieval.query import (
    MAX_CHARS,
    clean,
    inline_filters,
    shorten,
    with_inline,
    without,
)


@pytest.mark.parametrize("text", ["", "   \n\t", '""', "?!", "--", "#", "***", "_", "\x00", "’…"])
def test_a_question_without_words_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        clean(text)
    assert caught.value.exit_code == 2
    assert "funes recall" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["#4821", "--half-life", "C++", "why?!", "50%", "外注", "как", "ما", "🔥", "-DNDEBUG", "7"],
)
def test_any_script_and_any_sign_beside_a_word_is_kept(text: str) -> None:
    assert clean(text) == text


def test_a_file_sized_question_is_refused_and_a_stack_trace_is_not() -> None:
    assert len(clean("at frame\n" * 1100)) == 9 * 1100 - 1
    with pytest.raises(UsageError, match="20,000 characters"):
        clean("x" * MAX_CHARS)


def test_halves_of_characters_and_controls_become_harmless() -> None:
    assert clean("a\ud83db") == "a?b"
    assert clean("a\x00b\x1b[1mc") == "a b [1mc"


def test_inline_filters_are_found_and_taken_out() -> None:
    text = 'project:/work/外注 port  since:7d note path:"my file.py"'
    found = inline_filters(text)
    assert [(one.field, one.value) for one in found] == [
        ("project", "/work/外注"),
        ("since", "7d"),
        ("path", "my file.py"),
    ]
    assert without(text, found) == "port note"


@pytest.mark.parametrize("text", ["foo:bar", "http://x.invalid", "path: /x", "a.path:b"])
def test_other_colons_are_words(text: str) -> None:
    assert inline_filters(text) == []


def test_a_flag_outranks_an_inline_filter() -> None:
    [inline] = inline_filters("branch:main")
    assert with_inline(RecallFilter(), inline).branch == "main"
    assert with_inline(RecallFilter(branch="dev"), inline).branch == "dev"


def test_a_long_paste_keeps_its_first_and_last_lines() -> None:
    lines = [f"line {n} of the trace" for n in range(400)]
    short = shorten("\n".join(lines), 1000)
    assert len(short) <= 1000
    assert short.startswith("line 0 of the trace\n")
    assert short.endswith("\nline 399 of the trace")
    assert all(line in lines for line in short.splitlines())


def test_a_long_paste_without_spaces_is_still_cut() -> None:
    assert 0 < len(shorten("x" * 5000, 1000)) <= 1000


def test_a_short_question_is_left_alone() -> None:
    assert shorten("why", 1000) == "why"
