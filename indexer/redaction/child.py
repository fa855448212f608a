"""The scanner in a process of its own: `python -m funes_ls.indexer.redaction.child`.

A scanner takes much memory and is rarely needed by a program that runs all day. Requests go in,
replies come out, each as a length and MessagePack; nothing of either is kept or logged.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from funes_ls.indexer.errors import ScannerError, TraceError
from funes_ls.indexer.model import SessionMeta, Turn, path_text
from funes_ls.indexer.pipes import read_message, write_message
from funes_ls.indexer.redaction.base import (
    Counts,
    Found,
    FoundText,
    LocalRedaction,
    current_stamp,
    explained,
    unscannable,
)

#: Not used for so long, the process ends.
_IDLE_S = 30.0
#: Rules may have to be compiled first.
_START_S = 300.0
#: A request may take so long, and longer by what is to be scanned.
_ASKED_S, _BYTES_PER_S = 30.0, 100_000


class Ask(Struct, frozen=True, kw_only=True):
    """One of the three to be looked through."""

    text: str | None = None
    turn: Turn | None = None
    meta: SessionMeta | None = None


class Reply(Struct, frozen=True, kw_only=True):
    """What is left of it, and how often each rule found something.

    Attributes:
        stamp: Which scanner this is; in the first reply, which comes unasked.
        error: Kind, message and hint of why there is no scanner.
        failed: Type of the error that looking through it ended with.
    """

    text: str | None = None
    turn: Turn | None = None
    meta: SessionMeta | None = None
    counts: dict[str, int] = {}
    stamp: str = ""
    error: tuple[str, ...] = ()
    failed: str = ""


class RedactingChild:
    """Takes secrets out in a child process, started on first use; see `Redaction`.

    Threads that ask it wait for one another; `close` ends what is being asked.
    """

    def __init__(
        self,
        cache_dir: Path,
        *,
        idle_s: float = _IDLE_S,
        asked_s: float = _ASKED_S,
        command: Sequence[str] = (),
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            cache_dir: Where compiled rules are kept.
            idle_s: Seconds without use after which the process ends.
            asked_s: Seconds that a small request may take.
            command: What to run instead of this module, which is told the directory.
        """
        self.cache_dir = cache_dir
        own = (sys.executable, "-P", "-m", "funes_ls.indexer.redaction.child")
        self._command = (*(command or own), str(cache_dir))
        self._idle_s = idle_s
        self._asked_s = asked_s
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._process: _Process | None = None
        self._stamp = ""
        self._used_at = 0.0

    @property
    def stamp(self) -> str:
        """Return which scanner with which rules this is; a process is started only to ask it."""
        if not self._stamp:
            self._stamp = current_stamp()
        if not self._stamp:
            with self._asking:
                self._ready()
        return self._stamp

    def text(self, text: str) -> Found:
        """Return a text without its secrets."""
        reply = self._ask(Ask(text=path_text(text)), len(text))
        return FoundText(text if reply.text is None else reply.text, reply.counts)

    def turn(self, turn: Turn) -> tuple[Turn, Counts]:
        """Return a turn without its secrets."""
        size = sum(len(block.text) for block in (*turn.blocks, *(turn.ext_blocks or ())))
        reply = self._ask(Ask(turn=turn), size)
        return (turn if reply.turn is None else reply.turn), reply.counts

    def meta(self, meta: SessionMeta) -> tuple[SessionMeta, Counts]:
        """Return what a trace says of its session without secrets."""
        reply = self._ask(Ask(meta=meta), 0)
        return (meta if reply.meta is None else reply.meta), reply.counts

    def prepare(self) -> None:
        """Start the process if there is none, and do not wait for it."""
        with self._lock, suppress(ScannerError):  # who asks it something is told
            self._begun()

    @property
    def is_ready(self) -> bool:
        """Return whether a request would be looked at at once, or fail at once."""
        with self._lock:
            return self._process is not None and self._process.has_spoken()

    @property
    def is_running(self) -> bool:
        """Return whether there is a process."""
        return self._process is not None

    def rest(self) -> float | None:
        """End the process if it was not used for a while; return when to look again."""
        if self._process is None:
            return None
        left_s = self._used_at + self._idle_s - time.monotonic()
        if left_s > 0:
            return left_s
        self.close()
        return None

    def close(self) -> None:
        """End the process; the next request starts another one."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.end()

    def _begun(self) -> "_Process":
        self._used_at = time.monotonic()
        if self._process is None:
            self._process = _Process(self._command)
        return self._process

    def _ready(self) -> "_Process":
        """Return the process once it has said which scanner it has.

        Raises:
            ScannerError: it has none.
        """
        with self._lock:
            process = self._begun()
        hello = process.hello(_START_S)
        if hello is None or hello.error:
            self.close()
            kind, message, hint = (*(hello.error if hello else ()), "", "", "")[:3]
            raise explained(
                ScannerError(
                    message or "Its process does not start.",
                    hint=hint,
                    kind=kind or "scanner_broken",
                )
            )
        self._stamp = hello.stamp
        self._used_at = time.monotonic()
        return process

    def _ask(self, ask: Ask, size: int) -> Reply:
        """Return the reply; a process that ended over a request is asked no third time.

        Raises:
            ScannerError: there is no scanner.
            TraceError: the scanner fails over this very text.
        """
        with self._asking:
            reply = self._reply(ask, self._asked_s + size / _BYTES_PER_S)
        if reply is None or reply.failed:
            raise unscannable(f"{reply.failed if reply else 'the scanner ends or takes too long'}.")
        if reply.error:
            kind, message, hint = reply.error
            raise explained(ScannerError(message, hint=hint, kind=kind))
        return reply

    def _reply(self, ask: Ask, wait_s: float) -> Reply | None:
        for _ in range(2):
            process = self._ready()
            reply = process.ask(ask, wait_s)
            self._used_at = time.monotonic()
            if reply is not None:
                return reply
            self.close()
        return None


class _Process:
    """One child process, and the thread that takes its replies."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as exc:
            raise explained(ScannerError("Its process does not start.")) from exc
        assert self._child.stdin is not None and self._child.stdout is not None
        self._stdin, self._stdout = self._child.stdin, self._child.stdout
        self._replies: queue.Queue[Reply | None] = queue.Queue()
        self._encoder = msgspec.msgpack.Encoder()
        self._hello: Reply | None = None
        self._thread = threading.Thread(target=self._take, name="funes-redacted", daemon=True)
        self._thread.start()

    def has_spoken(self) -> bool:
        return self._hello is not None or not self._replies.empty()

    def hello(self, wait_s: float) -> Reply | None:
        if self._hello is None:
            self._hello = self._reply(wait_s)
        return self._hello

    def ask(self, ask: Ask, wait_s: float) -> Reply | None:
        """Return the reply, None when the process has ended or takes too long."""
        body = self._encoder.encode(ask)
        try:
            write_message(self._stdin, body)
        except (OSError, ValueError):
            return None
        return self._reply(wait_s)

    def end(self) -> None:
        with suppress(OSError):
            self._child.kill()
        self._child.wait()
        self._replies.put(None)  # whoever waits is told
        self._thread.join()
        for stream in (self._stdin, self._stdout):
            with suppress(OSError, ValueError):
                stream.close()

    def _reply(self, wait_s: float) -> Reply | None:
        try:
            return self._replies.get(timeout=wait_s)
        except queue.Empty:
            return None

    def _take(self) -> None:
        decoder = msgspec.msgpack.Decoder(Reply)
        # A pipe that is closed, what no child writes, more than there is memory for: who waits is
        # told, whatever it is.
        with suppress(Exception):
            while (body := read_message(self._stdout)) is not None:
                self._replies.put(decoder.decode(body))
        self._replies.put(None)


# The child


def _hello(redaction: LocalRedaction) -> Reply:
    redaction.load()
    return Reply(stamp=redaction.stamp)


def _looked_through(redaction: LocalRedaction, ask: Ask) -> Reply:
    if ask.turn is not None:
        turn, found = redaction.turn(ask.turn)
        return Reply(turn=turn if found or turn is not ask.turn else None, counts=dict(found))
    if ask.meta is not None:
        meta, found = redaction.meta(ask.meta)
        return Reply(meta=meta, counts=dict(found))
    done = redaction.text(ask.text or "")
    return Reply(text=done.text, counts=dict(done.counts))


def _replied(make: Callable[[], Reply]) -> Reply:
    try:
        return make()
    except TraceError as exc:
        return Reply(failed=exc.message.rpartition(": ")[2].rstrip("."))
    except ScannerError as exc:
        return Reply(error=(exc.kind, exc.message, exc.hint))
    except Exception as exc:  # its text may be of a session: its type says enough
        return Reply(failed=type(exc).__name__)


def main(arguments: list[str]) -> None:
    """Serve requests until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asked
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print must not break the replies
    encoder = msgspec.msgpack.Encoder()
    decoder = msgspec.msgpack.Decoder(Ask)
    redaction = LocalRedaction(Path(arguments[0]))
    write_message(replies, encoder.encode(_replied(partial(_hello, redaction))))
    while (body := read_message(sys.stdin.buffer)) is not None:
        ask = decoder.decode(body)
        write_message(replies, encoder.encode(_replied(partial(_looked_through, redaction, ask))))


if __name__ == "__main__":
    main(sys.argv[1:])
