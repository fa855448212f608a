"""What `funes blame` says of a file, held against who wrote it."""

from pathlib import Path
from typing import Any

from tests.agents.agents import Place, Written
from tests.agents.truth import Author, Line

#: What counts as a claim of fact; `similar` and `mentioned` say of themselves that they are none.
FACTS = ("exact", "moved")


def written(place: Place, author: Author) -> Written:
    """Return where the traces have a call."""
    trace = author.agent.trace_with(place, author.call_id)
    return author.agent.written(trace, author.call_id)


def check(place: Place, file: Path, truth: list[Line], *, moved: bool = False) -> None:
    """Judge each line of a file, and what is said of the turns.

    Where the file has had another name, its lines may also be called moved.
    """
    answer = place.funes_json("blame", str(file))
    claims = facts_by_line(answer)
    authors = {line.author.call_id: line.author for line in truth if line.author}
    ids = {call_id: written(place, author) for call_id, author in authors.items()}
    wrong = [
        f"{number}: {line.text!r} is {claims.get(number)}, not {_named(line, ids)}"
        for number, line in enumerate(truth, start=1)
        if not _is_right(claims.get(number), _allowed(truth, number, ids))
    ]
    assert not wrong, "\n".join(wrong)
    shown = {call_id: one for call_id, one in authors.items() if not _is_hidden(one)}
    _check_turns(answer, {ids[call_id]: author for call_id, author in shown.items()})
    words = {word for word, _ in claims.values()}
    assert words <= ({"exact", "moved"} if moved else {"exact"})


def check_question(place: Place, file: Path, truth: list[Line]) -> None:
    """Judge that the first question which blame names can be had in full."""
    first = place.funes_json("blame", str(file))["turns"][0]
    told = place.funes(*first["ask_get"].split()[1:], "--window", "0")
    assert told.returncode == 0, told.stderr
    assert first["ask"] in told.stdout
    assert first["ask"] in {line.author.prompt for line in truth if line.author}


def facts_by_line(answer: dict[str, Any]) -> dict[int, tuple[str, Written]]:
    """Return the claims of fact: number of the line -> confidence and turn."""
    claims: dict[int, tuple[str, Written]] = {}
    for one in answer["lines"]:
        turn = Written(session_id=one["session_id"], turn_uuid=one["turn_uuid"])
        for number in range(one["start"], one["end"] + 1):
            assert number not in claims, f"line {number} is named twice"
            if one["confidence"] in FACTS:
                claims[number] = one["confidence"], turn
    return claims


def _allowed(truth: list[Line], number: int, ids: dict[str, Written]) -> set[Written | None]:
    """Return whose a line may be: its author's; an empty line also may be its neighbours'."""
    line = truth[number - 1]
    own = _turn(line, ids)
    if line.text.strip():
        return {own, None} if line.author and _is_hidden(line.author) else {own}
    above = next((one for one in reversed(truth[: number - 1]) if one.text.strip()), line)
    below = next((one for one in truth[number:] if one.text.strip()), line)
    near = {_turn(one, ids) for one in (above, below)}
    return {own, None} | near


def _is_hidden(author: Author) -> bool:
    """Tell whether a trace shows only that something was run, not what it wrote."""
    return "python3 -c" in str(author.call.given)


def _turn(line: Line, ids: dict[str, Written]) -> Written | None:
    return ids[line.author.call_id] if line.author else None


def _is_right(claim: tuple[str, Written] | None, allowed: set[Written | None]) -> bool:
    return (claim[1] if claim else None) in allowed


def _named(line: Line, ids: dict[str, Written]) -> str:
    return f"{_turn(line, ids)} ({line.author.prompt})" if line.author else "anyone's"


def _check_turns(answer: dict[str, Any], authors: dict[Written, Author]) -> None:
    """Judge what is told of each turn: the agent, the question and the reason, word for word."""
    for one in answer["turns"]:
        assert one["get"] == f"funes get {one['session_id']} {one['turn_uuid']}"
    turns = {
        Written(session_id=one["session_id"], turn_uuid=one["turn_uuid"]): one
        for one in answer["turns"]
    }
    assert set(authors) <= set(turns)
    for turn, author in authors.items():
        told = turns[turn]
        assert told["harness"] == author.agent.harness
        assert told["ask"] == author.prompt
        assert told["reason"] in (author.text, author.thinking), told["reason"]
