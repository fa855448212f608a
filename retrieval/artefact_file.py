"""What a file asks: the names it defines before those it uses, and what it says of itself."""

import re

from msgspec import Struct

from funes_ls.retrieval.artefact_names import Weights, file_words, names_in

DEFINED, HEADING, USED, FILE = 1.0, 0.8, 0.4, 1.2
#: Lines at the top that may say what a file is for.
_TOP_LINES = 12
_DEFINITION = re.compile(
    r"^\s*(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|final"
    r"|abstract|async|unsafe|extern|override|open|sealed|data|inline|virtual|const|declare)\s+)*"
    r"(?:def|class|fn|func|function\*?|struct|enum|trait|impl|interface|type|mod|module|namespace"
    r"|record|object|protocol|macro_rules!|const|let|var|static|fun|sub|proc)\s+"
    r"(?:\([^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$]{2,})"
)
_HEADING = re.compile(r"^(?:#{1,6} +\S|[=-]{2,} .+ [=-]{2,}$)")
_COMMENT = re.compile(r"^\s*(?:#|//|/\*+|\*|--|;|<!--|%|\"\"\"|''')+!?\s*(?P<said>\w.*)$")


class FileParts(Struct, frozen=True, kw_only=True):
    """A file taken apart: what it says of itself, and the lines that define names."""

    about: tuple[str, ...]
    definitions: tuple[str, ...]
    weights: Weights


def parts_of_file(path: str, text: str) -> FileParts:
    """Take a file apart, source or prose."""
    weights = Weights()
    weights.add([file_words(path)] if path else [], FILE)
    about: list[str] = []
    definitions: list[str] = []
    for place, line in enumerate(text.splitlines()):
        line = line[:500]
        weights.add(names_in(line), USED)
        if found := _DEFINITION.match(line):
            weights.add(names_in(found["name"]), DEFINED)
            if line[:1].strip() or len(line) - len(line.lstrip()) <= 4:
                definitions.append(line.strip())
        elif _HEADING.match(line):
            weights.add(names_in(line), HEADING)
            about.append(line.strip("#=- "))
        elif place < _TOP_LINES and (said := _COMMENT.match(line)):
            about.append(said["said"].strip())
    return FileParts(about=tuple(about), definitions=tuple(definitions), weights=weights)
