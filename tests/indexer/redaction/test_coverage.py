"""How much of what is secret is found, and how little of what is not."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from funes_ls.indexer.redaction.redactor import Redactor
from tests.credentials import CONTEXTS, Sample, credentials, negatives, pieces, positives

#: One that tests were written with, and others.
_SEEDS = (20261203, 1, 77, 4096)


def share(redactor: Redactor, samples: list[Sample]) -> float:
    found = sum(not one.leaks(redactor.text(one.text).text) for one in samples)
    return found / len(samples)


def test_the_generator_makes_other_credentials_of_other_seeds() -> None:
    assert positives(1) == positives(1)
    first, second = ({one.secret for one in credentials(seed)} for seed in (1, 2))
    assert len(first) >= 40 and not first & second
    assert len(CONTEXTS) >= 20
    assert len({text for _, text in negatives(1)}) >= 50


def test_a_piece_of_a_secret_that_is_left_is_a_leak() -> None:
    one = Sample("any", "any", "k=abcdefghijkl", ("abcdefghijkl",))
    assert one.leaks("k=abcdefghijkl") and one.leaks("k=<redacted>efghijkl")
    assert not one.leaks("k=<redacted>fghijkl")
    assert list(pieces("abc")) == ["abc"]


@pytest.mark.parametrize("seed", _SEEDS)
def test_credentials_are_found_wherever_they_stand(redactor: Redactor, seed: int) -> None:
    samples = positives(seed)
    assert len(samples) > 900
    assert share(redactor, samples) >= 0.93


@pytest.mark.parametrize("context", CONTEXTS)
def test_no_place_hides_credentials(redactor: Redactor, context: str) -> None:
    samples = [one for seed in _SEEDS[:2] for one in positives(seed) if one.context == context]
    assert share(redactor, samples) >= 0.85


@pytest.mark.parametrize("seed", _SEEDS)
def test_files_and_commands_that_hold_one_are_known(redactor: Redactor, seed: int) -> None:
    samples = [one for one in positives(seed) if one.context == "file"]
    assert share(redactor, samples) >= 0.93


@pytest.mark.parametrize("seed", _SEEDS)
def test_what_only_looks_like_one_stays(redactor: Redactor, seed: int) -> None:
    texts = negatives(seed)
    changed = [kind for kind, text in texts if redactor.text(text).text is not text]
    assert changed == []


@pytest.fixture(scope="module")
def handed(shared: Path) -> list[dict[str, Any]]:
    path = shared / "kits" / "secrets" / "corpus_handed.jsonl.gz"
    if not path.is_file():
        pytest.skip("the corpus of secrets is not beside this checkout")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_the_handed_corpus_is_covered(redactor: Redactor, handed: list[dict[str, Any]]) -> None:
    count: Counter[str] = Counter()
    for one in handed:
        clean = redactor.text(one["text"]).text
        good = not any(secret in clean for secret in one["secrets"])
        count[one["label"]] += 1
        count["found"] += one["label"] == "pos" and good
        count["flagged"] += one["label"] == "neg" and clean != one["text"]
    assert count["pos"] and count["neg"]
    assert count["found"] / count["pos"] >= 0.97
    assert count["flagged"] / count["neg"] <= 0.03


def test_the_handed_corpus_is_settled_after_one_look(
    redactor: Redactor, handed: list[dict[str, Any]]
) -> None:
    for one in handed:
        clean = redactor.text(one["text"]).text
        again = redactor.text(clean)
        assert again.text is clean and again.counts == {}, one["kind"]
