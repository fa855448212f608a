"""Tells a client of an index run in the values that LSP has for work done."""

import time
from collections.abc import Callable
from typing import Any

from funes_ls.indexer.progress import IndexEvent

#: Reports of one run at most so often.
_EVERY_S = 0.25
_TITLE = "Indexing sessions"
#: Where each phase begins in a hundred, and how much of it it takes.
_SHARES = {
    "rules": (0, 0),
    **{"scan": (0, 0), "words": (0, 40), "model": (40, 0), "vectors": (40, 60), "tidy": (99, 0)},
    **{"search": (0, 50), "scrub": (0, 50), "rewrite": (50, 50)},
}


class WorkDone:
    """One begin, reports whose percentage never falls, one end; also when it fails.

    It begins with the first event: before that, nothing has been touched.
    """

    def __init__(self, tell: Callable[[Any], None] | None, *, title: str = _TITLE) -> None:
        """Tell under a token; None tells nobody."""
        self._title = title
        self._tell = tell or _tell_nobody
        self._percentage = 0
        self._begun = False
        self._told_at = 0.0
        self._phase = ""

    def report(self, event: IndexEvent) -> None:
        """Say how far it is, now and then."""
        self._begin()
        now = time.monotonic()
        if event.phase == self._phase and now - self._told_at < _EVERY_S:
            return
        self._phase, self._told_at = event.phase, now
        start, share = _SHARES[event.phase]
        part = event.done / event.total if event.total else 0.0
        self._percentage = max(self._percentage, min(100, int(start + share * part)))
        self._tell(
            {
                "kind": "report",
                "message": message_of(event),
                "percentage": self._percentage,
                "event": event,
            }
        )

    def end(self, message: str) -> None:
        """Say that it is over."""
        self._begin()
        self._tell({"kind": "end", "message": message})

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._tell(
                {"kind": "begin", "title": self._title, "cancellable": True, "percentage": 0}
            )


def message_of(event: IndexEvent) -> str:
    """Return what is being done, in a few words; never of what sessions say."""
    count = f" {event.done:,} of {event.total:,}" if event.total else ""
    return {
        "rules": "Preparing secret rules",
        "scan": "Looking for sessions",
        "words": f"Reading sessions{count}",
        "model": "Getting the model",
        "vectors": f"Embedding{count} chunks" if count else "Embedding",
        "tidy": "Tidying",
        "search": f"Looking through sessions{count}",
        "scrub": f"Scanning sessions{count}",
        "rewrite": "Writing the memory anew",
    }[event.phase]


def _tell_nobody(_value: Any) -> None:
    """Tell nobody."""
