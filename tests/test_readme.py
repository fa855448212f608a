"""The README says what the program does."""

import re
from pathlib import Path

import msgspec
import pytest

from funes_ls.cli.parser import build_parser
from funes_ls.indexer.settings import CONFIG_KEYS, ENV_KEYS, Settings
from funes_ls.protocol import BlameAnswer, BlameLines, BlameTurn, RelatedAnswer
from funes_ls.retrieval.answers import Hit, RecallAnswer
from funes_ls.service import Status

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_every_command_is_mentioned() -> None:
    action = next(one for one in build_parser()._actions if one.dest == "command")
    assert action.choices is not None
    assert [name for name in action.choices if f"funes {name}" not in README] == []


def test_the_settings_table_names_real_keys_and_their_defaults() -> None:
    rows = re.findall(r"^\|.*?\| `(FUNES_\w+)` \| `?([\w.]*)`? \| `?([^`|]*?)`? \|$", README, re.M)
    defaults = msgspec.structs.asdict(Settings(home=Path("x")))
    assert {variable for variable, _, _ in rows} == set(ENV_KEYS)
    for variable, key, shown in rows:
        assert CONFIG_KEYS[key] == ENV_KEYS[variable]
        default = defaults[ENV_KEYS[variable]]
        said = shown.split(" ")[0].rstrip(",")
        if isinstance(default, tuple):
            default = list(default)
        assert said == ("yes" if default is True else str(default).removesuffix(".0"))


@pytest.mark.parametrize(
    "struct",
    [Hit, RecallAnswer, Status, BlameAnswer, BlameLines, BlameTurn, RelatedAnswer],
)
def test_every_key_of_an_answer_is_named(struct: type[msgspec.Struct]) -> None:
    assert [name for name in struct.__struct_fields__ if f'"{name}"' not in README] == []
