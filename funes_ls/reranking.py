"""Which reranker a question gets, and what was measured of it.

`auto` means comparing word by word, and the cross-encoder only where an evaluation on this memory
says that it helps: one that is kept in `reranking.json` beside the memory, of this memory's model
and this very cross-encoder. `python -m benchmarks.quality --questions FILE --settle` writes it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from funes_ls.indexer.memory import Memory
from funes_ls.indexer.settings import Settings
from funes_ls.memories import Memories
from funes_ls.models.cross_encoder import installed_rerankers
from funes_ls.retrieval.answers import AUTO, CROSS, IsCancelled, RecallRequest

if TYPE_CHECKING:
    from funes_ls.retrieval.rerank import Reranker

EVALUATION = "reranking.json"
#: An evaluation of fewer questions says nothing.
LEAST_QUESTIONS = 30


class Evaluation(Struct, frozen=True, kw_only=True):
    """What reading with the question was measured to change, by paired questions.

    Attributes:
        stamp: Model of the memory's vectors.
        graph_sha256: Of the cross-encoder.
        questions: How many were asked.
        gain: Mean difference in MRR.
        low: Lower end of its 95 % interval.
    """

    stamp: str
    reranker: str
    graph_sha256: str
    questions: int
    gain: float
    low: float

    @property
    def helps(self) -> bool:
        """Return whether it is better, and not by chance."""
        return self.questions >= LEAST_QUESTIONS and self.low > 0.0


def reranker_of(
    request: RecallRequest, memory: Memory, memories: Memories, cancelled: IsCancelled
) -> "Reranker | None":
    """Return what reads the best passages of an answer; None where the request's own will do."""
    wanted = request.rerank
    if wanted == AUTO:
        wanted = settled(memories.settings, memory.dataset.stamp if memory.dataset else "")
    if wanted != CROSS:
        return None
    from funes_ls.retrieval.cross import Cross

    return Cross(memories.pair_model, cancelled=cancelled)


def settled(settings: Settings, stamp: str) -> str:
    """Return what `auto` means for a memory of a model: `cross`, or "" for nothing."""
    found = read_evaluation(settings.home)
    if found is None or not found.helps or found.stamp != stamp:
        return ""
    there = installed_rerankers(settings.models_dir)[:1]
    return CROSS if there and there[0].graph_sha256 == found.graph_sha256 else ""


def read_evaluation(home: Path) -> Evaluation | None:
    """Return what was measured, None where nothing was."""
    try:
        return msgspec.json.decode((home / EVALUATION).read_bytes(), type=Evaluation)
    except (OSError, msgspec.MsgspecError):
        return None


def keep_evaluation(home: Path, found: Evaluation) -> None:
    """Keep what was measured, in place of what was before."""
    encoded = msgspec.json.format(msgspec.json.encode(found))
    (home / EVALUATION).write_bytes(encoded + b"\n")
