"""Times hovers and lenses of large files that sessions wrote: `python -m benchmarks.lines`.

A home with a large memory (see `benchmarks.latency.make_memory`) whose facts have been made. Of the
files that most of its sessions edited, documents of a wished length are made: what the edits put
in, among lines of nobody. A `funes-ls` is asked over stdio, as an editor does. Nothing is written.
"""

import argparse
import contextlib
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.latency.processes import Engine, LanguageServer, environment
from funes_ls.indexer.facts import Facts
from funes_ls.indexer.memory import open_memory
from funes_ls.indexer.settings import Settings

_PATIENCE_S = 60.0
_TARGETS = {"hover": 15.0, "code lens": 20.0}


class Document(Struct, frozen=True, kw_only=True):
    """A document and its lines (from 0) that sessions wrote."""

    path: str
    text: str
    known: list[int]


def documents(home: Path, *, files: int, lines: int) -> list[Document]:
    """Return documents of the files that sessions edited most."""
    settings = Settings(home=home)
    with open_memory(settings.memory_dir, derived=home / "derived") as memory:
        facts = Facts(memory.catalog)
        edits: Counter[int] = Counter()
        names = [row[0] for row in memory.catalog.select("SELECT path_id FROM facts_paths")]
        for touch in facts.touched(names):
            if touch.kind in ("edit", "write", "append"):
                edits[touch.path_id] += touch.count
        chosen = [path_id for path_id, _ in edits.most_common(files)]
        return [_document(facts, path_id, lines) for path_id in chosen]


def _document(facts: Facts, path_id: int, lines: int) -> Document:
    events = facts.events_of([path_id])
    written = [event.new for event in events if event.new and event.kind in ("edit", "write")]
    blocks = [text.rstrip("\n").split("\n") for text in dict.fromkeys(reversed(written))]
    text: list[str] = []
    known: list[int] = []
    for number in range(lines):
        if number % 50 == 0 and blocks:
            block = blocks.pop(0)
            known += range(len(text), len(text) + len(block))
            text += block
        if len(text) >= lines:
            break
        text.append(f"nobody_{number} = table[{number}].of_nobody({number * 7})")
    return Document(path=events[0].path, text="\n".join(text) + "\n", known=known)


class Bench:
    """Asks a language server and keeps how long it took."""

    def __init__(self, server: LanguageServer) -> None:
        """Ask a server."""
        self._server = server
        self._version = 1
        self.took_ms: dict[str, list[float]] = defaultdict(list)
        self.claimed = 0

    def run(self, document: Document, *, rounds: int) -> None:
        """Look at a document as somebody does who reads, types and reads on."""
        uri = self._server.open(document.path, document.text)
        self._hovers(uri, "hover, first of a text", document.known[:1])
        time.sleep(1.5)  # it is looked at as a whole once nobody types
        known = [document.known[at * 7 % len(document.known)] for at in range(rounds)]
        self._hovers(uri, "hover", known)
        self._hovers(uri, "hover, of nobody's lines", [len(document.known) + 60] * rounds)
        for _ in range(rounds):
            self._type(uri)
            self._hovers(uri, "hover, after a key", known[:1])
        for _ in range(rounds):
            self._timed("code lens", "textDocument/codeLens", {"textDocument": {"uri": uri}})
        for _ in range(rounds):
            self._type(uri)
            params = {"textDocument": {"uri": uri}}
            self._timed("code lens, after a key", "textDocument/codeLens", params)

    def _hovers(self, uri: str, name: str, lines: Sequence[int]) -> None:
        for line in lines:
            place = {"line": line, "character": 0}
            params = {"textDocument": {"uri": uri}, "position": place}
            self.claimed += self._timed(name, "textDocument/hover", params) is not None

    def _type(self, uri: str) -> None:
        self._version += 1
        place = {"line": 30, "character": 0}
        change = {"range": {"start": place, "end": place}, "text": "x"}
        about = {"uri": uri, "version": self._version}
        params = {"textDocument": about, "contentChanges": [change]}
        self._server.notify("textDocument/didChange", params)

    def _timed(self, name: str, method: str, params: Any) -> Any:
        began = time.perf_counter()
        found = self._server.request(method, params)
        self.took_ms[name].append((time.perf_counter() - began) * 1000)
        return found


def table(took_ms: dict[str, list[float]]) -> str:
    """Return the figures as a table."""
    rows = ["| what | n | p50 | p95 | max | target |", "|---|---|---|---|---|---|"]
    for name, times in took_ms.items():
        times = sorted(times)
        target = None if "first" in name else _TARGETS.get(name.split(",")[0])
        middle, late = times[len(times) // 2], times[int(len(times) * 0.95)]
        wanted = f"p50 ≤ {target:g}" if target else ""
        rows.append(
            f"| {name} | {len(times)} | {middle:.1f} | {late:.1f} | {times[-1]:.1f} | {wanted} |"
        )
    return "\n".join(rows) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lines", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="a funes home with a memory")
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--lines", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args(argv)
    found = documents(options.home, files=options.files, lines=options.lines)
    env = environment(options.home, options.home / "user")
    with Engine(options.home, env) as engine:
        connection = engine.connect()
        connection.request("funes/status", {}, timeout_s=_PATIENCE_S)
        server = LanguageServer(env, str(options.home))
        try:
            symbols = {"funes": {"codeLens": "symbols"}}
            server.notify("workspace/didChangeConfiguration", {"settings": symbols})
            bench = Bench(server)
            for document in found:
                if document.known:
                    bench.run(document, rounds=options.rounds)
            sys.stdout.write(table(bench.took_ms))
            sys.stdout.write(f"\nlanguage server: {server.rss_mb():.1f} MB\n")
        finally:
            server.stop()
            with contextlib.suppress(OSError):
                connection.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
