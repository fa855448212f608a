"""Finds lines that were written in another file: moved there since, or the file was renamed."""

from collections.abc import Iterable, Sequence

from funes_ls.retrieval.blame import Claim, Document, best_state
from funes_ls.retrieval.diff import Pairs, pairs
from funes_ls.retrieval.replay import NOBODY, History, Witness, runs

#: So many lines that say something, together, are not there by chance.
_BLOCK = 3
#: Or the other file explains so much of this one: it is this one, by another name.
_MOST_OF_IT = 0.3


def blame_moved(document: Document, histories: Iterable[History]) -> None:
    """Claim lines that nothing explains yet from the histories of other files, likest first."""
    ranked = [(*best_state(document, history)[::-1], history) for history in histories]
    for _, best, history in sorted(ranked, key=lambda one: -one[0]):
        used: set[int] = set()
        if best is not None:
            _claim_blocks(document, best, history, used)
        left = document.left()
        for window in reversed(history.windows):
            if len(left & window.telling) >= _BLOCK:
                _claim_blocks(document, window, history, used)
                left = document.left()


def _claim_blocks(document: Document, source: Witness, history: History, used: set[int]) -> None:
    # What is explained equals nothing, so that blocks around it are found as blocks.
    here: list[str | int] = [
        n if done else key
        for n, (key, done) in enumerate(zip(document.keys, document.explained, strict=True))
    ]
    found = runs(pairs(source.keys, here))
    is_it = source.whole and sum(_strong(document, run) for run in found) >= _MOST_OF_IT * max(
        document.weak.count(False), 1
    )
    for run in found:
        if _strong(document, run) < (1 if is_it else _BLOCK):
            continue
        for i, j in run:
            mark = source.marks[i]
            if mark == NOBODY:
                if is_it:
                    document.explain(j, None)
            elif mark not in used and document.allows(j, history.author(mark)):
                used.add(mark)
                document.explain(j, Claim(event=history.author(mark), word="moved"))


def _strong(document: Document, run: Pairs) -> int:
    return sum(not document.weak[j] for _, j in run)


def wanted_hashes(document: Document, hashes: Sequence[int]) -> list[int]:
    """Return the hashes of lines that say something and that nothing explains yet."""
    return [
        number
        for number, weak, done in zip(hashes, document.weak, document.explained, strict=True)
        if not (weak or done)
    ]
