"""Finds out on the disk what else a file is called: links, worktrees, its repository."""

import os
from collections.abc import Iterator
from pathlib import Path

from funes_ls.indexer.repos import repo_of
from funes_ls.retrieval.paths import normal
from funes_ls.retrieval.same_file import Asked

_MOST_WORKTREES = 64


def asked_file(path: str) -> Asked:
    """Return a file as it is asked about, with its other paths; it need not exist."""
    named = normal(path)
    if not Path(named).is_absolute():  # or of another system
        return Asked(path=named)
    try:
        real = normal(os.path.realpath(named))
        root = _root_of(Path(real))
        others = [real, *_in_worktrees(real, root)] if root else [real]
    except (OSError, ValueError):  # too long, or with a NUL
        return Asked(path=named)
    top = normal(str(root)) if root else ""
    if top and not named.startswith(f"{top}/"):  # asked by way of a link
        named, others = real, [named, *others]
    return Asked(
        path=named,
        others=tuple(dict.fromkeys(one for one in others if one != named)),
        repos=frozenset(repo_of(str(root)).lower().split()) if root else frozenset(),
        root=top,
    )


def _root_of(file: Path) -> Path | None:
    """Return the folder of the checkout a file is in."""
    return next((one for one in file.parents if (one / ".git").exists()), None)


def _in_worktrees(real: str, root: Path) -> Iterator[str]:
    """Yield where the file would be in the other worktrees of its repository."""
    rel = real[len(normal(str(root)).rstrip("/")) + 1 :]
    for other in _worktrees(root / ".git"):
        if other != root:
            yield normal(f"{other}/{rel}")


def _worktrees(git: Path) -> Iterator[Path]:
    """Yield the folders of the worktrees that share a repository, as git writes them down."""
    common = git if git.is_dir() else _common(git)
    if common is None:
        return
    if common.name == ".git":
        yield common.parent
    listed = sorted(common.glob("worktrees/*/gitdir"))
    for one in listed[:_MOST_WORKTREES]:
        if (link := _line(one)).endswith(".git"):
            yield (one.parent / link).parent


def _common(link: Path) -> Path | None:
    """Return the repository that a worktree's `.git` file leads to."""
    target = _line(link).removeprefix("gitdir:").strip()
    own = link.parent / target
    common = _line(own / "commondir") if target else ""
    return Path(os.path.realpath(own / common)) if common else None


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
