"""Who wrote a line and why: hovers, lenses of symbols and pages, on files as sessions left them."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.e2e.engines import Engines, alive, until
from tests.e2e.known import CLIENT_BEFORE, Known, client, loader
from tests.e2e.lsp_client import FULL, LspError, Server, Servers

pytestmark = pytest.mark.timeout(90)
LOADER, CLIENT = loader(), client()
#: What was asked before the lines were written, and what the agent said first.
LOADER_ASK = "Agreed, Postgres with monthly partitions. Which index?"
LOADER_REASON = "Binary COPY it is: about 20 minutes for everything instead of three hours."
FILES_ONLY = {**FULL, "experimental": {}}
SYMBOLS = {"codeLens": "symbols"}
CONTENT_MODIFIED = -32801


def shown(text: str) -> str:
    """Return Markdown as a person reads it."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def hover(server: Server, uri: str, line: int, character: int = 0) -> str | None:
    place = {"line": line, "character": character}
    params = {"textDocument": {"uri": uri}, "position": place}
    found = server.request("textDocument/hover", params)
    return shown(found["contents"]["value"]) if found else None


def lenses(server: Server, uri: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.request(
        "textDocument/codeLens", {"textDocument": {"uri": uri}}
    )
    return found


def change(server: Server, uri: str, version: int, *edits: tuple[Any, Any, str]) -> None:
    changes = [
        {
            "range": {
                "start": {"line": start[0], "character": start[1]},
                "end": {"line": end[0], "character": end[1]},
            },
            "text": text,
        }
        for start, end, text in edits
    ]
    document = {"uri": uri, "version": version}
    server.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})


def command(server: Server, name: str, *arguments: Any) -> Any:
    params = {"command": name, "arguments": list(arguments)}
    return server.request("workspace/executeCommand", params)


@pytest.fixture
def of_loader(servers: Servers) -> Server:
    """Return a server with the loader open, whose engine is there."""
    return opened(servers.ready(), LOADER)


def opened(server: Server, known: Known, text: str | None = None) -> Server:
    server.request("funes/status", {})
    server.open(known.uri, known.text if text is None else text)
    return server


def test_every_line_of_a_written_file_has_its_ask(of_loader: Server) -> None:
    for words in ("import psycopg", "COLUMNS =", "def load_month", "taken_at = datetime"):
        text = hover(of_loader, LOADER.uri, LOADER.line(words))
        assert text is not None, words
        who, asked, reason = text.split("  \n")
        assert re.match(r"\*\*claude\*\* · \d+ \w+ ago · \[", who), who
        assert f"(funes:/turn/{LOADER.session_id}/" in who
        assert asked.startswith(f"asked: [{LOADER_ASK}"), asked
        assert reason.startswith("reason: ["), reason
    first = hover(of_loader, LOADER.uri, LOADER.line("COLUMNS ="))
    assert first is not None and f"reason: [{LOADER_REASON}]" in first


def test_links_of_a_hover_open_the_turns_in_their_context(of_loader: Server) -> None:
    text = hover(of_loader, LOADER.uri, LOADER.line("COLUMNS ="))
    assert text is not None
    written, asked, reason = re.findall(r"\]\((funes:[^)]+)\)", text)
    for uri, words in ((written, "load_readings.py"), (asked, LOADER_ASK), (reason, LOADER_REASON)):
        page = of_loader.request("funes/document", {"uri": uri})
        rest = page["text"].split("\n")[page["line"] :]
        assert rest[0].startswith("## ") and rest[0].endswith("←")
        until_next = "\n".join(rest[1:]).split("\n## ")[0]
        assert words in until_next


def test_lines_of_several_turns_each_have_their_own(servers: Servers) -> None:
    server = opened(servers.ready(), CLIENT)
    for words, ask in (
        ("ATTEMPTS = 3", "How many attempts then?"),
        ("MAX_DELAY_S = 20.0", "How many attempts then?"),
        ("RETRY_STATUS = frozenset", "go with your own loop then"),
        ("reason = type(exc).__name__", "go with your own loop then"),
        ("random.uniform(0, ceiling)", "How many attempts then?"),
    ):
        text = hover(server, CLIENT.uri, CLIENT.line(words))
        assert text is not None and f"asked: [{ask}]" in text, (words, text)


def test_nothing_is_shown_for_lines_that_no_session_wrote(servers: Servers) -> None:
    server = opened(servers.ready(), CLIENT)
    assert hover(server, CLIENT.uri, CLIENT.line("ATTEMPTS = 3"))
    for words in ("Asks the stations", "import aiohttp", "def station_url", "water-level"):
        assert hover(server, CLIENT.uri, CLIENT.line(words)) is None, words
    assert hover(server, CLIENT.uri, 10_000) is None


def test_a_file_before_the_sessions_shows_nothing(servers: Servers) -> None:
    server = opened(servers.ready(), CLIENT, CLIENT_BEFORE)
    lines = CLIENT_BEFORE.split("\n")
    # But for what a session later only indented: it stands in the sessions as well.
    indented = lines.index("async def get_json(url: str) -> dict:")
    for line in [*range(indented), *range(indented + 4, len(lines) + 1)]:
        assert hover(server, CLIENT.uri, line) is None, line


def test_a_symbol_that_was_there_tells_who_wrote_what_is_in_it(servers: Servers) -> None:
    server = opened(servers.ready(), CLIENT)
    line = CLIENT.line("async def get_json")
    text = until(lambda: hover(server, CLIENT.uri, line))
    assert re.search(r"· \d+ of 17 lines of get_json", text.split("  \n")[0]), text
    assert "asked: [go with your own loop then]" in text


def test_changed_text_is_not_shown_as_written(of_loader: Server) -> None:
    line = LOADER.line("taken_at = datetime")
    assert hover(of_loader, LOADER.uri, line)
    similar = "            taken_at = datetime.utcfromtimestamp(row[1], tz=None)"
    change(of_loader, LOADER.uri, 2, ((line, 0), (line + 1, 0), f"{similar}\n"))
    assert hover(of_loader, LOADER.uri, line) is None
    assert hover(of_loader, LOADER.uri, line + 1)


def test_unsaved_edits_move_lines(of_loader: Server) -> None:
    line = LOADER.line("TYPES =")
    before = hover(of_loader, LOADER.uri, line)
    change(
        of_loader, LOADER.uri, 2, ((0, 0), (0, 0), "# of my own\n# 🐍\n"), ((1, 4), (1, 4), "\n")
    )
    assert hover(of_loader, LOADER.uri, line + 3) == before
    assert hover(of_loader, LOADER.uri, 0) is None
    change(of_loader, LOADER.uri, 3, ((0, 0), (3, 0), ""))
    assert hover(of_loader, LOADER.uri, line) == before


@pytest.mark.parametrize(
    ("name", "altered"),
    [
        ("crlf", lambda text: text.replace("\n", "\r\n")),
        ("cr", lambda text: text.replace("\n", "\r")),
        ("separators", lambda text: f"a = '\f\x0b\x1c\x85\u2028'\n{text}"),
        ("surrogates", lambda text: f"# {'🐍' * 40}\n{text.replace('month by month', 'x🎈y')}"),
        ("huge line", lambda text: f"data = '{'x' * 3_000_000}'\n{text}"),
        ("tabs", lambda text: "#\t\t tab\n" + text.replace("    ", "\t")),
        ("no end", lambda text: text.rstrip("\n")),
        ("zero bytes", lambda text: f"\x00\x01\n{text}"),
    ],
)
def test_lines_of_odd_texts_are_the_right_ones(
    servers: Servers, name: str, altered: Callable[[str], str]
) -> None:
    text = altered(LOADER.text)
    server = opened(servers.ready(), LOADER, text)
    lines = re.split("\r\n|\n|\r", text)
    at = next(number for number, line in enumerate(lines) if line.startswith("COLUMNS ="))
    found = until(lambda: hover(server, LOADER.uri, at, character=3))
    assert LOADER_ASK in found
    if text.startswith(("a =", "#", "data", "\x00")):
        assert hover(server, LOADER.uri, 0) is None


@pytest.mark.parametrize(
    "uri",
    ["untitled:Untitled-1", "file:///outside/of/all.py", "git:/home/x.py?HEAD", "file:///", "x"],
)
@pytest.mark.parametrize("text", ["", "\x00\xff\x00\n", "taken = 1\n"])
def test_documents_of_no_session_show_nothing(servers: Servers, uri: str, text: str) -> None:
    server = servers.ready(initializationOptions=SYMBOLS)
    server.open(uri, text)
    assert hover(server, uri, 0) is None
    assert lenses(server, uri) == []


def test_an_answer_about_an_older_text_is_refused(of_loader: Server, served: Engines) -> None:
    line = LOADER.line("TYPES =")
    assert hover(of_loader, LOADER.uri, line)
    place = {"line": line, "character": 0}
    params = {"textDocument": {"uri": LOADER.uri}, "position": place}
    # The line is typed anew, so that nothing told before is of use.
    typed = LOADER.text.split("\n")[line]
    change(of_loader, LOADER.uri, 2, ((line, 0), (line + 1, 0), f"{typed}\n"))
    os.kill(served.pid, signal.SIGSTOP)
    try:
        number = of_loader.begin("textDocument/hover", params)
        change(of_loader, LOADER.uri, 3, ((0, 0), (0, 0), "\n"))
        of_loader.request("textDocument/documentLink", {"textDocument": {"uri": LOADER.uri}})
    finally:
        os.kill(served.pid, signal.SIGCONT)
    with pytest.raises(LspError) as caught:
        of_loader.answer(number)
    assert caught.value.code == CONTENT_MODIFIED
    assert hover(of_loader, LOADER.uri, line + 1)


def test_a_client_that_opens_files_gets_a_file(servers: Servers, served: Engines) -> None:
    server = opened(servers.ready(FILES_ONLY), LOADER)
    text = hover(server, LOADER.uri, LOADER.line("COLUMNS ="))
    assert text is not None
    [link] = re.findall(r"\]\((file:[^)]+)\)", text)
    path = Path(unquote(urlsplit(link).path))
    until(path.is_file)
    assert path.parent == served.home / "run" / "documents"
    assert "load_readings.py" in path.read_text(encoding="utf-8")


def test_why_quotes_lines_ask_and_reason_and_leads_to_the_turn(of_loader: Server) -> None:
    line = LOADER.line("COLUMNS =")
    place = {"start": {"line": line, "character": 2}, "end": {"line": line + 1, "character": 4}}
    params = {"textDocument": {"uri": LOADER.uri}, "range": place, "context": {"diagnostics": []}}
    actions = of_loader.request("textDocument/codeAction", params)
    [why] = [one for one in actions if one["title"] == "Why is this line here?"]
    done = command(of_loader, why["command"]["command"], *why["command"]["arguments"])
    assert done["shown"] is True
    page = of_loader.request("funes/document", {"uri": done["uri"]})["text"]
    assert page.startswith(f"# Why lines {line + 1}–{line + 2} of {LOADER.path} are there\n")
    assert f"    {line + 1:>2}  COLUMNS = " in page
    assert f"- lines {line + 1}–{line + 2}: exact" in page
    asked = "And ask a sub-agent to find the quickest way to load 238 million rows."
    assert f"{LOADER_ASK} {asked}\n" in page and LOADER_REASON in page
    links = of_loader.request("textDocument/documentLink", {"textDocument": {"uri": done["uri"]}})
    assert len(links) == 3
    params = {"textDocument": {"uri": done["uri"]}, "position": links[-1]["range"]["start"]}
    target = of_loader.request("textDocument/definition", params)
    turn = of_loader.request("funes/document", {"uri": target["uri"]})
    assert turn["line"] == target["range"]["start"]["line"]
    assert "load_readings.py" in turn["text"]
    # What was asked about stays so, whatever is typed later.
    change(of_loader, LOADER.uri, 2, ((0, 0), (0, 0), "\n" * 3))
    assert of_loader.request("funes/document", {"uri": done["uri"]})["text"] == page


def test_a_renamed_file_is_known_by_its_lines(servers: Servers) -> None:
    path = LOADER.path.replace("load_readings", "fill_readings")
    renamed = Known(path=path, text=LOADER.text, trace=LOADER.trace)
    server = opened(servers.ready(), renamed)
    line = LOADER.line("COLUMNS =")
    text = until(lambda: hover(server, renamed.uri, line))
    assert LOADER_ASK in text and f"from {LOADER.path}" in text.split("  \n")[0]
    place = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 0}}
    params = {"textDocument": {"uri": renamed.uri}, "range": place, "context": {"diagnostics": []}}
    [why] = server.request("textDocument/codeAction", params)
    done = command(server, why["command"]["command"], *why["command"]["arguments"])
    page = server.request("funes/document", {"uri": done["uri"]})["text"]
    assert f"line {line + 1}: moved (written so, but elsewhere, in {LOADER.path})" in page


def test_why_of_lines_that_have_changed_says_so(servers: Servers) -> None:
    first, second = (opened(servers.ready(), LOADER) for _ in range(2))
    place = {"start": {"line": 8, "character": 0}, "end": {"line": 8, "character": 1}}
    done = command(first, "funes.whyLine", {"uri": LOADER.uri, "range": place})
    text = first.request("funes/document", {"uri": done["uri"]})["text"]
    assert second.request("funes/document", {"uri": done["uri"]})["text"] == text
    change(second, LOADER.uri, 2, ((8, 0), (8, 0), "x"))
    assert "has changed" in second.request("funes/document", {"uri": done["uri"]})["text"]
    assert first.request("funes/document", {"uri": done["uri"]})["text"] == text
    third = opened(servers.ready(), LOADER, "# other\n" * 30)
    text = third.request("funes/document", {"uri": done["uri"]})["text"]
    assert "The file has changed since this was asked" in text and "exact" not in text


def test_why_of_a_place_in_an_older_text_is_that_place_now(of_loader: Server) -> None:
    line = LOADER.line("TYPES =")
    place = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 5}}
    about = {"uri": LOADER.uri, "range": place, "moment": 0}
    change(of_loader, LOADER.uri, 2, ((0, 0), (0, 0), "# mine\n"))
    done = command(of_loader, "funes.whyLine", about)
    page = of_loader.request("funes/document", {"uri": done["uri"]})["text"]
    assert page.startswith(f"# Why line {line + 2} of") and "TYPES = [" in page
    change(of_loader, LOADER.uri, 3, ((line, 0), (line + 3, 0), ""))
    with pytest.raises(LspError) as caught:
        command(of_loader, "funes.whyLine", about)
    assert caught.value.code == CONTENT_MODIFIED


@pytest.fixture
def with_symbols(servers: Servers) -> Iterator[Server]:
    server = opened(servers.ready(initializationOptions=SYMBOLS), LOADER)
    until(lambda: len(lenses(server, LOADER.uri)) == 2)
    yield server


def test_lenses_of_symbols_that_come_later_are_told_of(servers: Servers) -> None:
    server = opened(servers.ready(initializationOptions=SYMBOLS), LOADER)
    found = until(lambda: lenses(server, LOADER.uri))
    if len(found) == 1:
        until(lambda: ("workspace/codeLens/refresh", None) in server.served)
    assert len(lenses(server, LOADER.uri)) == 2


def test_lenses_of_symbols(with_symbols: Server) -> None:
    top, symbol = lenses(with_symbols, LOADER.uri)
    assert top["range"]["start"]["line"] == 0
    line = LOADER.line("def load_month")
    assert symbol["range"]["start"] == {"line": line, "character": 0}
    assert "command" not in top and "command" not in symbol
    resolved = with_symbols.request("codeLens/resolve", symbol)["command"]
    assert re.match(r"claude · \d+ \w+ ago · Agreed, Postgres", resolved["title"]), resolved
    assert len(resolved["title"]) < 100
    done = command(with_symbols, resolved["command"], *resolved["arguments"])
    page = with_symbols.request("funes/document", {"uri": done["uri"]})["text"]
    assert page.startswith(f"# Why lines {line + 1}–{line + 10} of")
    with pytest.raises(LspError) as caught:
        gone = {**symbol, "data": {**symbol["data"], "symbol": "none#1"}}
        with_symbols.request("codeLens/resolve", gone)
    assert caught.value.code == CONTENT_MODIFIED


def test_lenses_stay_at_their_symbols_while_one_types(with_symbols: Server) -> None:
    _, symbol = lenses(with_symbols, LOADER.uri)
    resolved = with_symbols.request("codeLens/resolve", symbol)
    at = symbol["range"]["start"]["line"]
    # What is typed breaks the grammar of all that follows.
    for version, text in enumerate(("\n", "class (", '"""', "\n\n"), start=2):
        change(with_symbols, LOADER.uri, version, ((3, 0), (3, 0), text))
        at += text.count("\n")
        _, moved = lenses(with_symbols, LOADER.uri)
        assert moved["range"]["start"] == {"line": at, "character": 0}
        # Known titles stay too: nothing blinks.
        assert moved["command"]["title"] == resolved["command"]["title"]
    with_symbols.served.clear()
    change(with_symbols, LOADER.uri, 9, ((0, 0), (6, 0), ""))
    lenses(with_symbols, LOADER.uri)
    refreshes = ("workspace/codeLens/refresh", None)
    until(lambda: refreshes in with_symbols.served, what="the client is told to ask again")
    change(with_symbols, LOADER.uri, 10, ((0, 0), (0, 0), "def mine(): ...\n\n\n"))


def test_what_is_told_of_a_document_goes_along_with_its_lines(
    with_symbols: Server, served: Engines
) -> None:
    """Whoever types elsewhere, or has a busy engine, still sees who wrote a line, at once."""
    line = LOADER.line("TYPES =")
    before = hover(with_symbols, LOADER.uri, line)
    assert before
    version = 2

    def is_told() -> bool:
        os.kill(served.pid, signal.SIGSTOP)
        try:
            return hover(with_symbols, LOADER.uri, line) == before
        finally:
            os.kill(served.pid, signal.SIGCONT)

    # Its lenses wanted the whole document looked at.
    assert is_told()
    for text in ("# mine\n", "\n\n", "# and mine 🐍\n"):
        change(with_symbols, LOADER.uri, version, ((2, 0), (2, 0), text))
        line += text.count("\n")
        version += 1
        assert is_told()
    # A line that was typed in is asked about, not guessed.
    os.kill(served.pid, signal.SIGSTOP)
    try:
        assert hover(with_symbols, LOADER.uri, 2) is None
    finally:
        os.kill(served.pid, signal.SIGCONT)


def test_the_title_at_the_top_stays_while_one_types(of_loader: Server) -> None:
    [lens] = until(lambda: lenses(of_loader, LOADER.uri))
    assert "command" not in lens
    title = of_loader.request("codeLens/resolve", lens)["command"]["title"]
    change(of_loader, LOADER.uri, 2, ((0, 0), (0, 0), "\n\n"))
    [lens] = lenses(of_loader, LOADER.uri)
    assert lens["range"]["start"]["line"] == 0
    assert lens["command"]["title"] == title


def test_symbols_of_nobody_have_no_lens(servers: Servers) -> None:
    server = opened(servers.ready(initializationOptions=SYMBOLS), CLIENT)
    found = until(lambda: lenses(server, CLIENT.uri)[1:])
    assert [one["range"]["start"]["line"] for one in found] == [CLIENT.line("async def get_json")]


def test_the_toggle(servers: Servers) -> None:
    server = opened(servers.ready(), LOADER)
    until(lambda: lenses(server, LOADER.uri))
    for argument, mode, count in (
        ([], "off", 0),
        ([], "file", 1),
        (["symbols"], "symbols", 2),
        ([], "off", 0),
        ([True], "file", 1),
    ):
        server.served.clear()
        assert command(server, "funes.toggleCodeLens", *argument) == {"codeLens": mode}
        until(lambda: ("workspace/codeLens/refresh", None) in server.served)
        # Those of symbols may come a moment later; the client is asked to ask again.
        until(lambda count=count: len(lenses(server, LOADER.uri)) == count)
    with pytest.raises(LspError) as caught:
        command(server, "funes.toggleCodeLens", "everywhere")
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    ("section", "count"),
    [
        ({"codeLens": "off"}, 0),
        ({"codeLens": False}, 0),
        ({"codeLens": True}, 1),
        ({"codeLens": "symbols"}, 2),
        ({"codeLens": {"enabled": False}}, 0),
        ({"codeLens": {"enabled": True}}, 1),
    ],
)
def test_the_setting_of_lenses(servers: Servers, section: dict[str, Any], count: int) -> None:
    server = opened(servers.ready(initializationOptions=section), LOADER)
    until(lambda: server.request("funes/related", {"path": LOADER.path})["total"])
    if count:
        until(lambda: len(lenses(server, LOADER.uri)) == count)
    assert len(lenses(server, LOADER.uri)) == count


def test_an_unknown_place_of_lenses_is_told_of(servers: Servers) -> None:
    server = servers.ready(initializationOptions={"codeLens": "everywhere"})
    assert "funes.codeLens" in server.told("window/showMessage")["message"]


def test_grammars_are_in_a_process_that_ends_with_the_server(with_symbols: Server) -> None:
    assert len(lenses(with_symbols, LOADER.uri)) == 2
    server = Path(f"/proc/{with_symbols.process.pid}")
    maps = (server / "maps").read_text(encoding="utf-8")
    assert "ast_grep" not in maps
    status = (server / "status").read_text(encoding="ascii")
    [rss] = re.findall(r"VmRSS:\s+(\d+)", status)
    assert int(rss) / 1000 <= 70
    children = (server / "task" / server.name / "children").read_text(encoding="ascii").split()
    grammars = [
        int(pid)
        for pid in children
        if "symbol_ranges" in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    ]
    assert len(grammars) == 1
    with_symbols.process.kill()
    with_symbols.process.wait(10)
    until(lambda: not alive(grammars[0]))
