"""Checks that constraints.txt covers pyproject.toml: every requirement pinned, in range and hashed.

Standard library and `packaging` only. Prints one line; exits 1 and names each gap otherwise.

    python scripts/check_constraints.py
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}\b")
_ADDRESS = re.compile(
    r"://|--(?:extra-)?index-url|--find-links|--trusted-host|^-[if]\b", re.MULTILINE
)


def wanted(pyproject: Path) -> list[Requirement]:
    """Return what the build, the program and its tests need, as pyproject states it."""
    table = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project = table["project"]
    extras = [line for group in project["optional-dependencies"].values() for line in group]
    lines = [*table["build-system"]["requires"], *project["dependencies"], *extras]
    return [Requirement(line) for line in lines]


def pins(constraints: Path) -> Iterator[tuple[Requirement, int]]:
    """Yield each pinned requirement of the file with the number of its hashes."""
    text = constraints.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith(("#", "-")):
            yield Requirement(line.split("--hash")[0].strip()), len(_HASH.findall(line))


def gaps(pyproject: Path, constraints: Path) -> list[str]:
    """Return what is wrong, one sentence each; empty when the file covers the project."""
    found: list[str] = []
    versions: dict[str, list[str]] = {}
    for pin, hashes in pins(constraints):
        specifiers = list(pin.specifier)
        if len(specifiers) != 1 or specifiers[0].operator != "==":
            found.append(f"{pin.name} is not pinned to one version.")
            continue
        if not hashes:
            found.append(f"{pin.name} has no hash.")
        versions.setdefault(canonicalize_name(pin.name), []).append(specifiers[0].version)
    for need in wanted(pyproject):
        have = versions.get(canonicalize_name(need.name), [])
        if not have:
            found.append(f"{need.name} is missing.")
        found += [
            f"{need.name} {version} is outside {need.specifier}."
            for version in have
            if not need.specifier.contains(version, prereleases=True)
        ]
    if _ADDRESS.search(constraints.read_text(encoding="utf-8")):
        found.append("It holds an address of an index or a file.")
    return found


def main() -> int:
    """Return the exit code: 0 when constraints.txt covers pyproject.toml."""
    found = gaps(ROOT / "pyproject.toml", ROOT / "constraints.txt")
    for line in found:
        print(f"constraints.txt: {line}", file=sys.stderr)
    if found:
        print("Run `make constraints`.", file=sys.stderr)
        return 1
    print("constraints.txt covers pyproject.toml")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
