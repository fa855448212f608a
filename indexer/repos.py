"""Which repository a session's directory belongs to, asked of git once per directory."""

import re
import time
from collections.abc import Iterable
from functools import lru_cache

from funes_ls.indexer.git import ask_git

_TIMEOUT_S = 2.0


def repo_of(cwd: str, remotes: Iterable[str] = ()) -> str:
    """Return the repository identity: `owner/name` of every remote, sorted, joined by spaces.

    Args:
        cwd: The session's raw working directory; "" or gone is fine.
        remotes: URLs the trace itself records, used when git has no answer for `cwd`.
    """
    found = _git_remotes(cwd) if cwd else ()
    return " ".join(sorted({name for url in (found or remotes) if (name := _identity(url))}))


def _identity(url: str) -> str:
    """Return the last two path segments of a remote URL without `.git`, "" if it has none."""
    path = re.sub(r"^[a-z+]+://[^/]+/|^[^/\s]+:", "", url.strip().rstrip("/")).removesuffix(".git")
    return "/".join([part for part in path.split("/") if part][-2:])


@lru_cache(maxsize=4096)
def _git_remotes(cwd: str) -> tuple[str, ...]:
    """Ask git for the addresses of all remotes; () on any trouble."""
    out = ask_git("remote", "-v", cwd=cwd, deadline=time.monotonic() + _TIMEOUT_S)
    lines = (line.split() for line in (out or b"").decode("utf-8", "replace").splitlines())
    return tuple(dict.fromkeys(parts[1] for parts in lines if len(parts) >= 2))
