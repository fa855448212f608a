"""Reading with the question: windows, mixing, and when the order stays what it was."""

from collections.abc import Sequence

import numpy as np
import pytest

from funes_ls.indexer.errors import BackendError, FunesError
from funes_ls.retrieval.cross import (
    CROSS_WEIGHT,
    FAILED,
    TOO_SLOW,
    Cross,
    Piece,
    best_window,
    mixed,
)

FUSED = np.array([0.9, 0.8, 0.4])
IDS = ("one", "two", "three")


def pieces_of(text: str) -> list[Piece]:
    """Return the words of a text as its tokens; equal words are equal tokens."""
    found, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        found.append(Piece(token=hash(word), start=start, end=at))
    return found


class Reader:
    """Scores a passage by the number that ends it, and keeps what it was given."""

    name = "reader"

    def __init__(self, error: Exception | None = None) -> None:
        self.read: list[str] = []
        self.error = error

    def pieces(self, text: str) -> Sequence[Piece]:
        return pieces_of(text)

    def score(self, question: str, passage: str) -> float:
        if self.error is not None:
            raise self.error
        self.read.append(passage)
        return float(passage.split()[-1])


TEXTS = ("says 1", "says 2", "says 9")


def test_what_the_model_says_is_mixed_in_over_the_same_range() -> None:
    reader = Reader()
    cross = Cross(lambda: reader)
    found = cross.scores("what", IDS, TEXTS, FUSED)
    near = 0.4 + (np.array([1.0, 2.0, 9.0]) - 1.0) / 8.0 * 0.5
    assert found == pytest.approx((1 - CROSS_WEIGHT) * FUSED + CROSS_WEIGHT * near)
    assert (cross.note, cross.state) == ("", "ran")


@pytest.mark.parametrize("said", [[2.0, 2.0, 2.0], [1.0, float("nan"), 2.0]])
def test_scores_that_tell_nothing_change_nothing(said: list[float]) -> None:
    assert mixed(FUSED, np.array(said)) is FUSED
    assert len(mixed(np.array([]), np.array([]))) == 0


def test_a_passage_is_read_once_also_when_the_pool_grows() -> None:
    reader = Reader()
    cross = Cross(lambda: reader)
    cross.scores("what", IDS[:2], TEXTS[:2], FUSED[:2])
    cross.scores("what", IDS, TEXTS, FUSED)
    assert reader.read == list(TEXTS)


def test_the_order_stands_once_the_time_is_over() -> None:
    times = iter([0.0, 1.0, 2.9, 3.0])
    reader = Reader()
    cross = Cross(lambda: reader, limit_s=3.0, clock=lambda: next(times))
    assert cross.scores("what", IDS, TEXTS, FUSED) is FUSED
    assert (cross.note, cross.state) == (TOO_SLOW, "late")
    assert reader.read == list(TEXTS[:2])
    assert cross.scores("what", IDS, TEXTS, FUSED) is FUSED  # and it is not begun again
    assert reader.read == list(TEXTS[:2])


def test_the_order_stands_when_the_model_fails() -> None:
    cross = Cross(lambda: Reader(RuntimeError("bad shape")))
    assert cross.scores("what", IDS, TEXTS, FUSED) is FUSED
    assert (cross.note, cross.state) == (FAILED, "failed")


def test_a_model_that_is_not_there_is_told() -> None:
    def load() -> Reader:
        raise BackendError("No cross-encoder is installed.", hint="Run it.", kind="no_model")

    cross = Cross(load)
    assert cross.scores("what", IDS, TEXTS, FUSED) is FUSED
    assert cross.note == "Not reranked: No cross-encoder is installed. Run it."


def test_a_question_that_is_withdrawn_ends_the_reading() -> None:
    reader = Reader()
    cross = Cross(lambda: reader, cancelled=lambda: len(reader.read) == 1)
    with pytest.raises(FunesError) as caught:
        cross.scores("what", IDS, TEXTS, FUSED)
    assert caught.value.kind == "cancelled"
    assert reader.read == [TEXTS[0]]


def window(question: str, text: str, tokens: int) -> str:
    return best_window(pieces_of(question), text, pieces_of(text), tokens=tokens)


def test_a_short_text_is_read_whole() -> None:
    assert window("what", "  so  it is ", 3) == "  so  it is "


def test_of_a_long_text_the_part_with_the_question_is_read() -> None:
    words = [f"w{n}" for n in range(300)]
    words[200:202] = ["poller", "dies"]
    cut = window("why poller dies", " ".join(words), 64).split()
    assert len(cut) == 64
    assert {"poller", "dies"} <= set(cut)


def test_a_word_that_stands_everywhere_counts_for_less() -> None:
    words = ["the"] * 300
    words[280] = "poller"
    words[3:5] = ["other", "words"]
    assert "poller" in window("the poller", " ".join(words), 64).split()


def test_of_equal_parts_the_first_is_read() -> None:
    words = [f"w{n}" for n in range(100)]
    assert window("nothing of it", " ".join(words), 64) == " ".join(words[:64])


def test_the_end_of_a_text_is_a_window_too() -> None:
    words = [f"w{n}" for n in range(101)]
    assert window("w100", " ".join(words), 64) == " ".join(words[-64:])
