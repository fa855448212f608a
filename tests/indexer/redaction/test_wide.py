"""Kinds, places and languages that rules were not written for one by one, and what must stay."""

import pytest

from funes_ls.indexer.redaction.redactor import Redactor, own_rules
from tests.credentials_wide import PLACES, Sample, alone, files, harmless, placed

_SEEDS = (20261203, 77)


def left(redactor: Redactor, samples: list[Sample]) -> list[tuple[str, str]]:
    """Return kinds and places of what still shows."""
    return [(one.kind, one.context) for one in samples if one.leaks(redactor.text(one.text).text)]


@pytest.mark.parametrize("seed", _SEEDS)
def test_what_a_name_tells_is_found_in_programs_commands_and_tables(
    redactor: Redactor, seed: int
) -> None:
    samples = list(placed(seed))
    assert len(samples) > 1500 and len(PLACES) > 40
    missed = left(redactor, samples)
    assert len(missed) <= 0.02 * len(samples), missed


@pytest.mark.parametrize("seed", _SEEDS)
def test_what_tells_itself_is_found_without_a_name(redactor: Redactor, seed: int) -> None:
    samples = list(alone(seed))
    assert len(samples) > 70
    assert left(redactor, samples) == []


@pytest.mark.parametrize("seed", _SEEDS)
def test_files_commands_and_languages_are_known(redactor: Redactor, seed: int) -> None:
    samples = list(files(seed))
    assert len(samples) > 40
    missed = left(redactor, samples)
    assert len(missed) <= 0.05 * len(samples), missed


@pytest.mark.parametrize("seed", [*_SEEDS, 3, 4])
def test_what_holds_none_stays(redactor: Redactor, seed: int) -> None:
    changed = [kind for kind, text in harmless(seed) if redactor.text(text).text is not text]
    assert changed == []


def test_no_rule_of_ours_is_taken_for_one_that_finds_names(redactor: Redactor) -> None:
    assert len(own_rules()) > 40
    assert [rule for rule in own_rules() if redactor.is_name(rule)] == []
    assert redactor.is_name("betterleaks.x-account-name")


@pytest.mark.parametrize("word", ["test", "prod", "live", "api", "admin", "token", "secret", "key"])
@pytest.mark.parametrize("joint", ["-", "_"])
def test_folders_named_by_many_words_stay(redactor: Redactor, word: str, joint: str) -> None:
    name = joint.join(
        ["app2", word, "names", "of", "homes", "that", "stay0", "home", "Web", "2026"]
    )
    for text in (name, f"/srv/{name}/src/main.py", f"cd ~/-home-dev-{name} && make", f"[{name}]"):
        assert redactor.text(text).text == text
