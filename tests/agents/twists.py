"""What else happens to files: taken back, removed, copied, changed everywhere, by a script."""

import subprocess
from pathlib import Path

from tests.agents.actions import Edit, Read, Shell, Write
from tests.agents.story import Question, question

UNDO = '''"""Keeps the tide table."""


def high_water(table, day):
    """Return when the water is highest."""
    return max(table[day], key=lambda row: row.height).time


def low_water(table, day):
    """Return when the water is lowest."""
    return min(table[day], key=lambda row: row.height).time
'''
_BAD_IDEA = (
    "    return max(table[day], key=lambda row: row.height).time\n",
    "    return sorted(table[day], key=lambda row: -row.height)[0].time\n",
)
_BETTER_IDEA = (
    "    return min(table[day], key=lambda row: row.height).time\n",
    "    lowest = min(table[day], key=lambda row: row.height)\n    return lowest.time\n",
)
AGAIN = """[pilots]
rotation = "weekly"
call_out_minutes = 45
language = "en"
"""
_TAKEN_OUT = ('rotation = "weekly"\ncall_out_minutes = 45\n', 'rotation = "weekly"\n')
_PUT_BACK = ('rotation = "weekly"\n', 'rotation = "weekly"\ncall_out_minutes = 45\n')
ANEW = '''def berth_fee(length_m, days):
    """Return the fee for lying at a berth."""
    return round(length_m * days * 1.35, 2)
'''
ANEW_SECOND = '''def berth_fee(length_m, days):
    """Return the fee for lying at a berth."""
    return round(length_m * days * 1.35, 2)


def crane_fee(lifts):
    """Return the fee for the use of a crane."""
    return 80 + 12 * lifts
'''
COPIED = '''def knots(metres, seconds):
    """Return a speed in knots."""
    return metres / seconds * 1.943844
'''
EVERYWHERE = '''BERTHS = {"north": 4, "south": 7}


def free(taken_berths):
    """Return how many berths are free."""
    return sum(BERTHS.values()) - len(taken_berths)
'''
SCRIPTED = '''class Buoy:
    """A buoy, and where it swims."""

    def __init__(self, colour, position):
        """Anchor it."""
        self.colour = colour
        self.position = position
'''
WIDE = '# Прилив 🌊 at Kærgård: 3 m\nHÖCHST = "3,40 m"\nniedrigst = "−0,12 m"  # 干潮\n'
_WIDER = ('HÖCHST = "3,40 m"\n', 'HÖCHST = "3,55 m"  # 🌊🌊 after the flood\n')
DOS = b"[quay]\r\nlength_m = 240\r\ndepth_m = 11\r\nlights = true\r\n"
_DEEPER = ("depth_m = 11\n", "depth_m = 12  # dredged in spring\n")
_RENAME = (
    "python3 -c \"import pathlib; p = pathlib.Path('scripted.py');"
    " p.write_text(p.read_text().replace('colour', 'c' + 'olor'))\""
)
_ALL_BERTHS = "sed -i 's/berths/moorings/g; s/BERTHS/MOORINGS/g' everywhere.py"


def writing(folder: Path) -> list[Question]:
    """Return a question after which all files but a person's are there."""
    texts = {
        "undo.py": UNDO,
        "again.toml": AGAIN,
        "anew.py": ANEW,
        "copied.py": COPIED,
        "everywhere.py": EVERYWHERE,
        "scripted.py": SCRIPTED,
        "wide.py": WIDE,
    }
    writes = [Write(folder / name, text) for name, text in texts.items()]
    return [question("one", "Begin all parts of the harbour's program.", *writes)]


def by_hand(folder: Path) -> None:
    """Do what a person does meanwhile: a file with line ends of another system, and a commit."""
    (folder / "quay.ini").write_bytes(DOS)
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for words in (["init", "-q"], ["add", "*.py"], [*who, "commit", "-qm", "All parts"]):
        subprocess.run(["git", *words], cwd=folder, check=True, timeout=30)


def changing(folder: Path) -> list[Question]:
    """Return questions of two sessions after which nothing is as simple as it was."""
    undo, again, anew = folder / "undo.py", folder / "again.toml", folder / "anew.py"
    wide, quay = folder / "wide.py", folder / "quay.ini"
    return [
        question(
            "one",
            "Sort the tides; no, leave that, and name the lowest.",
            Read(undo),
            Edit(undo, (_BAD_IDEA,)),
            Shell("git checkout -q -- undo.py"),
            Read(undo),
            Edit(undo, (_BETTER_IDEA,)),
        ),
        question(
            "one",
            "Take the call-out time away, and copy what knows of knots.",
            Read(again),
            Edit(again, (_TAKEN_OUT,)),
            Write(folder / "typed.py", COPIED),
            Shell("cp copied.py copy.py"),
        ),
        question(
            "two",
            "Pilots need their call-out time. Begin the fees anew.",
            Read(again),
            Edit(again, (_PUT_BACK,)),
            Shell("rm anew.py"),
            Write(anew, ANEW_SECOND),
        ),
        question(
            "two",
            "Say moorings, spell as they do overseas, and dredge the quay.",
            Shell(_ALL_BERTHS),
            Shell(_RENAME),
            Read(quay),
            Edit(quay, (_DEEPER,)),
            Read(wide),
            Edit(wide, (_WIDER,)),
        ),
    ]


def tidied_by_hand(folder: Path) -> None:
    """Do what a person does at the end: indent lines anew, and change a figure."""
    typed = folder / "typed.py"
    text = typed.read_text(encoding="utf-8").replace("    return", "        return")
    typed.write_text(text.replace("1.943844", "1.94384449"), encoding="utf-8")
    scripted = folder / "scripted.py"
    text = scripted.read_text(encoding="utf-8").replace("        self", "\tself")
    scripted.write_text(text, encoding="utf-8")
