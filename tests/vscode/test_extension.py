"""The extension without an editor: its types, its lint, its unit tests, what is packaged."""

import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from funes_ls.handlers.configuration import checked
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.settings import CONFIG_KEYS, Settings
from tests.vscode.code import ENV, EXTENSION, node

pytestmark = pytest.mark.timeout(200)
_MOST_BYTES = 1_000_000


def _tool(*argv: str) -> str:
    run = subprocess.run(
        [node(), *argv], cwd=EXTENSION, env=ENV, capture_output=True, text=True, timeout=150
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_types_are_strict(built: Path) -> None:
    """The compiler finds nothing."""
    _tool("node_modules/typescript/bin/tsc", "--noEmit", "-p", ".")


def test_lint(built: Path) -> None:
    """The linter finds nothing."""
    _tool("node_modules/eslint/bin/eslint.js", "--max-warnings", "0", "src")


def test_units(built: Path) -> None:
    """What does not need an editor does what it says."""
    units = sorted(str(path) for path in (built / "out" / "unit").glob("*.test.js"))
    assert len(units) >= 3
    told = _tool("--test", "--test-reporter", "tap", *units)
    found = re.search(r"^# pass (\d+)", told, re.M)
    assert found and int(found[1]) >= 23, told


def test_the_package_is_small_and_holds_what_it_needs(vsix: Path) -> None:
    """No sources, no tests, no modules; every text that is named is there."""
    assert vsix.stat().st_size < _MOST_BYTES
    with zipfile.ZipFile(vsix) as packed:
        names = set(packed.namelist())
    code = {name for name in names if name.endswith((".js", ".ts", ".mjs", ".map"))}
    assert code == {"extension/out/extension.js"}
    texts = {"package.nls.json", "media/funes.svg", "l10n/bundle.l10n.json"}
    assert {f"extension/{name}" for name in texts} <= names


def test_texts_for_translators_are_current(built: Path) -> None:
    """What the code says stands in l10n/bundle.l10n.json; `npm run l10n` writes it anew."""
    _tool("l10n.mjs", "--check")


def _package() -> dict[str, Any]:
    path = EXTENSION / "package.json"
    if not path.is_file():
        pytest.skip("the extension is not part of this copy of the sources")
    package: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return package


def test_every_label_has_its_words() -> None:
    """What package.json names by a key stands in package.nls.json, and the other way round."""
    package = json.dumps(_package())
    words = json.loads((EXTENSION / "package.nls.json").read_text(encoding="utf-8"))
    assert set(re.findall(r'"%([\w.]+)%"', package)) == set(words)


def test_the_server_takes_every_setting_and_the_editor_knows_every_one() -> None:
    """Names, kinds, bounds and defaults are those of the server."""
    groups = _package()["contributes"]["configuration"]
    settings = {key: one for group in groups for key, one in group["properties"].items()}
    del settings["funes.server.command"]  # the editor's own
    ours = {"hover.enabled", "codeLens", "log.level"}
    of_questions = {key for key in CONFIG_KEYS if _is_of_editors(key)}
    assert set(settings) == {f"funes.{key}" for key in of_questions | ours}
    defaults = Settings(home=Path())
    for name, one in settings.items():
        key = name.removeprefix("funes.")
        for value in [*one.get("enum", ()), one.get("minimum"), one.get("maximum")]:
            assert value is None or checked(key, value) == value
        for value in (one.get("minimum", 0) - 1, one.get("maximum", 1e12) + 1):
            assert _refuses(key, value), f"{name} may be {value}"
        if key in CONFIG_KEYS and one["default"] is not None:
            assert one["default"] == getattr(defaults, CONFIG_KEYS[key])


def _is_of_editors(key: str) -> bool:
    default = getattr(Settings(home=Path()), CONFIG_KEYS[key])
    return not _refuses(key, list(default) if isinstance(default, tuple) else default)


def _refuses(key: str, value: Any) -> bool:
    try:
        checked(key, value)
    except (UsageError, msgspec.ValidationError):
        return True
    return False
