"""Who wrote which line, as seen from outside: the files are looked at between any two calls."""

import difflib
import json
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tests.agents.agents import Agent
from tests.agents.scripted_model import ModelLog
from tests.agents.wires import Call


class Author(Struct, frozen=True, kw_only=True):
    """The call that wrote a line, and what was said around it."""

    agent: Agent
    prompt: str
    call: Call
    call_id: str
    text: str
    thinking: str


class Line(Struct, frozen=True):
    """A line of a file and its author; None is a person."""

    text: str
    author: Author | None


class Witness:
    """Looks at the files of a folder and keeps the author of each of their lines."""

    def __init__(self, folder: Path) -> None:
        """Begin with a folder that is empty."""
        self.files: dict[Path, list[Line]] = {}
        self._folder = folder
        self._history: dict[Path, list[list[Line]]] = {}
        assert not self._texts()

    def watch(self, agent: Agent, prompt: str) -> "Watch":
        """Return what looks on during one question to an agent."""
        return Watch(self, agent, prompt)

    def look(self, authors: Sequence[Author] | None) -> None:
        """Take in what has changed since the last look; one of some calls did it, or a person."""
        before, self.files = self.files, {}
        for path, texts in self._texts().items():
            known = before[path] if path in before else self._origin(before, path, texts)
            if path not in self._history and _is_shown(texts, authors):
                known = []  # typed again, not copied
            if not _is_shown(_added(known, texts), authors):
                past = reversed(self._history.get(path, []))  # it may be again as it was
                known = next((old for old in past if _texts_of(old) == texts), known)
            self.files[path] = _carried(known, texts, authors)
            self._history.setdefault(path, []).append(self.files[path])

    def _origin(self, before: dict[Path, list[Line]], path: Path, texts: list[str]) -> list[Line]:
        """Return the lines that a new file begins with: its own before it was removed, a copy's."""
        if path in self._history:
            return self._history[path][-1]
        return next((old for old in before.values() if _texts_of(old) == texts), [])

    def _texts(self) -> dict[Path, list[str]]:
        found = [path for path in sorted(self._folder.iterdir()) if path.is_file()]
        return {path: path.read_text(encoding="utf-8").splitlines() for path in found}


class Watch:
    """Looks on during one question: a call's work is done when the model is asked again."""

    def __init__(self, witness: Witness, agent: Agent, prompt: str) -> None:
        """Begin with what the witness saw last."""
        self.authors: list[Author] = []
        self._witness = witness
        self._agent = agent
        self._prompt = prompt
        self._seen = 0

    def __call__(self, log: ModelLog) -> None:
        """Look at what the replies since the last time have done."""
        new = [
            Author(
                agent=self._agent,
                prompt=self._prompt,
                call=call,
                call_id=call_id,
                text=said.reply.text,
                thinking=said.reply.thinking,
            )
            for said in log.said[self._seen :]
            for call, call_id in zip(said.reply.calls, said.call_ids, strict=True)
        ]
        self._seen = len(log.said)
        self.authors += new
        self._witness.look(new)


def _texts_of(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines]


def _is_shown(texts: Sequence[str], authors: Sequence[Author] | None) -> bool:
    """Tell whether a call holds lines in its input."""
    return any(_shows(author.call, texts) for author in authors or ())


def _added(known: Sequence[Line], texts: Sequence[str]) -> list[str]:
    """Return the lines that were not there."""
    return [text for text in texts if text not in _texts_of(known)]


def _carried(known: list[Line], texts: list[str], authors: Sequence[Author] | None) -> list[Line]:
    """Return lines with their authors: those that stayed keep theirs.

    A person who only moves what is in a line to and fro leaves it its author.
    """
    old, new = _texts_of(known), texts
    if authors is None:
        old, new = [one.strip() for one in old], [one.strip() for one in new]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    lines: list[Line] = []
    for tag, from_, to, begin, end in matcher.get_opcodes():
        if tag == "equal":
            stayed = zip(known[from_:to], texts[begin:end], strict=True)
            lines += [Line(text, one.author) for one, text in stayed]
        else:
            lines += [Line(text, _author(text, authors)) for text in texts[begin:end]]
    return lines


def _author(text: str, authors: Sequence[Author] | None) -> Author | None:
    """Return the only call that can have written a line."""
    if authors is None:
        return None
    if len(authors) > 1:
        authors = [one for one in authors if _shows(one.call, [text])]
    assert len(authors) == 1, f"{len(authors)} calls may have written {text!r}"
    return authors[0]


def _shows(call: Call, texts: Sequence[str]) -> bool:
    """Tell whether the input of a call holds lines."""
    given = json.dumps(call.given, ensure_ascii=False)
    return all(json.dumps(text.strip(), ensure_ascii=False)[1:-1] in given for text in texts)
