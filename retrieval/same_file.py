"""Knows a file again that sessions touched under another path; touches no disk.

A file is the same at the same path; in another checkout or worktree of its repository, or after
the folder was renamed, it is the one of the same path below the repository's top.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.facts import FactPath, Facts
from funes_ls.retrieval.paths import ends_with, is_absolute, is_same, is_under, normal

#: `same`: the path says so; `repo`: the repository and the path in it; `tail`: the last two names
#: alone, which proves nothing.
Strength = Literal["same", "repo", "tail"]
_WORKTREES = re.compile(r"/\.?worktrees?/", re.IGNORECASE)
_MOUNTED = re.compile(r"(?:/mnt)?/([A-Za-z])/(.*)")
#: A file that was moved more often has a past before that which is not looked for.
_MOST_MOVES = 5
#: By repository (lower case): normal folders in which its sessions ran.
Places = Mapping[str, Sequence[str]]


class Asked(Struct, frozen=True, kw_only=True):
    """A file that is asked about.

    Attributes:
        path: Normal; absolute, or the last names of a path.
        others: Further paths of the very same file, normal: links resolved, other worktrees.
        repos: Repositories (`owner/name`, lower case) it is in.
        root: Folder of its checkout, "" when that is not known.
    """

    path: str
    others: tuple[str, ...] = ()
    repos: frozenset[str] = frozenset()
    root: str = ""

    @property
    def names(self) -> list[str]:
        """Return the last names of all its paths, each once."""
        return list(dict.fromkeys(_name(path) for path in (self.path, *self.others)))


class SameFile(Struct, frozen=True, kw_only=True):
    """Paths by which facts know a file.

    Attributes:
        own: At this very place, or another name of it.
        copies: At the same place in other folders of its repository: older clones, worktrees.
        alike: Of the same last two names, and perhaps no relation at all.
    """

    own: tuple[FactPath, ...] = ()
    copies: tuple[FactPath, ...] = ()
    alike: tuple[FactPath, ...] = ()

    @property
    def all(self) -> tuple[FactPath, ...]:
        """Return those that are the file."""
        return self.own + self.copies


def same_file(facts: Facts, catalog: Catalog, asked: Asked) -> SameFile:
    """Return the paths that are a file.

    Args:
        facts: Where paths are known.
        catalog: Tells in which folders and repositories sessions ran.
        asked: The file.
    """
    known = [one for name in asked.names if name for one in facts.paths_named(name)]
    if not known:
        return SameFile()
    places = places_of(catalog)
    asked = with_places(asked, places)
    found: dict[str, dict[int, FactPath]] = {"same": {}, "repo": {}, "tail": {}}
    for one in known:
        repos = {repo for _, named in one.places for repo in named.split()}
        if strength := strength_of(asked, normal(one.path), repos=repos, places=places):
            found[strength][one.path_id] = one
    own, copies, alike = (tuple(found[word].values()) for word in ("same", "repo", "tail"))
    return SameFile(own=own, copies=copies, alike=alike)


def with_sources(facts: Facts, path_ids: Sequence[int]) -> list[int]:
    """Return paths and those that were moved or copied to become them."""
    ids = list(path_ids)
    for _ in range(_MOST_MOVES):
        sources = {source for source, _ in facts.moved_to(ids) if source}
        more = [
            path.path_id
            for source in sources
            for path in facts.paths_named(source.rsplit("/", 1)[-1])
            if normal(path.path) == normal(source) and path.path_id not in ids
        ]
        if not more:
            break
        ids += more
    return ids


def is_near(asked: Asked, other: FactPath) -> bool:
    """Tell whether a path is of the project that a file is in.

    Args:
        asked: The file, with its places; see `with_places`.
        other: The path, with the places it was named in.
    """
    path = normal(other.path)
    if asked.root and is_under(path, asked.root):
        return True
    if any(asked.repos & set(repo.lower().split()) for _, repo in other.places):
        return True
    folders = [normal(cwd) for cwd, _ in other.places if cwd]
    return any(is_under(asked.path, folder) and is_under(path, folder) for folder in folders)


def with_places(asked: Asked, places: Places) -> Asked:
    """Return a file with the repositories of the sessions that ran nearest above it.

    What is known already stays.
    """
    if asked.repos or not is_absolute(asked.path):
        return asked
    above = [
        (len(folder), repo)
        for repo, folders in places.items()
        for folder in folders
        if is_under(asked.path, folder)
    ]
    innermost = max((length for length, _ in above), default=0)
    repos = {repo for length, repo in above if length == innermost}
    root = asked.root or asked.path[: min((n for n, repo in above if repo in repos), default=0)]
    return Asked(path=asked.path, others=asked.others, repos=frozenset(repos), root=root)


def places_of(catalog: Catalog) -> Places:
    """Return in which folders the sessions of each repository ran."""
    found: dict[str, list[str]] = defaultdict(list)
    for cwd, repos in catalog.places():
        folder = normal(cwd)
        for repo in repos.lower().split():
            found[repo].append(folder)
    return found


def strength_of(
    asked: Asked, written: str, *, repos: Collection[str] = (), places: Places | None = None
) -> Strength | None:
    """Return how sure it is that a path is the file that is asked about; None when it is not.

    Args:
        asked: The file.
        written: A normal path: absolute, or below a folder that is not known.
        repos: Repositories of the sessions that wrote it; where that is not known, as when their
            folder was gone by the time they were indexed, those of others that ran there.
        places: See `places_of`.
    """
    if not is_absolute(asked.path):
        return "same" if ends_with(written, asked.path) else None
    if any(is_same(written, path) for path in _spellings(asked)):
        return "same"
    if _in_a_worktree(asked, written):
        return "repo"
    folders = {repo: (places or {}).get(repo, ()) for repo in asked.repos}
    written_in = {one.lower() for one in repos} or {
        repo for repo in folders if any(is_under(written, folder) for folder in folders[repo])
    }
    both = asked.repos & written_in
    if both and _same_in_repo(asked, written, [one for repo in both for one in folders[repo]]):
        return "repo"
    tail = "/".join(asked.path.split("/")[-2:])
    return "tail" if tail.count("/") and ends_with(written, tail) else None


def _spellings(asked: Asked) -> list[str]:
    """Return all that the file is called, with drives as Windows and as its Linux has them."""
    paths = [asked.path, *asked.others]
    for path in list(paths):
        if found := _MOUNTED.fullmatch(path):
            paths.append(f"{found[1]}:/{found[2]}")
        elif path[1:3] == ":/":
            paths += [f"/mnt/{path[0].lower()}{path[2:]}", f"/{path[0].lower()}{path[2:]}"]
    return paths


def _in_a_worktree(asked: Asked, written: str) -> bool:
    """Tell whether a path is the file in a worktree that was kept inside the checkout."""
    rel = _below(asked.path, asked.root)
    if not rel or not is_under(written, asked.root) or not ends_with(written, rel):
        return False
    between = written[len(asked.root.rstrip("/")) : len(written) - len(rel)]
    return _WORKTREES.search(between) is not None


def _same_in_repo(asked: Asked, written: str, folders: list[str]) -> bool:
    rel = _below(asked.path, asked.root)
    if not is_absolute(written):
        return ends_with(rel or asked.path, written)
    if rel and _is_top(written, rel, folders):
        return True
    above = [folder for folder in folders if is_under(written, folder)]
    other = _below(written, min(above, key=len, default=""))
    return bool(other) and _is_top(asked.path, other, [*folders, asked.root])


def _is_top(path: str, rel: str, folders: list[str]) -> bool:
    """Tell whether a path is `rel` below a folder that is not itself inside of one of these."""
    if not ends_with(path, rel):
        return False
    top = path[: len(path) - len(rel)].rstrip("/")
    return not any(folder and top != folder and is_under(top, folder) for folder in folders)


def _below(path: str, folder: str) -> str:
    """Return a path from a folder on, "" when it is not below it."""
    if not folder or not is_under(path, folder):
        return ""
    return path[len(folder.rstrip("/")) + 1 :]


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
