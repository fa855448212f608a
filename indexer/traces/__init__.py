"""Readers of agent session traces, one file per harness."""

from funes_ls.indexer.traces.base import Reading, TraceSource, Unit
from funes_ls.indexer.traces.registry import detect, source_for, sources, units_of

__all__ = ["Reading", "TraceSource", "Unit", "detect", "source_for", "sources", "units_of"]
