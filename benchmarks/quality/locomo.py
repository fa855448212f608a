"""Reads a file shaped as LoCoMo's: long dialogues in dated sessions, with questions about them.

A list of samples, each `conversation` (`session_1`: turns with `dia_id`, `speaker`, `text`;
`session_1_date_time`) and `qa` (`question`, `evidence`: dia_ids, `category`). Each sample becomes a
memory of its own, a turn a chunk.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.quality.measures import Gold, Labelled
from funes_ls.indexer import embedding
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.chunk import chunk_id
from funes_ls.indexer.lock import writer_lock
from funes_ls.indexer.memory import open_memory
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.settings import Settings
from funes_ls.indexer.times import format_us

_SESSION = re.compile(r"session_(\d+)")
_DIALOGUE = re.compile(r"D\d+:\d+")
_DATES = ("%I:%M %p on %d %B, %Y", "%Y-%m-%d", "%d %B, %Y")
#: Questions of this category have no answer.
_ADVERSARIAL = 5
_MINUTE_US = 60_000_000


def load(path: Path) -> list[dict[str, Any]]:
    """Return the samples of a file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return found if isinstance(found, list) else [found]


def make_memory(sample: dict[str, Any], home: Path, model: Path) -> Settings:
    """Fill a home with a sample's dialogue and return its settings."""
    settings = Settings(home=home, model=str(model))
    embedder = embedding.load(str(model), model.parent)
    home.mkdir(parents=True, exist_ok=True)
    with writer_lock(home):
        memory = open_memory(settings.memory_dir, derived=home / "derived", writable=True)
        with memory:
            for session_id, rows in sessions_of(sample):
                memory.catalog.put_session(
                    Session(session_id=session_id, harness="claude_code", turns=len(rows))
                )
                memory.queue(rows)
            memory.commit_words()
            waiting = list(memory.catalog.next_pending(1_000_000))
            vectors = embedder.encode([row.text for row in waiting])
            memory.move(waiting, vectors, stamp=embedder.stamp)
            memory.count_turns()
    return settings


def sessions_of(sample: dict[str, Any]) -> Iterator[tuple[str, list[Chunk]]]:
    """Yield a sample's sessions with their rows, in order."""
    talk = sample["conversation"]
    numbers = sorted(int(found[1]) for key in talk if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        session_id = f"session-{number}"
        start = _when(str(talk.get(f"session_{number}_date_time", "")))
        yield (
            session_id,
            [
                _row(session_id, seq, turn, start)
                for seq, turn in enumerate(talk[f"session_{number}"])
            ],
        )


def _row(session_id: str, seq: int, turn: dict[str, Any], start: int | None) -> Chunk:
    caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
    at = None if start is None else start + seq * _MINUTE_US
    return Chunk(
        id=chunk_id(session_id, turn["dia_id"], 0, 0),
        text=f"{turn['speaker']}: {turn['text']}{caption}",
        session_id=session_id,
        workdir="-dialogue",
        turn_uuid=turn["dia_id"],
        parent_uuid=None,
        seq=seq,
        ts="" if at is None else format_us(at),
        role="user" if seq % 2 == 0 else "assistant",
        block_type="text",
        tool_name=None,
        source_path=f"/dialogues/{session_id}.jsonl",
        block_idx=0,
        split_idx=0,
        harness="claude_code",
        repo="",
        ts_us=at,
    )


def _when(text: str) -> int | None:
    for pattern in _DATES:
        try:
            return int(datetime.strptime(text, pattern).replace(tzinfo=UTC).timestamp() * 1e6)
        except ValueError:
            continue
    return None


def questions_of(sample: dict[str, Any], name: str) -> list[Labelled]:
    """Return a sample's questions, about the memory of that name."""
    turns = {turn["dia_id"]: (session_id, turn["dia_id"]) for session_id, turn in _turns_of(sample)}
    found = []
    for number, asked in enumerate(sample["qa"]):
        is_answered = asked.get("category") != _ADVERSARIAL
        named = _DIALOGUE.findall(" ".join(map(str, asked.get("evidence", ()))))
        gold = tuple(
            Gold(session_id=turns[one][0], turn_uuid=turns[one][1])
            for one in dict.fromkeys(named)
            if one in turns
        )
        if is_answered and not gold:
            continue
        found.append(
            Labelled(
                qid=f"{name}-{number}",
                query=asked["question"],
                gold=gold if is_answered else (),
                kind=f"category {asked.get('category', '-')}",
                memory=name,
            )
        )
    return found


def _turns_of(sample: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, turns in sample["conversation"].items():
        if found := _SESSION.fullmatch(key):
            for turn in turns:
                yield f"session-{found[1]}", turn
