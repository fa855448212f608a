"""What the loopback Hub keeps: repositories, their commits, and every byte that ever reached it."""

import hashlib
import itertools
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from msgspec import Struct

#: Where the Hub puts what it makes itself of a dataset.
CONVERTED = "refs/convert/parquet"


class Refused(Exception):
    """An answer other than 200, as the Hub words it."""

    def __init__(self, status: int, message: str, *, code: str = "", commit: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = {"X-Error-Message": message}
        if code:
            self.headers["X-Error-Code"] = code
        if commit:
            self.headers["X-Repo-Commit"] = commit


class Entry(Struct, frozen=True):
    """A file of a commit: `name` is its SHA-256 in LFS, else git's id of it."""

    name: str
    size: int
    is_lfs: bool

    @property
    def git_id(self) -> str:
        return git_id(self.name.encode()) if self.is_lfs else self.name

    def told(self, path: str) -> dict[str, object]:
        """Return how the Hub lists it."""
        told: dict[str, object] = {
            "type": "file",
            "oid": self.git_id,
            "size": self.size,
            "path": path,
        }
        if self.is_lfs:
            told["lfs"] = {"oid": self.name, "size": self.size, "pointerSize": 134}
        return told


Tree = Mapping[str, Entry]


class Commit(Struct, frozen=True):
    """One commit and the whole tree it stands for."""

    sha: str
    parent: str
    title: str
    by: str
    at: str
    tree: Tree


def git_id(data: bytes) -> str:
    """Return what git calls a file of these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class Disk:
    """Bytes by name, in a folder: what reached the Hub stays there, committed or not."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._numbers = itertools.count()
        for name in ("lfs", "plain", "parts", "bodies"):
            (root / name).mkdir(parents=True, exist_ok=True)

    def put_lfs(self, data: bytes) -> Entry:
        """Keep a big file and return what a tree says of it."""
        name = hashlib.sha256(data).hexdigest()
        (self.root / "lfs" / name).write_bytes(data)
        return Entry(name, len(data), is_lfs=True)

    def put_plain(self, data: bytes) -> Entry:
        """Keep a small file and return what a tree says of it."""
        name = git_id(data)
        (self.root / "plain" / name).write_bytes(data)
        return Entry(name, len(data), is_lfs=False)

    def keep(self, kind: str, data: bytes) -> Path:
        """Keep what was sent and is no file yet: part of an upload, or the body of a request."""
        path = self.root / kind / f"{next(self._numbers):06d}"
        path.write_bytes(data)
        return path

    def lfs(self, name: str) -> bytes | None:
        """Return a big file, None when it never came."""
        path = self.root / "lfs" / name
        return path.read_bytes() if path.is_file() else None

    def lfs_entry(self, name: str) -> Entry | None:
        """Return what a tree says of a big file, None when it never came."""
        path = self.root / "lfs" / name
        return Entry(name, path.stat().st_size, is_lfs=True) if path.is_file() else None

    def drop_lfs(self, names: Iterable[str]) -> None:
        """Delete big files for good."""
        for name in names:
            (self.root / "lfs" / name).unlink(missing_ok=True)

    def read(self, entry: Entry) -> bytes:
        """Return the bytes of a file."""
        return (self.root / ("lfs" if entry.is_lfs else "plain") / entry.name).read_bytes()

    def everything(self) -> Iterator[tuple[str, bytes]]:
        """Give all that ever reached the Hub."""
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                yield str(path.relative_to(self.root)), path.read_bytes()


class Repo:
    """A repository: branches, tags and commits, each commit with its whole tree."""

    def __init__(self, kind: str, name: str, *, private: bool, disk: Disk) -> None:
        self.kind = kind
        self.name = name
        self.private = private
        self.lock = threading.RLock()
        self.branches: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.commits: dict[str, Commit] = {}
        self._made = 0
        first = {".gitattributes": disk.put_plain(b"*.lance filter=lfs diff=lfs merge=lfs -text\n")}
        self.add_commit("main", "initial commit", first, by="system")

    @property
    def owner(self) -> str:
        return self.name.partition("/")[0]

    @property
    def head(self) -> str:
        """Return the newest commit of `main`."""
        return self.branches["main"]

    def tree(self, revision: str = "main") -> Tree:
        """Return the files of a revision."""
        return self.commits[self.resolve(revision)].tree

    def resolve(self, revision: str) -> str:
        """Return the commit a branch, tag, full or short id names.

        Raises:
            Refused: there is none.
        """
        name = unquote(revision)
        short = name.removeprefix("refs/heads/")
        for found in (self.branches.get(short), self.branches.get(name), self.tags.get(name)):
            if found:
                return found
        matches = [sha for sha in self.commits if len(name) >= 7 and sha.startswith(name)]
        if len(matches) != 1:
            raise Refused(404, f"Invalid rev id: {name}", code="RevisionNotFound")
        return matches[0]

    def add_commit(
        self,
        branch: str,
        title: str,
        add: Tree,
        delete: Iterable[str] = (),
        *,
        by: str,
        whole: bool = False,
    ) -> str:
        """Put files on a branch and return the new commit; `whole` leaves none of the old ones."""
        with self.lock:
            parent = self.branches.get(branch, "")
            tree = {} if whole or not parent else dict(self.commits[parent].tree)
            for path in delete:
                tree.pop(path, None)
            tree.update(add)
            self._made += 1
            seed = f"{self.kind} {self.name} {self._made} {time.time_ns()} {title}"
            sha = hashlib.sha1(seed.encode(), usedforsecurity=False).hexdigest()
            at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
            self.commits[sha] = Commit(sha, parent, title, by, at, tree)
            self.branches[branch] = sha
            return sha

    def squash(self, branch: str, title: str, *, by: str) -> str:
        """Leave one commit of a branch and forget those before it."""
        with self.lock:
            if branch not in self.branches:
                raise Refused(404, f"Invalid rev id: {branch}", code="RevisionNotFound")
            tree = self.tree(branch)
            for old in [commit.sha for commit in self.history(branch)]:
                del self.commits[old]
            del self.branches[branch]
            return self.add_commit(branch, title, tree, by=by)

    def history(self, revision: str = "main") -> Iterator[Commit]:
        """Give a revision's commits, newest first."""
        sha = self.resolve(revision)
        while sha in self.commits:
            yield self.commits[sha]
            sha = self.commits[sha].parent

    def listed(self, revision: str, below: str, *, recursive: bool) -> list[dict[str, object]]:
        """Return what a folder of a revision holds, folders too, as the Hub lists it."""
        sha = self.resolve(revision)
        start = f"{below}/" if below else ""
        inside = {p: e for p, e in self.commits[sha].tree.items() if p.startswith(start)}
        if below and not inside:
            raise Refused(404, f"{below} does not exist", code="EntryNotFound", commit=sha)
        rows: dict[str, dict[str, object]] = {}
        for path, entry in sorted(inside.items()):
            *folders, _name = path.removeprefix(start).split("/")
            for depth in range(1, len(folders) + 1 if recursive else min(2, len(folders) + 1)):
                folder = start + "/".join(folders[:depth])
                rows.setdefault(folder, folder_told(folder))
            if recursive or not folders:
                rows[path] = entry.told(path)
        return list(rows.values())


def folder_told(path: str) -> dict[str, object]:
    """Return how the Hub lists a folder."""
    oid = hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest()
    return {"type": "directory", "oid": oid, "size": 0, "path": path}
