"""Which of the paths that facts know are a file that is asked about."""

import sys
from collections.abc import Iterable

from msgspec import Struct

from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.facts import FactPath, Facts
from funes_ls.retrieval.paths import ends_with, is_absolute, is_under, normal

#: Systems whose disks take `A.py` and `a.py` for one file, as a rule.
_CASELESS = sys.platform in ("win32", "darwin")


class SameFile(Struct, frozen=True, kw_only=True):
    """Paths by which facts know a file.

    Attributes:
        own: At this very place.
        copies: In other folders of the same repository, such as worktrees and older clones.
    """

    own: tuple[FactPath, ...] = ()
    copies: tuple[FactPath, ...] = ()

    @property
    def all(self) -> tuple[FactPath, ...]:
        """Return all of them."""
        return self.own + self.copies


def same_file(
    facts: Facts, catalog: Catalog, path: str, *, really: str = "", repos: Iterable[str] = ()
) -> SameFile:
    """Return the paths that are a file.

    Args:
        facts: Where paths are known.
        catalog: Tells in which folders and repositories sessions ran.
        path: Absolute, or the last names of one.
        really: The path without symbolic links, where that is another one.
        repos: Repositories (`owner/name`) the file is in, where the caller knows; else they are
            those of the sessions that ran in a folder above it.
    """
    names = list(dict.fromkeys(filter(None, (normal(path), normal(really)))))
    known = [one for name in names[:1] for one in facts.paths_named(name.rsplit("/", 1)[-1])]
    own, copies = [], []
    repositories = {repo.lower() for repo in repos}
    for one in known:
        if any(_is_here(one.path, name) for name in names):
            own.append(one)
        elif known:
            repositories = repositories or _repos_of(names[0], catalog)
            if any(_is_copy(one, name, repositories) for name in names):
                copies.append(one)
    return SameFile(own=tuple(own), copies=tuple(copies))


def _is_here(known: str, name: str) -> bool:
    file = normal(known)
    if _CASELESS:
        file, name = file.casefold(), name.casefold()
    if not is_absolute(name):
        return ends_with(file, name)
    return file == name or (not is_absolute(file) and ends_with(name, file)) or _same(file, name)


def _same(file: str, name: str) -> bool:
    return is_under(file, name) and is_under(name, file)


def _is_copy(known: FactPath, name: str, repos: set[str]) -> bool:
    """Tell whether a path has the same place below its session's folder, in one repository."""
    file = normal(known.path)
    if not (repos and is_absolute(name)):
        return False
    for cwd, repo in known.places:
        folder = normal(cwd).rstrip("/")
        below = file[len(folder) + 1 :] if is_under(file, folder) else ""
        if below and repos & set(repo.lower().split()) and ends_with(name, below):
            return True
    return False


def _repos_of(name: str, catalog: Catalog) -> set[str]:
    """Return the repositories of the sessions that ran in the innermost folder above a file."""
    above = [
        (len(folder), repo)
        for cwd, repo in catalog.places()
        if is_under(name, folder := normal(cwd))
    ]
    innermost = max((length for length, _ in above), default=0)
    return {one for length, repo in above if length == innermost for one in repo.lower().split()}
