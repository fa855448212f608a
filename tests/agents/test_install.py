"""What the installer of the agents may fetch, and what it says where it cannot."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.agents.agents import PINNED, ROOT, Agent, Place, lock_of, need, pinned_version
from tests.agents.kinds import CLAUDE, CODEX, PI

SCRIPT = ROOT / "scripts" / "install_agents.sh"
AGENTS = [pytest.param(agent, id=agent.name) for agent in (CLAUDE, CODEX, PI)]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_pinned_version_is_the_one_that_runs(agent: Agent, place: Place) -> None:
    need(agent)
    code, told = agent.command(place, "--version")
    assert code == 0, told
    assert pinned_version(agent.name) in told


@pytest.mark.parametrize("name", sorted(path.name for path in PINNED.iterdir()))
def test_every_package_is_pinned_by_its_hash_and_by_no_address(name: str) -> None:
    lock = json.loads(lock_of(name).read_bytes())
    packages = {path: one for path, one in lock["packages"].items() if path}
    assert packages
    assert [path for path, one in packages.items() if not one.get("integrity")] == []
    assert [path for path, one in packages.items() if "resolved" in one] == []
    wanted = json.loads((PINNED / name / "package.json").read_bytes())["dependencies"]
    assert lock["packages"][""]["dependencies"] == wanted
    [(package, version)] = wanted.items()
    assert packages[f"node_modules/{package}"]["version"] == version


def test_without_npm_the_machine_does_not_let_it(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("dirname", "mktemp", "rm"):
        (tools / name).symlink_to(str(shutil.which(name)))
    run = _install(tmp_path, PATH=str(tools))
    assert run.returncode == 3, run.stderr
    assert "there is no npm" in run.stderr


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm")
def test_without_a_registry_the_machine_does_not_let_it(tmp_path: Path) -> None:
    run = _install(tmp_path, "codex", npm_config_offline="true")
    assert run.returncode == 3, run.stderr
    assert "codex could not be installed" in run.stderr
    assert list((tmp_path / "agents").iterdir()) == []


def _install(tmp_path: Path, *names: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "FUNES_TEST_AGENTS": str(tmp_path / "agents"),
    }
    sh = str(shutil.which("sh"))
    return subprocess.run(
        [sh, str(SCRIPT), *names],
        env={**env, **more},
        capture_output=True,
        text=True,
        timeout=100,
    )
