"""How well a score tells questions with an answer from those without.

Besides the shipped questions that nothing answers: the memory is made twice, each time without
half of the projects, and asked all questions. Those about the projects left out have no answer.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from benchmarks.quality.measures import Labelled
from benchmarks.quality.sample_memory import make_memory, scripts
from funes_ls.indexer.settings import Settings


def auroc(answered: Sequence[float], unanswered: Sequence[float]) -> float:
    """Return how often a question with an answer scores above one without; ties count half."""
    with_, without = np.asarray(answered)[:, None], np.asarray(unanswered)[None, :]
    return float(((with_ > without) + 0.5 * (with_ == without)).mean())


def halves(
    questions: Sequence[Labelled], folder: Path, model: Path | None
) -> tuple[dict[str, Settings], list[Labelled]]:
    """Return two memories, each of half the projects, and what to ask both of them.

    A question about a project that its memory lacks has lost its gold.
    """
    project_of = {script.name: script.head["project"] for script in scripts()}
    projects = sorted(set(project_of.values()))
    homes: dict[str, Settings] = {}
    asked: list[Labelled] = []
    for name, left_out in (("even", projects[1::2]), ("odd", projects[::2])):
        homes[name] = make_memory(folder / name, model=model, without=left_out)
        for one in questions:
            lacks = project_of.get(one.session) in left_out
            asked.append(
                replace(
                    one,
                    qid=f"{name}-{one.qid}",
                    memory=name,
                    gold=() if lacks else one.gold,
                )
            )
    return homes, asked
