"""What git knows of a file's lines: the commit that last changed each, and until when that was.

Only what is committed is asked about: git reads the working tree through filters that a
repository can name, while a revision's text it takes as it is.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from funes_ls.indexer.git import ask_git
from funes_ls.source_text import MAX_BYTES, decoded

NOTES_REF = "refs/notes/ai"
_HEADER = re.compile(rb"([0-9a-f]{40,64}) (\d+) (\d+) (\d+)")
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abfnrtv"\\])')
_ESCAPED = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}


class Place(Struct, frozen=True, kw_only=True):
    """Where a file is in a repository.

    Attributes:
        root: Of the working tree, links resolved.
        path: From the root, with "/".
        head: The commit that is checked out.
        notes: The state of git-ai's notes, "" for none.
    """

    root: str
    path: str
    head: str
    notes: str


class Blob(Struct, frozen=True, kw_only=True):
    """A committed file.

    Attributes:
        path: As the commit has it, which on some disks may differ in case from the one asked.
        sha: Of the text.
    """

    path: str
    sha: str


class Origin(Struct, frozen=True):
    """Where a line was last changed: the commit, and the file and the line it was there."""

    commit: str
    path: str
    line: int


class Blame(Struct, frozen=True, kw_only=True):
    """The origins of the lines of a committed file.

    Attributes:
        origins: By line, counted from 1; lines that were not asked about are missing.
        until_us: By commit: the latest moment its text can have been written, see `_until`.
    """

    origins: dict[int, Origin]
    until_us: dict[str, int]


def resolved(file: Path) -> str:
    """Return a path without links; as it is given where it can be no path."""
    try:
        return os.path.realpath(file)
    except ValueError:  # a NUL
        return os.fspath(file)


def folder_of(file: Path) -> str:
    """Return the folder a file is in, links resolved: the nearest one that exists."""
    folder = os.path.dirname(resolved(file))  # noqa: PTH120
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):  # noqa: PTH112, PTH120
        folder = os.path.dirname(folder)  # noqa: PTH120
    return folder


def root_of(folder: str, deadline: float) -> str:
    """Return the root of the working tree a folder is in, links resolved; "" for none."""
    out = ask_git(
        *("rev-parse", "--is-inside-work-tree", "--show-toplevel"), cwd=folder, deadline=deadline
    )
    inside, _, top = os.fsdecode(out or b"").partition("\n")
    root = top.removesuffix("\n")  # it may hold line ends itself
    return os.path.realpath(root) if inside == "true" and root else ""


def place_of(file: Path, root: str, deadline: float) -> Place | None:
    """Return where a file is, None where nothing is committed.

    Args:
        file: May be gone.
        root: See `root_of`.
        deadline: On `time.monotonic()`'s clock.
    """
    try:
        path = os.path.relpath(resolved(file), root).replace(os.sep, "/")
    except ValueError:  # another drive
        return None
    if path == ".." or path.startswith("../"):
        return None
    query = f"HEAD^{{commit}}\n{NOTES_REF}\n".encode()
    out = ask_git("cat-file", "--batch-check", cwd=root, deadline=deadline, stdin=query)
    answers = (out or b"").decode("utf-8", "replace").splitlines()
    names = [one.split()[0] if not one.endswith(" missing") else "" for one in answers]
    if len(names) != 2 or not names[0]:
        return None
    return Place(root=root, path=path, head=names[0], notes=names[1])


def blob_of(place: Place, deadline: float) -> Blob | None:
    """Return the committed text of a file, None where there is none or it is too large."""
    found = _entry(place, place.path, deadline)
    if found is None:
        other = _other_case(place, deadline)
        found = _entry(place, other, deadline) if other else None
    return found


def _entry(place: Place, path: str, deadline: float) -> Blob | None:
    out = ask_git(
        *("ls-tree", "-z", "-l", "--full-tree", place.head, "--", path),
        cwd=place.root,
        deadline=deadline,
    )
    for entry in (out or b"").split(b"\0"):
        about, _, name = entry.partition(b"\t")
        fields = about.split()
        is_file = len(fields) == 4 and fields[0].startswith(b"100") and fields[1] == b"blob"
        if is_file and os.fsdecode(name) == path:
            small = fields[3].isdigit() and int(fields[3]) <= MAX_BYTES
            return Blob(path=path, sha=fields[2].decode()) if small else None
    return None


def _other_case(place: Place, deadline: float) -> str:
    """Return the name that git has for a file whose disk takes upper and lower case as one."""
    file = Path(place.root, place.path)
    out = ask_git(
        *("ls-files", "-z", "--", f":(top,icase,literal){place.path}"),
        cwd=place.root,
        deadline=deadline,
        pathspecs=True,
    )
    for name in map(os.fsdecode, (out or b"").split(b"\0")):
        with contextlib.suppress(OSError):
            if name and name != place.path and file.samefile(Path(place.root, name)):
                return name
    return ""


def text_of(place: Place, blob: Blob, deadline: float) -> list[str] | None:
    """Return the lines of a committed text, without their ends."""
    out = ask_git("cat-file", "blob", blob.sha, cwd=place.root, deadline=deadline)
    if out is None or b"\0" in out[:8_000]:
        return None  # git counts the lines of what has NULs as bytes
    text = decoded(out)
    return None if text is None else [line.removesuffix("\r") for line in text.split("\n")]


def blame_of(place: Place, blob: Blob, first: int, last: int, deadline: float) -> Blame | None:
    """Return who last changed the lines `first` to `last` of a committed file.

    Moves and copies are not followed and no revision is passed over: a line counts as changed by
    every commit that put it where it is, so that the time until it was written is not too early.
    """
    out = ask_git(
        *("blame", "--incremental", "--no-textconv", "--ignore-revs-file="),
        *("-L", f"{first},{last}", place.head, "--", blob.path),
        cwd=place.root,
        deadline=deadline,
    )
    if out is None:
        return None
    origins: dict[int, Origin] = {}
    times: dict[str, list[int]] = {}
    for commit, start, there, count, path, stamps in _groups(out.split(b"\n")):
        times.setdefault(commit, []).extend(stamps)
        for n in range(count):
            origins[there + n] = Origin(commit, path, start + n)
    parents = _parent_times(place, times, deadline)
    if parents is None:
        return None
    return Blame(
        origins=origins,
        until_us={commit: _until([*own, *parents[commit]]) for commit, own in times.items()},
    )


def _until(seconds: Iterable[int]) -> int:
    """Return the last microsecond in which a commit's text can have been written.

    A rebase, an amend, a cherry-pick or a squash may bring newer text under an older author time,
    and keeps the moment it ran as the committer time; dates set by hand and `rebase
    --committer-date-is-author-date` may falsify either one. The later of both is what holds for
    all. A clock that ran late shows in a parent that is newer than its child, so parents count.
    Git counts whole seconds and leaves off the rest.
    """
    return (max(seconds) + 1) * 1_000_000 - 1


def _groups(lines: list[bytes]) -> Iterator[tuple[str, int, int, int, str, list[int]]]:
    """Take apart what `git blame --incremental` prints."""
    header: re.Match[bytes] | None = None
    stamps: list[int] = []
    for line in lines:
        if header is None:
            header, stamps = _HEADER.fullmatch(line), []
            continue
        name, _, value = line.partition(b" ")
        if name in (b"author-time", b"committer-time"):
            stamps.append(int(value))
        elif name == b"filename":
            commit, start, there, count = header.groups()
            yield commit.decode(), int(start), int(there), int(count), _unquoted(value), stamps
            header = None


def _unquoted(name: bytes) -> str:
    """Return a path as git prints it, without the quotes and escapes of unusual ones."""
    if len(name) > 1 and name[:1] == name[-1:] == b'"':
        name = _ESCAPE.sub(_unescaped, name[1:-1])
    return os.fsdecode(name)


def _unescaped(match: re.Match[bytes]) -> bytes:
    sign = match[1]
    if sign.isdigit():
        return bytes([int(sign, 8) & 255])
    return bytes([_ESCAPED[sign]]) if sign in _ESCAPED else sign


def _parent_times(
    place: Place, commits: Iterable[str], deadline: float
) -> dict[str, list[int]] | None:
    """Return when the parents of commits were committed, as far as they are here."""
    asked = list(commits)
    revisions = "".join(f"{one}\n{one}^@\n" for one in asked)
    out = ask_git(
        *("rev-list", "--no-walk=unsorted", "--parents", "--format=%ct", "--stdin"),
        cwd=place.root,
        deadline=deadline,
        stdin=revisions.encode(),
    )
    if out is None:
        return None
    lines = out.decode().splitlines()
    parents: dict[str, list[str]] = {}
    stamps: dict[str, int] = {}
    for about, stamp in zip(lines[::2], lines[1::2], strict=False):
        _, commit, *others = about.split(" ")
        parents[commit], stamps[commit] = others, int(stamp)
    return {
        one: [stamps[other] for other in parents.get(one, ()) if other in stamps] for one in asked
    }
