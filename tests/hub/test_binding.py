"""Agents that are bound to a memory elsewhere, and the pushes that come of it by themselves."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import huggingface_hub.constants
import pytest

from funes_ls import hook
from funes_ls.cli import push_later
from funes_ls.gate import process
from funes_ls.hub import binding
from tests.e2e.cli import Ran, funes, index
from tests.hub.fakehub import FakeHub
from tests.hub.publishing import NAME, asked, push, talk, trace
from tests.sessions import append, write

pytestmark = [
    #: The client hands a file to its library in an old way.
    pytest.mark.filterwarnings("ignore:Use .content=:DeprecationWarning"),
    pytest.mark.timeout(400),
]


@pytest.fixture(autouse=True)
def as_owner(hub_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process speak to the Hub on loopback as one who may write."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    for name, value in hub_env.items():
        monkeypatch.setenv(name, value)


def add(memory: str = NAME) -> Ran:
    return funes("add", "hermes", memory, "--yes", "--no-index")


def until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < ends, "it did not come to that"
        time.sleep(0.05)


def test_bindings_are_kept_by_agent(tmp_path: Path) -> None:
    assert binding.bound(tmp_path, "claude") == ""
    binding.bind(tmp_path, "claude", "acme/kb")
    binding.bind(tmp_path, "pi", "acme/web")
    binding.bind(tmp_path, "claude", "acme/api")
    assert binding.bindings(tmp_path) == {"claude": "acme/api", "pi": "acme/web"}
    assert binding.unbind(tmp_path, "claude") == "acme/api"
    assert binding.unbind(tmp_path, "claude") == ""
    assert binding.bound(tmp_path, "pi") == "acme/web"


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"claude": 3}', '{"claude": "--yes"}'])
def test_a_file_that_says_nothing_binds_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "bindings.json").write_text(text, encoding="utf-8")
    assert binding.bound(tmp_path, "claude") == ""


def test_an_agent_is_bound_changed_and_unbound(
    hub: FakeHub, own_home: Path, funes_home: Path
) -> None:
    (own_home / ".hermes").mkdir()
    hub.add_repo(NAME, private=True)
    ran = add()
    assert ran.code == 0, ran.err
    assert "PUBLIC" not in ran.out
    assert binding.bindings(funes_home) == {"hermes": NAME}
    assert NAME in (own_home / ".hermes" / "config.yaml").read_text(encoding="utf-8")
    hub.add_repo("acme/web")
    ran = add("acme/web")
    assert ran.code == 0 and "acme/web is PUBLIC: everyone can read" in ran.out
    assert binding.bindings(funes_home) == {"hermes": "acme/web"}
    assert add("local").code == 0
    assert binding.bindings(funes_home) == {}
    add()
    assert funes("remove", "hermes", "--yes").code == 0
    assert binding.bindings(funes_home) == {}


def test_a_memory_that_is_not_there_is_told_before_anything_is_installed(
    hub: FakeHub, own_home: Path, funes_home: Path
) -> None:
    (own_home / ".hermes").mkdir()
    ran = add()
    assert ran.code == 1 and "--create" in ran.err
    assert binding.bindings(funes_home) == {}
    assert not (own_home / ".hermes" / "config.yaml").exists()
    assert hub.asked("POST") == []


def test_nothing_is_installed_when_nobody_could_say_what_is_clean(
    hub: FakeHub, own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_home / ".hermes").mkdir()
    hub.add_repo(NAME)
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", "raise SystemExit(3)"))
    assert add().code == 1
    assert binding.bindings(funes_home) == {}
    assert not (own_home / ".hermes" / "config.yaml").exists()


def test_a_memory_out_of_reach_is_bound_all_the_same(
    own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_home / ".hermes").mkdir()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    ran = add()
    assert ran.code == 0 and "once it can be reached" in ran.out
    assert binding.bindings(funes_home) == {"hermes": NAME}


def ask(monkeypatch: pytest.MonkeyPatch, answers: str) -> tuple[int, str]:
    """Give an agent the memory with somebody at the terminal; return the code and what was said."""
    return asked(monkeypatch, answers, "add", "hermes", "--no-index")


def test_a_memory_on_the_hub_is_offered(
    hub: FakeHub, own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_home / ".hermes").mkdir()
    code, said = ask(monkeypatch, "\n" * 5)
    assert code == 0 and "private dataset of yours" in said
    assert binding.bindings(funes_home) == {} and hub.asked() == []
    code, said = ask(monkeypatch, "y\n" * 5)
    assert code == 0, said
    assert binding.bindings(funes_home) == {"hermes": "acme/funes-memory"}
    assert hub.repo("acme/funes-memory").private
    monkeypatch.delenv("HF_TOKEN")
    before = len(hub.asked())
    code, said = ask(monkeypatch, "\n" * 5)
    assert code == 0 and "private dataset of yours" not in said and "hf auth login" in said
    assert len(hub.asked()) == before


def test_the_end_of_a_session_publishes_it(hub: FakeHub, own_home: Path, funes_home: Path) -> None:
    path = write(trace(own_home), talk("s1", 3))
    index()
    hub.add_repo(NAME)
    binding.bind(funes_home, "claude", NAME)
    log = funes_home / "logs" / "push.log"

    def told() -> list[str]:
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    push_later.main(NAME)
    assert "not_begun" in told()[0]
    assert hub.asked() == []  # the first time is by hand
    push()
    append(path, talk("s1", 2, start=3))
    index()
    hook._push_later(funes_home, "claude", "Stop", os.environ)
    hook._push_later(funes_home, "codex", "SessionEnd", os.environ)
    hook._push_later(funes_home, "claude", "SessionEnd", os.environ)
    until(lambda: len(told()) == 2)
    assert f"{NAME} pushed: 2 chunks" in told()[1]
    assert len(hub.asked("POST", "/commit/")) == 2
    before = len(hub.asked())
    push_later.main(NAME)
    assert "up_to_date" in told()[2]
    assert len(hub.asked()) == before  # nothing is new: nobody is asked
    assert "kettle" not in log.read_text(encoding="utf-8")
