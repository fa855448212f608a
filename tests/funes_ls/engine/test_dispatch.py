"""Every request is answered exactly once, whatever is asked, withdrawn, slow or broken."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from funes_ls import protocol, service
from funes_ls.engine import clients, dispatch, methods
from funes_ls.engine.framing import MAX_BODY_BYTES
from funes_ls.indexer.errors import BackendError, UsageError
from tests.e2e.cli import index
from tests.funes_ls.engine.talking import Talk, talking
from tests.sessions import record, write


@pytest.fixture
def memory(own_home: Path, funes_home: Path) -> Path:
    """Return a home that remembers one session."""
    records = [record("the pump hums in the cellar", uuid="u-1")]
    write(own_home / ".claude" / "projects" / "p" / "s.jsonl", records)
    index("--yes")
    return funes_home


@pytest.fixture
def talk(funes_home: Path) -> Iterator[Talk]:
    with talking(funes_home) as found:
        yield found


def recall(number: int | str, talk: Talk, query: str = "pump", **more: Any) -> dict[str, Any]:
    return talk.asked(number, "funes/recall", query=query, **more)


def still_answers(talk: Talk) -> bool:
    return "result" in talk.asked("still", "engine/status")


class Slow:
    """A recall that goes on until it is let go or nobody waits for it."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)
        self.let_go = threading.Event()

    def __call__(
        self, params: Any, _memories: Any, *, cancelled: Callable[[], bool], on_words: Any
    ) -> Any:
        self.begun.release()
        try:
            while not (cancelled() or self.let_go.is_set()):
                time.sleep(0.005)
            if cancelled():
                raise service.FunesError("The question was withdrawn.", kind="cancelled")
            return {"query": params.query}
        finally:
            self.ended.release()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    found = Slow()
    monkeypatch.setattr(service, "recall", found)
    yield found
    found.let_go.set()


def limited(monkeypatch: pytest.MonkeyPatch, method: str, limit_s: float) -> None:
    how = msgspec.structs.replace(methods.METHODS[method], limit_s=limit_s)
    monkeypatch.setitem(methods.METHODS, method, how)


def test_hello_comes_first(funes_home: Path) -> None:
    with talking(funes_home, greeted=False) as talk:
        error = talk.asked(1, "engine/status")["error"]
        assert (error["code"], error["data"]["kind"]) == (protocol.NOT_INITIALIZED, "no_hello")
        answer = talk.greet(notify=True, someThingOfALaterVersion=1)["result"]
        assert answer["protocol"] == protocol.PROTOCOL
        assert answer["home"] == str(funes_home)
        assert talk.greet()["error"]["code"] == protocol.INVALID_REQUEST
        assert still_answers(talk)


def test_every_method_of_the_protocol_is_served_or_said_to_be_absent(talk: Talk) -> None:
    served = set(methods.METHODS) | {"engine/hello"}
    assert served <= set(protocol.METHODS)
    for method in set(protocol.METHODS) - served:
        assert talk.asked(1, method, question="x")["error"]["code"] == protocol.METHOD_NOT_FOUND


def test_answers_are_those_of_the_command_line(memory: Path, talk: Talk) -> None:
    assert [hit["text"] for hit in recall(1, talk)["result"]["hits"]] == [
        "the pump hums in the cellar"
    ]
    hit = recall(2, talk)["result"]["hits"][0]
    got = talk.asked(3, "funes/get", sessionId=hit["session_id"], turnUuid=hit["turn_uuid"])
    assert got["result"]["found"]
    assert talk.asked(4, "funes/sessions")["result"]["total"] == 1
    assert talk.asked(5, "funes/status")["result"]["chunks"] == 1
    assert talk.asked(6, "funes/status", problems=True)["result"] == {"problems": []}
    assert talk.asked(7, "funes/memories")["result"]["memories"][0]["state"] == "ready"


@pytest.mark.parametrize("body", [b"{", b"nonsense", b"", b'{"a": NaN}', b"[" * 100_000])
def test_malformed_json_is_told_of_and_the_next_request_answered(talk: Talk, body: bytes) -> None:
    talk.body(body)
    message = talk.receive()
    assert (message["id"], message["error"]["code"]) == (None, protocol.PARSE_ERROR)
    assert still_answers(talk)


@pytest.mark.parametrize(
    "message",
    [
        [],
        1,
        {"jsonrpc": "2.0"},
        {"id": 1.5, "method": "engine/status"},
        {"id": True, "method": 7},
        {"id": {"a": 1}, "method": "engine/status"},
    ],
)
def test_what_is_no_request_is_refused(talk: Talk, message: Any) -> None:
    talk.body(json.dumps(message).encode())
    assert talk.receive()["error"]["code"] == protocol.INVALID_REQUEST
    assert still_answers(talk)


@pytest.mark.parametrize("method", ["", "funes/none", "$/x", "engine/exit", "x" * 10_000])
def test_unknown_requests_are_refused_and_unknown_notifications_ignored(
    talk: Talk, method: str
) -> None:
    talk.send(method=method, params={"a": 1})
    error = talk.asked(1, method)["error"]
    assert (error["code"], error["data"]["kind"]) == (
        protocol.METHOD_NOT_FOUND,
        "no_such_method",
    )
    assert len(error["message"]) < 200
    assert still_answers(talk)


@pytest.mark.parametrize(
    ("method", "params", "named"),
    [
        ("funes/recall", {}, "question is empty"),
        ("funes/recall", {"query": 7}, "$.query"),
        ("funes/recall", {"query": "x", "k": "many"}, "$.k"),
        ("funes/recall", {"query": "x", "nonsense": 1}, "nonsense"),
        ("funes/recall", [1], "array"),
        ("funes/get", {"sessionId": "x"}, "turnUuid"),
        ("funes/recall", {"query": "x", "partialResultToken": 1.5}, "partialResultToken"),
        ("funes/recall", {"query": "x", "k": -1}, "k must be"),
        ("funes/recall", {"query": "  "}, ""),
        ("funes/recall", {"query": "x", "type": "nonsense"}, "nonsense"),
    ],
)
def test_wrong_params_are_named(
    memory: Path, talk: Talk, method: str, params: Any, named: str
) -> None:
    talk.send(id=1, method=method, params=params)
    error = talk.answer(1)["error"]
    assert error["code"] == protocol.INVALID_PARAMS
    assert named in error["message"]
    assert error["data"]["kind"]
    assert still_answers(talk)


@pytest.mark.parametrize(
    "query",
    [
        "nul\0byte",
        "half \ud800 of a character",
        "\U0001f600" * 50,
        '"quotes" AND (syntax] ~ ^ *',
        "../../etc/passwd",
        "'; DROP TABLE sessions; --",
    ],
)
def test_odd_questions_are_answered(memory: Path, talk: Talk, query: str) -> None:
    assert "hits" in recall(1, talk, query)["result"]
    assert still_answers(talk)


def test_a_question_of_ten_megabytes_is_refused_at_once(memory: Path, talk: Talk) -> None:
    started = time.monotonic()
    error = recall(1, talk, "pump and more words " * 500_000)["error"]
    assert time.monotonic() - started < 5
    assert error["code"] == protocol.INVALID_PARAMS
    assert "characters" in error["message"]
    assert len(error["message"]) < 500
    assert still_answers(talk)


def test_a_body_that_is_too_long_is_skipped(talk: Talk) -> None:
    size = MAX_BODY_BYTES + 5
    talk.raw(b"Content-Length: %d\r\n\r\n" % size)
    sent = threading.Thread(target=talk.raw, args=(b"x" * size,))
    sent.start()
    error = talk.receive()["error"]
    assert error["data"]["kind"] == "too_long"
    sent.join()
    assert still_answers(talk)


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"x" * 300_000,
    ],
)
def test_lost_framing_ends_the_connection_with_a_word(talk: Talk, header: bytes) -> None:
    talk.raw(header)
    error = talk.receive()["error"]
    assert (error["code"], error["data"]["kind"]) == (protocol.PARSE_ERROR, "framing")
    assert talk.is_over()


def test_lost_framing_of_one_client_is_nothing_to_others(funes_home: Path, talk: Talk) -> None:
    with talking(funes_home) as other:
        other.raw(b"nonsense\r\n\r\n")
        assert other.is_over()
    assert still_answers(talk)


def test_headers_in_any_case_with_others_beside(talk: Talk) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"engine/status"}'
    talk.raw(
        b"content-type: application/vscode-jsonrpc; charset=utf8\r\ncontent-LENGTH:%d\r\n\r\n%b"
        % (len(body), body)
    )
    assert "result" in talk.answer(1)


def test_an_unexpected_error_says_nothing_of_where_it_happened(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = "what somebody said to an agent"

    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError(said)

    monkeypatch.setattr(service, "recall", broken)
    answer = recall(1, talk)
    assert answer["error"]["code"] == protocol.INTERNAL_ERROR
    told = json.dumps(answer)
    assert "somebody said" not in told
    assert "Traceback" not in told
    assert "/" not in answer["error"]["message"]
    assert "somebody said" not in caplog.text
    assert "ValueError" in caplog.text
    assert still_answers(talk)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BackendError("The disk is full.", hint="Make room.", kind="disk"), -32803),
        (UsageError("There is no such thing.", hint="See `funes -h`."), -32602),
    ],
)
def test_errors_for_people_keep_kind_and_hint(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, error: Any, code: int
) -> None:
    def refusing(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(service, "recall", refusing)
    told = recall(1, talk)["error"]
    assert (told["code"], told["message"]) == (code, error.message)
    assert told["data"] == {"kind": error.kind, "hint": error.hint}


def test_a_withdrawn_request_is_answered_once_and_at_once(talk: Talk, slow: Slow) -> None:
    talk.ask(1, "funes/recall", query="x")
    assert slow.begun.acquire(timeout=10)
    started = time.monotonic()
    talk.send(method="$/cancelRequest", params={"id": 1})
    talk.send(method="$/cancelRequest", params={"id": 1})
    assert talk.answer(1)["error"]["code"] == protocol.REQUEST_CANCELLED
    assert time.monotonic() - started < 0.25
    assert slow.ended.acquire(timeout=0.25)
    talk.send(method="$/cancelRequest", params={"id": 1})
    assert still_answers(talk)  # and nothing else came in between


@pytest.mark.parametrize("wanted", [7, "x", None, {"a": 1}, 1.5, [1]])
def test_withdrawing_what_was_never_asked_is_nothing(talk: Talk, wanted: Any) -> None:
    talk.send(method="$/cancelRequest", params={"id": wanted})
    talk.send(method="$/cancelRequest", params=wanted)
    assert still_answers(talk)


def test_requests_that_wait_for_a_thread_can_be_withdrawn(talk: Talk, slow: Slow) -> None:
    for number in range(20):
        talk.ask(number, "funes/recall", query="x")
    talk.send(method="$/cancelRequest", params={"id": 19})
    assert talk.answer(19)["error"]["code"] == protocol.REQUEST_CANCELLED
    slow.let_go.set()
    answers = [talk.receive()["id"] for _ in range(19)]
    assert sorted(answers) == list(range(19))


def test_what_takes_too_long_is_given_up(
    talk: Talk, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, "funes/recall", 0.1)
    error = recall(1, talk)["error"]
    assert (error["code"], error["data"]["kind"]) == (protocol.REQUEST_FAILED, "timeout")
    assert slow.ended.acquire(timeout=1)
    assert still_answers(talk)


def test_slow_questions_do_not_hold_up_answers_from_tables(talk: Talk, slow: Slow) -> None:
    for number in range(30):
        talk.ask(number, "funes/recall", query="x")
    assert slow.begun.acquire(timeout=10)
    started = time.monotonic()
    assert still_answers(talk)
    assert time.monotonic() - started < 0.5


def test_more_than_so_many_at_once_are_refused(talk: Talk, slow: Slow) -> None:
    for number in range(dispatch.MOST_ASKED + 3):
        talk.ask(number, "funes/recall", query="x")
    for number in range(dispatch.MOST_ASKED, dispatch.MOST_ASKED + 3):
        error = talk.answer(number)["error"]
        assert (error["code"], error["data"]["kind"]) == (protocol.REQUEST_FAILED, "busy")
    slow.let_go.set()
    answers = {talk.receive()["id"] for _ in range(dispatch.MOST_ASKED)}
    assert answers == set(range(dispatch.MOST_ASKED))
    assert still_answers(talk)


def test_an_id_in_use_is_refused(talk: Talk, slow: Slow) -> None:
    talk.ask("a", "funes/recall", query="x")
    talk.ask("a", "engine/status")
    assert talk.answer("a")["error"]["code"] == protocol.INVALID_REQUEST
    slow.let_go.set()
    assert talk.answer("a")["result"] == {"query": "x"}


def test_a_client_that_hangs_up_withdraws_what_it_asked(
    funes_home: Path, talk: Talk, slow: Slow
) -> None:
    with talking(funes_home) as other:
        other.ask(1, "funes/recall", query="x")
        assert slow.begun.acquire(timeout=10)
    assert slow.ended.acquire(timeout=2)
    assert still_answers(talk)


def test_a_client_that_does_not_read_is_dropped(
    funes_home: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "SLOW_S", 0.3)
    long = {"text": "x" * 3_000_000}
    monkeypatch.setattr(service, "recall", lambda *_, **__: long)
    with talking(funes_home) as other:
        for number in range(5):
            other.ask(number, "funes/recall", query="x")
        deadline = time.monotonic() + 10
        while talk.asked("n", "engine/status")["result"]["clients"] > 1:
            assert time.monotonic() < deadline
        assert other.is_over()
    assert still_answers(talk)


def test_a_client_that_lets_too_much_pile_up_is_dropped(
    funes_home: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MOST_UNREAD_BYTES", 2_000_000)
    monkeypatch.setattr(service, "recall", lambda *_, **__: {"text": "x" * 3_000_000})
    with talking(funes_home) as other:
        other.ask(1, "funes/recall", query="x")
        assert other.is_over()
    assert still_answers(talk)


def test_a_client_without_hello_is_dropped(
    funes_home: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "HELLO_S", 0.1)
    with talking(funes_home, greeted=False) as other:
        assert other.is_over()
    assert still_answers(talk)


def test_words_come_first_and_nothing_after_the_answer(memory: Path, talk: Talk) -> None:
    talk.ask(1, "funes/recall", query="pump", partialResultToken="t")
    first = talk.receive()
    assert (first["method"], first["params"]["token"]) == ("$/progress", "t")
    early = first["params"]["value"]
    assert [hit["text"] for hit in early["hits"]] == ["the pump hums in the cellar"]
    assert early["legs"]["vector"] == "pending"
    last = talk.receive()
    assert last["id"] == 1
    assert last["result"]["legs"]["vector"] == "ran"
    assert talk.asked(2, "engine/status")["id"] == 2


def test_progress_of_an_index_begins_once_and_ends_once(own_home: Path, talk: Talk) -> None:
    for n in range(30):
        records = [record(f"turn {t} of session {n}", uuid=f"{n}-{t}") for t in range(5)]
        write(own_home / ".claude" / "projects" / "p" / f"s{n}.jsonl", records)
    talk.ask(1, "funes/index", finish=True, workDoneToken=9)
    told = []
    while (message := talk.receive()).get("id") != 1:
        assert message["params"]["token"] == 9
        told.append(message["params"]["value"])
    assert message["result"]["chunks"] == 150
    kinds = [value["kind"] for value in told]
    assert (kinds[0], kinds[-1], kinds.count("begin"), kinds.count("end")) == (
        "begin",
        "end",
        1,
        1,
    )
    shares = [value["percentage"] for value in told if "percentage" in value]
    assert shares == sorted(shares)
    assert all("event" in value for value in told if value["kind"] == "report")


def test_who_wants_news_is_told_when_the_memory_changes(own_home: Path, funes_home: Path) -> None:
    write(own_home / ".claude" / "projects" / "p" / "s.jsonl", [record("new", uuid="u")])
    with talking(funes_home, notify=True) as talk, talking(funes_home) as deaf:
        assert deaf.asked(1, "funes/index", finish=True)["result"]["chunks"] == 1
        while (message := talk.receive())["method"] != "funes/didIndex":
            assert message["method"] == "engine/progress"
        news = message["params"]
        assert news["generation"] > 0
        assert recall(1, talk, "new")["result"]["generation"] >= news["generation"]
        assert "result" in deaf.asked(2, "engine/status")


def test_no_model_is_fetched_that_nobody_asked_for(
    own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNES_MODEL")
    fetched: list[Any] = []

    def acquire(*args: Any, **_: Any) -> Any:
        fetched.append(args)
        raise BackendError("There is no network.", kind="offline")

    monkeypatch.setattr("funes_ls.models.acquire", acquire)
    write(own_home / ".claude" / "projects" / "p" / "s.jsonl", [record("new", uuid="u")])
    with talking(funes_home) as talk:
        assert talk.asked(1, "funes/index", wordsOnly=True)["result"]["stopped"] == "words_only"
        deadline = time.monotonic() + 10
        while "No model" not in talk.asked(2, "engine/status")["result"]["note"]:
            assert time.monotonic() < deadline
        assert fetched == []
        assert talk.asked(3, "funes/index", finish=True)["result"]["stopped"] == "no_model"
        assert fetched


def test_an_agent_is_asked_and_what_it_writes_comes_in_pieces(
    memory: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(params: Any, _memories: Any, *, on_text: Any, **_: Any) -> Any:
        for word in params.question.split():
            on_text(word)
        return {"text": params.question}

    monkeypatch.setattr("funes_ls.ask.ask", ask)
    talk.ask(1, "funes/ask", question="why so", partialResultToken=3)
    told = [talk.receive()["params"], talk.receive()["params"]]
    assert told == [{"token": 3, "value": {"text": one}} for one in ("why", "so")]
    assert talk.answer(1)["result"] == {"text": "why so"}
    assert talk.asked(2, "funes/ask", question="again")["result"] == {"text": "again"}


def test_a_session_is_forgotten_for_good(memory: Path, talk: Talk) -> None:
    session = talk.asked(1, "funes/sessions")["result"]["sessions"][0]["session_id"]
    dry = talk.asked(2, "funes/forget", session=session, dryRun=True)["result"]
    assert (dry["chunks"], dry["forgotten"]) == (1, False)
    assert recall(3, talk)["result"]["hits"]
    done = talk.asked(4, "funes/forget", session=session)["result"]
    assert (done["chunks"], done["forgotten"]) == (1, True)
    assert recall(5, talk)["result"]["hits"] == []
    again = talk.asked(6, "funes/forget", session=session)["result"]
    assert (again["total"], again["note"]) == (0, "It was forgotten before.")
    unknown = talk.asked(7, "funes/forget", session="no-such-session")["error"]
    assert unknown["code"] == protocol.INVALID_PARAMS


def test_settings_change_without_a_restart(memory: Path, talk: Talk) -> None:
    assert recall(1, talk)["result"]["hits"]
    (memory / "config.toml").write_text("memory = '/nowhere'\n", encoding="utf-8")
    assert recall(2, talk)["error"]["data"]["kind"] == "no_such_memory"
    (memory / "config.toml").write_text("nonsense\n", encoding="utf-8")
    assert recall(3, talk)["result"]["hits"]
