"""One engine per home: who starts wins a lock, listens, serves, and leaves nothing behind."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from funes_ls import __version__
from funes_ls.engine import starts
from funes_ls.engine.address import (
    LOCK,
    Address,
    forget_address,
    private_dir,
    read_address,
    run_dir,
    socket_places,
)
from funes_ls.engine.client import open_socket
from funes_ls.engine.core import Core
from funes_ls.engine.listening import listen
from funes_ls.engine.log import frames
from funes_ls.engine.server import Server
from funes_ls.indexer.errors import BackendError, FunesError
from funes_ls.indexer.memory_freed import hold_little_back

if TYPE_CHECKING:
    from filelock import FileLock

_log = logging.getLogger(__name__)
#: How long a new engine waits for the one before it to be gone.
_TURN_S = 10.0
_LOOK_S = 0.02
#: What is under way is finished or undone in this time; then the process ends all the same.
_END_S = 0.6


def run(home: Path) -> int:
    """Be the engine of a home until nobody needs it; return at once if there is one."""
    with _one_engine(home) as is_first:
        if not is_first:
            return 0
        starts.note_start(home)
        try:
            asyncio.run(_serve(home))
        except FunesError as exc:
            _log.error("cannot run: %s", exc.message)
            return 1
        starts.note_end(home)
    return 0


@contextlib.contextmanager
def _one_engine(home: Path) -> Iterator[bool]:
    """Hold the lock of the home's one engine; False when another is there and answers."""
    deadline = time.monotonic() + _TURN_S
    while (lock := _locked(home)) is None:
        if _answers(home) or time.monotonic() >= deadline:
            yield False
            return
        time.sleep(_LOOK_S)
    try:
        yield True
    finally:
        lock.release()


def _locked(home: Path) -> "FileLock | None":
    """Return the lock, taken; None while another process has it.

    On a disk that knows no locks (some network disks) it lies where the socket does.

    Raises:
        BackendError: kind `disk`: there is no place for it.
    """
    from filelock import FileLock, Timeout

    places = [run_dir(home), *(place.parent for place in socket_places(home))]
    for place in dict.fromkeys(places):
        try:
            lock = FileLock(private_dir(place) / LOCK, timeout=0)
            lock.acquire()
        except Timeout:
            return None
        except (NotImplementedError, OSError, BackendError) as exc:
            _log.info("no lock at %s (%s)", place, type(exc).__name__)
        else:
            return lock
    raise BackendError(
        f"No file can be locked under {home}.",
        hint="Set FUNES_HOME to a directory on a local disk.",
        kind="disk",
    )


def _answers(home: Path) -> bool:
    """Return whether somebody listens for this home."""
    address = read_address(home)
    if address is None:
        return False
    try:
        open_socket(address).close()
    except OSError:
        return False
    return True


async def _serve(home: Path) -> None:
    # Indexing threads may not hold the interpreter for the usual 5 ms while a question waits.
    sys.setswitchinterval(0.001)
    hold_little_back()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_unhandled)
    sock, address = listen(home)
    core = Core(home, os.environ)
    core.address = str(address)
    server = Server(core, token=address.token)
    _end_on_signals(loop, server)
    listening = await server.listen(sock)
    _log.info("version %s listens at %s", __version__, address)
    core.warm_up()
    try:
        await server.until_ended(idle_s=core.settings.idle_s)
    finally:
        _withdraw(home, address, listening)
        await _finish(core, server)


def _withdraw(home: Path, address: Address, listening: asyncio.Server) -> None:
    """Be found by nobody any more: a front that comes now starts the next engine."""
    forget_address(home, address.pid)
    listening.close()


async def _finish(core: Core, server: Server) -> None:
    ends = time.monotonic() + _END_S
    closing = asyncio.get_running_loop().run_in_executor(None, lambda: core.close(wait_s=_END_S))
    await server.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, ends - time.monotonic())):
            await asyncio.shield(closing)


def _end_on_signals(loop: asyncio.AbstractEventLoop, server: Server) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, server.end, f"signal {number}")
        except NotImplementedError:  # Windows

            def handle(number: int, _frame: object) -> None:
                loop.call_soon_threadsafe(server.end, f"signal {number}")

            signal.signal(number, handle)


def _unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    exc = context.get("exception")
    _log.error("internal error\n%s", frames(exc if isinstance(exc, BaseException) else None))
