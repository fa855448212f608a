"""An index run: order of work, budget, identical texts, failures that stay local."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from funes_ls.indexer.errors import TraceError
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.pipeline import VectorsReport, WordsReport, plan, run_vectors, run_words
from funes_ls.indexer.progress import IndexEvent, ignore_progress
from funes_ls.indexer.traces import TraceSource, Unit, source_for
from tests.sessions import record, tool_result, tool_use, write

CLAUDE = source_for("claude")


class CountingEmbedder:
    """Counts what it is asked to embed; a text's vector depends on its length alone."""

    stamp = "test/counting"
    dim = 8
    max_tokens = 64

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([vector for _, vector in self.encode_iter(texts)])

    def encode_iter(self, texts: Sequence[str]) -> Iterator[tuple[int, np.ndarray]]:
        for position, text in enumerate(texts):
            self.seen.append(text)
            vector = np.zeros(self.dim, dtype=np.float32)
            vector[len(text) % self.dim] = 1.0
            yield position, vector

    def encode_query(self, text: str) -> np.ndarray:
        return self.encode([text])[0]


def index_words(projects: Path, memory: Memory, *, limit: int | None = None) -> WordsReport:
    tasks, report = plan(((CLAUDE, unit) for unit in CLAUDE.units(projects)), memory, limit=limit)
    run_words(tasks, memory, report=report, progress=ignore_progress)
    return report


def embed(memory: Memory, embedder: CountingEmbedder, **more: float) -> VectorsReport:
    report = VectorsReport()
    run_vectors(memory, embedder, report=report, progress=ignore_progress, **more)
    return report


def test_newest_sessions_come_first_and_sub_agents_last(memory: Memory, projects: Path) -> None:
    write(projects / "p" / "old.jsonl", [record("a", uuid="u1")], mtime_s=1_000)
    write(projects / "p" / "new.jsonl", [record("b", uuid="u2")], mtime_s=3_000)
    write(projects / "p" / "agent-x1.jsonl", [record("c", uuid="u3")], mtime_s=9_000)
    tasks, _ = plan(((CLAUDE, unit) for unit in CLAUDE.units(projects)), memory)
    assert [task.unit.path.stem for task in tasks] == ["new", "old", "agent-x1"]


def test_a_limit_takes_the_newest(memory: Memory, projects: Path) -> None:
    for n in range(4):
        write(projects / "p" / f"s{n}.jsonl", [record("a", uuid=f"u{n}")], mtime_s=1_000 + n)
    assert index_words(projects, memory, limit=2).sessions == 2
    assert {s.session_id for s in memory.catalog.sessions()} == {"s2", "s3"}


def test_vectors_come_for_text_then_calls_then_results(memory: Memory, projects: Path) -> None:
    write(
        projects / "p" / "s.jsonl",
        [
            record(tool_use("Bash", {"command": "ls"}, id="t"), uuid="u1", role="assistant"),
            record(tool_result("a file", id="t"), uuid="u2"),
            record("said at last", uuid="u3"),
        ],
    )
    index_words(projects, memory)
    embedder = CountingEmbedder()
    report = embed(memory, embedder)
    assert embedder.seen == [
        "said at last",
        '[tool_use Bash] {"command":"ls"}',
        "[tool_result Bash] a file",
    ]
    assert (report.embedded, report.left) == (3, 0)
    assert memory.state().embedded == 3


def test_identical_texts_are_embedded_once(memory: Memory, projects: Path) -> None:
    write(projects / "p" / "s.jsonl", [record("the same", uuid=f"u{n}") for n in range(5)])
    index_words(projects, memory)
    embedder = CountingEmbedder()
    assert embed(memory, embedder).embedded == 5
    assert embedder.seen == ["the same"]


def test_a_used_up_budget_leaves_the_rest_findable_by_words(memory: Memory, projects: Path) -> None:
    write(projects / "p" / "s.jsonl", [record(f"text {n}", uuid=f"u{n}") for n in range(3)])
    index_words(projects, memory)
    report = embed(memory, CountingEmbedder(), budget_s=0.0)
    assert (report.embedded, report.left) == (0, 3)
    assert embed(memory, CountingEmbedder()).left == 0


def test_nothing_embedded_is_embedded_again(memory: Memory, projects: Path) -> None:
    path = write(projects / "p" / "s.jsonl", [record("one", uuid="u1")])
    index_words(projects, memory)
    embed(memory, CountingEmbedder())
    write(path, [record("one", uuid="u1"), record("two", uuid="u2")])
    index_words(projects, memory)
    embedder = CountingEmbedder()
    embed(memory, embedder)
    assert embedder.seen == ["two"]


def test_progress_counts_up_to_the_total(memory: Memory, projects: Path) -> None:
    for n in range(3):
        write(projects / "p" / f"s{n}.jsonl", [record("a", uuid=f"u{n}")])
    tasks, report = plan(((CLAUDE, unit) for unit in CLAUDE.units(projects)), memory)
    events: list[IndexEvent] = []
    run_words(tasks, memory, report=report, progress=events.append)
    assert [(event.done, event.total) for event in events] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert events[-1].chunks == 3


class FailingSource:
    """Reads nothing: the first session of a root fails, as an unreadable file does."""

    harness = CLAUDE.harness
    roots = CLAUDE.roots
    units = CLAUDE.units

    def read(self, unit: Unit, *, resume: bytes | None = None) -> object:
        if unit.path.stem == "bad":
            raise TraceError("The file cannot be read (Permission denied).")
        return CLAUDE.read(unit, resume=resume)


def test_one_bad_trace_is_counted_and_tried_again(memory: Memory, projects: Path) -> None:
    write(projects / "p" / "bad.jsonl", [record("a", uuid="u1")], mtime_s=9_000)
    write(projects / "p" / "good.jsonl", [record("b", uuid="u2")], mtime_s=1_000)
    source: TraceSource = FailingSource()  # type: ignore[assignment]  # a stand-in for a reader
    tasks, report = plan(((source, unit) for unit in CLAUDE.units(projects)), memory)
    run_words(tasks, memory, report=report, progress=ignore_progress)
    assert (report.sessions, report.failed) == (1, 1)
    assert [one.kind for one in memory.catalog.problems()] == ["unreadable"]
    assert index_words(projects, memory).sessions == 1
    assert memory.catalog.problems() == []
