"""docs/editors.md: what it shows can be read by whom it is for, and names what there is."""

import json
import re
import tomllib
from typing import Any

import pytest

from tests.editors.editor import GUIDE, KNOWN, REQUIRED, program

TEXT = GUIDE.read_text(encoding="utf-8")
READERS = {"toml": tomllib.loads, "json": json.loads}
CHECKED = re.findall(r"<!-- checked: (\w+) -->\n```\1\n(.*?)```", TEXT, re.S)


def strings(value: Any) -> list[str]:
    """Return every text within a value."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in strings(one)]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


def test_three_more_editors_are_described() -> None:
    assert [kind for kind, _ in CHECKED] == ["toml", "json", "json"]


@pytest.mark.parametrize(("kind", "text"), CHECKED)
def test_what_is_shown_can_be_read_and_starts_the_server(kind: str, text: str) -> None:
    assert "funes-ls" in strings(READERS[kind](text))


def test_the_program_that_is_named_is_installed() -> None:
    assert program("funes-ls").is_file()


def test_every_configuration_is_tested_or_checked() -> None:
    fences = re.findall(r"^(.*)\n```(lua|elisp|toml|json)$", TEXT, re.M)
    assert len(fences) == 7
    assert [before for before, _ in fences if not before.startswith("<!-- ")] == []


def test_what_is_required_is_known() -> None:
    assert set(KNOWN) >= REQUIRED
