"""Makes the memory that the shipped questions are about.

The sample sessions under `tests/traces/scripts`, and more of the same kind beside this file: made
up for these questions, partly to answer them and partly to stand in the way.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from funes_ls import service
from funes_ls.indexer import embedding
from funes_ls.indexer.settings import Settings
from tests.traces import parquet
from tests.traces.make import WRITERS
from tests.traces.script import Script, load_script, load_scripts

SESSIONS = Path(__file__).parent / "sessions"
#: When the questions are asked, so that ages and words such as "yesterday" are always the same.
ASKED_AT_US = 1_796_256_000_000_000  # 2026-12-03T00:00:00Z


def scripts() -> list[Script]:
    """Return all sessions as they were written down."""
    return [*load_scripts(), *(load_script(path) for path in sorted(SESSIONS.glob("*.txt")))]


def make_memory(
    home: Path,
    *,
    model: Path | None,
    without: Iterable[str] = (),
    redaction: str = "off",
    rerank: str = Settings.rerank,
) -> Settings:
    """Index the sessions into a home of their own and return its settings.

    Args:
        home: Where; empty or not there yet.
        model: Directory of the embedding model; None leaves the memory words-only.
        without: Projects to leave out.
        redaction: As in the settings; the sessions hold no secrets, and rules take a second.
        rerank: As in the settings.
    """
    kept = [script for script in scripts() if script.head["project"] not in set(without)]
    traces = home / "traces"
    write_sessions(kept, traces)
    settings = Settings(
        home=home,
        redaction=redaction,
        rerank=rerank,
        model=str(model) if model else "auto",
        watch=False,
    )
    env = {**os.environ, "HOME": str(traces)}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "HERMES_HOME"):
        env.pop(name, None)
    for target in ("", *map(str, traces.glob("*.parquet"))):
        request = service.IndexRequest(target=target, words_only=model is None, finish=True)
        service.run_index(request, settings, env=env)
    shutil.rmtree(traces)
    return settings


def write_sessions(chosen: Sequence[Script], traces: Path) -> None:
    """Write sessions as their harnesses would have left them under a home directory."""
    traces.mkdir(parents=True, exist_ok=True)
    for harness, write in WRITERS.items():
        write([script for script in chosen if script.head["harness"] == harness], traces)
    exported = [script for script in chosen if script.head["harness"] == "parquet"]
    if exported:
        parquet.write(exported, traces / "export.parquet")


def model_dir(models: Path) -> Path | None:
    """Return the directory of the installed MiniLM with int8 weights, None where there is none."""
    for found in embedding.installed(models):
        if found.name == "all-MiniLM-L6-v2-int8":
            return found.path
    return None
