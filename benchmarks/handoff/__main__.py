"""What is left of a session after its context was cut: in the summary, in a handoff, by recall.

    python -m benchmarks.handoff                   the sample sessions that hold a summary
    python -m benchmarks.handoff --agent claude    and what an agent answers with each
    python -m benchmarks.handoff --findings FILE   others, in the memory of $FUNES_HOME

A finding is a question about what was said before the cut, and the facts that an answer must hold.
It survives in a summary that holds them all, and is recalled by a passage of the session, not the
summary itself, that does. Tokens are what stands in the context: the summary once and for all, the
passages for each question.

With an agent (`claude`, `codex` or `pi`, installed and logged in) each question is asked three
times: with the summary, with a handoff that the agent has written of everything before the cut, and
with what recall returns. It counts when the answer holds all facts. A line of FILE has `question`,
`facts`, `session` (the start of its id) and `summary`.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.quality.label import known_as
from benchmarks.quality.measures import squeezed
from benchmarks.quality.sample_memory import ASKED_AT_US, make_memory, model_dir, scripts
from funes_ls import render, service
from funes_ls.agents.child import run as run_agent
from funes_ls.agents.registry import AGENTS
from funes_ls.indexer.settings import Settings, load_settings
from funes_ls.mcp.fence import tokens_of
from funes_ls.memories import KeptOpen, Memories
from funes_ls.protocol import RecallParams
from funes_ls.retrieval.answers import Hit, RecallAnswer

FINDINGS = Path(__file__).parent / "findings.jsonl"
CUTS = (1, 3, 8)
_AGENT_LIMIT_S = 300.0
_HANDOFF = (
    "Write a handoff of this work for a colleague who goes on with it and has not seen it: what "
    "was decided and why, what was rejected, what was measured, names, numbers, open ends. At most "
    "400 words.\n\n"
)
_ASK = "Answer in one sentence, from this text alone.\n\n{context}\n\nQuestion: {question}"


class Finding(Struct, frozen=True, kw_only=True):
    """Something that was found out before a cut.

    Attributes:
        session: What its session's id is, or ends or begins with.
        facts: What an answer holds, word for word.
        summary: What was left in the context after the cut.
    """

    question: str
    facts: tuple[str, ...]
    session: str
    summary: str


class Way(Struct, kw_only=True):
    """One way to know of findings: how many it gives, and the tokens it costs a question."""

    found: int = 0
    tokens: float = 0.0


def main() -> None:
    """Measure and print."""
    args = _arguments()
    with tempfile.TemporaryDirectory(prefix="funes-handoff-") as folder:
        settings, findings = _what(args, Path(folder))
        memories = KeptOpen(settings)
        try:
            rows = measured(findings, memories)
            if args.agent:
                rows |= with_agent(findings, memories, asker(args.agent, os.environ))
        finally:
            memories.close()
    print(table(rows, len(findings)))


def measured(findings: Sequence[Finding], memories: Memories) -> dict[str, Way]:
    """Return how many findings the summaries hold and recall returns."""
    rows = {"summary": Way(), **{f"recall, first {cut}": Way() for cut in CUTS}}
    for finding in findings:
        rows["summary"].found += holds(finding.summary, finding.facts)
        rows["summary"].tokens += tokens_of(finding.summary)
        answer = recalled(finding, memories)
        for cut in CUTS:
            way, hits = rows[f"recall, first {cut}"], answer.hits[:cut]
            way.found += any(_answers(hit, finding) for hit in hits)
            way.tokens += tokens_of(_context(answer, hits))
    return rows


def recalled(finding: Finding, memories: Memories) -> RecallAnswer:
    """Return what recall answers, without what repeats the summary."""
    answer = service.recall(
        RecallParams(query=finding.question, k=max(CUTS) + 2, neighbors=0), memories
    )
    start = squeezed(finding.summary)[:80]
    hits = tuple(hit for hit in answer.hits if start not in squeezed(hit.text))
    return replace(answer, hits=hits)


def _context(answer: RecallAnswer, hits: tuple[Hit, ...]) -> str:
    return render.recall_text(replace(answer, hits=hits))


def _answers(hit: Hit, finding: Finding) -> bool:
    sessions = (hit.session_id, hit.inner_id, *hit.also_in)
    return any(_is(one, finding.session) for one in sessions) and holds(hit.text, finding.facts)


def _is(session_id: str, name: str) -> bool:
    return bool(session_id) and (session_id.startswith(name) or session_id.endswith(name))


def holds(text: str, facts: Sequence[str]) -> bool:
    """Tell whether a text holds all facts, whatever their case and white space."""
    there = squeezed(text).casefold()
    return all(squeezed(fact).casefold() in there for fact in facts)


def with_agent(
    findings: Sequence[Finding], memories: Memories, ask: Callable[[str], str]
) -> dict[str, Way]:
    """Return how many findings an agent tells from the summary, a handoff and what is recalled."""
    rows = {f"an agent, with {one}": Way() for one in ("the summary", "a handoff", "recall")}
    handoffs: dict[str, str] = {}
    for finding in findings:
        if finding.session not in handoffs:
            handoffs[finding.session] = ask(_HANDOFF + before_the_cut(finding, memories))
        answer = recalled(finding, memories)
        contexts = (
            finding.summary,
            handoffs[finding.session],
            _context(answer, answer.hits[: max(CUTS)]),
        )
        for way, context in zip(rows.values(), contexts, strict=True):
            told = ask(_ASK.format(context=context, question=finding.question))
            way.found += holds(told, finding.facts)
            way.tokens += tokens_of(context)
    return rows


def before_the_cut(finding: Finding, memories: Memories) -> str:
    """Return what was said and done in a session before the summary."""
    with memories.reading("", whole=True) as memory:
        sessions = memory.catalog.sessions()
        name = next(one.session_id for one in sessions if _is(one.session_id, finding.session))
        rows = sorted(
            memory.session_rows(name), key=lambda row: (row.seq, row.block_idx, row.split_idx)
        )
    start = squeezed(finding.summary)[:80]
    end = next((n for n, row in enumerate(rows) if start in squeezed(row.text)), len(rows))
    return "\n\n".join(f"{row.role}: {row.text}" for row in rows[:end])


def asker(name: str, env: Mapping[str, str]) -> Callable[[str], str]:
    """Return what asks an agent one thing."""
    agent = AGENTS[name]

    def ask(prompt: str) -> str:
        parts: list[str] = []
        ended = run_agent(
            agent,
            prompt,
            env=env,
            on_text=parts.append,
            cancelled=lambda: False,
            limit_s=_AGENT_LIMIT_S,
        )
        if ended.why != "done":
            sys.exit(f"{name} did not answer: {ended.reason or ended.why}")
        return "".join(parts)

    return ask


def table(rows: Mapping[str, Way], count: int) -> str:
    """Return the ways as a Markdown table."""
    lines = ["| way | findings | share | tokens a question |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {way.found} of {count} | {way.found / count:.2f} | {way.tokens / count:.0f} |"
        for name, way in rows.items()
    ]
    return "\n".join(lines)


def load_findings(path: Path = FINDINGS) -> list[Finding]:
    """Return the findings of a file; of the shipped one, with the summaries of its scripts."""
    known = {script.name: script for script in scripts()} if path == FINDINGS else {}
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        raw: dict[str, Any] = json.loads(line)
        session, summary = raw["session"], raw.get("summary", "")
        if known:
            steps = known[raw["cut"]].steps
            summary = next(
                step.text for step in steps if step.kind == "compact" or "[Summary" in step.text
            )
            session = known_as(known[session])
        found.append(
            Finding(
                question=raw["question"],
                facts=tuple(raw["facts"]),
                session=session,
                summary=summary,
            )
        )
    return found


def _what(args: argparse.Namespace, folder: Path) -> tuple[Settings, list[Finding]]:
    if args.findings:
        settings, _ = load_settings(os.environ)
        return settings, load_findings(args.findings)
    model = args.model or model_dir(Path.home() / ".cache" / "funes-tests" / "models")
    service.now_us = lambda: ASKED_AT_US
    return make_memory(folder, model=model), load_findings()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.handoff",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--findings", type=Path, help="findings in $FUNES_HOME's memory")
    parser.add_argument("--agent", choices=sorted(AGENTS), help="ask it, too")
    parser.add_argument("--model", type=Path, help="the model's directory")
    return parser.parse_args()


if __name__ == "__main__":
    main()
