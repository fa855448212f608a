"""The words index: a tantivy index over every row, embedded or not.

Derived from the rows, and rebuilt whenever it does not fit. It also keeps each row as it is,
compressed: a row is read from here in a fraction of the time that the dataset takes, and before the
dataset is even open.
"""

import contextlib
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.identifiers import further_words, unspaced_terms
from funes_ls.indexer.lexical_search import LexicalQuery as LexicalQuery
from funes_ls.indexer.lexical_search import Words, stored
from funes_ls.indexer.lexical_text import searchable_text as searchable_text
from funes_ls.indexer.model import Chunk

#: Number of the index's own layout; raise it whenever fields or term rules change.
FORMAT = 4
_MARK = "funes.json"
#: Name of a file of a segment, up to its first dot.
_SEGMENT = re.compile("[0-9a-f]{32}")
_HEAP_BYTES = 80_000_000
#: One keeps up with what is read; two would leave twice the segments, and merge them.
_WRITER_THREADS = 1


class LexicalMark(Struct, frozen=True, kw_only=True):
    """What the index says of itself.

    Attributes:
        format: Layout number, see `FORMAT`.
        index_id: Random name of this build; the catalog remembers which build it has filled.
    """

    format: int
    index_id: str


class _Entry(Struct, kw_only=True, omit_defaults=True, gc=False):
    """What the index is given of a row, see `_schema`; a field without anything is left out."""

    id: str
    session_id: str
    block_type: str
    tool: str
    harness: str
    seq: int
    row: str
    text: str
    parts: str = ""
    cjk: str = ""
    ts_us: int | None = None


_encode = msgspec.json.Encoder().encode


class LexicalIndex:
    """An open words index; one writer at a time, any number of readers."""

    def __init__(self, index: Any, mark: LexicalMark, path: Path | None) -> None:
        """Wrap an open tantivy index; use `open` or `create`."""
        self._index = index
        self._schema = index.schema
        self._analyzer = _stemmed()
        self._writer: Any = None
        self.mark = mark
        self.path = path
        index.register_tokenizer("stemmed", self._analyzer)
        index.register_tokenizer("terms", _terms_analyzer())
        index.register_tokenizer("nothing", _nothing())

    @classmethod
    def create(cls, path: Path | None, *, index_id: str) -> "LexicalIndex":
        """Return a new empty index at a path, in place of any old one; in memory for None.

        Raises:
            BackendError: kind `disk`: it cannot be written there.
        """
        import tantivy

        mark = LexicalMark(format=FORMAT, index_id=index_id)
        if path is None:
            return cls(tantivy.Index(_schema()), mark, None)
        try:
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
            index = tantivy.Index(_schema(), str(path))
            (path / _MARK).write_bytes(msgspec.json.encode(mark))
        except (OSError, ValueError) as exc:
            raise _disk(path, exc) from exc
        return cls(index, mark, path)

    @classmethod
    def open(cls, path: Path) -> "LexicalIndex":
        """Return the index at a path.

        Raises:
            MemoryStateError: kind `missing` or `damaged`: it must be rebuilt.
        """
        import tantivy

        if not (path / _MARK).exists():
            raise MemoryStateError(f"No words index at {path}.", kind="missing")
        try:
            mark = msgspec.json.decode((path / _MARK).read_bytes(), type=LexicalMark)
            if mark.format != FORMAT:
                raise ValueError(f"layout {mark.format}")
            place = path if _may_write(path) else _mirror(path)
            lexical = cls(tantivy.Index.open(str(place)), mark, path)
            if place != path:
                weakref.finalize(lexical, shutil.rmtree, place, ignore_errors=True)
            lexical.count()
        except (OSError, ValueError, msgspec.DecodeError) as exc:
            raise MemoryStateError(
                f"The words index at {path} cannot be used ({exc}).", kind="damaged"
            ) from exc
        return lexical

    def count(self) -> int:
        """Return how many rows are committed."""
        return self.words.count()

    def add(self, rows: Iterable[Chunk], *, replace: bool = False) -> int:
        """Add rows and return how many; searchable after `commit`.

        Args:
            rows: Rows to add.
            replace: Take out rows of the same ids first; needed only where there may be some.
        """
        writer = self._open_writer()
        added = 0
        try:
            for row in rows:
                if replace:
                    writer.delete_documents_by_term("id", row.id)
                # As JSON: it crosses into tantivy in one piece, in half the time of a `Document`.
                writer.add_json(_encode(_entry(row)).decode())
                added += 1
        except (OSError, ValueError) as exc:
            self._drop_writer()
            raise _disk(self.path, exc) from exc
        return added

    def delete_ids(self, ids: Iterable[str]) -> None:
        """Take out rows by id; in force after `commit`."""
        writer = self._open_writer()
        for id_ in ids:
            writer.delete_documents_by_term("id", id_)

    def delete_session(self, session_id: str) -> None:
        """Take out every row of a session; in force after `commit`."""
        self._open_writer().delete_documents_by_term("session_id", session_id)

    def commit(self) -> None:
        """Make everything added and deleted so far durable and searchable.

        Raises:
            BackendError: kind `disk`: it could not be written.
        """
        if self._writer is None:
            return
        try:
            self._writer.commit()
            self._index.reload()
        except (OSError, ValueError) as exc:
            self._drop_writer()
            raise _disk(self.path, exc) from exc

    def rewrite(self, batches: Iterable[Sequence[Chunk]]) -> Iterator[int]:
        """Take rows in place of all there are, yielding how many so far; in force after `commit`.

        Readers see the old ones until then, and after a kill.
        """
        self.close()  # what was not committed
        writer = self._open_writer()
        writer.delete_all_documents()
        done = 0
        for rows in batches:
            done += self.add(rows)
            yield done

    def drop_unused(self) -> None:
        """Remove files that the committed state does not name; nobody else may be writing."""
        if self.path is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self._open_writer().garbage_collect_files()
        named = (self.path / "meta.json").read_text(encoding="utf-8").replace("-", "")
        for file in self.path.iterdir():
            stem = file.name.partition(".")[0]
            if _SEGMENT.fullmatch(stem) and stem not in named:
                file.unlink(missing_ok=True)

    def reload(self) -> None:
        """See what another process has committed."""
        self._index.reload()

    @property
    def words(self) -> Words:
        """Return the index as it is now, for searching."""
        return Words(self._index.searcher(), self._schema, self._analyzer)

    def search(self, query: LexicalQuery, limit: int) -> list[tuple[str, float]]:
        """Return ids and BM25 scores, best first; see `Words.search`."""
        return self.words.search(query, limit)

    def close(self) -> None:
        """Let the writer and its threads go; what was not committed is dropped."""
        self._drop_writer()

    def _drop_writer(self) -> None:
        """Let go of the writer and of its lock, also of one that a full disk has killed."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        with contextlib.suppress(OSError, ValueError):
            writer.rollback()
        # This takes the writer apart, dead or alive; without it the lock lives as long as any
        # error that was raised from here.
        with contextlib.suppress(OSError, ValueError):
            writer.wait_merging_threads()

    def _open_writer(self) -> Any:
        if self._writer is None:
            try:
                self._writer = self._index.writer(_HEAP_BYTES, _WRITER_THREADS)
            except (OSError, ValueError) as exc:
                raise _disk(self.path, exc) from exc
        return self._writer


def _entry(row: Chunk) -> _Entry:
    text = searchable_text(row.text, row.block_type)
    return _Entry(
        id=row.id,
        session_id=row.session_id,
        block_type=row.block_type,
        tool=row.tool_name or "",
        harness=row.harness,
        text=text,
        parts=" ".join(further_words(text)),
        cjk="" if text.isascii() else " ".join(unspaced_terms(text)),
        ts_us=row.ts_us,
        seq=row.seq,
        row=_encode(stored(row)).decode(),
    )


def _schema() -> Any:
    from tantivy import SchemaBuilder

    builder = SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("session_id", "block_type", "tool", "harness"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("ts_us", indexed=True, fast=True)
    builder.add_integer_field("seq", indexed=True, fast=True)
    # Only kept: its one term is the whole, which `nothing` drops.
    builder.add_text_field("row", stored=True, tokenizer_name="nothing", index_option="basic")
    builder.add_text_field("text", tokenizer_name="stemmed", index_option="position")
    builder.add_text_field("parts", tokenizer_name="stemmed", index_option="position")
    builder.add_text_field("cjk", tokenizer_name="terms", index_option="freq")
    return builder.build()


def _stemmed() -> Any:
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.lowercase())
    return builder.filter(Filter.ascii_fold()).filter(Filter.stemmer("english")).build()


def _terms_analyzer() -> Any:
    from tantivy import TextAnalyzerBuilder, Tokenizer

    return TextAnalyzerBuilder(Tokenizer.whitespace()).build()


def _nothing() -> Any:
    """Return an analyzer that finds no word in any text."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    return TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.remove_long(1)).build()


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _mirror(path: Path) -> Path:
    """Return a directory of links to an index: tantivy cannot read without a lock file beside."""
    mirror = Path(tempfile.mkdtemp(prefix="funes-"))
    for file in path.iterdir():
        if not file.name.endswith(".lock"):
            (mirror / file.name).symlink_to(file.resolve())
    return mirror


def _disk(path: Path | None, exc: Exception) -> BackendError:
    is_full = "os error 28" in str(exc) or "StorageFull" in str(exc)
    reason = "the disk is full" if is_full else "the disk or the index refuses it"
    return BackendError(
        f"The words index at {path} could not be written: {reason}.",
        hint="Free some disk space or make the directory writable, then run `funes index`.",
        kind="disk",
    )
