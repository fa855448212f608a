"""What takes secrets out, wherever the scanner runs: in this process or in one of its own."""

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from funes_ls.indexer.errors import ScannerError, TraceError
from funes_ls.indexer.model import SessionMeta, Turn

#: Loads the scanner's libraries, so it is imported only where it is needed.
_SCANNER = "funes_ls.indexer.redaction.redactor"
#: Beside compiled rules: what they were compiled of.
_READY = "ready"
#: How often each rule found something, by its id; never what it found.
Counts = Mapping[str, int]


class Found(Protocol):
    """A text without its secrets, and how often each rule found one."""

    @property
    def text(self) -> str:
        """The text; the very same when there are none."""
        ...

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule found one."""
        ...


class FoundText(Struct, frozen=True):
    """See `Found`."""

    text: str
    counts: dict[str, int]


class Scanner(Protocol):
    """What `LocalRedaction` loads."""

    @property
    def stamp(self) -> str:
        """See `Redaction`."""
        ...

    def text(self, text: str) -> Found:
        """See `Redaction`."""
        ...

    def turn(self, turn: Turn) -> tuple[Turn, Counts]:
        """See `Redaction`."""
        ...

    def meta(self, meta: SessionMeta) -> tuple[SessionMeta, Counts]:
        """See `Redaction`."""
        ...


class Redaction(Protocol):
    """Takes secrets out of texts, turns and what is said of sessions."""

    @property
    def cache_dir(self) -> Path:
        """Where compiled rules are kept."""
        ...

    @property
    def stamp(self) -> str:
        """Which scanner with which rules this is."""
        ...

    def text(self, text: str) -> Found:
        """Return a text without its secrets.

        Raises:
            ScannerError: there is no scanner.
            TraceError: it fails over this very text.
        """
        ...

    def turn(self, turn: Turn) -> tuple[Turn, Counts]:
        """Return a turn without its secrets; raises as `text` does."""
        ...

    def meta(self, meta: SessionMeta) -> tuple[SessionMeta, Counts]:
        """Return what a trace says of its session without secrets; raises as `text` does."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether it would look at something at once, or fail at once."""
        ...

    def prepare(self) -> None:
        """Begin to get ready, and do not wait for it; from any thread."""
        ...

    def rest(self) -> float | None:
        """Give back what was not used for a while; return the seconds until it should be asked."""
        ...


class LocalRedaction:
    """The scanner in this process, loaded when it is first needed."""

    def __init__(self, cache_dir: Path) -> None:
        """Prepare; nothing is loaded yet."""
        self.cache_dir = cache_dir
        self._loaded: Scanner | None = None
        self._error: ScannerError | None = None

    @property
    def stamp(self) -> str:
        """Return which scanner with which rules this is."""
        return self._loaded.stamp if self._loaded else current_stamp() or self._redactor().stamp

    def text(self, text: str) -> Found:
        """Return a text without its secrets."""
        scanner = self._redactor()
        try:
            return scanner.text(text)
        except ScannerError as exc:
            raise unscannable(exc.message) from exc

    def turn(self, turn: Turn) -> tuple[Turn, Counts]:
        """Return a turn without its secrets."""
        scanner = self._redactor()
        try:
            return scanner.turn(turn)
        except ScannerError as exc:
            raise unscannable(exc.message) from exc

    def meta(self, meta: SessionMeta) -> tuple[SessionMeta, Counts]:
        """Return what a trace says of its session without secrets."""
        scanner = self._redactor()
        try:
            return scanner.meta(meta)
        except ScannerError as exc:
            raise unscannable(exc.message) from exc

    @property
    def is_ready(self) -> bool:
        """Return True: whoever asks waits."""
        return True

    def prepare(self) -> None:
        """Do nothing: it is loaded where it is used."""

    def rest(self) -> float | None:
        """Return None: what is loaded stays."""
        return None

    @property
    def is_prepared(self) -> bool:
        """Return whether the rules were compiled before: then loading takes no time to speak of."""
        try:
            return (self.cache_dir / _READY).read_text(encoding="utf-8") == current_stamp()
        except (OSError, ValueError):
            return False

    def load(self) -> None:
        """Load the scanner now, which takes seconds when its rules are not compiled yet."""
        self._redactor()

    def _redactor(self) -> Scanner:
        if self._error is not None:
            raise self._error
        if self._loaded is None:
            try:
                self._loaded = loaded(self.cache_dir)
            except ScannerError as exc:
                self._error = exc
                raise
            with suppress(OSError):
                if not self.is_prepared:
                    (self.cache_dir / _READY).write_text(current_stamp(), encoding="utf-8")
        return self._loaded


def loaded(cache_dir: Path) -> Scanner:
    """Return the scanner, loaded into this process.

    Raises:
        ScannerError: it cannot be; the message names what to do.
    """
    try:
        scanner: Scanner = import_module(_SCANNER).Redactor.load(cache_dir)
    except ScannerError as exc:
        raise explained(exc) from exc
    except ImportError as exc:
        raise explained(ScannerError("It is not installed.", kind="scanner_missing")) from exc
    return scanner


def unscannable(reason: str) -> TraceError:
    """Return why one trace is not stored, while the scanner works for others."""
    return TraceError(f"Secrets cannot be looked for in it: {reason}", kind="unscannable")


def explained(error: ScannerError) -> ScannerError:
    """Return a scanner's error as one that says what it keeps from being done, and what to run."""
    if error.hint:
        return error
    return ScannerError(
        f"Nothing is indexed: the scanner for secrets does not work. {error.message}",
        hint="Install funes-ls anew, or set `redaction` to off to store sessions as they are.",
        kind=error.kind,
    )


def current_stamp() -> str:
    """Return which scanner with which rules this program has, without loading it; "" if none."""
    try:
        return str(import_module(_SCANNER).current_stamp())
    except (ImportError, AttributeError, OSError, ScannerError):
        return ""
