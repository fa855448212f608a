"""Finds lines that were written in another file: moved there since, or the file was renamed."""

from collections.abc import Iterable

from funes_ls.retrieval.blame import Claim, Document, Word, best_state, may_claim
from funes_ls.retrieval.diff import Pairs, pairs
from funes_ls.retrieval.replay import NOBODY, History, Witness, runs

#: So many lines that say something, together, are not there by chance.
_BLOCK = 3
#: Or the other file explains so much of this one: it is this one, by another name.
_MOST_OF_IT = 0.3


def blame_moved(
    document: Document,
    histories: Iterable[History],
    *,
    word: Word = "moved",
    suffix: str = "",
    whole: bool = False,
) -> None:
    """Claim lines that nothing explains yet from the histories of other files, likest first.

    Args:
        document: What is asked about.
        histories: Of other files, or of the same one in other folders.
        word: How sure such claims are: `exact` for the same file.
        suffix: Of the document's name: code in a file of its kind is likelier its origin than the
            same code in a plan or a script.
        whole: Only files that are most of this one count.
    """
    wanted = document.left()
    ranked = [(len(wanted & seen_in(history)), history) for history in histories]

    def likeness(one: tuple[int, History]) -> tuple[bool, int]:
        shared, history = one
        return history.suffix == suffix, shared

    for shared, history in sorted(ranked, key=likeness, reverse=True):
        is_it = shared >= _MOST_OF_IT * len(document.telling)
        if is_it or not whole:
            _search(document, history, word, is_it=is_it)


def seen_in(history: History) -> set[str]:
    """Return the telling keys of all that was ever seen of a file."""
    return set().union(*(one.telling for one in [*history.states, *history.windows]))


def _search(document: Document, history: History, word: Word, *, is_it: bool) -> None:
    used: set[int] = set()
    best, _ = best_state(document, history)
    if best is not None:
        _claim_blocks(document, best, history, used, word, is_it=is_it)
    left = document.left()
    for window in reversed(history.windows):
        if len(left & window.telling) >= (1 if is_it else _BLOCK):
            _claim_blocks(document, window, history, used, word, is_it=is_it)
            left = document.left()


def _claim_blocks(
    document: Document,
    source: Witness,
    history: History,
    used: set[int],
    word: Word,
    *,
    is_it: bool,
) -> None:
    # What is explained equals nothing, so that blocks around it are found as blocks.
    here: list[str | int] = [
        n if done else key
        for n, (key, done) in enumerate(zip(document.keys, document.explained, strict=True))
    ]
    for run in runs(pairs(source.keys, here)):
        if _strong(document, run) < (1 if is_it else _BLOCK):
            continue
        for i, j in run:
            mark = source.marks[i]
            if mark == NOBODY:
                if is_it:
                    document.explain(j, None)
            elif mark not in used and may_claim(document, j, mark, history):
                used.add(mark)
                document.explain(j, Claim(event=history.author(mark), word=word))


def _strong(document: Document, run: Pairs) -> int:
    return sum(not document.weak[j] for _, j in run)
