"""An engine makes the facts that a memory lacks, when nothing else is to be done."""

from pathlib import Path

from funes_ls.indexer import facts_tables as tables
from funes_ls.indexer.catalog import Session
from funes_ls.indexer.facts import Facts
from funes_ls.indexer.live_facts import FactsWork
from funes_ls.indexer.memory import Memory
from tests.indexer.living import DEADLINE_S, living, until
from tests.indexer.making import reading, writing
from tests.sessions import record, tool_result, tool_use, write


def trace(projects: Path, number: int) -> Path:
    call = tool_use("Write", {"file_path": f"/w/f{number}.py", "content": "x = 1\n"}, id="c")
    return write(
        projects / "p" / f"s{number}.jsonl",
        [
            record("please write", uuid=f"a{number}"),
            record(call, uuid=f"b{number}", role="assistant"),
            record(tool_result("File created successfully", id="c"), uuid=f"c{number}"),
        ],
    )


def lose_facts(memory: Memory) -> None:
    for name in ("facts_sessions", "facts_events", "facts_lines", "facts_paths"):
        memory.catalog.change(f"DELETE FROM {name}")


def known(home: Path, number: int) -> bool:
    with reading(home) as memory:
        return bool(Facts(memory.catalog).paths_named(f"f{number}.py"))


def test_an_old_memory_gets_its_facts(funes_home: Path, projects: Path) -> None:
    for number in range(3):
        trace(projects, number)
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(DEADLINE_S)
        live.settle()
        assert all(known(funes_home, number) for number in range(3))
    with writing(funes_home) as memory:
        lose_facts(memory)
    assert not known(funes_home, 0)
    with living(funes_home, projects) as live:
        live.index.sweep()
        until(lambda: all(known(funes_home, number) for number in range(3)), what="facts")


def test_steps_end_and_begin_again_after_a_change(memory: Memory) -> None:
    work = FactsWork()
    assert work.step(memory) is None
    memory.catalog.put_session(session("s1"))
    assert work.step(memory) is None, "nothing was written since it was last looked for"
    memory.catalog.bump_generation()
    steps = 0
    while work.step(memory) == 0.0:
        steps += 1
    assert steps
    assert tables.missing(memory.catalog) == []
    lose_facts(memory)
    work.forget()
    assert work.step(memory) == 0.0


def session(session_id: str) -> Session:
    return Session(session_id=session_id, turns=1, chunks=1)
