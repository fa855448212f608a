"""Writes the sample sessions as each harness would have: `python -m tests.traces.make`.

The scripts beside this file are what people read and change; what is written from them lies in
`home/` (laid out as a home directory) and `parquet/`, and is committed. Same scripts, same bytes.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tests.traces import claude, codex, hermes, parquet, pi
from tests.traces.script import Script, load_scripts

HERE = Path(__file__).parent

#: Harness -> what writes all its sessions under a home directory.
WRITERS: dict[str, Callable[[list[Script], Path], None]] = {
    "claude": claude.write,
    "codex": codex.write,
    "pi": pi.write,
    "hermes": hermes.write,
}


def write_home(home: Path) -> None:
    """Write every session that a harness on this machine would have left."""
    scripts = load_scripts()
    for harness, write in WRITERS.items():
        write([script for script in scripts if script.head["harness"] == harness], home)


def write_parquet(path: Path) -> None:
    """Write the sessions that came as an export."""
    parquet.write([s for s in load_scripts() if s.head["harness"] == "parquet"], path)


def main() -> int:
    """Rewrite `home/` and `parquet/` beside this file, or under the folder named."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for folder in (target / "home", target / "parquet"):
        shutil.rmtree(folder, ignore_errors=True)
    write_home(target / "home")
    write_parquet(target / "parquet" / "shared-sessions.parquet")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
