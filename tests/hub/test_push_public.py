"""What everyone can read is said to be public before anything leaves, whatever else is asked."""

from pathlib import Path

import huggingface_hub.constants
import pytest

from funes_ls.cli import push_later
from funes_ls.hub import binding
from tests.e2e.cli import index
from tests.hub.fakehub import FakeHub
from tests.hub.publishing import NAME, asked, push_ran, talk, trace
from tests.sessions import append, write

pytestmark = [
    #: The client hands a file to its library in an old way.
    pytest.mark.filterwarnings("ignore:Use .content=:DeprecationWarning"),
    pytest.mark.timeout(300),
]
WARNING = f"{NAME} is PUBLIC: everyone can read what is published there."


@pytest.fixture(autouse=True)
def session(hub_env: dict[str, str], own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let this process speak to the Hub on loopback, with a session to publish."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    for name, value in hub_env.items():
        monkeypatch.setenv(name, value)
    path = write(trace(own_home), talk("s1", 3))
    index()
    return path


def commits(hub: FakeHub) -> int:
    return len(hub.asked("POST", "/commit/"))


@pytest.mark.parametrize("options", [["--yes"], ["--yes", "--json"], ["--yes", "-q"], [], ["-q"]])
def test_a_public_dataset_is_named_so(hub: FakeHub, options: list[str]) -> None:
    hub.add_repo(NAME, private=False)
    ran = push_ran(*options)
    assert ran.code == 0 and ran.err.splitlines()[0] == WARNING
    if "--json" in options:
        assert ran.json["private"] is False
    else:
        assert f"Published to {NAME} (PUBLIC): " in ran.out
    again = push_ran(*options)
    assert again.code == 0 and again.err.splitlines()[0] == WARNING


def test_a_dry_run_tells_who_could_read_it(hub: FakeHub) -> None:
    hub.add_repo(NAME, private=False)
    ran = push_ran("--dry-run")
    assert ran.err.splitlines()[0] == WARNING
    assert ran.out.startswith(f"Would leave for {NAME} (PUBLIC): 1 session")
    assert commits(hub) == 0


def test_of_a_private_dataset_nothing_is_said(hub: FakeHub) -> None:
    hub.add_repo(NAME, private=True)
    assert "PUBLIC" not in push_ran("--dry-run").err
    ran = push_ran("--json")
    assert ran.json["private"] is True and "PUBLIC" not in ran.err
    again = push_ran()
    assert "PUBLIC" not in again.out + again.err


def ask(monkeypatch: pytest.MonkeyPatch, answers: str) -> tuple[int, str]:
    """Push with somebody at the terminal; return the code and what was said."""
    return asked(monkeypatch, answers, "push", NAME)


def test_a_person_is_asked_before_the_first_publish_to_everyone(
    hub: FakeHub, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add_repo(NAME, private=False)
    code, said = ask(monkeypatch, "\n")
    assert code == 1 and WARNING in said and "Nothing was published." in said
    assert (
        "is public, and nothing was published there from this machine yet. Publish to it?" in said
    )
    assert commits(hub) == 0
    code, said = ask(monkeypatch, "y\n")
    assert code == 0 and f"Published to {NAME} (PUBLIC): " in said
    append(session, talk("s1", 2, start=3))
    index()
    code, said = ask(monkeypatch, "")
    assert code == 0 and WARNING in said and "Publish to it?" not in said
    assert commits(hub) == 2


def test_a_person_is_asked_nothing_of_a_private_dataset(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add_repo(NAME, private=True)
    code, said = ask(monkeypatch, "")
    assert code == 0 and f"Published to {NAME}: " in said


def test_a_memory_that_was_opened_since_is_in_doubt_again(
    hub: FakeHub, session: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add_repo(NAME, private=True)
    assert push_ran().code == 0
    hub.repo(NAME).private = False
    binding.bind(funes_home, "claude", NAME)
    append(session, talk("s1", 2, start=3))
    index()
    push_later.main(NAME)  # as hooks do, which nobody watches
    assert "declined" in (funes_home / "logs" / "push.log").read_text(encoding="utf-8")
    ran = push_ran()
    assert ran.code == 2 and "was private when this machine last published there" in ran.err
    code, said = ask(monkeypatch, "\n")
    assert code == 1 and "is public now. Publish to it?" in said
    assert commits(hub) == 1
    assert push_ran("--yes").code == 0 and commits(hub) == 2
    append(session, talk("s1", 1, start=5))
    index()
    push_later.main(NAME)
    assert commits(hub) == 3
