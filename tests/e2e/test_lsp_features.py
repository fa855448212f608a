"""What an editor shows: hovers, lenses, links, symbols, actions, documents; and what it costs."""

import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from funes_ls.handlers.addresses import Address, uri_of
from tests.e2e.engines import Engines, until
from tests.e2e.known import client
from tests.e2e.lsp_client import FULL, LspError, Server, Servers

pytestmark = pytest.mark.timeout(90)
PATH = "/home/dev/src/tidewater/src/tidewater/poller.py"
URI = f"file://{PATH}"
FILE_PAGE = uri_of(Address(kind="file", path=PATH))
#: Clients that open files only, as most do.
FILES_ONLY = {**FULL, "experimental": {}}
PLACE = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 0}}


def ask_of(server: Server, method: str, uri: str = URI, **more: Any) -> Any:
    return server.request(method, {"textDocument": {"uri": uri}, **more})


def soon(ask: Callable[[], Any]) -> Any:
    """Return what is answered; an engine that is only just reached may be too slow at first."""
    return until(ask)


def file_of(uri: str) -> Path:
    assert uri.startswith("file:///"), uri
    return Path(unquote(urlsplit(uri).path))


@pytest.mark.parametrize("uri", ["file:///nowhere/new.py", "untitled:Untitled-1", FILE_PAGE])
def test_nothing_is_shown_where_nothing_is_known(server: Server, uri: str) -> None:
    position = {"line": 0, "character": 0}
    assert ask_of(server, "textDocument/hover", uri, position=position) is None
    assert ask_of(server, "textDocument/codeLens", uri) == []
    context = {"diagnostics": []}
    assert ask_of(server, "textDocument/codeAction", uri, range=PLACE, context=context) == []
    if uri != FILE_PAGE:
        assert ask_of(server, "textDocument/documentLink", uri) == []
        assert ask_of(server, "textDocument/definition", uri, position=position) is None


def test_from_a_lens_to_the_turn(server: Server) -> None:
    [lens] = soon(lambda: ask_of(server, "textDocument/codeLens"))
    resolved = server.request("codeLens/resolve", lens)
    command = resolved["command"]
    assert command["title"].startswith("3 past sessions · last ")
    shown = server.request(
        "workspace/executeCommand",
        {"command": command["command"], "arguments": command["arguments"]},
    )
    assert shown == {"uri": FILE_PAGE, "line": 0, "shown": True}
    asked = [params for name, params in server.served if name == "window/showDocument"][-1]
    assert asked["uri"] == FILE_PAGE
    links = ask_of(server, "textDocument/documentLink", FILE_PAGE)
    assert len(links) == 3
    page = server.request("funes/document", {"uri": FILE_PAGE})["text"].splitlines()
    at = links[0]["range"]
    line = page[at["start"]["line"]]
    command_text = line[at["start"]["character"] : at["end"]["character"]]
    assert command_text.startswith("funes get ")
    target = server.request("funes/document", {"uri": links[0]["target"]})
    assert "## user" in target["text"].splitlines()[target["line"]]
    found = ask_of(server, "textDocument/definition", FILE_PAGE, position=at["start"])
    assert found["uri"] == links[0]["target"]
    assert found["range"]["start"]["line"] == target["line"]


def test_the_same_for_a_client_that_opens_only_files(servers: Servers, served: Engines) -> None:
    server = servers.ready(FILES_ONLY)
    soon(lambda: ask_of(server, "textDocument/codeLens"))
    arguments = {"command": "funes.showRelated", "arguments": [{"uri": URI}]}
    shown = server.request("workspace/executeCommand", arguments)
    path = file_of(shown["uri"])
    assert path.parent == served.home / "run" / "documents"
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    links = ask_of(server, "textDocument/documentLink", shown["uri"])
    assert len(links) == 3 and "target" not in links[0]
    resolved = server.request("documentLink/resolve", links[0])
    assert "## user" in file_of(resolved["target"]).read_text(encoding="utf-8")
    position = links[0]["range"]["start"]
    found = ask_of(server, "textDocument/definition", shown["uri"], position=position)
    assert found["uri"] == resolved["target"]
    [symbol, *_] = server.request("workspace/symbol", {"query": "gauge poller"})
    placed = server.request("workspaceSymbol/resolve", symbol)["location"]
    assert file_of(placed["uri"]).is_file()


def test_a_file_is_a_document_for_every_server_of_the_home(servers: Servers) -> None:
    writer, reader = servers.ready(FILES_ONLY), servers.ready(FILES_ONLY)
    soon(lambda: ask_of(writer, "textDocument/codeLens"))
    arguments = {"command": "funes.showRelated", "arguments": [{"uri": URI}]}
    shown = writer.request("workspace/executeCommand", arguments)
    soon(lambda: ask_of(reader, "textDocument/codeLens"))
    [first, *_] = ask_of(reader, "textDocument/documentLink", shown["uri"])
    position = first["range"]["start"]
    found = ask_of(reader, "textDocument/definition", shown["uri"], position=position)
    assert "## user" in file_of(found["uri"]).read_text(encoding="utf-8")
    assert ask_of(reader, "textDocument/hover", shown["uri"], position=position) is None


def test_files_are_bounded_in_number(servers: Servers, served: Engines) -> None:
    server = servers.ready(FILES_ONLY)
    hits = server.request("funes/recall", {"query": "the build", "k": 80})["hits"]
    sessions = server.request("funes/sessions", {"limit": 0})["sessions"]
    ids = {(hit["session_id"], hit["turn_uuid"]) for hit in hits}
    targets = [Address(kind="turn", session=one, turn=turn) for one, turn in sorted(ids)]
    targets += [Address(kind="session", session=one["session_id"]) for one in sessions]
    assert len(targets) > 60
    for target in targets:
        data = {
            name: value for name in ("kind", "session", "turn") if (value := getattr(target, name))
        }
        server.request("documentLink/resolve", {"range": PLACE, "data": data})
    left = list((served.home / "run" / "documents").iterdir())
    assert len(left) == 50
    assert {path.suffix for path in left} == {".md"}


def test_a_client_without_show_document_is_told_where_it_lies(servers: Servers) -> None:
    server = servers.ready({})
    until(lambda: server.request("funes/status", {}))
    arguments = {"command": "funes.showRelated", "arguments": [{"uri": URI}]}
    shown = server.request("workspace/executeCommand", arguments)
    assert shown["shown"] is False
    assert str(file_of(shown["uri"])) in server.told("window/showMessage")["message"]
    symbols = server.request("workspace/symbol", {"query": "gauge poller"})
    assert all(file_of(one["location"]["uri"]).is_file() for one in symbols) and symbols


def test_symbols_are_sessions_by_their_titles(server: Server) -> None:
    found = soon(lambda: server.request("workspace/symbol", {"query": "gauge poller"}))
    assert all("gauge poller" in one["name"].lower() for one in found)
    assert found[0]["containerName"].startswith("claude · ")
    location = server.request("workspaceSymbol/resolve", found[0])["location"]
    assert location["range"]["start"]["line"] > 0
    assert server.request("workspace/symbol", {"query": "no such title"}) == []
    assert len(server.request("workspace/symbol", {"query": ""})) == 30


def test_actions_of_a_selection(servers: Servers) -> None:
    server = servers.ready()
    server.open(URI, "first\nwhy does the poller die\nlast\n")
    selection = {"start": {"line": 1, "character": 4}, "end": {"line": 2, "character": 2}}
    context = {"diagnostics": []}
    soon(lambda: ask_of(server, "textDocument/codeLens"))
    found = ask_of(server, "textDocument/codeAction", range=selection, context=context)
    assert [one["title"] for one in found] == [
        "Recall for this selection",
        "Why is this line here?",
    ]
    assert {one["kind"] for one in found} == {"funes"}
    for action, heading in zip(
        found, ["# Recall: does the poller die la", "# Why lines 2–3 of"], strict=True
    ):
        run = {name: action["command"][name] for name in ("command", "arguments")}
        shown = server.request("workspace/executeCommand", run)
        text = server.request("funes/document", {"uri": shown["uri"]})["text"]
        assert text.startswith(heading)
        assert shown["shown"] is True
    only = {"diagnostics": [], "only": ["refactor"]}
    assert ask_of(server, "textDocument/codeAction", range=selection, context=only) == []
    only = {"diagnostics": [], "only": ["funes"]}
    assert len(ask_of(server, "textDocument/codeAction", range=selection, context=only)) == 2


def test_actions_are_commands_for_clients_of_old(servers: Servers) -> None:
    server = servers.ready({**FULL, "textDocument": {}})
    soon(lambda: ask_of(server, "textDocument/codeLens"))
    context = {"diagnostics": []}
    [found] = ask_of(server, "textDocument/codeAction", range=PLACE, context=context)
    assert found["command"] == "funes.whyLine"


def test_documents_by_the_request_of_lsp_3_18(servers: Servers) -> None:
    capabilities = {**FULL, "experimental": {}}
    capabilities["workspace"] = {**FULL["workspace"], "textDocumentContent": {}}
    server = servers.start()
    server.answers["workspace/configuration"] = lambda params: [None] * len(params["items"])
    offered = server.initialize(capabilities)["capabilities"]
    assert offered["workspace"]["textDocumentContent"] == {"schemes": ["funes"]}
    found = server.request("workspace/textDocumentContent", {"uri": FILE_PAGE})
    assert found["text"].startswith(f"# Sessions that touched {PATH}")


def test_a_turn_that_is_not_there_is_a_document_that_says_so(server: Server) -> None:
    uri = "funes:/turn/no-such-session/no-such-turn.md"
    assert "no such turn" in server.request("funes/document", {"uri": uri})["text"]


def test_settings_turn_features_off(servers: Servers) -> None:
    options = {"hover": {"enabled": False}, "codeLens": {"enabled": False}}
    server = servers.ready(initializationOptions=options)
    assert until(lambda: server.request("funes/related", {"path": PATH})["total"]) == 3
    known = client()
    server.open(known.uri, known.text)
    place = {"line": known.line("ATTEMPTS = 3"), "character": 0}
    assert ask_of(server, "textDocument/hover", known.uri, position=place) is None
    assert ask_of(server, "textDocument/codeLens") == []


def test_an_engine_inside_the_server(servers: Servers) -> None:
    """A front of a container has its engine within; nothing else changes."""
    servers.env["FUNES_ENGINE"] = "inline"
    server = servers.ready()
    assert server.request("funes/recall", {"query": "gauge poller"})["hits"]
    assert server.shut() == 0


def test_the_front_is_small_and_loads_nothing_heavy(server: Server) -> None:
    soon(lambda: ask_of(server, "textDocument/codeLens"))
    server.request("funes/recall", {"query": "gauge poller", "k": 50})
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    [rss] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    assert int(rss.split()[1]) / 1000 <= 70
    maps = Path(f"/proc/{server.process.pid}/maps").read_text(encoding="utf-8")
    heavy = ("numpy", "pyarrow", "lancedb", "onnxruntime", "tokenizers", "tantivy")
    assert [name for name in heavy if f"/{name}" in maps] == []


@pytest.mark.parametrize(
    "argv",
    [["funes_ls.cli", "-h"], ["funes_ls.cli", "recall", "poller"], ["funes_ls.server", "-h"]],
)
def test_s45_the_shim_and_helps_load_no_language_server(served: Engines, argv: list[str]) -> None:
    hits = served.recall("gauge poller", k=1)
    assert hits
    code = (
        "import sys\n"
        f"from {argv[0]} import main\n"
        "try:\n"
        f"    main({argv[1:]!r})\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "heavy = {'pygls', 'lsprotocol', 'cattrs', 'numpy'}\n"
        "print('loaded', *sorted(loaded & heavy), file=sys.stderr)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env=served.env, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout
    assert run.stderr.splitlines()[-1] == "loaded"


def test_s45_get_loads_no_language_server(served: Engines) -> None:
    [hit] = served.ask("funes/recall", query="gauge poller", k=1)["hits"]
    ids = [hit["session_id"], hit["turn_uuid"]]
    test_s45_the_shim_and_helps_load_no_language_server(served, ["funes_ls.cli", "get", *ids])


def test_a_lens_of_others_is_refused(server: Server) -> None:
    with pytest.raises(LspError) as caught:
        server.request("codeLens/resolve", {"range": PLACE, "data": {"of": "others"}})
    assert caught.value.code == -32602
