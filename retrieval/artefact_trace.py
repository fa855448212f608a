"""What a stack trace, a compiler's or a test's output, or a log of errors asks.

One set of patterns for all languages: a line is a *message* (it says what went wrong), a *frame*
(it says where), or neither. Numbers of lines, addresses, times and ids differ from run to run and
are left out.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from funes_ls.retrieval.artefact_names import Weights, file_words, names_in

MESSAGE, QUOTED, CODE, FRAME, FILE, SOURCE, OTHER, FOREIGN = 1.0, 1.4, 1.4, 0.7, 0.7, 0.4, 0.2, 0.1
#: Messages kept whole, the last and the first ones; a log may hold thousands.
MOST_MESSAGES = 12
_LINE_CHARS = 300
#: Stands for a path that is taken out of a line, with the numbers behind it.
_GONE = "\0"
_PLACE_GONE = re.compile(r"\0(?:[:(]\d+(?:[:,]\d+)?\)?)?:?")

_PATH = r"(?:[A-Za-z]:)?[^\s:()\"'<>|,]*[^\s:()\"'<>|,/\\]\.[A-Za-z][A-Za-z0-9+]{0,6}"
_PLACES = tuple(
    re.compile(pattern)
    for pattern in (
        # Python; a C# or a gdb frame
        r'File "(?P<file>[^"]+)", line \d+(?:, in (?P<name>\S+))?',
        r"^\s*at (?P<name>[\w.`<>\[\], ]+)\(.*\) in (?P<file>.+):line \d+",
        r"^\s*#\d+ +(?:0x[0-9a-f]+ +(?:in +)?)?(?P<name>[^\s(]+).*?(?:at |\) |\s)"
        rf"(?P<file>{_PATH}):\d+",
        # JavaScript, with and without a name
        r"^\s*at (?:async )?(?:new )?(?P<name>[^\s(]+)(?: \[as [^\]]+\])? "
        r"\((?P<file>[^()]+?):\d+:\d+\)",
        r"^\s*at (?:file://)?(?P<file>[^\s()]+?):\d+:\d+$",
        # Java, Kotlin, Scala
        r"^\s*at (?:[\w.@-]+/)?(?P<name>[\w.$<>]+)\((?P<file>[\w$]+\.\w+)(?::\d+)?\)",
        # Rust: a compiler's arrow, a backtrace's line
        rf"^\s*(?:-->|at|:::) (?P<file>{_PATH}):\d+(?::\d+)?",
        # Ruby
        rf"(?:^|\s)(?P<file>{_PATH}):\d+:in [`'](?P<name>[^']+)'",
        # Go; a compiler's `file:line:column:`, `file(line,column)`; what a test or a log names
        rf"(?:^|[\s(\[])(?P<file>{_PATH})(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\))",
        rf"(?:^|\s)(?:FAILED|ERROR|FAIL|PASS|RUNS)\s+(?P<file>{_PATH})(?:::(?P<name>[\w:\[\]-]+))?",
    )
)
#: A frame's function that stands on a line of its own: Rust's numbered ones, Go's calls.
_FUNCTIONS = (
    re.compile(r"^\s*\d+: +(?:0x[0-9a-f]+ - )?(?P<name>[\w<>:{}#$., ]+?)(?:::h[0-9a-f]{16})?$"),
    re.compile(r"^(?P<name>[\w./*()-]+\.[\w.*()-]+)\((?:0x|\.\.\.|\{|\)|\?)"),
)
_MESSAGE = re.compile(
    r"\b[A-Za-z_$][\w.$]*(?:Error|Exception|Failure|Panic|Fault|Interrupt|Timeout|Warning|Exit)\b"
    r"(?:\s*[:(\[)]|$)"
    r"|\b(?:[Ee]rror|ERROR|FATAL|[Ff]atal|CRITICAL|panic|[Pp]anicked|FAIL(?:ED)?|E[A-Z]{4,})\b"
    r"|(?i:\b(?:undefined reference|undefined symbol|unresolved|segmentation fault|core dumped"
    r"|command not found|no such file|permission denied|cannot find|could not|can't|cannot"
    r"|failed to|is not defined|is not a function|not found|does not exist|unexpected"
    r"|caused by|assertion|expected|received|timed out|refused)\b)"
    r"|what\(\): |--- FAIL:"
)
#: What a compiler or a linter says of a place, in any words.
_COMPILER = re.compile(rf"^\s*{_PATH}(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\)):? +\S+ +\S")
#: Python's errors of any name, and what pytest marks.
_RAISED = re.compile(r"^(?:E  +(?=\S)|[A-Za-z_]\w*(?:\.\w+)*\.[A-Z]\w+(?=: |$))")
#: Lines that only introduce what follows.
_HEADINGS = re.compile(
    r"^\s*(?:Traceback \(most recent call last\):|The above exception was the direct cause.*"
    r"|During handling of the above.*|stack backtrace:|Stack trace:|goroutine \d+ \[.*\]:"
    r"|note: run with `RUST_BACKTRACE.*|For more information about this error.*|exit status \d+"
    r"|[=\-_*#~ .]+|[\^~| ]+|=+ .* =+|error: aborting due to .*|npm ERR! A complete log.*"
    r"|\d+ errors?(?: generated)?\.?)$"
)
_CODE = re.compile(
    r"\b(?:E\d{4}|TS\d{4,5}|CS\d{4}|C\d{4}|LNK\d{4}|[A-Z]{1,4}\d{3,4}|ERR_[A-Z_]+|E[A-Z]{4,12}"
    r"|SIG[A-Z]{3,6}|[\w.$]*[A-Za-z](?:Error|Exception))\b"
)
_QUOTED = re.compile(r"['`‘“\"]([^\s'`’”\"][^'`’”\"\n]{1,80})['`’”\"]")
#: What differs from run to run.
_PASSING = re.compile(
    r"\b0x[0-9a-fA-F]+\b|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"
    r"|\(?\b\d+(?:\.\d+)? ?(?:ms|s|µs|us|ns)\b\)?|\b\d{5,}\b|\[\d+\]|==\d+=="
)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")
#: Places that are not the asker's own code.
_FOREIGN = re.compile(
    r"site-packages|dist-packages|node_modules|/lib(?:64)?/python\d|/rustc/|\.cargo/registry"
    r"|\.rustup/|go/(?:pkg/mod|src/(?:runtime|testing))|/usr/(?:lib|include|local/go)|^node:"
    r"|internal/|<frozen|<string>|<anonymous>|java\.base|/vendor/|[\\/]Python\d+[\\/]Lib[\\/]"
)
_FOREIGN_NAME = re.compile(
    r"^(?:std|core|alloc|runtime|testing|java|javax|jdk|sun|kotlin|scala|System|Module"
    r"|process|Object|__libc\w*|_start|rust_begin_unwind|rust_panic)(?:::|[._]|$)"
)


class TraceParts(Struct, frozen=True, kw_only=True):
    """A trace taken apart.

    Attributes:
        messages: Lines that say what went wrong, without what differs from run to run; what is
            most likely the cause first.
        files: Files of frames, the asker's own ones, each once, in order.
        functions: Functions of frames of the asker's own, likewise.
        lines: What else stands there, each once.
    """

    messages: tuple[str, ...]
    files: tuple[str, ...]
    functions: tuple[str, ...]
    lines: tuple[str, ...]
    weights: Weights


class Place(Struct, frozen=True, kw_only=True):
    """Where a frame is; either may be ""."""

    file: str
    name: str

    @property
    def foreign(self) -> bool:
        """Tell whether it lies in a library or a runtime."""
        return bool(_FOREIGN.search(self.file) or _FOREIGN_NAME.match(self.name))


def parts_of_trace(text: str) -> TraceParts:
    """Take a trace apart; text that is none comes back as its lines."""
    weights = Weights()
    messages: dict[str, None] = {}
    own: dict[Place, None] = {}
    rest: dict[str, None] = {}
    after_frame = False
    for line in lines_of(text):
        places = list(places_in(line))
        for place in places:
            _weigh_place(place, weights)
            if not place.foreign:
                own[place] = None
        said = _said(line, places)
        if _is_message(line, said) and (not places or not _is_frame(line)):
            messages[said] = None
            _weigh_message(said, weights)
        elif said and not places:
            weights.add(names_in(said), SOURCE if after_frame else OTHER)
            rest[said] = None
        after_frame = bool(places)
    return TraceParts(
        messages=_causes_first(list(messages)),
        files=tuple(dict.fromkeys(place.file for place in own if place.file)),
        functions=tuple(dict.fromkeys(_short(place.name) for place in own if place.name)),
        lines=tuple(rest),
        weights=weights,
    )


def lines_of(text: str) -> Iterator[str]:
    """Yield a trace's lines without colours, edges of boxes and headings."""
    for whole in _ANSI.sub("", text).splitlines():
        line = whole[:_LINE_CHARS]
        bare = line.strip("│┃|║ \t").rstrip() if line.lstrip()[:1] in "│┃║" else line.rstrip()
        if bare and not _HEADINGS.match(bare):
            yield bare


def places_in(line: str) -> Iterator[Place]:
    """Yield where a line points to: one place for a frame, several for lists."""
    for pattern in _FUNCTIONS:
        if found := pattern.match(line):
            yield Place(file="", name=found["name"].strip())
            return
    for pattern in _PLACES:
        found_any = False
        for found in pattern.finditer(line):
            found_any = True
            parts = found.groupdict()
            file = parts["file"].strip().removeprefix("./")
            yield Place(file=file, name=parts.get("name") or "")
        if found_any:
            return


def _said(line: str, places: list[Place]) -> str:
    """Return what a line says besides where it points to and what differs from run to run."""
    bare = _PASSING.sub(" ", _without_places(line, places))
    return " ".join(re.sub(r"^E  +", "", bare).split())


def _is_message(line: str, said: str) -> bool:
    if not said:
        return False
    return any(rule.match(line) for rule in (_RAISED, _COMPILER)) or bool(_MESSAGE.search(said))


def _is_frame(line: str) -> bool:
    """Tell a frame, which may run through code named after errors, from a compiler's message."""
    return re.match(r"^\s*(?:at |File \"|#\d+ |\d+: |--> |from )", line) is not None


def _without_places(line: str, places: list[Place]) -> str:
    for place in places:
        if place.file:
            line = line.replace(f"./{place.file}", place.file).replace(place.file, _GONE)
    return _PLACE_GONE.sub(" ", line)


def _weigh_place(place: Place, weights: Weights) -> None:
    if place.file:
        weights.add([file_words(place.file)], FOREIGN if place.foreign else FILE)
    if place.name:
        weights.add(names_in(_short(place.name)), FOREIGN if place.foreign else FRAME)


def _short(name: str) -> str:
    """Return a function's own name with its class: the last two of a dotted path."""
    parts = [part for part in re.split(r"::|[./$#]", name) if part and not part.startswith("{")]
    return ".".join(parts[-2:])


def _weigh_message(said: str, weights: Weights) -> None:
    weights.add(names_in(said), MESSAGE)
    weights.add((name for quoted in _QUOTED.findall(said) for name in names_in(quoted)), QUOTED)
    weights.add((code for code in _CODE.findall(said) if len(code) > 3), CODE)


def _causes_first(messages: list[str]) -> tuple[str, ...]:
    """Return messages so that those that name a kind of error come first, at most some."""
    if len(messages) > MOST_MESSAGES:
        half = MOST_MESSAGES // 2
        messages = [*messages[:half], *messages[-half:]]
    return tuple(sorted(messages, key=lambda said: (" " not in said, _CODE.search(said) is None)))
