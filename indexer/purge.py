"""Sees to it that nothing of what was taken out of a memory is left in the bytes of its home.

Rows that leave a memory stay on the disk for a while: in older versions of the dataset, in
segments of the words index, in free pages and the log of the catalog. Here all of them are written
anew without such rows. What is due is noted before anything is taken out, so that a process that
dies over it leaves the rest to the next one.
"""

import contextlib
import logging
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

from funes_ls.indexer import dataset as lance
from funes_ls.indexer import memory_repair as repair
from funes_ls.indexer.home import drop_shown
from funes_ls.indexer.memory import CATALOG, Memory, MemoryView, derived_place

_log = logging.getLogger(__name__)
#: Keys of the catalog: whether bytes are to be removed, and of which generation they last were.
_DUE, _DONE_AT = "purge_due", "purged_at"
#: How long readers of the catalog are waited for that keep its old pages, and how often.
_READERS_S, _ASK_READERS_S = 5.0, 0.1

#: What is told of the work: `vectors`, `words` or `catalog`, rows done and rows in all. What it
#: raises ends the work, which is due then as before.
Told = Callable[[str, int, int], None]
#: Work in steps; each yields the seconds it would rather wait. True in the end for all done.
Purging = Generator[float, None, bool]


def expect(memory: Memory) -> None:
    """Note that rows are about to leave whose bytes must follow."""
    memory.catalog.put(_DUE, 1)


def is_due(memory: MemoryView) -> bool:
    """Return whether rows have left whose bytes may be there still."""
    return bool(memory.catalog.get(_DUE, 0))


def is_pure(memory: Memory) -> bool:
    """Return whether nothing has changed since no byte of old rows was left."""
    return not is_due(memory) and memory.catalog.get(_DONE_AT) == memory.generation


def purge_steps(memory: Memory, home: Path, *, told: Told) -> Purging:
    """Write a home's memory anew without what was taken out of it.

    Nothing else may be written between two steps. False in the end means that another process
    still reads old pages of the catalog; the work stays due.

    Raises:
        BackendError: kind `disk`: it could not be written; the work stays due.
    """
    expect(memory)
    for _ in memory.rewrite(told=told):
        yield 0.0
    _drop_copies(memory, home)
    told("catalog", 0, 0)
    memory.catalog.rewrite()
    patience_until = time.monotonic() + _READERS_S
    while not (memory.catalog.empty_log() and memory.token_store.empty_log()):
        if time.monotonic() >= patience_until:
            _log.info("old pages are being read")
            return False
        yield _ASK_READERS_S
    memory.catalog.put(_DONE_AT, memory.generation)
    memory.catalog.put(_DUE, 0)
    return True


def purge(memory: Memory, home: Path, *, told: Told) -> bool:
    """Take all the steps of `purge_steps`."""
    steps = purge_steps(memory, home, told=told)
    while True:
        try:
            time.sleep(next(steps))
        except StopIteration as end:
            return bool(end.value)


def _drop_copies(memory: Memory, home: Path) -> None:
    """Remove what was made of the memory: damaged catalogs, other words indexes, shown texts."""
    base, words = memory.base, memory.lexical.path
    for aside in base.glob(f"{CATALOG}.damaged-*"):
        with contextlib.suppress(OSError):
            aside.unlink()
    for folder in (base / repair.LEXICAL).glob("*"):
        if words is not None and folder.name != words.name:
            shutil.rmtree(folder, ignore_errors=True)
    # Where the dataset alone was named as a memory, its words were indexed apart.
    shutil.rmtree(derived_place(home / "derived", lance.dataset_path(base)), ignore_errors=True)
    drop_shown(home)


def clean_logs(home: Path, cleaned: Callable[[str], str], *, is_dry: bool = False) -> int:
    """Rewrite in place the logs whose text is another one when cleaned; return how many.

    Whoever appends to a log meanwhile goes on at its end. A dry run only counts them.
    """
    changed = 0
    for path in (home / "logs").glob("*"):
        with contextlib.suppress(OSError):
            changed += _clean_log(path, cleaned, is_dry=is_dry)
    return changed


def _clean_log(path: Path, cleaned: Callable[[str], str], *, is_dry: bool) -> bool:
    with path.open(
        "r" if is_dry else "r+", encoding="utf-8", errors="surrogateescape", newline=""
    ) as file:
        before = file.read()
        after = cleaned(before)
        if after != before and not is_dry:
            file.seek(0)
            file.write(after)
            file.truncate()
    return after != before


def without_names(names: Iterable[str]) -> Callable[[str], str]:
    """Return what takes lines out of a text that hold any of some names."""
    pattern = re.compile("|".join(map(re.escape, names)) or "(?!)")

    def cleaned(text: str) -> str:
        if not pattern.search(text):
            return text
        lines = text.splitlines(keepends=True)
        return "".join(line for line in lines if not pattern.search(line))

    return cleaned
