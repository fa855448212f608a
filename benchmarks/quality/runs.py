"""One run over a set: every stage's scores by question, as a table and as a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from benchmarks.quality.abstention import auroc
from benchmarks.quality.measures import Labelled, groups_of, score, table
from benchmarks.quality.stages import Asked, ask
from funes_ls.memories import Memories
from funes_ls.retrieval.answers import RecallAnswer


class Stage(Struct, frozen=True, kw_only=True):
    """What one stage scored.

    Attributes:
        scores: Measures of each answerable question, by its id.
        confidences: How sure each answer was of itself, by question.
        ms: Milliseconds each answer took.
    """

    scores: dict[str, dict[str, float]]
    confidences: dict[str, float]
    ms: dict[str, float]


class Run(Struct, frozen=True, kw_only=True):
    """Everything that was measured, as `--save` writes it."""

    about: str
    stages: dict[str, Stage]


def run(
    about: str,
    questions: Sequence[Labelled],
    memories: Mapping[str, Memories],
    stages: Mapping[str, Mapping[str, Any]],
    *,
    at_us: int | None = None,
) -> Run:
    """Ask every question in every stage, after a first one that does not count."""
    done: dict[str, Stage] = {}
    for name, options in stages.items():
        for memory in memories:
            ask([Labelled(qid="-", query="warm up", memory=memory)], memories, options)
        asked = ask(questions, memories, options, at_us=at_us)
        done[name] = _stage(questions, asked)
    return Run(about=about, stages=done)


def _stage(questions: Sequence[Labelled], asked: Mapping[str, Asked]) -> Stage:
    answerable = [question for question in questions if question.gold]
    return Stage(
        scores={one.qid: score(asked[one.qid].found, one.gold) for one in answerable},
        confidences={qid: confidence_of(asked[qid].answer) for qid in asked},
        ms={qid: round(asked[qid].ms, 2) for qid in asked},
    )


def confidence_of(answer: RecallAnswer) -> float:
    """Return how sure an answer is of itself."""
    return answer.confidence if answer.confidence is not None else 0.0


def report(found: Run, questions: Sequence[Labelled]) -> str:
    """Return a run as Markdown: stages side by side, then the last stage by style and kind."""
    stages = {name: list(one.scores.values()) for name, one in found.stages.items()}
    parts = [table(stages, first="stage")]
    last = list(found.stages.values())[-1]
    parts.append(table(groups_of(questions, last.scores)))
    parts.append(_times(found))
    parts.append(told_apart(last, questions))
    return "\n\n".join(part for part in parts if part)


def _times(found: Run) -> str:
    lines = ["| stage | p50 ms | p95 ms |", "|---|---|---|"]
    for name, stage in found.stages.items():
        p50, p95 = np.quantile(list(stage.ms.values()), [0.5, 0.95])
        lines.append(f"| {name} | {p50:.1f} | {p95:.1f} |")
    return "\n".join(lines)


def told_apart(stage: Stage, questions: Sequence[Labelled]) -> str:
    """Say how well confidence tells questions with an answer from those without, "" if all have."""
    answered = [stage.confidences[one.qid] for one in questions if one.gold]
    unanswered = [stage.confidences[one.qid] for one in questions if not one.gold]
    if not answered or not unanswered:
        return ""
    return (
        f"Told apart by confidence: AUROC {auroc(answered, unanswered):.3f} "
        f"({len(answered)} with an answer, {len(unanswered)} without)."
    )


def save(found: Run, path: Path) -> None:
    """Write a run, so that another can be compared with it."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found)))


def load(path: Path) -> Run:
    """Return a run that was saved."""
    return msgspec.json.decode(path.read_bytes(), type=Run)
