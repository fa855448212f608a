"""The readers there are, and which of them reads a path."""

from pathlib import Path

from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.traces.base import TraceSource
from funes_ls.indexer.traces.claude import ClaudeSource
from funes_ls.indexer.traces.codex import CodexSource
from funes_ls.indexer.traces.pi import PiSource

_SOURCES: tuple[TraceSource, ...] = (ClaudeSource(), CodexSource(), PiSource())


def sources() -> list[TraceSource]:
    """Return every reader whose harness has known places, in the order they are indexed."""
    return list(_SOURCES)


def source_for(harness: str) -> TraceSource:
    """Return the reader of a harness, by its name on the command line or in rows.

    Raises:
        UsageError: there is no such harness.
    """
    for source in _SOURCES:
        if harness in (source.harness, source.harness.removesuffix("_code")):
            return source
    raise UsageError(f"Unknown harness {harness!r}.", kind="unknown_harness")


def detect(path: Path) -> TraceSource:
    """Return the reader of a path."""
    return _SOURCES[0]
