"""A small program that grows over several questions and sessions, as agents are asked for it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from tests.agents.actions import Action, Edit, Read, Shell, Write, append, calls
from tests.agents.agents import Agent, Place
from tests.agents.kinds import Pi
from tests.agents.truth import Author, Witness
from tests.agents.wires import Reply

FIRST = '''"""Totals the dues of a harbour."""

import csv
import sys


def read_dues(path):
    """Return the rows of a ledger."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def total(rows):
    """Return what is owed."""
    owed = 0
    for row in rows:
        owed += int(row["amount"])
    return owed
'''
_SKIP_EMPTY = (
    "        return list(csv.DictReader(file))\n",
    '        rows = csv.DictReader(file)\n        return [row for row in rows if row["ship"]]\n',
)
_REFUSE = (
    '        owed += int(row["amount"])\n',
    '        amount = int(row["amount"])\n'
    "        if amount < 0:\n"
    '            raise ValueError(f"negative dues of {row}")\n'
    "        owed += amount\n",
)
_BY_SHIP = '''def total(rows):
    """Return what each ship owes."""
    owed = {}
    for row in rows:
        amount = int(row["amount"])
        if amount < 0:
            raise ValueError(f"negative dues of {row}")
        owed[row["ship"]] = owed.get(row["ship"], 0) + amount
    return owed
'''
_MAIN = """

if __name__ == "__main__":
    for ship, dues in sorted(total(read_dues(sys.argv[1])).items()):
        print(ship, dues)
"""
#: What a person puts into the file with an editor of their own.
_BY_HAND = '#: Where the harbour office keeps its ledgers.\nLEDGERS = "/srv/harbour/ledgers"\n'
_OPEN = (
    '    with open(path, newline="") as file:\n',
    '    with open(path, newline="", encoding="utf-8-sig") as file:\n',
)
_LARGEST = '''def largest(owed):
    """Return the ship that owes most."""
    return max(owed, key=owed.__getitem__, default="nobody")


'''
_SORTED = (
    "    for ship, dues in sorted(total(read_dues(sys.argv[1])).items()):\n",
    "    owed = total(read_dues(sys.argv[1]))\n    for ship, dues in sorted(owed.items()):\n",
)
_DUES = (
    "        print(ship, dues)\n",
    '        print(f"{ship:>20} {dues:8}")\n',
)


class Step(Struct, frozen=True, kw_only=True):
    """One answer of the model: what it says, and what it does, made up when its turn is."""

    text: str
    does: Callable[[], Action]
    thinking: str = ""


class Question(Struct, frozen=True, kw_only=True):
    """What a person asks in a session, and all that comes of it.

    Attributes:
        session: Questions of one session go to one agent, which goes on with it.
        denied: The agent may write nothing.
    """

    session: str
    prompt: str
    steps: tuple[Step, ...]
    denied: bool = False


def beginning(file: Path) -> list[Question]:
    """Return a session that writes a program, changes two places, rewrites, and appends."""
    whole = FIRST.partition("def total")
    right = whole[1] + whole[2].replace(*_REFUSE)
    wrong = right.replace("owed = 0", "owed = []")
    return [
        question(
            "first", "Write a program that totals a ledger of harbour dues.", Write(file, FIRST)
        ),
        question(
            "first",
            "Skip rows without a ship, and refuse negative dues.",
            Read(file),
            Edit(file, (_SKIP_EMPTY, _REFUSE)),
        ),
        # The first try fails for its old text; its new text must not count for the second.
        question(
            "first",
            "Total the dues by ship.",
            Edit(file, ((wrong, _BY_SHIP),)),
            Read(file),
            Edit(file, ((right, _BY_SHIP),)),
        ),
        question("first", "Let it run as a program.", append(file, _MAIN)),
    ]


def by_hand(file: Path) -> None:
    """Change the program as a person does, without any agent."""
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("import sys\n", f"import sys\n\n{_BY_HAND}", 1), encoding="utf-8")


def continuation(file: Path) -> list[Question]:
    """Return sessions that change lines of the first, rewrite the file, are denied, and get it."""

    def with_largest() -> Action:
        text = file.read_text(encoding="utf-8").replace(*_SORTED)
        return Write(file, text.replace("if __name__", f"{_LARGEST}if __name__"))

    sed = f"sed -i 's/Totals the dues/Adds up the dues/' {file.name}"
    return [
        question(
            "second",
            "Ledgers come from a spreadsheet; mind the mark at their start.",
            Read(file),
            Edit(file, (_OPEN,)),
            Shell(sed),
        ),
        question("second", "Which ship owes most? Write the file anew.", Read(file), with_largest),
        question("third", "Print the dues in columns.", Edit(file, (_DUES,)), denied=True),
        question("fourth", "Print dues in columns, you may now.", Read(file), Edit(file, (_DUES,))),
    ]


def renaming(file: Path, new: Path) -> list[Question]:
    """Return a question after which the program has another name, and one line more."""
    usage = (
        "    owed = total(read_dues(sys.argv[1]))\n",
        "    owed = total(read_dues(sys.argv[1]))\n    print(largest(owed), 'owes most')\n",
    )
    move = Shell(f"mv {file.name} {new.name}")
    return [
        question(
            "fifth", "Call it dues.py, and name the ship.", move, Read(new), Edit(new, (usage,))
        )
    ]


def question(
    session: str, prompt: str, *does: Action | Callable[[], Action], denied: bool = False
) -> Question:
    """Return a question whose answer does these things one after another, a word before each."""
    steps = [
        Step(
            text=f"Step {number} of: {prompt}",
            thinking=f"Let me think about step {number} of {session}." if number == 1 else "",
            does=one if callable(one) else _always(one),
        )
        for number, one in enumerate(does, start=1)
    ]
    return Question(session=session, prompt=prompt, steps=tuple(steps), denied=denied)


def _always(action: Action) -> Callable[[], Action]:
    return lambda: action


class Stage:
    """Puts questions to agents in a place, and knows afterwards who wrote what."""

    def __init__(self, place: Place) -> None:
        """Begin with an empty project."""
        self.witness = Witness(place.project)
        self._place = place
        self._sessions: dict[str, str] = {}

    def play(self, questions: Sequence[Question], **agents: Agent) -> list[Author]:
        """Put the questions; sessions go to the agents of that name, else to `default`."""
        authors: list[Author] = []
        for question in questions:
            agent = agents.get(question.session) or agents["default"]
            if not (question.denied and isinstance(agent, Pi)):  # it can be denied nothing
                authors += self._ask(agent, question)
        return authors

    def _ask(self, agent: Agent, question: Question) -> list[Author]:
        watch = self.witness.watch(agent, question.prompt)
        replies = [_reply(agent, step) for step in question.steps]
        ran = agent.run(
            self._place,
            question.prompt,
            [*replies, Reply(text=f"Done: {question.prompt}")],
            resume=self._sessions.get(question.session, ""),
            denied=question.denied,
            before=watch,
        )
        assert ran.returncode == 0, ran.output
        trace = agent.trace_with(self._place, watch.authors[0].call_id)
        self._sessions[question.session] = agent.resumable(trace)
        return watch.authors


def _reply(agent: Agent, step: Step) -> Callable[[], Reply]:
    return lambda: Reply(text=step.text, thinking=step.thinking, calls=calls(agent, step.does()))
