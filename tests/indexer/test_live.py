"""The live index: what was written is found, and nothing that goes wrong ends it."""

from pathlib import Path

from tests.indexer.living import living, until
from tests.indexer.making import reading
from tests.sessions import append, record, write


def test_a_job_reads_and_embeds_everything(funes_home: Path, projects: Path) -> None:
    for n in range(5):
        write(projects / "p" / f"s{n}.jsonl", [record(f"apple {n}", uuid=f"u{n}")])
    with living(funes_home, projects) as live:
        report = live.index.run(live.job()).result(30)
        assert (report.words.sessions, report.words.new) == (5, 5)
        assert (report.vectors.embedded, report.left, report.stopped) == (5, 0, "")
        assert report.model == "test/small"
        assert sorted(live.found("apple")) == [f"s{n}" for n in range(5)]
    with reading(funes_home) as memory:
        assert memory.state().embedded == 5
        assert memory.turns == 5


def test_a_touched_trace_is_found_by_words_then_has_vectors(
    funes_home: Path, projects: Path
) -> None:
    path = write(projects / "p" / "s.jsonl", [record("first words", uuid="u1")])
    with living(funes_home, projects) as live:
        live.index.run(live.job()).result(30)
        live.embedder.gate.clear()
        append(path, [record("banana bread", uuid="u2")])
        live.index.touch([path])
        until(lambda: live.found("banana") == ["s"], what="words")
        assert live.waiting() == 1
        live.embedder.gate.set()
        until(lambda: any(c.moved and c.moved.rows[0].text == "banana bread" for c in live.changes))
        assert live.waiting() == 0
    assert live.embedder.seen == ["first words", "banana bread"]
