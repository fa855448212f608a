"""Progress of long work, messages, traces and logs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import env_of
from tests.e2e.engines import Engines, until
from tests.e2e.lsp_client import FULL, LspError, Server, Servers, obliging
from tests.sessions import record, write

pytestmark = pytest.mark.timeout(120)
INDEX = {"command": "funes.index"}
CREATE = "window/workDoneProgress/create"


@pytest.fixture
def many(tmp_path: Path, tiny_model: Path) -> Iterator[Engines]:
    """An engine without a memory yet, and enough sessions for an index to take a while."""
    home = tmp_path / "own"
    folder = home / ".claude" / "projects" / "p"
    for number in range(150):
        said = [
            record(f"steam of boiler {number} at hour {turn}", uuid=f"{number}-{turn}")
            for turn in range(30)
        ]
        write(folder / f"{number}.jsonl", said)
    with Engines(home / ".funes", env_of(home, tiny_model)) as found:
        yield found


@pytest.fixture
def own(many: Engines, tmp_path: Path) -> Iterator[Servers]:
    with Servers(many.env, tmp_path) as found:
        yield found


def offering(work_done: bool) -> dict[str, Any]:
    return {**FULL, "window": {**FULL["window"], "workDoneProgress": work_done}}


def values_until_end(server: Server, token: Any) -> list[dict[str, Any]]:
    values = [server.progress(token)]
    while values[-1]["kind"] != "end":
        values.append(server.progress(token))
    return values


def check_order(values: list[dict[str, Any]]) -> None:
    kinds = [value["kind"] for value in values]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert kinds.count("begin") == kinds.count("end") == 1
    told = [value["percentage"] for value in values if "percentage" in value]
    assert told == sorted(told) and told[0] >= 0 and told[-1] <= 100


def test_s24_no_token_is_made_for_a_client_without_progress(servers: Servers) -> None:
    server = servers.ready(offering(False))
    assert "sessions" in server.request("workspace/executeCommand", INDEX)
    assert CREATE not in [method for method, _ in server.served]
    assert server.waiting("$/progress") == []


def test_s24_nothing_is_told_under_a_token_that_was_refused(servers: Servers) -> None:
    server = servers.ready()

    def refuse(_params: Any) -> Any:
        raise LspError({"code": -32603, "message": "no"})

    server.answers[CREATE] = refuse
    assert "sessions" in server.request("workspace/executeCommand", INDEX)
    assert CREATE in [method for method, _ in server.served]
    assert server.waiting("$/progress") == []


def test_s25_one_begin_reports_that_do_not_fall_and_one_end(own: Servers) -> None:
    server = own.ready()
    tokens = []
    for _ in range(2):
        report = server.request("workspace/executeCommand", INDEX)
        assert report["problems"] == 0
        token = [params["token"] for method, params in server.served if method == CREATE][-1]
        tokens.append(token)
        check_order(values_until_end(server, token))
    assert tokens[0] != tokens[1]
    assert server.waiting("$/progress") == []


def test_s25_an_end_also_after_an_error(server: Server, tmp_path: Path) -> None:
    params = {"target": str(tmp_path / "nowhere"), "workDoneToken": "of-the-client"}
    with pytest.raises(LspError) as caught:
        server.request("funes/index", params)
    assert caught.value.code in (-32602, -32803)
    check_order(values_until_end(server, "of-the-client"))


@pytest.mark.parametrize("cancel", ["request", "progress"])
def test_s26_a_cancelled_index_stops_and_leaves_a_sound_memory(
    own: Servers, many: Engines, cancel: str
) -> None:
    server = own.ready()
    number = server.begin("funes/index", {"workDoneToken": "work"})
    values = [server.progress("work")]
    while values[-1]["kind"] != "report":
        values.append(server.progress("work"))
    if cancel == "request":
        server.notify("$/cancelRequest", {"id": number})
    else:
        server.notify("window/workDoneProgress/cancel", {"token": "work"})
    with pytest.raises(LspError) as caught:
        server.answer(number)
    assert caught.value.code == -32800
    values += values_until_end(server, "work")
    check_order(values)
    server.notify("window/workDoneProgress/cancel", {"token": "work"})
    assert server.is_silent()
    until(lambda: not many.ask("engine/status")["indexing"], what="the engine has stopped")
    params = {"finish": True, "workDoneToken": "again"}
    report = server.request("funes/index", params, timeout_s=60)
    check_order(values_until_end(server, "again"))
    assert report["problems"] == 0
    status = server.request("funes/status", {})
    assert (status["sessions"], status["turns"], status["words_only"]) == (150, 4500, 0)


def test_s27_a_token_is_not_used_after_its_response(own: Servers) -> None:
    server = own.ready()
    number = server.begin("funes/index", {"workDoneToken": "w", "partialResultToken": "p"})
    after: list[Any] = []
    while True:
        message = server.await_message(lambda _: True)
        if "method" not in message and message.get("id") == number:
            break
        after.append(message)
    check_order([one["params"]["value"] for one in after if one["params"]["token"] == "w"])
    number = server.begin("funes/recall", {"query": "steam", "partialResultToken": "r"})
    server.progress("r")
    server.answer(number)
    assert server.is_silent()


def test_s28_traces_only_when_they_are_on(servers: Servers) -> None:
    server = servers.ready(trace="off")
    server.request("funes/status", {})
    assert server.is_silent()
    server.notify("$/setTrace", {"value": "messages"})
    server.request("funes/status", {})
    assert "funes/status answered in" in server.told("$/logTrace")["message"]
    server.notify("$/setTrace", {"value": "verbose"})
    server.request("funes/recall", {"query": "gauge poller"})
    assert "gauge" not in str(server.told("$/logTrace"))
    server.notify("$/setTrace", {"value": "off"})
    server.request("funes/status", {})
    assert server.is_silent()


def test_s29_log_messages_do_not_breed(servers: Servers) -> None:
    server = servers.extended(
        """
    import logging
    @ls.feature("test/log")
    async def log(params):
        logging.getLogger("pygls.protocol").error("of pygls %s", "SECRET")
        logging.getLogger("funes_ls.server").warning("of ours")
        logging.getLogger("funes_ls.server").info("too quiet")
        return None
"""
    )
    server.initialize()
    for _ in range(3):
        server.request("test/log", {})
        assert server.told("window/logMessage") == {"type": 2, "message": "of ours"}
    assert server.is_silent()
    server.shut()
    assert "SECRET" not in server.log


@pytest.mark.parametrize("level", ["error", "warning", "info", "debug"])
def test_s30_no_message_is_of_a_kind_of_later_protocols(servers: Servers, level: str) -> None:
    server = servers.extended(
        """
    import logging
    @ls.feature("test/log")
    async def log(params):
        for number in (10, 20, 30, 40):
            logging.getLogger("funes_ls.server").log(number, "at %d", number)
        return None
    logging.getLogger("funes_ls").setLevel(10)
"""
    )
    server.initialize(initializationOptions={"log": {"level": level}})
    server.request("test/log", {})
    told = [one for one in server.waiting("window/logMessage") if one["message"].startswith("at")]
    names = ["error", "warning", "info", "debug"]
    assert [one["type"] for one in told] == sorted(range(1, names.index(level) + 2), reverse=True)


def test_s38_lenses_are_refreshed_once_a_pass_and_only_where_wanted(own: Servers) -> None:
    wanting = own.ready()
    unwilling = obliging(own.start())
    unwilling.initialize({**FULL, "workspace": {"configuration": True}})
    wanting.unheard.clear()
    params = {"finish": True, "workDoneToken": "w"}
    report = wanting.request("funes/index", params, timeout_s=60)
    assert report["problems"] == 0
    check_order(values_until_end(wanting, "w"))
    refresh = "workspace/codeLens/refresh"
    until(lambda: refresh in [method for method, _ in wanting.served])
    assert wanting.is_silent(for_s=1.5)
    assert [method for method, _ in wanting.served].count(refresh) == 1
    assert wanting.waiting("funes/didIndex")
    assert refresh not in [method for method, _ in unwilling.served]
    assert unwilling.leftovers() == []


def test_nothing_of_a_session_is_logged(servers: Servers) -> None:
    server = obliging(servers.start("--log-level", "debug"))
    server.unheard.add("window/logMessage")
    server.initialize(initializationOptions={"log": {"level": "debug"}})
    for hit in server.request("funes/recall", {"query": "gauge poller station 8443"})["hits"]:
        uri = f"funes:/turn/{hit['session_id']}/{hit['turn_uuid']}.md"
        assert server.request("funes/document", {"uri": uri})["text"]
    assert server.shut() == 0
    assert "8443" not in server.log and "poller" not in server.log
