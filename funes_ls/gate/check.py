"""Asks of every block whether it may leave; what nobody can vouch for stays."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from funes_ls.gate.process import Child, Fallen, broken
from funes_ls.indexer.errors import FunesError, GateError

#: Texts travel in frames of about so many characters.
_FRAME_CHARS = 512 * 1024
_FRAME_TEXTS = 4096
#: So often may texts end the scanner; more, and it is the scanner.
_MOST_FALLS = 64

#: What keeps a block from being scanned, beside the scanner's own rules.
UNREADABLE, CRASHED, SLOW, AMBIGUOUS = (
    "not-scannable",
    "scanner-crashed",
    "scanner-too-slow",
    "two-texts-of-one-block",
)


class Block(NamedTuple):
    """A string that would leave, under a key that names it and says nothing of it."""

    key: str
    text: str


class GateReport(Struct, kw_only=True):
    """What may leave and what may not.

    Attributes:
        withheld: Key of a block -> the rules that found something; never what they found.
        passed: Key of a block -> SHA-256 of its text as UTF-8, hexadecimal.
        lines: Key of a withheld block -> line of each rule's first find, 0 when unknown.
        scanned: Blocks scanned, withheld ones with them.
        size_bytes: Of what was scanned.
    """

    withheld: dict[str, list[str]] = {}
    passed: dict[str, str] = {}
    lines: dict[str, list[int]] = {}
    scanned: int = 0
    size_bytes: int = 0

    def allows(self, key: str, text: str) -> bool:
        """Return whether exactly this text passed under this key."""
        return key not in self.withheld and self.passed.get(key) == digest(text)

    def counts(self) -> dict[str, int]:
        """Return in how many blocks each rule found something, most first."""
        found: dict[str, int] = {}
        for rules in self.withheld.values():
            for rule in rules:
                found[rule] = found.get(rule, 0) + 1
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def digest(text: str) -> str:
    """Return the SHA-256 of a text; a text that is no UTF-8 has one that nothing else has."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check(
    blocks: Iterable[Block],
    *,
    timeout_s: float | None = None,
    progress: Callable[[int], None] = lambda _done: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> GateReport:
    """Scan blocks and return which may leave.

    Args:
        blocks: All that would leave; read as it is needed.
        timeout_s: For the whole; each part has a limit of its own, by its size.
        progress: Told how many blocks are done.
        cancelled: Asked between parts.

    Raises:
        GateError: nothing may leave: there is no scanner, or none that can be trusted.
        FunesError: kind `cancelled`.
    """
    run = _Run(timeout_s)
    try:
        for frame in _frames(blocks, run.refused):
            if cancelled():
                raise FunesError("Cancelled.", kind="cancelled")
            run.scan(frame)
            progress(run.report.scanned)
        run.finish()
    finally:
        run.end()
    return run.report


def _frames(blocks: Iterable[Block], refused: Callable[[Block], bool]) -> Iterator[list[Block]]:
    frame: list[Block] = []
    size = 0
    for block in blocks:
        if refused(block):
            continue
        if frame and (size + len(block.text) > _FRAME_CHARS or len(frame) >= _FRAME_TEXTS):
            yield frame
            frame, size = [], 0
        frame.append(block)
        size += len(block.text)
    if frame:
        yield frame


class _Run:
    """One check: its child, which is replaced when a text ends it, and its report."""

    def __init__(self, timeout_s: float | None) -> None:
        self.report = GateReport()
        self._ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        self._falls = 0
        # Also with nothing to scan: that the gate works is known before anything leaves.
        self._child: Child | None = Child()

    def refused(self, block: Block) -> bool:
        """Withhold a block that cannot be scanned as it is, and say so."""
        if "\0" not in block.text and _is_unicode(block.text):
            return False
        self._withhold(block, [UNREADABLE], [0])
        self.report.scanned += 1
        return True

    def scan(self, blocks: list[Block]) -> None:
        """Scan blocks; of those that end the scanner only these are withheld."""
        wait_s = self._left()
        if self._child is None:
            self._child = Child()
        try:
            hits = self._child.scan([text for _, text in blocks], wait_s=wait_s)
        except Fallen as fallen:
            self._fell(blocks, fallen)
            return
        found = {hit.at: hit for hit in hits}
        for at, block in enumerate(blocks):
            hit = found.get(at)
            if hit is not None:
                self._withhold(block, hit.rules, hit.lines)
            else:
                self._pass(block)
        self.report.scanned += len(blocks)
        self.report.size_bytes += sum(len(text.encode()) for _, text in blocks)

    def finish(self) -> None:
        """See that the child ended well."""
        if self._child is not None:
            self._child.finish()
            self._child = None

    def end(self) -> None:
        """Leave no child behind."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _left(self) -> float:
        if self._ends_at is None:
            return 10.0
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise GateError(
                "Nothing may leave: looking for secrets took longer than it may.",
                hint="Run the command again; `funes scan` shows how long it takes.",
                kind="gate_slow",
            )
        return min(10.0, left)

    def _fell(self, blocks: list[Block], fallen: Fallen) -> None:
        self.end()
        if len(blocks) == 1:
            self._falls += 1  # halves of a frame that fall with one bad text in it are no more bad
            if self._falls > _MOST_FALLS:
                raise broken("ended again and again")
            self._withhold(blocks[0], [SLOW if fallen.slow else CRASHED], [0])
            self.report.scanned += 1
            return
        half = len(blocks) // 2
        self.scan(blocks[:half])
        self.scan(blocks[half:])

    def _withhold(self, block: Block, rules: list[str], lines: list[int]) -> None:
        self.report.passed.pop(block.key, None)
        self.report.withheld[block.key] = rules
        self.report.lines[block.key] = lines

    def _pass(self, block: Block) -> None:
        made = digest(block.text)
        if block.key in self.report.withheld:
            return
        if self.report.passed.setdefault(block.key, made) != made:
            self._withhold(block, [AMBIGUOUS], [0])


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
