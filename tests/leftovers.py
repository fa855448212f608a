"""Looks for words in every byte of a home."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path


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
