"""The sample sessions: what is committed is what the scripts say, and nothing personal is in it."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import zstandard

from tests.traces.make import HERE, write_home, write_parquet
from tests.traces.script import load_scripts

PARQUET = HERE / "parquet" / "shared-sessions.parquet"


def content(path: Path) -> object:
    """Return what a reader sees; packed forms may differ in bytes between library versions."""
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    if path.suffix == ".db":
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
            return list(db.iterdump())
    return path.read_bytes()


def tree(home: Path) -> dict[str, object]:
    return {
        path.relative_to(home).as_posix(): content(path)
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def test_the_committed_home_is_what_the_scripts_say(tmp_path: Path) -> None:
    write_home(tmp_path)
    made, committed = tree(tmp_path), tree(HERE / "home")
    assert made.keys() == committed.keys()
    assert [name for name in made if made[name] != committed[name]] == []


def test_the_committed_parquet_is_what_the_scripts_say(tmp_path: Path) -> None:
    write_parquet(tmp_path / "made.parquet")
    assert pq.read_table(tmp_path / "made.parquet").equals(pq.read_table(PARQUET))


def test_every_harness_and_variant_is_there() -> None:
    kinds = {(s.head["harness"], s.head.get("variant", "")) for s in load_scripts()}
    assert kinds >= {
        *(("claude", v) for v in ("", "subagent", "old-subagent", "fork", "compacted", "torn")),
        *(("codex", v) for v in ("", "archived", "bare", "zst", "subagent")),
        *(("pi", v) for v in ("", "v1")),
        ("hermes", ""),
        ("parquet", ""),
    }


def personal_things(text: str) -> set[str]:
    """Return the homes, hosts and mail addresses in a text that may be somebody's."""
    homes = set(re.findall(r"/(?:home|Users)/([\w.-]+)", text)) - {"dev"}
    hosts = set(re.findall(r"\b[\w-]+\.(?:com|org|net|io|dev)\b", text))
    return homes | hosts | set(re.findall(r"\w@[\w-]+\.[a-z]+", text))


def test_no_address_path_or_mail_of_anyones_own() -> None:
    for path in (HERE / "scripts").glob("*.txt"):
        assert personal_things(path.read_text(encoding="utf-8")) == set()
