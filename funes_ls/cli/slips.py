"""Words of a command line that are what is known but for a slip of the keyboard."""

from collections.abc import Iterable, Sequence

from funes_ls.indexer.errors import UsageError

#: Names this short are too like one another to tell what was meant.
_LEAST_CHARS = 4
#: From this length on two slips are still a slip.
_LONG = 8


def refuse_slip(command: str, word: str, options: Sequence[str]) -> None:
    """Refuse a word that is nearly an option: it would be asked for instead of being heeded.

    Raises:
        UsageError: it is; the message names the option.
    """
    if not word.startswith("--"):
        return
    meant = meant_by(word[2:], (option[2:] for option in options if option.startswith("--")))
    if meant:
        raise UsageError(
            f"{word} is no option of `funes {command}`; --{meant} is.",
            hint="If it is a part of the question, put `--` before the question.",
        )


def meant_by(word: str, names: Iterable[str]) -> str:
    """Return the one name that a word is but for a slip, or begins; "" where that is unclear."""
    if len(word) < _LEAST_CHARS or not word.isascii():
        return ""
    least = 2 if len(word) >= _LONG else 1
    near = {
        name
        for name in names
        if len(name) >= _LEAST_CHARS and (name.startswith(word) or _slips(word, name) <= least)
    }
    return near.pop() if len(near) == 1 else ""


def _slips(one: str, other: str) -> int:
    """Return how many letters are too many, missing, wrong, or have changed places.

    Source: the optimal string alignment distance.
    """
    before: list[int] = []
    last = list(range(len(other) + 1))
    for at, char in enumerate(one, 1):
        row = [at]
        for to, wanted in enumerate(other, 1):
            cost = min(last[to] + 1, row[-1] + 1, last[to - 1] + (char != wanted))
            if at > 1 and to > 1 and char == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, before[to - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
