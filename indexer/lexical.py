"""The words index: a tantivy index over every row, embedded or not.

Derived from the rows: it holds ids and postings, no text, and is rebuilt whenever it does not fit.
"""

import itertools
import math
import os
import re
import shutil
import tempfile
import unicodedata
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.identifiers import (
    SIGNED_WORDS,
    further_words,
    hash_prefixes,
    is_hash,
    joined_names,
    unspaced_terms,
)
from funes_ls.indexer.model import Chunk

#: Number of the index's own layout; raise it whenever fields or term rules change.
FORMAT = 3
_MARK = "funes.json"
_HEAP_BYTES = 80_000_000
#: One keeps up with what is read; two would leave twice the segments, and merge them.
_WRITER_THREADS = 1
_MOST_TERMS = 256
_MOST_NAMES = 40
#: A question of so few words is probably meant as it stands.
_SHORT_QUESTION = 4
_FIRST_US, _LAST_US = -(1 << 62), 1 << 62
_MOST_COMPLETIONS = 20
#: What a name found as written weighs against its words found apart; set by `benchmarks/`.
_NAME_BOOST = 1.0
_PHRASE_BOOST = 1.0
#: What a part of a camel-case name weighs against a word.
_PART_BOOST = 0.15
#: Neighbouring words asked as neighbouring parts of one name, at most.
_MOST_PAIRS = 40
_QUOTED = re.compile('"([^"]+)"|\u201c([^\u201d]+)\u201d')
_CODE_POINT = re.compile(r"\\u([0-9a-fA-F]{4})")
#: JSON's escapes, a backslash's own aside while the others are undone.
_ESCAPES = (("\\\\", "\0"), ("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ('\\"', '"'), ("\\/", "/"))
#: Letters whose accents tantivy's ASCII folding leaves, and the soft hyphen.
_FOLDS = str.maketrans(
    "\u0451\u0401\u03ac\u03ad\u03ae\u03af\u03cc\u03cd\u03ce\u0390\u03b0\u03ca\u03cb\u03c2",
    "\u0435\u0415\u03b1\u03b5\u03b7\u03b9\u03bf\u03c5\u03c9\u03b9\u03c5\u03b9\u03c5\u03c3",
    "\u00ad",
)
#: First bytes, in UTF-8, of what `_FOLDS` names.
_FOLD_LEADS = (b"\xce", b"\xcf", b"\xd0", b"\xd1", b"\xc2\xad")


class LexicalQuery(Struct, frozen=True, kw_only=True):
    """A question in words and what its hits must satisfy; None means no condition.

    Attributes:
        text: Free text; only "double quotes" mean something: the words must stand side by side.
        since_us: Earliest time, inclusive; rows without a time are left out once it is given.
        until_us: Latest time, exclusive; likewise.
    """

    text: str
    session_ids: frozenset[str] | None = None
    block_types: frozenset[str] | None = None
    tools: frozenset[str] | None = None
    harnesses: frozenset[str] | None = None
    since_us: int | None = None
    until_us: int | None = None


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
    text: str
    parts: str = ""
    cjk: str = ""
    ts_us: int | None = None


_encode = msgspec.json.Encoder().encode


def searchable_text(text: str, block_type: str) -> str:
    """Return a row's text as words: JSON escapes undone in tool calls, Unicode made uniform."""
    if "\\" in text and _holds_json(text, block_type):
        text = _unescaped(text)
    return uniform(text)


def uniform(text: str) -> str:
    """Return text with compatibility forms and accents that have two spellings made one."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    data = text.encode("utf-8", "replace")
    # Translating costs more than all else here, and few texts hold such letters.
    return text.translate(_FOLDS) if any(lead in data for lead in _FOLD_LEADS) else text


def _holds_json(text: str, block_type: str) -> bool:
    # A result is JSON-escaped when its line breaks are written out; `C:\new` in plain text is not.
    if block_type == "tool_use":
        return True
    return block_type == "tool_result" and "\\n" in text and "\n" not in text


def _unescaped(text: str) -> str:
    for escape, char in _ESCAPES:
        text = text.replace(escape, char)
    if "\\u" in text:
        text = _CODE_POINT.sub(_char, text)
    return text.replace("\0", "\\")


def _char(match: re.Match[str]) -> str:
    value = int(match[1], 16)
    return " " if 0xD800 <= value < 0xE000 else chr(value)


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
        return int(self._index.searcher().num_docs)

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
            raise _disk(self.path, exc) from exc

    def reload(self) -> None:
        """See what another process has committed."""
        self._index.reload()

    def close(self) -> None:
        """Let the writer and its threads go; what was not committed is dropped."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.rollback()
            writer.wait_merging_threads()

    def search(self, query: LexicalQuery, limit: int) -> list[tuple[str, float]]:
        """Return ids and BM25 scores, best first.

        A quoted phrase is required; when nothing has it, its words are searched like the rest.
        """
        text = uniform(query.text)
        phrases = [first or second for first, second in _QUOTED.findall(text)]
        hits = self._run(self._words(text, phrases), query, limit) if phrases else []
        return hits or self._run(self._words(text, []), query, limit)

    def terms(self, text: str) -> dict[str, float]:
        """Return the words a question asks for, as the index has them, with their weights."""
        asked = self._analyzer.analyze(text)
        terms = dict.fromkeys(asked, 1.0)
        for word in self._analyzer.analyze(" ".join(further_words(text))):
            terms.setdefault(word, _PART_BOOST)
        for word in re.findall(r"\w+", text.lower()):
            if is_hash(word):
                for form in [*hash_prefixes(word), *self._beginning_with(word)]:
                    terms.setdefault(form, 1.0)
        return {word: terms[word] for word in self._rarest(list(terms))}

    def _run(self, words: Any, query: LexicalQuery, limit: int) -> list[tuple[str, float]]:
        if words is None or limit < 1:
            return []
        import tantivy

        must = [(tantivy.Occur.Must, part) for part in self._filters(query)]
        if must:
            words = tantivy.Query.boolean_query([(tantivy.Occur.Must, words), *must])
        searcher = self._index.searcher()
        found = searcher.search(words, limit, count=False).hits
        return [(searcher.doc(address)["id"][0], float(score)) for score, address in found]

    def _words(self, text: str, phrases: Sequence[str]) -> Any:
        from tantivy import Occur, Query

        searcher = self._index.searcher()
        clauses = []
        for word, weight in self.terms(text).items():
            whole = Query.boost_query(self._term("text", word), weight)
            clauses.append((Occur.Should, whole))
            if frequency := int(searcher.doc_freq("parts", word)):
                worth = 1.0 if word in SIGNED_WORDS else _PART_BOOST
                worth *= _rarity(frequency, searcher.num_docs)
                part = Query.const_score_query(self._term("parts", word), worth)
                clauses.append((Occur.Should, part))
        for pair, frequency in self._pairs(text):
            parts = Query.phrase_query(self._schema, "parts", list(pair))
            worth = _NAME_BOOST * _rarity(frequency, searcher.num_docs)
            clauses.append((Occur.Should, Query.const_score_query(parts, worth)))
        for term in dict.fromkeys(unspaced_terms(text, singles=False)):
            clauses.append((Occur.Should, self._term("cjk", term)))
        names = joined_names(text)[:_MOST_NAMES]
        if len(text.split()) <= _SHORT_QUESTION:
            names.append(text)
        for name in names:
            if exact := self._phrase(name):
                clauses.append((Occur.Should, Query.boost_query(exact, _NAME_BOOST)))
        for phrase in phrases:
            if exact := self._phrase(phrase):
                clauses.append((Occur.Must, Query.boost_query(exact, _PHRASE_BOOST)))
        return Query.boolean_query(clauses) if clauses else None

    def _pairs(self, text: str) -> list[tuple[tuple[str, str], int]]:
        """Return neighbouring words that may be parts of one name, and how often the rarer is."""
        searcher = self._index.searcher()
        pairs = dict.fromkeys(itertools.pairwise(self._analyzer.analyze(text)))
        counted = (
            (pair, min(int(searcher.doc_freq("parts", word)) for word in pair))
            for pair in itertools.islice(pairs, _MOST_PAIRS)
        )
        return [(pair, frequency) for pair, frequency in counted if frequency]

    def _phrase(self, text: str) -> Any:
        """Return a query for the words of a text side by side, None for fewer than two words."""
        from tantivy import Query

        words: list[Any] = self._analyzer.analyze(text)
        return Query.phrase_query(self._schema, "text", words) if len(words) > 1 else None

    def _beginning_with(self, prefix: str) -> list[str]:
        found = self._index.searcher().terms_with_prefix("text", prefix, limit=_MOST_COMPLETIONS)
        return [term for term, _ in found]

    def _rarest(self, words: list[str]) -> list[str]:
        if len(words) <= _MOST_TERMS:
            return words
        searcher = self._index.searcher()
        return sorted(words, key=lambda word: int(searcher.doc_freq("text", word)))[:_MOST_TERMS]

    def _term(self, field: str, term: str) -> Any:
        from tantivy import Query

        return Query.term_query(self._schema, field, term, "freq")

    def _filters(self, query: LexicalQuery) -> list[Any]:
        from tantivy import FieldType, Query

        sets = {
            "session_id": query.session_ids,
            "block_type": query.block_types,
            "tool": query.tools,
            "harness": query.harnesses,
        }
        parts = [
            Query.term_set_query(self._schema, field, sorted(values))
            for field, values in sets.items()
            if values is not None
        ]
        if query.since_us is not None or query.until_us is not None:
            parts.append(
                Query.range_query(
                    self._schema,
                    "ts_us",
                    FieldType.Integer,
                    _FIRST_US if query.since_us is None else query.since_us,
                    _LAST_US if query.until_us is None else query.until_us,
                    include_upper=False,
                )
            )
        return [Query.const_score_query(part, 0.0) for part in parts]

    def _open_writer(self) -> Any:
        if self._writer is None:
            try:
                self._writer = self._index.writer(_HEAP_BYTES, _WRITER_THREADS)
            except (OSError, ValueError) as exc:
                raise _disk(self.path, exc) from exc
        return self._writer


def _rarity(frequency: int, total: int) -> float:
    """Return what BM25 gives a term that stands once in a text of usual length: its idf.

    The `parts` field cannot be scored by BM25 itself: most rows have none, so any that has some
    counts as overlong.
    """
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


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
    )


def _schema() -> Any:
    from tantivy import SchemaBuilder

    builder = SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("session_id", "block_type", "tool", "harness"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("ts_us", indexed=True, fast=True)
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
    return BackendError(
        f"The words index at {path} could not be written ({exc}).",
        hint="Free some disk space or make the directory writable, then run `funes index`.",
        kind="disk",
    )
