"""The errors a user can meet: what happened, what to run next, and a stable kind."""


class FunesError(Exception):
    """Base of every error meant for a user; the edges translate it once.

    Attributes:
        message: What happened, naming the thing.
        hint: The next command to run, or "" when there is none.
        kind: Stable slug for programs (`error.data.kind` in the protocol).
        exit_code: What the CLI exits with.
    """

    kind = "failed"
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", kind: str = "") -> None:
        """Keep what a user is told; see the attributes."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        if kind:
            self.kind = kind

    def __str__(self) -> str:
        """Return the message followed by the hint, as shown to a person."""
        return f"{self.message} {self.hint}".strip()


class UsageError(FunesError):
    """Bad arguments or settings."""

    kind = "usage"
    exit_code = 2


class MemoryStateError(FunesError):
    """The memory is missing, empty, wrong_model, wrong_width, newer_format, locked or damaged."""

    kind = "memory_state"


class TraceError(FunesError):
    """One trace, or one line of it, cannot be read; skipped and counted, never fatal by itself."""

    kind = "trace"


class BackendError(FunesError):
    """The disk, a model file or the hub failed."""

    kind = "backend"


class ScannerError(BackendError):
    """The secret scanner cannot be used: `scanner_missing`, `scanner_broken` or `scanner_slow`."""

    kind = "scanner_broken"


class SecretFound(FunesError):
    """What was to be published holds secrets: all of it was withheld."""

    kind = "secret_found"
    exit_code = 2


class GateError(BackendError):
    """Nothing may leave: nobody can say what is clean (`gate_missing`, `_slow`, `_broken`)."""

    kind = "gate_broken"
