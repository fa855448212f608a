"""Serves one client, from connecting to the end of the process."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn

from funes_ls.handlers.features import make_front
from funes_ls.handlers.front import Front
from funes_ls.handlers.streams import Channel, converse, until_gone

#: How often to look whether the editor is still there.
_PARENT_EVERY_S = 2.0
_FLUSH_S = 1.0
_BY_SIGNAL = 128


async def serve(
    connect: Callable[[], Awaitable[Channel]], env: Mapping[str, str], *, parent: int | None
) -> int:
    """Speak with one client and return the exit code: 0 when it had asked to shut down.

    Args:
        connect: Connects to the client.
        env: Names the funes home.
        parent: The client's process; when it is gone, so are we. `initialize` may name another.

    Raises:
        FunesError: there is no client to connect to.
    """
    over: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
    _end_on_signals(over)
    channel = await _first(connect(), over)
    if channel is None:
        return _code(over, None)
    front = make_front(env)
    front.protocol.out = channel
    front.protocol.on_exit = lambda: _end(over, front.protocol.exit_code)
    watching: list[asyncio.Future[None]] = [
        asyncio.ensure_future(converse(channel, front.protocol)),
        asyncio.ensure_future(_parents(front, parent)),
    ]
    for task in watching:
        task.add_done_callback(lambda _: _end(over, None))
    await asyncio.wait({over})
    for task in watching:
        task.cancel()
    code = _code(over, front)
    await front.close()
    await channel.close(wait_s=_FLUSH_S)
    return code


async def _first(
    connecting: Awaitable[Channel], over: "asyncio.Future[int | None]"
) -> Channel | None:
    """Return the channel, None when a signal came first."""
    task = asyncio.ensure_future(connecting)
    both: set[asyncio.Future[Any]] = {task, over}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return None
    return await task


async def _parents(front: Front, parent: int | None) -> None:
    """Return when the client's process is gone, whichever way it was named."""
    watches = [asyncio.ensure_future(_gone(0 if parent is None else parent))]
    while not front.protocol.is_initialized:
        over, _ = await asyncio.wait(watches, timeout=_PARENT_EVERY_S / 4)
        if over:
            return
    if front.process_id is not None and front.process_id != parent:
        watches.append(asyncio.ensure_future(_gone(front.process_id)))
    await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)


async def _gone(pid: int) -> None:
    await until_gone(pid, every_s=_PARENT_EVERY_S)


def _end(over: "asyncio.Future[int | None]", code: int | None) -> None:
    if not over.done():
        over.set_result(code)


def _code(over: "asyncio.Future[int | None]", front: Front | None) -> int:
    code = over.result()
    if code is not None:
        return code
    return 0 if front is not None and front.protocol.is_shut else 1


def _end_on_signals(over: "asyncio.Future[int | None]") -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, _end, over, _BY_SIGNAL + number)
        except NotImplementedError:  # Windows

            def handle(number: int, _frame: object) -> None:
                loop.call_soon_threadsafe(_end, over, _BY_SIGNAL + number)

            signal.signal(number, handle)


def leave(code: int) -> NoReturn:
    """End the process; threads that work on what nobody waits for do not hold it up."""
    os._exit(code)
