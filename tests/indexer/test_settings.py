"""Where settings come from, and what happens to wrong ones."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.settings import CONFIG_KEYS, ENV_KEYS, Settings, check_whole, load_settings


def configured(tmp_path: Path, text: str) -> dict[str, str]:
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    return {"FUNES_HOME": str(tmp_path)}


def test_defaults() -> None:
    settings, warnings = load_settings({"FUNES_HOME": "/x"})
    assert settings == Settings(home=Path("/x"))
    assert (settings.k, settings.candidates, settings.half_life_days) == (8, 30, 30.0)
    assert settings.memory_dir == Path("/x/memory")
    assert warnings == []


def test_flags_over_environment_over_file(tmp_path: Path) -> None:
    env = configured(tmp_path, "[recall]\nk = 3\nneighbors = 2\nhalfLife = 10\n")
    env |= {"FUNES_K": "4", "FUNES_NEIGHBORS": "5"}
    settings, warnings = load_settings(env, overrides={"k": 6, "candidates": None})
    assert (settings.k, settings.neighbors, settings.half_life_days) == (6, 5, 10.0)
    assert warnings == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[recall]\nkk = 3\n", "recall.kk"),
        ("[recall]\nk = 'many'\n", "recall.k"),
        ("[recall]\nageFloor = 3\n", "between 0 and 1"),
        ("k = = 3", "could not be read"),
    ],
)
def test_a_wrong_value_is_named_once_and_ignored(tmp_path: Path, text: str, named: str) -> None:
    settings, warnings = load_settings(configured(tmp_path, text))
    assert len(warnings) == 1
    assert named in warnings[0]
    assert replace(settings, broken="") == Settings(home=tmp_path)


def test_a_wrong_variable_is_named() -> None:
    _, warnings = load_settings({"FUNES_HOME": "/x", "FUNES_THINKING": "perhaps"})
    assert warnings == ["The environment variable FUNES_THINKING is ignored: must be yes or no."]


@pytest.mark.parametrize(("text", "value"), [("no", False), ("0", False), ("TRUE", True)])
def test_switches_in_words(text: str, value: bool) -> None:
    settings, _ = load_settings({"FUNES_HOME": "/x", "FUNES_THINKING": text})
    assert settings.thinking is value


def test_every_setting_has_a_key_and_a_variable() -> None:
    fields = set(Settings.__struct_fields__) - {"home", "broken"}  # what no one sets
    assert set(CONFIG_KEYS.values()) == fields
    assert set(ENV_KEYS.values()) == fields


def test_nothing_is_read_while_it_is_unknown_what_is_kept_out(tmp_path: Path) -> None:
    check_whole(load_settings({"FUNES_HOME": str(tmp_path)})[0])
    (tmp_path / "config.toml").write_text('[exclude]\npaths = ["/x"\n', encoding="utf-8")
    settings, warnings = load_settings({"FUNES_HOME": str(tmp_path)})
    assert len(warnings) == 1
    with pytest.raises(UsageError, match="Nothing is read") as told:
        check_whole(settings)
    assert told.value.kind == "broken_settings"
