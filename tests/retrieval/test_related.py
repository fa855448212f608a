"""Which sessions have to do with a file, how much, and also after its checkout has moved."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.indexer import facts_tables
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.facts import EventKind, FileEvent
from funes_ls.indexer.memory import Memory
from funes_ls.retrieval.related import by_facts
from funes_ls.retrieval.related_talk import by_talk, names_of
from funes_ls.retrieval.same_file import Asked
from funes_ls.retrieval.turn_texts import turn_texts
from tests.retrieval.building import memory_of, said

SESSIONS = {
    "moved": ("/old/api", "acme/api", ["/old/api/src/retry.py"]),
    "here": ("/work/api", "acme/api", ["src/retry.py", "/etc/hosts"]),
    "below": ("/work/api/src", "acme/api", ["/work/api/src/retry.py"]),
    "other": ("/work/web", "acme/web", ["src/retry.py"]),
    "nowhere": ("", "", ["src/retry.py"]),
    "else": ("/work/api", "acme/api", ["tests/src/other.py", "src/retry.pyc"]),
}
SAID = {
    "moved": "Why does parseRetryAfter drop the milliseconds?",
    "here": "Retry twice.",
    "below": "backoff_seconds and parseRetryAfter should share a clock.",
    "other": "We call backoff_seconds in the web client too.",
    "nowhere": "The process stops and starts.",
    "else": "Look at retry.py first.",
}
CODE = """
export async function parseRetryAfter(text) {}
def backoff_seconds(n): pass
class process: pass
"""


@pytest.fixture
def memory(funes_home: Path) -> Iterator[Memory]:
    sessions = [
        Session(session_id=name, harness="claude_code", cwd=cwd, repo=repo, ended_us=at)
        for at, (name, (cwd, repo, _)) in enumerate(SESSIONS.items(), start=1)
    ]
    with memory_of(
        funes_home,
        [said(name, 0, SAID[name], turn=f"ask-{name}") for name in SESSIONS],
        sessions=sessions,
        files={name: files for name, (_, _, files) in SESSIONS.items()},
    ) as made:
        yield made


def did(
    memory: Memory, session: str, path: str, *kinds: EventKind, at: int, source: str = ""
) -> None:
    """Add what calls of a session did to a file, one call each, from a moment on."""
    facts_tables.begin(memory.catalog, session, anew=False)
    calls = [
        facts_tables.CallFacts(
            at=facts_tables.Provenance(
                turn_uuid=f"{session}-{at + n}",
                seq=at + n,
                block_idx=0,
                ts_us=at + n,
                ask_turn_uuid=f"ask-{session}",
                reason_turn_uuid="",
            ),
            events=(FileEvent(kind=kind, path=path, new="x = 1\n", source=source),),
        )
        for n, kind in enumerate(kinds)
    ]
    facts_tables.add(memory.catalog, session, calls)
    facts_tables.finish(memory.catalog, session, b"")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/work/api/src/retry.py", ["below", "here", "moved"]),
        ("/old/api/src/retry.py", ["below", "here", "moved"]),
        ("/work/web/src/retry.py", ["other"]),
        ("src/retry.py", ["nowhere", "other", "below", "here", "moved"]),
        ("retry.py", ["nowhere", "other", "below", "here", "moved"]),
        ("/elsewhere/src/retry.py", []),
        ("/etc/hosts", ["here"]),
        ("/work/api/src", []),
        ("etry.py", []),
        ("", []),
    ],
)
def test_a_call_that_names_a_file_mentions_it(
    memory: Memory, path: str, expected: list[str]
) -> None:
    found = by_facts(memory, Asked(path=path))
    assert [one.session_id for one in found] == expected
    assert {one.relation for one in found} <= {"mentioned"}


def test_a_checkout_that_no_session_ran_in_is_known_by_its_repository(memory: Memory) -> None:
    found = by_facts(memory, Asked(path="/new/place/src/retry.py", repos=frozenset(("acme/api",))))
    assert [one.session_id for one in found] == ["below", "here", "moved"]


def test_editing_outranks_reading_and_that_naming_whatever_is_newer(memory: Memory) -> None:
    did(memory, "moved", "/old/api/src/retry.py", "read", "edit", "write", "search", at=10)
    did(memory, "here", "/work/api/src/retry.py", "read", "list", "read", at=20)
    did(memory, "other", "/work/web/src/retry.py", "edit", at=30)
    found = by_facts(memory, Asked(path="/work/api/src/retry.py"))
    assert [(one.session_id, one.relation) for one in found] == [
        ("moved", "edited"),
        ("here", "read"),
        ("below", "mentioned"),
    ]
    assert [(one.edits, one.reads, one.mentions) for one in found] == [
        (2, 1, 1),
        (0, 2, 1),
        (0, 0, 1),
    ]
    assert [one.last_us for one in found] == [13, 22, 3]
    assert found[0].turn_uuid == "ask-moved"
    turns = [("moved", "ask-moved"), ("here", "gone")]
    assert turn_texts(memory, turns, kinds=("text",)) == {turns[0]: SAID["moved"], turns[1]: ""}


def test_a_file_that_was_moved_keeps_the_sessions_of_its_old_name(memory: Memory) -> None:
    did(memory, "else", "/work/api/src/again.py", "edit", at=10)
    did(memory, "here", "/work/api/src/twice.py", "move", at=20, source="/work/api/src/again.py")
    found = by_facts(memory, Asked(path="/work/api/src/twice.py"))
    assert [(one.session_id, one.relation) for one in found] == [
        ("here", "edited"),
        ("else", "edited"),
    ]
    assert [one.session_id for one in by_facts(memory, Asked(path="/work/api/src/again.py"))] == [
        "else"
    ]


def test_names_that_come_up_relate_more_in_the_same_repository(memory: Memory) -> None:
    asked = Asked(path="/work/api/src/retry.py")
    found = by_talk(memory, asked, names_of(asked.path, CODE))
    relations = {one.session_id: one.relation for one in found}
    assert relations == {
        **dict.fromkeys(("below", "moved", "else"), "symbols"),
        "other": "similar",
    }
    assert (found[0].session_id, found[0].turn_uuid) == ("below", "ask-below")
    assert found[-1].session_id == "other"


def test_a_range_has_names_of_its_own(memory: Memory) -> None:
    text = "total = 1\nwait = backoff_seconds(total)\nclass process: pass\n"
    names = names_of("/x/main.py", text, lines=(1, 1))
    assert (names.file, names.inside) == ("", ("backoff_seconds",))
    found = by_talk(memory, Asked(path="/x/main.py"), names)
    assert [one.session_id for one in found] == ["below", "other"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("    async def fetch_page(self):", "fetch_page"),
        ("pub(crate) fn tile_count() -> u8 {", "tile_count"),
        ("export default class PagerView {", "PagerView"),
        ("func (s *Server) Listen(addr string) {", "Listen"),
        ("public static final class Broker {", "Broker"),
        ("export const useGauge = () => {", "useGauge"),
        ("  interface TileWriter {", "TileWriter"),
        ("if define: x", None),
        ("# a class of its own", None),
    ],
)
def test_definitions_of_many_languages(line: str, name: str | None) -> None:
    assert names_of("x", line).inside == ((name,) if name else ())


@pytest.mark.parametrize(
    "line",
    ["static\n", "static ", "pub(", "func (", "const\n", " ", "def ", "(", "a_", "class X\n"],
)
def test_no_text_takes_long(line: str) -> None:
    began = time.process_time()
    names_of("x", line * 50_000)
    names_of("x", line * 50_000, lines=(0, 50_000))
    assert time.process_time() - began < 2


@pytest.mark.parametrize("text", ["", "\0\0", "def " * 1000, "def \udcffx(", "x" * 100_000])
def test_any_text_has_names_or_none(memory: Memory, text: str) -> None:
    names = names_of('/work/api/src/a"b.py', text)
    assert isinstance(by_talk(memory, Asked(path='/work/api/src/a"b.py'), names), list)
