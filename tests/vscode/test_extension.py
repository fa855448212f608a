"""The extension without an editor: its types, its lint, its unit tests, what is packaged."""

import json
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

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
    assert found and int(found[1]) >= 16, told


def test_the_package_is_small_and_holds_what_it_needs(vsix: Path) -> None:
    """No sources, no tests, no modules; every text that is named is there."""
    assert vsix.stat().st_size < _MOST_BYTES
    with zipfile.ZipFile(vsix) as packed:
        names = set(packed.namelist())
    code = {name for name in names if name.endswith((".js", ".ts", ".mjs", ".map"))}
    assert code == {"extension/out/extension.js"}
    assert {"extension/package.nls.json", "extension/media/funes.svg"} <= names


def test_every_label_has_its_words() -> None:
    """What package.json names by a key stands in package.nls.json, and the other way round."""
    if not (EXTENSION / "package.json").is_file():
        pytest.skip("the extension is not part of this copy of the sources")
    package = (EXTENSION / "package.json").read_text(encoding="utf-8")
    words = json.loads((EXTENSION / "package.nls.json").read_text(encoding="utf-8"))
    assert set(re.findall(r'"%([\w.]+)%"', package)) == set(words)
