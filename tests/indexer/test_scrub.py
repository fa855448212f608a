"""Secrets are taken out of what is stored: in place, to the last byte, and nothing else."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from funes_ls.indexer import purge
from funes_ls.indexer.catalog import Session, Source
from funes_ls.indexer.chunk import chunk_id, split
from funes_ls.indexer.clean import hidden_key
from funes_ls.indexer.dataset import open_dataset
from funes_ls.indexer.errors import ScannerError, TraceError
from funes_ls.indexer.facts import Facts
from funes_ls.indexer.lexical import LexicalQuery
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import Chunk, Problem
from funes_ls.indexer.redaction import record
from funes_ls.indexer.scrub import ScrubReport, look_steps, scrub_steps
from tests.indexer.making import STAMP, reading, row, rows, run_apart, vectors, writing
from tests.leftovers import traces_of, within

SECRET = "sesame-" + "4Kq9zanzibarVx7L2mWquuxotic8Tp"
STUBBORN = "stubborn-" + "8Hh2pomegranateZz5"


class Found(Struct, frozen=True, kw_only=True):
    text: str
    counts: dict[str, int] = {}


class StandIn:
    """Finds what begins with `sesame-`; what begins with `stubborn-` comes back every time."""

    stamp = "stand-in 1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def text(self, text: str) -> Found:
        self.asked.append(text)
        clean, count = re.subn(r"sesame-\w{20,}", "<redacted>", text)
        again, more = re.subn(r"stubborn-\w+", "stubborn-x", clean)
        counts = {"sesame": count} | ({"stubborn": more} if more else {})
        return Found(text=f"{again} " if more else clean, counts=counts)


def quiet(_phase: str, _done: int, _total: int) -> None:
    """Tell nobody."""


def scrub(home: Path, scanner: Any = None) -> ScrubReport:
    with writing(home) as memory:
        return scrub_in(memory, home, scanner or StandIn())


def scrub_in(memory: Memory, home: Path, scanner: Any) -> ScrubReport:
    report = ScrubReport()
    for _ in scrub_steps(memory, home, scanner, report, told=quiet):
        pass
    return report


def block(seq: int, text: str, *, session: str = "s1", **fields: Any) -> list[Chunk]:
    """Return the chunks of a block as they would be stored."""
    return [
        row(seq, piece, session=session, split_idx=n,
            **{**fields, "id": chunk_id(session, f"t{seq}", 0, n)})
        for n, piece in enumerate(split(text))
    ]  # fmt: skip


def embed(memory: Memory) -> None:
    if batch := memory.catalog.next_pending(10_000):
        memory.move(batch, vectors(batch), stamp=STAMP)


def kept_vectors(home: Path) -> dict[str, list[float]]:
    found = {}
    for batch in open_dataset(home / "memory").scan(("id", "vector")):
        found.update({one["id"]: one["vector"] for one in batch.to_pylist()})
    return found


def long_text(before: int) -> str:
    """Return a text of two chunks with the secret over the cut between them."""
    words = " ".join(f"w{n}" for n in range(400))
    return f"{words[:before]} {SECRET} {words[before:]}"


@pytest.fixture
def dirty(tmp_path: Path) -> Path:
    """A home whose session `s1` holds a secret in every part, and `s2` none."""
    call = '{"command":"echo ' + SECRET + ' > /work/out.txt","file_path":"/work/' + SECRET + '"}'
    use = {"block_type": "tool_use", "role": "assistant", "tool_name": "Bash"}
    answer = {"block_type": "tool_result", "role": "tool", "tool_name": "Bash"}
    with writing(tmp_path) as memory:
        told = [
            *block(0, f"the key is {SECRET} and no other"),
            *block(1, long_text(1190)),
            *block(2, f"[tool_use Bash] {call}", **use),
            *block(3, "[tool_result Bash] done", **answer),
            *rows(20, start=4),
        ]
        memory.queue([*told, *rows(30, session="s2")])
        memory.catalog.put_session(
            Session(session_id="s1", title=f"the key is {SECRET} and no other", cwd="/work",
                    branch=f"fix/{SECRET}", chunks=len(told), source_key=f"/x/{SECRET}/s1")
        )  # fmt: skip
        memory.catalog.put_session(Session(session_id="s2", title="plain", chunks=30))
        memory.catalog.put_files("s1", [f"/work/{SECRET}.py", "/work/a.py"])
        memory.catalog.add_problems([Problem(path=f"/x/{SECRET}", kind="bad_line", message="no")])
        state = msgspec.msgpack.encode({"meta": {"title": f"see {SECRET}"}})
        memory.catalog.put_source(
            Source(key="k", harness="claude_code", path="/x/s1", session_id="s1", size=1,
                   mtime_ns=1, inode=1, resume=msgspec.json.encode({"reader": state}))
        )  # fmt: skip
        place = f"/x/{SECRET}/s1"
        memory.catalog.put_source(
            Source(key=place, harness="claude_code", path=place, session_id="s1", size=1,
                   mtime_ns=1, inode=2, resume=b"{}")
        )  # fmt: skip
        batch = memory.catalog.next_pending(35)
        memory.move(batch, vectors(batch), stamp=STAMP)
        list(_facts(memory))
    (tmp_path / "logs").mkdir(parents=True)
    (tmp_path / "logs" / "engine.log").write_text(f"fine\nnot {SECRET}\n", encoding="utf-8")
    return tmp_path


def _facts(memory: Memory) -> Iterator[str]:
    from funes_ls.indexer.calls.rebuild import rebuild_steps

    yield from rebuild_steps(memory)


def data_of(home: Path) -> dict[Path, bytes]:
    """Return the bytes of every file of a home but those that SQLite makes for readers."""
    files = (path for path in home.rglob("*") if path.is_file() and path.suffix != ".db-shm")
    return {path: data for path in files if (data := path.read_bytes())}


def texts(home: Path, session: str) -> list[str]:
    with reading(home) as memory:
        return [one.text for one in memory.session_rows(session)]


def test_no_byte_of_a_secret_is_left_and_the_rest_is_there(dirty: Path) -> None:
    assert len(list(traces_of(dirty, "zanzibar"))) > 3
    assert len(set(within(dirty, "zanzibar"))) > 6
    report = scrub(dirty)
    assert list(traces_of(dirty, SECRET, "zanzibar", "quuxotic")) == []
    assert list(within(dirty, "zanzibar", "quuxotic")) == []
    assert (report.sessions, report.redacted, report.dropped, report.pure) == (2, 3, 0, True)
    assert report.counts["sesame"] >= 6
    with reading(dirty) as memory:
        first = memory.session_rows("s1")[0]
        assert (first.id, first.text) == (row(0).id, "the key is <redacted> and no other")
        session = memory.catalog.session("s1")
        assert session is not None
        assert session.title == "the key is <redacted> and no other"
        assert session.branch == "fix/<redacted>"
        assert session.chunks == len(memory.session_rows("s1"))
        assert memory.catalog.files("s1") == ["/work/<redacted>.py", "/work/a.py"]
        assert [one.path for one in memory.catalog.problems()] == ["/x/<redacted>"]
        source = memory.catalog.source("k")
        assert source is not None
        assert source.resume is None
        commands = [one.text for one in Facts(memory.catalog).commands("s1")]
        assert commands == ["echo <redacted> > /work/out.txt"]
        found = [id_ for id_, _ in memory.search_words(LexicalQuery(text="redacted"), 9)]
        assert row(0).id in found
        assert memory.words.count() == memory.embedded_count() + memory.catalog.pending_count()
    assert texts(dirty, "s2") == [one.text for one in rows(30, session="s2")]
    assert (dirty / "logs" / "engine.log").read_text(encoding="utf-8") == "fine\nnot <redacted>\n"


def test_clean_rows_keep_their_vectors(dirty: Path) -> None:
    with writing(dirty) as memory:
        embed(memory)
    before = kept_vectors(dirty)
    report = scrub(dirty)
    after = kept_vectors(dirty)
    with reading(dirty) as memory:
        queued = {one.id for one in memory.session_rows("s1") if not one.embedded}
        assert len(queued) == report.requeued
        assert {one.seq for one in memory.session_rows("s1") if not one.embedded} <= {0, 1, 2}
    assert after == {id_: vector for id_, vector in before.items() if id_ in after}
    assert set(after).isdisjoint(queued)
    assert len(before) - len(after) >= len(queued)


def test_a_second_run_changes_nothing(dirty: Path) -> None:
    scrub(dirty)
    before = data_of(dirty)
    report = scrub(dirty)
    assert not report.found
    assert (report.redacted, report.requeued, report.counts, report.pure) == (0, 0, {}, True)
    after = data_of(dirty)
    assert {path.name for path in before | after if before.get(path) != after.get(path)} <= {
        "writer.pid"
    }
    with reading(dirty) as memory:
        assert memory.catalog.get("redaction") == StandIn.stamp


@pytest.mark.parametrize("before", range(1100, 1215, 5))
def test_a_secret_over_a_cut_is_found(tmp_path: Path, before: int) -> None:
    with writing(tmp_path) as memory:
        memory.queue(block(0, long_text(before)))
        embed(memory)
        scrub_in(memory, tmp_path, StandIn())
        stored = memory.session_rows("s1")
        whole = long_text(before).replace(SECRET, "<redacted>")
        assert [one.text for one in stored] == list(split(whole))
        assert [one.split_idx for one in stored] == list(range(len(stored)))


def test_a_block_that_grows_gets_further_chunks(tmp_path: Path) -> None:
    class Longer(StandIn):
        def text(self, text: str) -> Found:
            return Found(text=text.replace("@@", "a much longer placeholder"), counts={})

    given = " ".join("@@" if n % 3 else "kettle" for n in range(400))
    with writing(tmp_path) as memory:
        memory.queue(block(0, given))
        embed(memory)
        scrub_in(memory, tmp_path, Longer())
        whole = given.replace("@@", "a much longer placeholder")
        assert [one.text for one in memory.session_rows("s1")] == list(split(whole))
        assert [one.id for one in memory.session_rows("s1")] == [
            chunk_id("s1", "t0", 0, n) for n in range(len(list(split(whole))))
        ]


def test_what_cannot_be_cleaned_is_taken_out_whole(tmp_path: Path) -> None:
    with writing(tmp_path) as memory:
        memory.queue([*block(0, f"see {STUBBORN} here"), *block(1, "plain"), *rows(3, start=2)])
        embed(memory)
        report = scrub_in(memory, tmp_path, StandIn())
        assert (report.redacted, report.dropped) == (0, 1)
        assert [one.seq for one in memory.session_rows("s1")] == [1, 2, 3, 4]
    assert list(traces_of(tmp_path, "pomegranate")) == []


def test_a_dry_run_counts_and_changes_nothing(dirty: Path) -> None:
    before = data_of(dirty)
    report = ScrubReport()
    with reading(dirty) as memory:
        assert list(look_steps(memory, dirty, StandIn(), report)) == [2, 2]
    assert data_of(dirty) == before
    assert (report.redacted, report.sessions, report.found) == (3, 2, True)
    done = scrub(dirty)
    assert (done.redacted, done.details) == (3, report.details)


def test_a_dry_run_sees_a_secret_that_only_a_log_has(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "engine.log"
    log.write_text(f"fine\nnot {SECRET}\n", encoding="utf-8")
    with writing(tmp_path) as memory:
        memory.queue(rows(2))
    report = ScrubReport()
    with reading(tmp_path) as memory:
        list(look_steps(memory, tmp_path, StandIn(), report))
    assert (report.redacted, report.details) == (0, 1)
    assert SECRET in log.read_text(encoding="utf-8")


def test_a_scanner_that_fails_leaves_the_memory_whole(dirty: Path) -> None:
    class Failing(StandIn):
        def text(self, text: str) -> Found:
            if len(self.asked) > 30:
                raise ScannerError("It died.", kind="scanner_broken")
            return super().text(text)

    with writing(dirty) as memory, pytest.raises(ScannerError):
        scrub_in(memory, dirty, Failing())
    with reading(dirty) as memory:
        assert memory.words.count() == memory.embedded_count() + memory.catalog.pending_count()
        assert memory.catalog.get("redaction") != StandIn.stamp
    scrub(dirty)
    assert list(traces_of(dirty, SECRET, "zanzibar")) == []


_DEATHS = {
    "noted": "memory.replace = die",
    "queued anew, old rows there": "memory._strike = die",
    "old rows out": "memory.lexical.add = die",
    "all replaced": "module.rebuild_steps = die",
    "before the bytes": "memory.rewrite = die",
    "dataset written": "memory.lexical.rewrite = die",
    "catalog to be written": "memory.catalog.rewrite = die",
}
_SCRUBBER = """
from funes_ls.indexer import scrub as module
from tests.indexer.test_scrub import StandIn, scrub_in
def die(*args, **named): os._exit(9)
with writing(HOME_DIR) as memory:
    {death}
    scrub_in(memory, HOME_DIR, StandIn())
"""


@pytest.mark.parametrize("death", _DEATHS.values(), ids=_DEATHS)
def test_a_kill_loses_nothing_and_the_next_run_finishes(dirty: Path, death: str) -> None:
    expected = [text.replace(SECRET, "<redacted>") for text in _whole(texts(dirty, "s1"))]
    died = run_apart(_SCRUBBER.format(death=death), dirty)
    assert died.returncode == 9, died.stderr
    with writing(dirty) as memory:
        assert purge.is_due(memory)
    assert scrub(dirty).pure
    assert list(traces_of(dirty, SECRET, "zanzibar")) == []
    assert _whole(texts(dirty, "s1")) == expected
    with reading(dirty) as memory:
        assert memory.words.count() == memory.embedded_count() + memory.catalog.pending_count()
        commands = [one.text for one in Facts(memory.catalog).commands("s1")]
        assert commands == ["echo <redacted> > /work/out.txt"]


def test_what_was_found_before_a_kill_is_counted(dirty: Path) -> None:
    died = run_apart(_SCRUBBER.format(death=_DEATHS["all replaced"]), dirty)
    assert died.returncode == 9, died.stderr
    with reading(dirty) as memory:
        before = record.counts(memory.catalog)
    assert before["sesame"] >= 6
    report = scrub(dirty)
    with reading(dirty) as memory:
        counts = record.counts(memory.catalog)
    assert counts["sesame"] == before["sesame"] + report.counts["sesame"]


def _whole(found: Sequence[str]) -> list[str]:
    """Return the rows of blocks of one chunk: how many others have depends on the cut."""
    return [text for text in found if len(text) < 600]


class Failing(StandIn):
    """A scanner that cannot take a text with one word in it."""

    def text(self, text: str) -> Found:
        if "undoing" in text:
            raise TraceError("It took too long.", kind="unscannable")
        return super().text(text)


def test_a_text_nobody_can_scan_goes_and_the_rest_is_cleaned(dirty: Path) -> None:
    with writing(dirty) as memory:
        memory.queue(block(90, "an undoing of scanners"))
        memory.catalog.put_session(Session(session_id="s0", title="undoing", cwd="/undoing"))
    report = scrub(dirty, Failing())
    assert report.dropped == 1
    assert not [text for text in texts(dirty, "s1") if "undoing" in text]
    assert list(traces_of(dirty, SECRET)) == []
    again = scrub(dirty, Failing())
    assert (again.redacted, again.dropped, again.requeued) == (0, 0, 0)


def test_a_trace_with_a_secret_in_its_path_is_known_by_another_key(dirty: Path) -> None:
    key = f"/x/{SECRET}/s1"
    scrub(dirty)
    with reading(dirty) as memory:
        known = memory.catalog.source(hidden_key(key))
        session = memory.catalog.session("s1")
    assert known is not None and known.path == "/x/<redacted>/s1" and known.resume is None
    assert session is not None and session.source_key == known.key


def test_a_session_whose_id_holds_a_secret_goes_so_that_it_is_read_anew(tmp_path: Path) -> None:
    name = f"s-{SECRET}"
    with writing(tmp_path) as memory:
        memory.queue([*rows(3, session=name), *rows(3, session="s2")])
        for one in (name, "s2"):
            memory.catalog.put_session(Session(session_id=one, title="plain", chunks=3))
        memory.catalog.put_source(
            Source(key="k", harness="claude_code", path="/x/s", session_id=name, size=1,
                   mtime_ns=1, inode=1, resume=b"{}")
        )  # fmt: skip
        embed(memory)
    report = scrub(tmp_path)
    assert (report.dropped, report.details, report.pure) == (3, 1, True)
    with reading(tmp_path) as memory:
        assert [one.session_id for one in memory.catalog.sessions()] == ["s2"]
        assert memory.catalog.source("k") is None
        assert memory.catalog.tombstones() == set()
        assert len(memory.session_rows("s2")) == 3
    assert list(traces_of(tmp_path, SECRET)) == []
    assert list(within(tmp_path, SECRET)) == []


def test_what_stands_at_the_start_of_a_line_is_looked_for_behind_a_label(tmp_path: Path) -> None:
    class AtStart(StandIn):
        def text(self, text: str) -> Found:
            clean, count = re.subn(r"(?m)^sesame-\w{20,}", "<redacted>", text)
            return Found(text=clean, counts={"sesame": count})

    answer = {"block_type": "tool_result", "role": "tool", "tool_name": "Read"}
    with writing(tmp_path) as memory:
        memory.queue(block(0, f"[tool_result Read] {SECRET}\nand more", **answer))
        memory.catalog.put_session(Session(session_id="s1", title="plain", chunks=1))
    assert scrub(tmp_path, AtStart()).redacted == 1
    assert texts(tmp_path, "s1") == ["[tool_result Read] <redacted>\nand more"]
