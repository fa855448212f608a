"""Hermes is given the memory and tells of its turns; it is large, and only tested where it is.

`FUNES_TEST_HERMES` names a virtual environment with the package `hermes-agent[mcp]`.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.agents import Place
from tests.agents.gifted import SERVED, no_engine_after, recalled, short_place, status
from tests.agents.kinds import NO_KEY
from tests.agents.scripted_model import ScriptedModel
from tests.agents.wires import Call, Reply
from tests.e2e.engines import until
from tests.sessions import record, write

#: Read before fixtures take it away.
_BIN = Path(os.environ.get("FUNES_TEST_HERMES") or "/nowhere") / "bin"
PROMPT = "Why does the harbour master keep a heron?"
SAID = "The heron counts the boats at night."
DECISION = "Decided: the harbour master keeps a heron, because it counts the boats at night."
CONFIG = """\
# mine
model:
  provider: custom  # keep
  default: scripted-1
  base_url: URL/v1
  api_key: KEY
hooks:
  post_llm_call:
  - command: "true"
    timeout: 3
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not (_BIN / "hermes").exists(), reason="no Hermes (FUNES_TEST_HERMES names its environment)"
    ),
]


@pytest.fixture
def place() -> Iterator[Place]:
    with short_place() as one, no_engine_after(one):
        yield one


def test_a_turn_is_found_by_its_hook_alone_and_comments_stay(place: Place) -> None:
    home = place.home / ".funes"
    home.mkdir()
    (home / "config.toml").write_text("[index]\nwatch = false\n", encoding="utf-8")
    config = place.home / ".hermes" / "config.yaml"
    config.parent.mkdir()
    with ScriptedModel([Reply(text=SAID)]) as model:
        text = CONFIG.replace("URL", model.url).replace("KEY", NO_KEY)
        config.write_text(text, encoding="utf-8")
        added = place.funes("add", "hermes", "--yes", folders=[_BIN], more=SERVED)
        assert added.returncode == 0, added.stderr
        assert set(text.splitlines()) <= set(config.read_text(encoding="utf-8").splitlines())
        listed = hermes(place, "hooks", "list")
        assert listed.count("✓ allowed") == 4
        place.funes("engine", "stop", more=SERVED)
        hermes(place, "chat", "-q", PROMPT)
    until(lambda: "pid" in status(place), what="the hook has started an engine")
    for said in (PROMPT, SAID):
        assert [hit["harness"] for hit in recalled(place, said)] == ["hermes"]
    removed = place.funes("remove", "hermes", "--yes", folders=[_BIN], more=SERVED)
    assert removed.returncode == 0, removed.stderr
    assert config.read_text(encoding="utf-8") == text
    assert not (config.parent / "shell-hooks-allowlist.json").exists()


def hermes(place: Place, *words: str) -> str:
    """Run Hermes and return what it printed."""
    ran = subprocess.run(
        [str(_BIN / "hermes"), *words],
        cwd=place.project,
        env={**place.env(_BIN), "OPENAI_API_KEY": NO_KEY},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_it_recalls_through_mcp_what_another_agent_was_told(place: Place) -> None:
    trace = place.home / ".claude" / "projects" / "-harbour" / "s1.jsonl"
    write(trace, [record(DECISION, uuid="u1")])
    config = place.home / ".hermes" / "config.yaml"
    config.parent.mkdir()
    call = Call(name="mcp__funes__recall", given={"query": PROMPT, "k": 3})
    replies = [Reply(text="I look it up.", calls=(call,)), Reply(text=SAID)]
    with ScriptedModel(replies) as model:
        text = CONFIG.replace("URL", model.url).replace("KEY", NO_KEY)
        config.write_text(text, encoding="utf-8")
        added = place.funes("add", "hermes", "--yes", folders=[_BIN], more=SERVED)
        assert added.returncode == 0, added.stderr
        hermes(place, "chat", "-q", PROMPT)
        told = model.log.asked[-1].texts[-1]
    assert DECISION in told
    assert "claude_code" in told and "→ get" in told
