"""Which sessions are kept out of a memory: by globs, by `.funesignore`, by a line in a prompt."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from funes_ls.indexer.exclude_globs import Lines, absolute, glob_regex, lines_of, slashed
from funes_ls.indexer.facts_touched import touched_paths
from funes_ls.indexer.model import Block, Turn
from funes_ls.indexer.traces.base import Unit

#: A line of a prompt that keeps its session out.
MARKER = "funes:private"
IGNORE_FILE = ".funesignore"
#: Files like it are small; of a bigger one the start counts.
_MOST_BYTES = 64 * 1024
#: Calls on hidden files whose answers are still waited for.
_MOST_CALLS = 500
#: Why a session is kept out.
BY_PATH, BY_FILE, BY_MARKER, BY_PARENT = "paths", IGNORE_FILE, "marker", "parent"


def is_private(turn: Turn) -> bool:
    """Return whether a prompt says that its session is to be kept out."""
    if turn.role != "user":
        return False
    texts = (one.text for one in turn.blocks if one.block_type == "text")
    return any(
        line.strip() == MARKER for text in texts if MARKER in text for line in text.splitlines()
    )


class Exclusion:
    """What the settings and the files of projects keep out; files are read once.

    One is made for each run: what has changed since is seen by the next.
    """

    def __init__(self, globs: Sequence[str] = (), *, asks_files: bool = True) -> None:
        """Keep out what globs match, and what files say if they are asked; nothing is read yet."""
        self._globs = tuple(globs)
        self._asks_files = asks_files
        self._found: dict[str, tuple[Lines, ...]] = {}

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        flags = re.IGNORECASE if os.name == "nt" or sys.platform == "darwin" else 0
        return [glob_regex(one, flags) for one in self._globs if one.strip()]

    def reason(self, *, cwd: str, unit: Unit) -> str:
        """Return why a session is kept out, "" when it is not.

        Args:
            cwd: Where it ran, "" when that is not known.
            unit: Its trace.
        """
        places = (cwd, unit.key, str(unit.path))
        if self._patterns and any(self._is_named(place) for place in places if place):
            return BY_PATH
        if cwd and any(lines.hides(cwd, is_session=True) for lines in self.files_of(cwd)):
            return BY_FILE
        return ""

    def _is_named(self, place: str) -> bool:
        names = {slashed(place)}
        if Path(place).is_absolute():
            names.add(slashed(os.path.realpath(place)))
        return any(pattern.fullmatch(name) for pattern in self._patterns for name in names)

    def files_of(self, cwd: str) -> tuple[Lines, ...]:
        """Return what the `.funesignore` files say that hold for a folder, the nearest first."""
        if cwd not in self._found:
            self._found[cwd] = tuple(_files_of(cwd)) if self._asks_files else ()
        return self._found[cwd]


#: Keeps out what says so itself, and nothing else.
KEEP_ALL = Exclusion(asks_files=False)


def _files_of(cwd: str) -> Iterator[Lines]:
    """Read the files of a folder and its parents, up to the root of its repository, or home."""
    try:
        folder = Path(cwd)
        if not folder.is_absolute():
            return
        home = Path.home()
    except (OSError, ValueError, RuntimeError):
        return
    for place in (folder, *folder.parents):
        if (text := _text_of(place / IGNORE_FILE)) is not None:
            yield lines_of(text, slashed(str(place)))
        if place == home or _exists(place / ".git"):
            return


def _text_of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except (OSError, ValueError):
        # It is there, or may be, and cannot be read: then nobody knows what it keeps out.
        return "" if _exists(path) else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


class HiddenFiles:
    """Leaves out of a session's turns what its tools did to files that are kept out.

    Attributes:
        calls: Ids of calls whose answers are left out as well; kept between two readings.
    """

    def __init__(self, files: Sequence[Lines], cwd: str, calls: Sequence[str] = ()) -> None:
        """Leave out what files say, for a session that ran in a folder."""
        self._files = [one for one in files if one.patterns]
        self._cwd = cwd
        self._next = False
        self.calls = list(calls)

    def without(self, turn: Turn) -> Turn:
        """Return a turn whose blocks on such files are not stored; they are counted as ever."""
        if not self._files:
            return turn
        changed: dict[str, tuple[Block, ...] | None] = {}
        for name in ("blocks", "ext_blocks"):
            blocks: tuple[Block, ...] | None = getattr(turn, name)
            changed[name] = blocks and tuple(self._block(one) for one in blocks)
        if changed == {"blocks": turn.blocks, "ext_blocks": turn.ext_blocks}:
            return turn
        return replace(turn, **changed)

    def _block(self, block: Block) -> Block:
        if block.block_type == "tool_use":
            is_hidden = self._is_hidden(block)
            if is_hidden and block.tool_use_id:
                self.calls.append(block.tool_use_id)
                del self.calls[:-_MOST_CALLS]
            elif is_hidden or not block.tool_use_id:
                self._next = is_hidden
        elif block.block_type == "tool_result":
            by_order = self._next and not block.tool_use_id
            is_hidden = by_order or block.tool_use_id in self.calls
            self._next = self._next and not by_order
        else:
            return block
        return Block(block_type=block.block_type, text="", own=True) if is_hidden else block

    def _is_hidden(self, block: Block) -> bool:
        paths = [absolute(path, self._cwd) for path in touched_paths(block)]
        return any(lines.hides(path) for lines in self._files for path in paths)
