"""What a diff asks: its files, the names on its changed lines, and what its author wrote of it."""

import re
from collections.abc import Iterator

from msgspec import Struct

from funes_ls.retrieval.artefact_names import Weights, file_words, names_in

#: A name on lines of one side only is what the change is about.
CHANGED, KEPT, CONTEXT, HUNK, FILE = 1.0, 0.5, 0.15, 0.6, 0.8
_HEAD = re.compile(r'diff --git "?a/.+? "?b/(?P<to>.+?)"?$')
_PATH = re.compile(r'(?P<side>---|\+\+\+) "?(?:[abciow]/)?(?P<path>[^\t\n"]+)"?(?:\t.*)?$')
_RENAME = re.compile(r"(?:rename|copy) from (?P<path>.+)$")
_HUNK = re.compile(
    r"@@+ (?:-(?P<old>\d+)(?:,(?P<olds>\d+))? )+\+\d+(?:,(?P<news>\d+))? @@+ ?(?P<where>.*)$"
)
_BINARY = re.compile(r"Binary files .* differ$|GIT binary patch$")
_HEADERS = re.compile(
    r"(?:commit|Author|AuthorDate|Commit|CommitDate|Date|From|To|Cc|Message-Id|In-Reply-To|Index"
    r"|index|mode|new|deleted|old|similarity|dissimilarity|rename|copy|Merge|literal|delta)\b"
)
_SUBJECT = re.compile(r"Subject: *(?:\[PATCH[^\]]*\] *)?")
_STAT = re.compile(r" .+ \| +(?:\d+|Bin)|.* \d+ files? changed|---$|===+$|-- ?$|[\d.]+(?:\.\w+)*$")
#: What tools write: nobody talks of its lines.
_GENERATED = re.compile(
    r"(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml|npm-shrinkwrap\.json|go\.sum)$"
    r"|\.(?:lock|map|snap|svg|ipynb|min\.js|min\.css|csv)$"
)


class DiffParts(Struct, frozen=True, kw_only=True):
    """A diff taken apart.

    Attributes:
        message: What stands before its files, such as a commit's message.
        files: Paths on either side, each once, in order.
        lines: Added and removed lines of files that people write.
        found: Whether it has the form of a diff at all.
    """

    message: str
    files: tuple[str, ...]
    lines: tuple[str, ...]
    weights: Weights
    found: bool


class _Sides:
    """Names and lines of a diff's two sides, gathered line by line."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.message: list[str] = []
        self.lines: list[str] = []
        self.names: dict[str, dict[str, int]] = {"+": {}, "-": {}, " ": {}, "@": {}}
        self.found = False
        self.generated = self.in_hunks = False

    def name_file(self, path: str) -> None:
        self.found = True
        self.in_hunks = False
        if path and path != "/dev/null":
            self.files[path] = None
            self.generated = _GENERATED.search(path) is not None

    def count(self, side: str, text: str) -> None:
        if self.generated:
            return
        names = self.names[side]
        for name in names_in(text):
            names[name] = names.get(name, 0) + 1
        if side in "+-":
            self.lines.append(text)


def parts_of_diff(text: str) -> DiffParts:
    """Take a diff apart, of git or of `diff -u`, with or without a commit's message before it."""
    sides = _Sides()
    left = 0  # lines of the hunk under way
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if hunk := _HUNK.match(line):
            sides.found = sides.in_hunks = True
            left = _size(hunk["olds"]) + _size(hunk["news"])
            sides.count("@", hunk["where"])
        elif left > 0 and line[:1] in ("+", "-", " ", ""):
            left -= 2 if line[:1] in (" ", "") else 1
            sides.count(line[:1] or " ", line[1:])
        elif not line.startswith("\\"):
            left = 0
            _outside(line, sides)
    return DiffParts(
        message="\n".join(sides.message).strip(),
        files=tuple(sides.files),
        lines=tuple(sides.lines),
        weights=_weighed(sides),
        found=sides.found,
    )


def _size(count: str | None) -> int:
    return min(int(count[:9]), 1_000_000) if count else 1


def _outside(line: str, sides: _Sides) -> None:
    """Take what stands between hunks: names of files, and the words of an author."""
    if head := _HEAD.match(line) or _RENAME.match(line) or _PATH.match(line):
        path = head["to"] if "to" in head.groupdict() else head["path"]
        sides.name_file(path.strip())
    elif _BINARY.match(line):
        sides.found = True
    elif subject := _SUBJECT.match(line):
        sides.message.append(line[subject.end() :])
    elif _HEADERS.match(line) or _STAT.match(line):
        return
    elif sides.in_hunks and line[:1] in ("+", "-"):  # the hunk's head counted wrongly
        sides.count(line[0], line[1:])
    elif not sides.files:
        sides.message.append(line.strip())


def _weighed(sides: _Sides) -> Weights:
    weights = Weights()
    added, removed = sides.names["+"], sides.names["-"]
    for side, other in ((added, removed), (removed, added)):
        for name, count in side.items():
            weights.add([name] * count, CHANGED if name not in other else KEPT)
    weights.add(sides.names["@"], HUNK)
    weights.add(sides.names[" "], CONTEXT)
    weights.add((file_words(path) for path in sides.files), FILE)
    return weights


def diff_pieces(text: str) -> Iterator[str]:
    """Yield a diff file by file, what stands before the first one first."""
    start = 0
    for found in re.finditer(r"^diff --git |^--- [^\n]*\n\+\+\+ ", text, re.MULTILINE):
        if found[0].startswith("---") and "diff --git " in text[start : start + 11]:
            continue  # the header of the piece under way
        yield text[start : found.start()]
        start = found.start()
    yield text[start:]
