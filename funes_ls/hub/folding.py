"""Folds the names of homes in what leaves this machine: `/home/alex/api` becomes `~/api`.

Only columns that hold paths are folded. Texts stay as they were said: ids, cuts and vectors are of
them.
"""

import re
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from funes_ls.indexer.model import Chunk

#: Homes by where systems keep them; the name is what is not to leave.
_HOME = re.compile(
    r"(?:/mnt/[a-z])?/(?:(?:var/|export/)?home|Users)/[^/]+(?=/|$)|/(?:var/)?root(?=/|$)"
    r"|(?:[A-Za-z]:)?[\\/]Users[\\/][^\\/]+(?=[\\/]|$)"
)
#: The same in a work directory, where every other sign is a dash and a name may hold some, too.
_MUNGED = re.compile(r"(?:[A-Za-z]-)?-(?:mnt-[a-z]-)?(?:var-|export-)?(?:home|Users)-[^-]+(?=-|$)")
_NOT_ALNUM = re.compile(r"[^A-Za-z0-9]")


def folded(row: Chunk) -> Chunk:
    """Return a row as it may leave: no name of a home in its path and its work directory."""
    path, workdir = _fold(row.source_path, row.workdir, str(Path.home()))
    if path == row.source_path and workdir == row.workdir:
        return row
    return replace(row, source_path=path, workdir=workdir)


def folded_path(path: str, *, home: str = "") -> str:
    """Return a path with `~` for the home it is in, also where a folder is named after one."""
    return _fold(path, "", home or str(Path.home()))[0]


@lru_cache(maxsize=4096)
def _fold(path: str, workdir: str, own: str) -> tuple[str, str]:
    home = _home_of(path, own)
    names = [_NOT_ALNUM.sub("-", one) for one in dict.fromkeys((home, own)) if len(one) > 1]
    rest = path[len(home) :]
    parts = re.split(r"([\\/])", rest)
    inner = "".join(_fold_name(part, names) for part in parts)
    return ("~" if home else "") + inner, _fold_name(workdir, names)


def _home_of(path: str, own: str) -> str:
    if len(own) > 1 and path.startswith(own) and path[len(own) : len(own) + 1] in ("", "/", "\\"):
        return own
    found = _HOME.match(path)
    return found[0] if found else ""


def _fold_name(name: str, homes: list[str]) -> str:
    """Return a folder that is named after a path without the home in it."""
    for home in sorted(homes, key=len, reverse=True):
        if name == home or name.startswith(f"{home}-"):
            return "~" + name[len(home) :]
    found = _MUNGED.match(name)
    return "~" + name[found.end() :] if found else name
