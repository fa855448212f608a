"""Names taken apart."""

import pytest

from funes_ls.indexer.identifiers import (
    further_words,
    hash_prefixes,
    humps,
    joined_names,
    unspaced_terms,
)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("maxRetryCount", ("max", "Retry", "Count")),
        ("HTTPServer", ("HTTP", "Server")),
        ("parseJSON", ("parse", "JSON")),
        ("XMLHttpRequest", ("XML", "Http", "Request")),
        ("utf8Decoder", ("utf", "Decoder")),
        ("plain", ()),
        ("aBcDeFgHiJkLmNoPqRsTuV", ()),
    ],
)
def test_camel_case_comes_apart_and_encoded_data_does_not(
    name: str, parts: tuple[str, ...]
) -> None:
    assert humps(name) == parts


def test_only_words_that_signs_do_not_give_are_added() -> None:
    assert further_words("a plain sentence, Capitalised and SHOUTED at 10:30.") == []
    assert sorted(further_words("call getUserName() twice: getUserName")) == ["Name", "User", "get"]
    assert sorted(further_words("written in C++ and f#")) == ["cplusplus", "fsharp"]
    assert further_words("größeÄnderung naïve") == []


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("what is in src/core/flux.py?", ["src/core/flux.py"]),
        ("I don't know max_retry_count", ["don't", "max_retry_count"]),
        ("ops@example.invalid or foo::bar", ["ops@example.invalid", "foo::bar"]),
        ("chat-send a*b back\\slash", ["chat-send", "a*b", "back\\slash"]),
        ("plain words, with (punctuation); and more.", []),
    ],
)
def test_names_of_a_question(question: str, names: list[str]) -> None:
    assert joined_names(question) == names


def test_hashes_are_also_asked_for_as_people_shorten_them() -> None:
    assert hash_prefixes("389333fbe9a1c0de") == [
        "389333f",
        "389333fb",
        "389333fbe9",
        "389333fbe9a1",
    ]
    assert hash_prefixes("defaced") == []  # a word: hashes without a digit are too rare
    assert hash_prefixes("12ab") == []


def test_scripts_without_spaces_give_pairs() -> None:
    assert unspaced_terms("plain ascii") == []
    assert unspaced_terms("— “quotes” …") == []
    assert unspaced_terms("日本語", singles=False) == ["日本", "本語"]
    assert unspaced_terms("日本") == ["日本", "日", "本"]
    assert unspaced_terms("a 日 b", singles=False) == ["日"]
    assert unspaced_terms("สวัสดี", singles=False)[0] == "สว"
    assert unspaced_terms("done 🎉") == ["🎉"]
