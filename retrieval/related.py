"""Finds the sessions that have to do with a file."""

from collections.abc import Iterable

from funes_ls.indexer.catalog import Catalog, Session
from funes_ls.indexer.memory import MemoryView
from funes_ls.retrieval.paths import ends_with, is_absolute, is_under, normal


def touching(memory: MemoryView, path: str, *, repos: Iterable[str] = ()) -> list[Session]:
    """Return the sessions that touched a file, newest first.

    A file is known again when its checkout has moved or there are several: in the same repository
    it is the one of the same path below the folder the session ran in.

    Args:
        memory: Where they are listed.
        path: Absolute, or the last names of one; folders find nothing.
        repos: Repositories (`owner/name`) the file is in, where the caller knows; else they are
            those of the sessions that ran in a folder above it.
    """
    name = normal(path)
    named = memory.catalog.files_named(name.rsplit("/", 1)[-1]) if name else []
    if not named:
        return []
    same = {repo.lower() for repo in repos} or _repos_of(name, memory.catalog)
    found = {
        session.session_id: session
        for session, written in named
        if _is_it(session, normal(written, base=session.cwd), name, same)
    }
    return sorted(found.values(), key=lambda one: (-(one.ended_us or 0), one.session_id))


def _is_it(session: Session, file: str, name: str, repos: set[str]) -> bool:
    if ends_with(file, name) if not is_absolute(name) else file == name:
        return True
    if not is_absolute(name) or not repos & set(session.repo.lower().split()):
        return False
    folder = normal(session.cwd)
    if not is_absolute(file):
        return ends_with(name, file)
    return is_under(file, folder) and ends_with(name, file[len(folder.rstrip("/")) + 1 :])


def _repos_of(name: str, catalog: Catalog) -> set[str]:
    """Return the repositories of the sessions that ran in the innermost folder above a file."""
    if not is_absolute(name):
        return set()
    above = [
        (len(folder), repo)
        for cwd, repo in catalog.places()
        if is_under(name, folder := normal(cwd))
    ]
    innermost = max((length for length, _ in above), default=0)
    return {one for length, repo in above if length == innermost for one in repo.lower().split()}
