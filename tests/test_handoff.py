"""What survives a cut: the benchmark counts what it says it counts."""

from collections.abc import Iterator

import pytest

from benchmarks.handoff.__main__ import before_the_cut, holds, load_findings, measured, with_agent
from benchmarks.quality.sample_memory import make_memory
from funes_ls.memories import KeptOpen


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptOpen]:
    made = KeptOpen(make_memory(tmp_path_factory.mktemp("handoff") / "home", model=None))
    yield made
    made.close()


def test_every_finding_was_there_before_the_cut(memories: KeptOpen) -> None:
    for finding in load_findings():
        before = before_the_cut(finding, memories)
        assert holds(before, finding.facts), finding.question
        assert finding.summary not in before


def test_recall_gives_more_than_a_summary_and_fewer_tokens_than_everything(
    memories: KeptOpen,
) -> None:
    findings = load_findings()
    rows = measured(findings, memories)
    assert rows["summary"].found == 14
    by_cut = [rows[f"recall, first {cut}"].found for cut in (1, 3, 8)]
    assert by_cut == sorted(by_cut)
    assert by_cut[-1] > rows["summary"].found
    assert rows["recall, first 1"].tokens < rows["recall, first 3"].tokens


def test_an_agent_is_asked_with_each_of_the_three(memories: KeptOpen) -> None:
    prompts: list[str] = []

    def echo(prompt: str) -> str:
        prompts.append(prompt)
        return prompt if prompt.startswith("Answer") else "a handoff that says nothing"

    findings = load_findings()[:3]
    rows = with_agent(findings, memories, echo)
    assert len(prompts) == 1 + 3 * len(findings)  # one handoff for the one session
    found = {name.removeprefix("an agent, with "): way.found for name, way in rows.items()}
    assert (found["the summary"], found["a handoff"]) == (2, 0)
    assert found["recall"] >= 2


def test_facts_are_compared_whatever_their_case_and_white_space() -> None:
    assert holds("The Pin is GPIO\n 17.", ["gpio 17"])
    assert not holds("GPIO 17", ["GPIO 17", "50 Hz"])
