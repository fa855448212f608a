"""Kinds, places and commands that rules were not written with, and what looks like them."""

from collections import Counter

import pytest

from funes_ls.indexer.redaction.redactor import Redactor
from tests.credentials import Source, github
from tests.credentials_commands import commands
from tests.credentials_files import kept
from tests.credentials_more import PLACES, Sample, named, placed
from tests.credentials_wide import prefixed
from tests.harmless_more import harmless

_SEEDS = (9, 20261204)


def left(redactor: Redactor, samples: list[Sample]) -> list[Sample]:
    """Return what still shows a secret."""
    return [one for one in samples if one.leaks(redactor.text(one.text).text)]


def test_there_are_many_of_each() -> None:
    kinds = {kind for kind, _, _ in named(1)}
    assert len(kinds) > 100 and len(PLACES) > 60
    assert len({one.kind for one in commands(1)}) > 200
    assert len({kind for kind, _ in harmless(1)}) > 500


@pytest.mark.parametrize("seed", _SEEDS)
def test_other_kinds_are_found_in_other_places(redactor: Redactor, seed: int) -> None:
    samples = list(placed(seed))
    missed = left(redactor, samples)
    assert len(missed) <= 0.01 * len(samples)
    for what in ("kind", "context"):
        every = Counter(getattr(one, what) for one in samples)
        shown = Counter(getattr(one, what) for one in missed)
        few = [name for name in every if shown[name] > 0.25 * every[name]]
        assert few == [], what


@pytest.mark.parametrize("seed", _SEEDS)
def test_commands_files_and_what_people_say_are_known(redactor: Redactor, seed: int) -> None:
    samples = list(commands(seed))
    assert len(left(redactor, samples)) <= 0.02 * len(samples)


@pytest.mark.parametrize("seed", _SEEDS)
def test_files_that_keep_them_are_known(redactor: Redactor, seed: int) -> None:
    samples = list(kept(seed))
    assert len({one.kind for one in samples}) > 80
    assert len(left(redactor, samples)) <= 0.04 * len(samples)


#: Kinds that nothing tells but their end, their length or a name.
_WHOLE_ONLY = {"crates", "nuget", "terraform", "airtable", "twitter"}


@pytest.mark.parametrize("seed", _SEEDS)
def test_a_token_whose_end_is_in_another_turn_goes(redactor: Redactor, seed: int) -> None:
    tokens = [one for kind, _, one in prefixed(Source(seed)) if kind not in _WHOLE_ONLY]
    tokens += [github(Source(seed))]
    shown = [token[: len(token) * 3 // 4] for token in tokens]
    missed = [one for one in shown if one in redactor.text(f"I print it now:\n{one}").text]
    assert len(missed) <= 1 < len(tokens) - 10


@pytest.mark.parametrize("seed", [*_SEEDS, 5])
def test_ids_digests_paths_and_code_stay(redactor: Redactor, seed: int) -> None:
    changed = [kind for kind, text in harmless(seed) if redactor.text(text).text is not text]
    assert changed == []
