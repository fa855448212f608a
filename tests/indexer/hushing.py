"""Stands in for the scanner of secrets, in this process and in others."""

import os
import re
import time
from pathlib import Path

from msgspec.structs import replace

from funes_ls.indexer.errors import ScannerError
from funes_ls.indexer.model import SessionMeta, Turn
from funes_ls.indexer.redaction.base import Counts, FoundText

#: Not of the shape of any real one.
SECRET = "hush7GqZ0pLw3Xe9"
_FOUND = re.compile("hush[0-9A-Za-z]{12}")


class Hushing:
    """Stands in for the scanner: knows one kind of secret, and says so."""

    cache_dir = Path("nowhere")
    stamp = "hush-1"

    def __init__(self) -> None:
        self.is_broken = False

    def text(self, text: str) -> FoundText:
        if self.is_broken:
            raise ScannerError("It is broken.", kind="scanner_broken")
        clean, count = _FOUND.subn("<redacted>", text)
        return FoundText(clean, {"hush": count} if count else {})

    def turn(self, turn: Turn) -> tuple[Turn, Counts]:
        blocks = []
        count = 0
        for block in turn.blocks:
            found = self.text(block.text)
            count += sum(found.counts.values())
            name = self.text(block.tool_name).text if block.tool_name else block.tool_name
            blocks.append(replace(block, text=found.text, tool_name=name))
        source_path = self.text(turn.source_path).text
        clean = replace(turn, blocks=tuple(blocks), source_path=source_path)
        return clean, {"hush": count} if count else {}

    def meta(self, meta: SessionMeta) -> tuple[SessionMeta, Counts]:
        values = {name: self.text(getattr(meta, name)).text for name in ("cwd", "branch", "title")}
        remotes = [self.text(one).text for one in meta.remotes]
        return replace(meta, **values, remotes=remotes), {}

    is_ready = True

    def prepare(self) -> None:
        return None

    def rest(self) -> float | None:
        return None


class Redactor(Hushing):
    """What a child process loads; some texts have it fail."""

    @classmethod
    def load(cls, cache_dir: Path) -> "Redactor":
        if cache_dir.name == "broken":
            raise ScannerError("The rules do not compile.", kind="scanner_broken")
        return cls()

    def text(self, text: str) -> FoundText:
        if text == "end":
            os._exit(3)
        if text == "end once" and not (mark := Path("ended")).exists():
            mark.touch()
            os._exit(3)
        if text == "hang":
            time.sleep(60)
        if text == "fail":
            raise ValueError("of no use to anybody")
        return super().text(text)
