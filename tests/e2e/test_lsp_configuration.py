"""Settings that editors send, and the folders they are for."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.engines import until
from tests.e2e.known import client
from tests.e2e.lsp_client import FULL, Server, Servers, obliging

pytestmark = pytest.mark.timeout(90)
QUERY = {"query": "gauge poller station"}
PULL = "workspace/configuration"
WARNED = "window/showMessage"
PUSHING = {**FULL, "workspace": {"workspaceFolders": True}}


def hits(server: Server, **more: Any) -> int:
    return len(server.request("funes/recall", {**QUERY, **more})["hits"])


def with_settings(servers: Servers, answer: Callable[[Any], Any], **more: Any) -> Server:
    server = obliging(servers.start())
    server.answers[PULL] = answer
    server.initialize(**more)
    return server


def folder(path: str) -> dict[str, str]:
    return {"uri": f"file://{path}", "name": Path(path).name}


def test_s31_wrong_options_are_told_of_once_and_defaults_used(servers: Servers) -> None:
    options = {
        "recall": {"k": "many", "halfLife": -1, "nonsense": 1},
        "hover": {"enabled": "yes"},
        "index": {"threads": 2},
        "server": {"path": "/of/the/client"},
    }
    server = servers.ready(initializationOptions=options)
    said = server.told(WARNED)
    assert said["type"] == 2
    for key in ("recall.k", "recall.halfLife", "recall.nonsense", "hover.enabled", "index.threads"):
        assert f"funes.{key} " in said["message"]
    assert "config.toml" in said["message"] and "server.path" not in said["message"]
    assert hits(server) == 8
    assert server.is_silent()


@pytest.mark.parametrize("section", [{"recall": {"k": 0}}, {"recal": {"k": 3}}, [1], "text"])
def test_s31_a_wrong_section_is_told_of_once(servers: Servers, section: Any) -> None:
    server = with_settings(servers, lambda params: [section] * len(params["items"]))
    assert "ignored" in server.told(WARNED)["message"]
    assert hits(server) == 8
    server.notify("workspace/didChangeConfiguration", {"settings": None})
    until(lambda: [method for method, _ in server.served].count(PULL) == 2)
    assert hits(server) == 8
    assert server.is_silent()


@pytest.mark.parametrize("options", [None, {}, {"funes": None}, 7, "text", [1]])
def test_s31_options_of_any_kind_do_not_keep_the_server_from_starting(
    servers: Servers, options: Any
) -> None:
    server = servers.ready(PUSHING, initializationOptions=options)
    assert hits(server) == 8
    assert len(server.waiting(WARNED)) == (0 if not options or isinstance(options, dict) else 1)


def test_s32_a_client_without_configuration(servers: Servers) -> None:
    server = servers.ready(PUSHING, initializationOptions={"recall": {"k": 2}})
    assert hits(server) == 2
    assert hits(server, k=3) == 3
    assert PULL not in [method for method, _ in server.served]
    settings = {"funes": {"recall": {"k": 4}}}
    server.notify("workspace/didChangeConfiguration", {"settings": settings})
    assert hits(server) == 4
    for nothing in (None, {}, {"other": 1}):
        server.notify("workspace/didChangeConfiguration", {"settings": nothing})
    assert hits(server) == 4


def test_s32_the_environment_outranks_the_editor(servers: Servers) -> None:
    servers.env["FUNES_K"] = "1"
    server = servers.ready(PUSHING, initializationOptions={"recall": {"k": 2}})
    assert hits(server) == 1


@pytest.mark.parametrize("answer", [lambda params: [None] * len(params["items"]), lambda _: None])
def test_s33_null_for_a_scope(servers: Servers, answer: Callable[[Any], Any]) -> None:
    options = {"funes": {"recall": {"k": 2}}}
    folders = [folder("/work/a"), folder("/work/b")]
    server = with_settings(servers, answer, initializationOptions=options, workspaceFolders=folders)
    assert hits(server) == 2
    assert [item.get("scopeUri") for item in server.served[0][1]["items"]] == [
        None,
        "file:///work/a",
        "file:///work/b",
    ]
    assert server.is_silent()


def test_s34_changed_settings_apply_without_a_restart(servers: Servers) -> None:
    wanted = {"k": 2}
    server = with_settings(servers, lambda params: [{"recall": wanted}] * len(params["items"]))
    assert hits(server) == 2
    wanted["k"] = 5
    server.notify("workspace/didChangeConfiguration", {"settings": None})
    assert until(lambda: hits(server) == 5)


def test_s34_it_registers_for_changes_where_the_client_wants_that(servers: Servers) -> None:
    server = obliging(servers.start())
    server.answers["client/registerCapability"] = lambda _params: None
    workspace = {**FULL["workspace"], "didChangeConfiguration": {"dynamicRegistration": True}}
    server.initialize({**FULL, "workspace": workspace})
    registered = until(
        lambda: [params for name, params in server.served if name == "client/registerCapability"]
    )
    [registration] = registered[0]["registrations"]
    assert registration["method"] == "workspace/didChangeConfiguration"
    assert registration["registerOptions"] == {"section": "funes"}


TOUCHED = client()
WRITTEN = {"line": TOUCHED.line("ATTEMPTS = 3"), "character": 0}


def hover(server: Server) -> Any:
    server.open(TOUCHED.uri, TOUCHED.text)
    params = {"textDocument": {"uri": TOUCHED.uri}, "position": WRITTEN}
    return server.request("textDocument/hover", params)


def shows(server: Server) -> bool:
    """Return whether hovers are on for the file; the engine may be slow at first."""
    server.request("funes/related", {"path": TOUCHED.path})
    return hover(server) is not None


def by_scope(settings: dict[str | None, bool]) -> Callable[[Any], Any]:
    """Answer with settings per folder that turn hovers on or off."""

    def answer(params: Any) -> list[Any]:
        found = [settings.get(item.get("scopeUri")) for item in params["items"]]
        return [None if one is None else {"hover": {"enabled": one}} for one in found]

    return answer


def test_s35_the_innermost_folder_decides(servers: Servers) -> None:
    outer, inner = "/home/dev/src", "/home/dev/src/tidewater"
    settings: dict[str | None, bool] = {f"file://{outer}": False, f"file://{inner}": True}
    folders = [folder(outer), folder(inner)]
    server = with_settings(servers, by_scope(settings), workspaceFolders=folders)
    assert shows(server)
    changed = {"event": {"added": [], "removed": [folder(inner)]}}
    server.notify("workspace/didChangeWorkspaceFolders", changed)
    until(lambda: not shows(server), what="the outer folder's settings hold")
    changed = {"event": {"added": [folder(inner)], "removed": []}}
    server.notify("workspace/didChangeWorkspaceFolders", changed)
    until(lambda: shows(server), what="the inner folder's settings hold again")


def test_s35_a_folder_whose_name_only_begins_alike_does_not_decide(servers: Servers) -> None:
    near = "/home/dev/src/tide"
    settings: dict[str | None, bool] = {f"file://{near}": False}
    server = with_settings(servers, by_scope(settings), workspaceFolders=[folder(near)])
    assert shows(server)


def test_s35_adding_twice_and_removing_the_last(servers: Servers) -> None:
    only = "/home/dev/src"
    settings: dict[str | None, bool] = {f"file://{only}": False}
    server = with_settings(servers, by_scope(settings), workspaceFolders=[folder(only)])
    assert not shows(server)
    changed = {"event": {"added": [folder(only)], "removed": []}}
    server.notify("workspace/didChangeWorkspaceFolders", changed)
    until(lambda: [name for name, _ in server.served].count(PULL) == 2)
    assert [item.get("scopeUri") for item in server.served[-1][1]["items"]] == [
        None,
        f"file://{only}",
    ]
    assert not shows(server)
    for _ in range(2):
        changed = {"event": {"added": [], "removed": [folder(only)]}}
        server.notify("workspace/didChangeWorkspaceFolders", changed)
    until(lambda: shows(server), what="no folder's settings hold")


@pytest.mark.parametrize("folders", [None, []])
def test_s35_no_folder_at_all(servers: Servers, folders: Any) -> None:
    settings: dict[str | None, bool] = {None: True}
    server = with_settings(servers, by_scope(settings), workspaceFolders=folders)
    assert shows(server)


def test_s35_a_root_uri_is_a_folder_of_old(servers: Servers) -> None:
    settings: dict[str | None, bool] = {"file:///home/dev/src": False}
    server = with_settings(servers, by_scope(settings), rootUri="file:///home/dev/src")
    assert not shows(server)


def test_s36_the_working_directory_changes_nothing(servers: Servers, tmp_path: Path) -> None:
    answers = []
    for name in ("one", "two"):
        place = tmp_path / name / "src" / "tidewater"
        place.mkdir(parents=True)
        (place / "poller.py").write_text(name)
        server = obliging(servers.start(cwd=tmp_path / name))
        server.initialize()
        answer = server.request("funes/recall", QUERY)
        for hit in answer["hits"]:
            hit.pop("age_s")
        answers.append((answer["hits"], server.request("funes/related", {"path": "poller.py"})))
    assert answers[0] == answers[1]
    assert answers[0][0]


@pytest.mark.parametrize(
    ("offered", "agreed", "end"),
    [
        (None, "utf-16", 6),
        (["utf-99"], "utf-16", 6),
        (["utf-16", "utf-8"], "utf-16", 6),
        (["utf-8", "utf-16"], "utf-8", 8),
        (["utf-32"], "utf-32", 5),
    ],
)
def test_s37_positions_count_as_agreed(
    servers: Servers, offered: list[str] | None, agreed: str, end: int
) -> None:
    general = {} if offered is None else {"general": {"positionEncodings": offered}}
    server = obliging(servers.start())
    answer = server.initialize({**FULL, **general})
    assert answer["capabilities"]["positionEncoding"] == agreed
    uri = "file:///work/steam.txt"
    server.open(uri, "x\n🎈gauge\n")
    place = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": end}}
    argument = {"uri": uri, "range": place}
    params = {"command": "funes.recallSelection", "arguments": [argument]}
    shown = server.request("workspace/executeCommand", params)
    text = server.request("funes/document", {"uri": shown["uri"]})["text"]
    assert text.splitlines()[0] == "# Recall: 🎈gaug"


@pytest.mark.parametrize(
    ("formats", "kind"),
    [
        (None, "plaintext"),
        ([], "plaintext"),
        (["plaintext"], "plaintext"),
        (["plaintext", "markdown"], "plaintext"),
        (["markdown", "plaintext"], "markdown"),
    ],
)
def test_s37_hovers_are_of_the_wanted_format(
    servers: Servers, formats: list[str] | None, kind: str
) -> None:
    document = {} if formats is None else {"hover": {"contentFormat": formats}}
    server = servers.ready({**FULL, "textDocument": document})
    assert shows(server)
    contents = hover(server)["contents"]
    assert contents["kind"] == kind
    assert ("**" in contents["value"]) == ("](funes:" in contents["value"]) == (kind == "markdown")
    assert len(contents["value"].splitlines()) <= 3


def test_no_editor_folder_is_ever_read(servers: Servers) -> None:
    """A folder that is not there, or of another scheme, is a name and no more."""
    folders = [folder("/nowhere/at/all"), {"uri": "vscode-remote://x/y", "name": "y"}]
    server = servers.ready(workspaceFolders=folders)
    assert shows(server)
    assert not os.path.exists("/nowhere/at/all")  # noqa: PTH110
