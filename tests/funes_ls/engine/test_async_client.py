"""A front on asyncio: many questions at once, withdrawn ones, and an engine that dies."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from funes_ls import service
from funes_ls.engine import async_client
from funes_ls.engine.async_client import Engine
from funes_ls.engine.client import EngineError, connect
from tests.e2e.cli import index
from tests.e2e.engines import Engines
from tests.sessions import record, write

SAID = "the crane turns at dawn"
Test = Callable[[Engine], Coroutine[Any, Any, None]]


@pytest.fixture
def memory(own_home: Path, funes_home: Path) -> Path:
    write(own_home / ".claude" / "projects" / "p" / "s.jsonl", [record(SAID, uuid="u-1")])
    index("--yes")
    return funes_home


@pytest.fixture
def engines(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(memory, os.environ) as found:
        yield found


@asynccontextmanager
async def connected(home: Path, **more: Any) -> AsyncIterator[Engine]:
    engine = Engine(home, client="test", env=os.environ, **more)
    try:
        yield engine
    finally:
        await engine.close()


async def texts(engine: Engine, query: str = SAID, **more: Any) -> list[str]:
    answer = await engine.request("funes/recall", {"query": query}, timeout_s=20, **more)
    return [hit["text"] for hit in answer["hits"]]


def run(home: Path, test: Test, **more: Any) -> None:
    async def main() -> None:
        async with connected(home, **more) as engine:
            await test(engine)

    asyncio.run(main())


def test_inline_and_in_a_process_of_its_own_it_is_the_same(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(engine: Engine) -> None:
        early: list[Any] = []
        assert engine.hello == {}
        assert await texts(engine, on_partial=early.append) == [SAID]
        assert [one["legs"]["vector"] for one in early] == ["pending"]
        found = await asyncio.gather(*(texts(engine, f"crane {n}") for n in range(20)))
        assert found == [[SAID]] * 20
        assert engine.hello["home"] == str(memory)
        with pytest.raises(EngineError) as caught:
            await engine.request("funes/get", {"sessionId": 1}, timeout_s=5)
        assert caught.value.code == -32602

    run(memory, test)
    monkeypatch.delenv("FUNES_ENGINE")
    with Engines(memory, os.environ):
        run(memory, test)


def test_a_cancelled_task_withdraws_its_request(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    withdrawn = asyncio.Event()

    async def test(engine: Engine) -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def slow(_params: Any, _memories: Any, *, cancelled: Callable[[], bool], **_: Any) -> Any:
            loop.call_soon_threadsafe(begun.set)
            while not cancelled():
                pass
            loop.call_soon_threadsafe(withdrawn.set)
            raise service.FunesError("withdrawn", kind="cancelled")

        monkeypatch.setattr(service, "recall", slow)
        task = asyncio.create_task(texts(engine))
        await asyncio.wait_for(begun.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(withdrawn.wait(), 5)
        assert (await engine.request("engine/status", {}, timeout_s=5))["clients"] == 1

    run(memory, test)


def test_what_is_not_answered_in_time_is_an_error_that_says_so(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(_params: Any, _memories: Any, *, cancelled: Callable[[], bool], **_: Any) -> Any:
        while not cancelled():
            pass
        raise service.FunesError("withdrawn", kind="cancelled")

    async def test(engine: Engine) -> None:
        await engine.ready()
        monkeypatch.setattr(service, "recall", slow)
        with pytest.raises(EngineError) as caught:
            await engine.request("funes/recall", {"query": "x"}, timeout_s=0.2)
        assert caught.value.kind == "engine_timeout"
        assert await engine.request("funes/sessions", {}, timeout_s=5)

    run(memory, test)


def test_a_killed_engine_is_replaced_and_news_go_on(
    engines: Engines, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "_FIRST_PAUSE_S", 0.05)

    async def test(engine: Engine) -> None:
        news: asyncio.Queue[Any] = asyncio.Queue()
        engine.on_notification("funes/didIndex", news.put_nowait)
        assert await texts(engine) == [SAID]
        first = engine.hello["pid"]
        await asyncio.to_thread(engines.kill)
        assert await texts(engine) == [SAID]
        assert engine.hello["pid"] != first
        write(
            own_home / ".claude" / "projects" / "p" / "t.jsonl", [record("and at dusk", uuid="u")]
        )
        await engine.request("funes/index", {"finish": True}, timeout_s=30)
        told = await asyncio.wait_for(news.get(), 20)
        assert told["generation"] > 0

    run(engines.home, test)


def test_news_make_it_connect_again_without_being_asked(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "_FIRST_PAUSE_S", 0.05)

    async def test(engine: Engine) -> None:
        await engine.ready()
        first = engine.hello["pid"]
        await asyncio.to_thread(engines.kill)
        async with asyncio.timeout(30):
            while engine.hello.get("pid", first) == first:
                await asyncio.sleep(0.02)

    run(engines.home, test, notify=True)


def test_an_engine_that_cannot_be_had_costs_little_each_time(
    funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_ENGINE")
    tries = 0
    real = connect

    def counted(*args: Any, **more: Any) -> Any:
        nonlocal tries
        tries += 1
        return real(*args, **more)

    monkeypatch.setattr(async_client.blocking, "connect", counted)

    async def test(engine: Engine) -> None:
        for _ in range(10):
            with pytest.raises(EngineError) as caught:
                await engine.request("engine/status", {}, timeout_s=5)
            assert caught.value.kind == "engine_down"
        assert tries == 1

    run(funes_home, test, start=False, notify=False)


def test_half_a_character_from_an_editor(memory: Path) -> None:
    async def test(engine: Engine) -> None:
        assert await texts(engine, "crane \ud800") == [SAID]

    run(memory, test)


def test_after_closing_there_is_nothing(memory: Path) -> None:
    async def main() -> None:
        engine = await Engine.connect(memory, client="test", env=os.environ)
        await engine.close()
        with pytest.raises(EngineError):
            await engine.request("engine/status", {}, timeout_s=5)

    asyncio.run(main())
