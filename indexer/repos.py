"""Which repository a session's directory belongs to, asked of git once per directory."""

import re
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

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
    """Ask git, with prompts and repository-run helpers off; () on any trouble."""
    try:
        if not Path(cwd).is_dir():
            return ()
        run = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-C", cwd, "remote", "-v"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ()
    if run.returncode:
        return ()
    lines = (line.split() for line in run.stdout.splitlines())
    return tuple(dict.fromkeys(parts[1] for parts in lines if len(parts) >= 2))
