"""Has a second process read traces ahead, so that reading and writing each have a core.

One worker reads the units in the order they are asked for; what it gives is what reading them here
would give. If it cannot be started or dies, the rest is read here.
"""

import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec

from funes_ls.indexer.clean import Clean, CleanReading
from funes_ls.indexer.errors import ScannerError, TraceError
from funes_ls.indexer.model import Problem, SessionMeta, Turn
from funes_ls.indexer.pipes import read_message, write_message
from funes_ls.indexer.redaction.base import Counts, Redaction
from funes_ls.indexer.traces.base import TraceSource, Unit
from funes_ls.indexer.traces.worker import Frame, request_of

#: Less than this to read, and a second process costs more than it saves.
WORTH_BYTES = 16 * 1024 * 1024

#: What the worker has read and nobody has written yet.
_FRAMES_AHEAD = 8

#: A unit, its reader, and the state to resume from.
Wanted = tuple[Unit, TraceSource, bytes | None]


class ReadAhead:
    """Gives the readings of units, asked for in the order they were announced."""

    def __init__(
        self,
        worker: "subprocess.Popen[bytes] | None",
        announced: set[str],
        redaction: Redaction | None = None,
    ) -> None:
        """Read from a worker that was asked for the announced keys; None reads all here."""
        self._worker = worker
        self._redaction = redaction
        self._announced = announced
        self._frames = _Frames(worker.stdout) if worker and worker.stdout else None

    def read(self, unit: Unit, source: TraceSource, *, resume: bytes | None) -> Clean:
        """Return the reading of a unit; the one before it must have been read to its end."""
        if self._frames is None or unit.key not in self._announced:
            return self._read_here(unit, source, resume)
        self._announced.discard(unit.key)
        first = self._next_frame()
        while first is not None and first.key != unit.key:  # the rest of one given up
            first = self._next_frame()
        if first is None:
            return self._read_here(unit, source, resume)
        return _RemoteReading(self, first)

    def _read_here(self, unit: Unit, source: TraceSource, resume: bytes | None) -> Clean:
        return CleanReading(source.read(unit, resume=resume), unit, self._redaction)

    def is_ready(self, unit: Unit, *, wait_s: float) -> bool:
        """Return whether reading a unit can begin, after waiting for that a while."""
        if self._frames is None or unit.key not in self._announced:
            return True
        return self._frames.wait(wait_s)

    def close(self) -> None:
        """Take no more from the worker."""
        if self._frames is not None:
            self._frames.close()

    def _next_frame(self) -> Frame | None:
        frame = self._frames.next() if self._frames is not None else None
        if frame is None:  # the worker is gone
            self._frames = None
        return frame


class _Frames:
    """The frames a worker has written, taken from its pipe by a thread, some ahead."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decoder = msgspec.msgpack.Decoder(Frame)
        self._taken: queue.Queue[Frame | None] = queue.Queue(_FRAMES_AHEAD)
        self._first: list[Frame | None] = []
        self._is_closed = False
        self._thread = threading.Thread(target=self._take, name="funes-frames", daemon=True)
        self._thread.start()

    def next(self) -> Frame | None:
        """Return the next frame, None when there will be no more."""
        frame = self._first.pop() if self._first else self._taken.get()
        if frame is None:
            self._first = [None]
        return frame

    def wait(self, wait_s: float) -> bool:
        """Return whether `next` gives something at once, after waiting for that a while."""
        if not self._first:
            try:
                self._first.append(self._taken.get(timeout=wait_s))
            except queue.Empty:
                return False
        return True

    def close(self) -> None:
        """End the thread; the worker must have ended."""
        self._is_closed = True
        self._thread.join()

    def _take(self) -> None:
        frame: Frame | None = None
        # A pipe that is closed, what no worker writes, more than there is memory for: who waits for
        # the next frame must be told, whatever it is.
        with suppress(Exception):
            while (body := read_message(self._stream)) is not None and not self._is_closed:
                frame = self._decoder.decode(body)
                self._put(frame)
        self._put(None)

    def _put(self, frame: Frame | None) -> None:
        while not self._is_closed:
            try:
                self._taken.put(frame, timeout=0.2)
            except queue.Full:
                continue
            return


class _RemoteReading:
    """A reading that happens in the worker; see `Clean`."""

    def __init__(self, ahead: ReadAhead, first: Frame) -> None:
        self._ahead = ahead
        self._frame = first
        self.skipped: dict[str, int] = {}

    def __iter__(self) -> Iterator[Turn | Problem]:
        while True:
            for turn, problem in self._frame.items:
                if turn is not None:
                    yield turn
                elif problem is not None:
                    yield problem
            if self._frame.last:
                break
            following = self._ahead._next_frame()
            if following is None:
                raise TraceError("The process that reads traces ended.", kind="reader_died")
            self._frame = following
        if self._frame.scanner:
            kind, message, hint = self._frame.scanner
            raise ScannerError(message, hint=hint, kind=kind)
        if self._frame.error:
            raise TraceError(f"Reading failed ({self._frame.error}).", kind="reader_failed")

    @property
    def session(self) -> SessionMeta:
        return self._frame.session

    @property
    def cwd(self) -> str:
        return self._frame.cwd

    @property
    def path(self) -> str:
        return self._frame.path

    @property
    def counts(self) -> Counts:
        return self._frame.counts

    @property
    def resume(self) -> bytes:
        return self._frame.resume

    @property
    def offset(self) -> int:
        return self._frame.offset

    @property
    def restarted(self) -> bool:
        return self._frame.restarted

    @property
    def late_names(self) -> bool:
        return self._frame.late_names

    @property
    def failed(self) -> bool:
        return self._frame.failed


@contextmanager
def reading_ahead(
    wanted: Sequence[Wanted], *, redaction: Redaction | None = None
) -> Iterator[ReadAhead]:
    """Yield the readings of units, read by a worker when there is enough to read.

    Args:
        wanted: In the order they will be asked for. Units inside a database or a table stay here.
        redaction: Takes secrets out here; the worker has a scanner of its own.
    """
    files = [(unit, resume) for unit, _, resume in wanted if not unit.container]
    if sum(unit.size for unit, _ in files) < WORTH_BYTES:
        yield ReadAhead(None, set(), redaction)
        return
    worker = _started()
    ahead = None
    try:
        if worker is not None and worker.stdin is not None:
            rules = redaction.cache_dir if redaction is not None else None
            asker = threading.Thread(target=_ask, args=(worker.stdin, files, rules), daemon=True)
            asker.start()
        ahead = ReadAhead(worker, {unit.key for unit, _ in files}, redaction)
        yield ahead
    finally:
        if worker is not None:
            _end(worker, ahead)


def _started() -> "subprocess.Popen[bytes] | None":
    command = [sys.executable, "-P", "-m", "funes_ls.indexer.traces.worker"]
    try:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return None


def _ask(stream: IO[bytes], files: Sequence[tuple[Unit, bytes | None]], rules: Path | None) -> None:
    """Write the requests; a full pipe holds them back until the worker takes them."""
    encoder = msgspec.msgpack.Encoder()
    with suppress(OSError, ValueError):  # the worker is gone, or is being ended
        for unit, resume in files:
            write_message(stream, encoder.encode(request_of(unit, resume, rules)))
        stream.close()


def _end(worker: "subprocess.Popen[bytes]", ahead: ReadAhead | None) -> None:
    worker.kill()
    worker.wait()
    if ahead is not None:
        ahead.close()
    for stream in (worker.stdin, worker.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
