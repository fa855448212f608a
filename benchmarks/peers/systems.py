"""Ways to search past sessions: what people use today, the parts of ours alone, and ours."""

import json
import re
import sqlite3
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.measures import Found
from funes_ls import service
from funes_ls.indexer.memory import MemoryView
from funes_ls.indexer.model import Chunk
from funes_ls.memories import Memories
from funes_ls.protocol import RecallParams

#: A question -> passages, best first.
Search = Callable[[str], list[Found]]
#: Passages a system returns: several of one turn count once.
DEPTH = 50
_WORD = re.compile(r"\w+")
#: Words that a person would not type into a search box.
_SMALL_WORDS = """
    a an and are as at be been but by did do does for from had has have how i if in into is it its
    not of on or our so that the their them then there they this to up was we were what when where
    which who whom whose why will with without would you your
"""
STOP = frozenset(_SMALL_WORDS.split())
_RRF_K = 60
_RRF_DEPTH = 100


def words_of(question: str) -> list[str]:
    """Return the words of a question that say something, each once."""
    words = dict.fromkeys(word.lower() for word in _WORD.findall(question))
    return [word for word in words if word not in STOP] or list(words)


def ripgrep(program: str, traces: Path) -> Search:
    """Search the raw traces: the lines that hold most of the words, as a person with rg would."""

    def search(question: str) -> list[Found]:
        words = words_of(question)
        patterns = [part for word in words for part in ("-e", word)]
        command = [
            program,
            "-i",
            "-F",
            "-o",
            "-n",
            "--no-heading",
            "--hidden",
            *patterns,
            str(traces),
        ]
        ran = subprocess.run(command, capture_output=True, check=False)
        held: dict[tuple[str, int], set[str]] = defaultdict(set)
        for line in ran.stdout.decode("utf-8", "replace").splitlines():
            path, number, word = [*line.split(":", 2), "", ""][:3]
            if number.isdigit():
                held[path, int(number)].add(word.lower())
        best = sorted(held, key=lambda place: -len(held[place]))[:DEPTH]
        return [_raw_line(path, number) for path, number in best]

    return search


def _raw_line(path: str, number: int) -> Found:
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        line = next((text for n, text in enumerate(file, start=1) if n == number), "")
    try:
        record = json.loads(line)
    except ValueError:
        record = {"text": line}
    turn = str(record.get("uuid") or record.get("id") or "") if isinstance(record, dict) else ""
    text = "\n".join(_strings(record))
    return Found(session_id=Path(path).stem, turn_uuid=turn or f"line {number}", text=text)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def tantivy(rows: Sequence[Chunk]) -> Callable[[str, int], list[int]]:
    """Index the texts with tantivy's own English stemmer and return a search for row numbers."""
    import tantivy as engine

    builder = engine.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem")
    builder.add_integer_field("row", stored=True)
    index = engine.Index(builder.build())
    writer = index.writer(80_000_000, 1)
    for number, row in enumerate(rows):
        writer.add_document(engine.Document(text=row.text, row=number))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(question: str, limit: int) -> list[int]:
        query = index.parse_query(" ".join(_WORD.findall(question)).lower(), ["text"])
        hits = searcher.search(query, limit, count=False).hits
        return [int(searcher.doc(address)["row"][0]) for _, address in hits]

    return search


def fts5(rows: Sequence[Chunk]) -> Callable[[str, int], list[int]]:
    """Index the texts with SQLite's FTS5 and return a search for row numbers by bm25()."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE rows USING fts5(text, tokenize = 'porter unicode61')")
    db.executemany(
        "INSERT INTO rows(rowid, text) VALUES (?, ?)",
        ((number, row.text) for number, row in enumerate(rows)),
    )
    db.commit()

    def search(question: str, limit: int) -> list[int]:
        asked = " OR ".join(f'"{word}"' for word in _WORD.findall(question))
        found = db.execute(
            "SELECT rowid FROM rows WHERE rows MATCH ? ORDER BY bm25(rows) LIMIT ?", (asked, limit)
        )
        return [int(row[0]) for row in found]

    return search


def nearest(
    rows: Sequence[Chunk], memory: MemoryView, encode: Callable[[str], NDArray[np.float32]]
) -> Callable[[str, int], list[int]]:
    """Return an exact search by meaning over the memory's vectors, for row numbers."""
    held = memory.vectors()
    if held is None:
        raise ValueError("the memory has no vectors")
    numbers = {row.id: number for number, row in enumerate(rows)}

    def search(question: str, limit: int) -> list[int]:
        places, _ = held.nearest(encode(question), limit)
        return [numbers[id_] for id_ in held.ids(places.tolist())]

    return search


def reciprocal(
    legs: Sequence[Callable[[str, int], list[int]]],
) -> Callable[[str, int], list[int]]:
    """Return a search that adds up 1 / (60 + rank) over legs."""

    def search(question: str, limit: int) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for leg in legs:
            for rank, row in enumerate(leg(question, _RRF_DEPTH), start=1):
                scores[row] += 1 / (_RRF_K + rank)
        return sorted(scores, key=lambda row: -scores[row])[:limit]

    return search


def of_rows(rows: Sequence[Chunk], search: Callable[[str, int], list[int]]) -> Search:
    """Return passages for a search that finds row numbers."""

    def found(question: str) -> list[Found]:
        return [
            Found(session_id=row.session_id, turn_uuid=row.turn_uuid, text=row.text)
            for row in (rows[number] for number in search(question, DEPTH))
        ]

    return found


def ours(memories: Memories, **options: Any) -> Search:
    """Return what recall answers."""

    def search(question: str) -> list[Found]:
        params = RecallParams(query=question, k=12, neighbors=0, **options)
        return [
            Found(session_id=hit.session_id, turn_uuid=hit.turn_uuid, text=hit.text)
            for hit in service.recall(params, memories).hits
        ]

    return search


def command(template: Sequence[str]) -> Search:
    """Return what a program prints in the layout of `funes recall`.

    Args:
        template: Its command line; `{query}` stands for the question.
    """

    def search(question: str) -> list[Found]:
        argv = [part.replace("{query}", question) for part in template]
        ran = subprocess.run(argv, capture_output=True, check=False, timeout=120)
        return passages(ran.stdout.decode("utf-8", "replace"))

    return search


def passages(printed: str) -> list[Found]:
    """Return the passages of a text in the layout of `funes recall`."""
    found: list[Found] = []
    for part in re.split(r"(?m)^---$\n?", printed):
        lines = part.splitlines()
        get = next((n for n, line in enumerate(lines) if line.startswith("  → get ")), None)
        if get is None:
            continue
        session, turn = [*lines[get].split()[2:4], "", ""][:2]
        text = [line for line in lines[get + 1 :] if not re.match(r"  [~=>?] ", line)]
        found.append(
            Found(session_id=session.strip("'"), turn_uuid=turn.strip("'"), text="\n".join(text))
        )
    return found
