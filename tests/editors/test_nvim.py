"""Neovim, the old one of Debian and a new one, with the configurations of docs/editors.md."""

import subprocess
from pathlib import Path

import pytest

from tests.editors import checks
from tests.editors.editor import (
    PROBES,
    ROOT,
    Sample,
    Seen,
    absent,
    configuration,
    nvims,
    run_editor,
    servers_of,
    within,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


def nvim(*, at_least: str = "0.7", below: str = "99") -> str:
    """Return the program of a Neovim within these versions, else skip or fail."""
    all_here = nvims()
    if not all_here:
        absent("nvim", "there is no nvim")
    for version, program in all_here.items():
        if _numbers(at_least) <= _numbers(version) < _numbers(below):
            return program
    pytest.skip(f"no nvim from {at_least} to below {below}, only {', '.join(all_here)}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def run(sample: Sample, tmp_path: Path, program: str, *, config: str, more: str = "") -> Seen:
    """Run a Neovim whose user has one of the guide's configurations."""
    write_configuration(sample, config)
    argv = [program, "--headless", "-n", "-i", "NONE", str(sample.file), "-S"]
    env = {"FUNES_PROBE_MORE": str(PROBES / more)} if more else {}
    return run_editor(sample, [*argv, str(PROBES / "nvim.lua")], tmp_path / "told.jsonl", **env)


def write_configuration(sample: Sample, name: str) -> None:
    """Do as the guide says: write the configuration to where Neovim looks for it."""
    init = Path(sample.env["XDG_CONFIG_HOME"]) / "nvim" / "init.lua"
    init.parent.mkdir(parents=True)
    init.write_text(configuration(name), encoding="utf-8")


def link_plugin(sample: Sample) -> None:
    """Do as the guide says: link the plugin to where Neovim looks for it."""
    start = Path(sample.env["XDG_DATA_HOME"]) / "nvim" / "site" / "pack" / "funes" / "start"
    start.mkdir(parents=True)
    (start / "funes").symlink_to(ROOT / "editors" / "nvim")


def test_a_new_neovim_by_itself(sample: Sample, tmp_path: Path) -> None:
    seen = run(sample, tmp_path, nvim(at_least="0.11"), config="nvim")
    checks.everything(seen, sample)
    assert "session" in seen["lens_shown"]
    opened(seen, "lens_run", virtual=False)
    opened(seen, "action_run", virtual=False)
    checks.why(seen["action_run"]["lines"])


@pytest.mark.parametrize("versions", [("0.7", "0.11"), ("0.11", "99")], ids=["older", "newer"])
def test_the_plugin(sample: Sample, tmp_path: Path, versions: tuple[str, str]) -> None:
    program = nvim(at_least=versions[0], below=versions[1])
    link_plugin(sample)
    seen = run(sample, tmp_path, program, config="nvim-plugin", more="nvim_plugin.lua")
    plugin(seen)
    checks.everything(seen, sample, virtual=True)
    opened(seen, "lens_run", virtual=True)
    opened(seen, "action_run", virtual=True)
    checks.why(seen["action_run"]["lines"])


def opened(seen: Seen, name: str, *, virtual: bool) -> None:
    """Judge what was shown after something was chosen."""
    shown = seen[name]
    assert ("funes:/" in shown["name"]) is virtual, shown
    assert "".join(shown["lines"]).strip(), shown
    assert shown["readonly"] is True, shown


def test_a_killed_neovim_leaves_no_server(sample: Sample, tmp_path: Path) -> None:
    write_configuration(sample, "nvim")
    argv = [nvim(at_least="0.11"), "--headless", "-n", "-i", "NONE", str(sample.file)]
    editor = subprocess.Popen(
        argv,
        cwd=sample.project,
        env=sample.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert within(30, lambda: bool(servers_of(sample))), "the server did not start"
    finally:
        editor.kill()
        editor.communicate(timeout=20)
    assert within(10, lambda: not servers_of(sample)), servers_of(sample)


def plugin(seen: Seen) -> None:
    """Judge the plugin's commands."""
    recalled = seen["command_recall"]
    assert any("attempt" in line for line in recalled["lines"]), recalled
    assert recalled["streamed"] >= 1
    assert recalled["modifiable"] is False
    assert "funes:/turn/" in seen["command_open"]["name"]
    assert "".join(seen["command_open"]["lines"]).strip()
    assert "funes:/why/" in seen["command_why"]["name"]
    checks.why(seen["command_why"]["lines"])
    assert any("claude · " in title for title in seen["command_lens"]), seen["command_lens"]
    assert seen["command_lens_off"] == 0
    assert len(seen["command_sessions"]) >= 25
    assert all("gauge" in line for line in seen["command_sessions_titled"])
