"""Looks for words in every byte of a home."""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from funes_ls.indexer.dataset import dataset_path, open_dataset
from funes_ls.indexer.memory import open_memory


def traces_of(home: Path, *words: str) -> Iterator[str]:
    """Yield the files of a home that hold any of some words, however they are written."""
    forms = {form for word in words for form in _forms(word)}
    for file in sorted(home.rglob("*")):
        data = file.read_bytes() if file.is_file() else b""
        if any(form in data for form in forms) or any(word in file.name for word in words):
            yield str(file.relative_to(home))


def _forms(word: str) -> Iterable[bytes]:
    for text in (word, word.lower(), json.dumps(word)[1:-1]):
        yield from (text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be"))


def within(home: Path, *words: str) -> Iterator[str]:
    """Yield where the memory of a home holds any of some words once it is unpacked.

    Every version of the dataset is looked at, every row of the words index, every cell of the
    catalog, packed texts of facts too.
    """
    for where, text in _unpacked(home / "memory", home / "derived"):
        if any(word.lower() in text.lower() for word in words):
            yield where


def _unpacked(base: Path, derived: Path) -> Iterator[tuple[str, str]]:
    if list(dataset_path(base).glob("data/*")):
        newest = open_dataset(base)
        for version in range(1, newest.version + 1):
            for batch in newest.at(version).scan(("id", "text", "source_path", "workdir")):
                yield f"dataset {version}", str(batch.to_pylist())
    with open_memory(base, derived=derived) as memory:
        names = memory.catalog.select("SELECT session_id FROM sessions")
        for (name,) in names:
            yield f"words of {name}", str(memory.words.session_rows(name))
    with closing(sqlite3.connect(base / "catalog.db")) as db:
        tables = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for row in db.execute(f"SELECT * FROM {table}"):
                yield f"table {table}", "\n".join(map(_plain, row))


def _plain(value: Any) -> str:
    if not isinstance(value, bytes):
        return str(value)
    with suppress(zlib.error):
        value = zlib.decompress(value)
    return bytes(value).decode("utf-8", "replace")
