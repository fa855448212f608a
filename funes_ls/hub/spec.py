"""What a memory is called: the local one, a path, a dataset on the Hub, a place in a bucket."""

import difflib
import hashlib
import re
from pathlib import Path
from typing import Literal

from msgspec import Struct

from funes_ls.indexer import dataset as lance
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.home import expanded
from funes_ls.indexer.settings import Settings

Kind = Literal["local", "path", "hub", "store", "db"]

LOCAL = "local"
#: Object stores by the scheme that names them.
STORES = ("s3", "gs", "az")
#: A name of an owner or of a repository, as the Hub takes them.
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"{_NAME}/{_NAME}", re.ASCII)
_PART = re.compile(r"[A-Za-z0-9_=+ .-]{1,255}", re.ASCII)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,220}", re.ASCII)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_WEB = re.compile(r"https?://huggingface\.co/", re.IGNORECASE)
_SHOWN_MAX = 300


class MemorySpec(Struct, frozen=True, kw_only=True):
    """Which memory is meant.

    Attributes:
        text: As it is shown and given back to `--memory`: `local`, a path, `acme/kb`,
            `hf://datasets/acme/kb/folder`, `s3://bucket/kb`.
        kind: `local`, `path`, `hub`, `store` (an object store) or `db` (LanceDB's service).
        repo: `owner/name` of a dataset on the Hub.
        prefix: Folder within the repository or bucket, "" for its root.
        path: Of what is on this machine.
    """

    text: str
    kind: Kind
    repo: str = ""
    prefix: str = ""
    path: Path | None = None

    @property
    def is_remote(self) -> bool:
        """Return whether it is on another machine."""
        return self.kind in ("hub", "store", "db")

    @property
    def bucket(self) -> str:
        """Return the bucket or container of an object store, else ""."""
        return self.text.partition("://")[2].partition("/")[0] if self.kind == "store" else ""

    @property
    def key(self) -> str:
        """Return what its folders on this machine are called."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def inside(self, name: str) -> str:
        """Return where a file of the memory is in its repository or bucket."""
        return f"{self.prefix}/{name}" if self.prefix else name


def parse_spec(text: str, settings: Settings) -> MemorySpec:
    """Return which memory a person means; nothing is asked of the network.

    An existing path wins over a repository of the same spelling when it holds a memory.

    Raises:
        UsageError: kind `no_such_memory`: there is no such path, or it names nothing.
    """
    wanted = text.strip()
    if wanted in ("", LOCAL):
        return MemorySpec(text=LOCAL, kind="local", path=settings.memory_dir)
    shown = shown_name(wanted)
    scheme = _SCHEME.match(wanted)
    if scheme is None and (_is_path(wanted) or _holds_memory(expanded(wanted))):
        return _path(wanted, shown)
    if shown != wanted:
        raise _unknown(shown, "A memory's name is one short line.")
    web = _WEB.match(wanted)
    if web is not None:
        return _hub(wanted[web.end() :], shown)
    if scheme is not None:
        return _by_scheme(scheme[1].lower(), scheme[2], shown)
    if _REPO.fullmatch(wanted):
        return _hub(wanted, shown)
    if _exists(expanded(wanted)):
        return _path(wanted, shown)
    raise _unknown(shown, _suggestion(wanted))


def shown_name(text: str) -> str:
    """Return a name as it can be printed in a message: one line, not long."""
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return line if len(line) <= _SHOWN_MAX else f"{line[:_SHOWN_MAX]}…"


def _by_scheme(scheme: str, rest: str, shown: str) -> MemorySpec:
    if scheme == "hf":
        return _hub(rest, shown)
    if scheme == "file":
        return _path(rest, shown)
    if scheme == "db":
        name = rest.strip("/")
        if not name or not all(map(_is_part, name.split("/"))):
            raise _unknown(shown, "Name it as db://<database>.")
        return MemorySpec(text=f"db://{name}", kind="db", prefix=name.partition("/")[2])
    if scheme in STORES:
        bucket, _, prefix = rest.partition("/")
        parts = _parts(prefix)
        if parts is None or not _BUCKET.fullmatch(bucket):
            raise _unknown(shown, f"Name it as {scheme}://<bucket>/<folder>.")
        folder = "/".join(parts)
        text = f"{scheme}://{bucket}/{folder}" if folder else f"{scheme}://{bucket}"
        return MemorySpec(text=text, kind="store", prefix=folder)
    known = ("hf", *STORES, "db")
    near = difflib.get_close_matches(scheme, known, n=1, cutoff=0.5)
    meant = f"Did you mean {near[0]}://…? " if near else ""
    listed = ", ".join(f"{name}://" for name in known)
    raise _unknown(shown, f"{meant}A memory elsewhere starts with {listed}.")


def _hub(rest: str, shown: str) -> MemorySpec:
    hint = "Name a dataset of the Hub as <org>/<repo>, or hf://datasets/<org>/<repo>/<folder>."
    given = rest.removeprefix("datasets/").rstrip("/").split("/")
    repo, prefix = "/".join(given[:2]), "/".join(given[2:])
    parts = _parts(prefix)
    if parts is None or not _REPO.fullmatch(repo) or "--" in repo or ".." in repo:
        raise _unknown(shown, hint)
    if parts and parts[-1] == f"{lance.TABLE}.lance":
        parts = parts[:-1]
    folder = "/".join(parts)
    text = f"hf://datasets/{repo}/{folder}" if folder else repo
    return MemorySpec(text=text, kind="hub", repo=repo, prefix=folder)


def _parts(prefix: str) -> list[str] | None:
    """Return the folders of a prefix; None for one that cannot be."""
    parts = [part for part in prefix.split("/") if part]
    return parts if all(map(_is_part, parts)) else None


def _is_part(name: str) -> bool:
    return bool(_PART.fullmatch(name)) and name.strip(". ") != ""


def _path(given: str, shown: str) -> MemorySpec:
    path = expanded(given)
    if not _exists(path):
        raise _unknown(shown, "Check the path; `local` is the memory of this machine.")
    nested = path / "memory"
    return MemorySpec(text=given, kind="path", path=nested if nested.is_dir() else path)


def _is_path(text: str) -> bool:
    return (
        text in (".", "..")
        or text.startswith(("./", "../", "~", "/", "\\", ".\\", "..\\"))
        or (Path(text).is_absolute() or text.endswith(".lance"))
    )


def _holds_memory(path: Path) -> bool:
    try:
        return lance.is_there(path) or any(
            (path / inner / name).exists()
            for inner in ("", "memory")
            for name in ("catalog.db", f"{lance.TABLE}.lance")
        )
    except (OSError, ValueError):  # too long
        return False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def _suggestion(text: str) -> str:
    if difflib.get_close_matches(text.lower(), [LOCAL], n=1, cutoff=0.6):
        return f"Did you mean `{LOCAL}`?"
    return "Name `local`, the path of a memory, <org>/<repo> on the Hub, or s3://<bucket>/<folder>."


def _unknown(shown: str, hint: str) -> UsageError:
    return UsageError(f"No memory at {shown}.", hint=hint, kind="no_such_memory")
