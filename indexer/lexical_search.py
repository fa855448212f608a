"""Searches one state of the words index, and reads from it the rows it holds."""

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from funes_ls.indexer.identifiers import (
    SIGNED_WORDS,
    further_words,
    hash_prefixes,
    is_hash,
    joined_names,
    unspaced_terms,
)
from funes_ls.indexer.lexical_text import uniform
from funes_ls.indexer.model import Chunk
from funes_ls.indexer.times import parse_ts

_MOST_TERMS = 256
_MOST_NAMES = 40
#: A question of so few words is probably meant as it stands.
_SHORT_QUESTION = 4
_LOWEST, _HIGHEST = -(1 << 62), 1 << 62
_MOST_COMPLETIONS = 20
#: What a name found as written weighs against its words found apart; set by `benchmarks/`.
_NAME_BOOST = 1.0
_PHRASE_BOOST = 1.0
#: What a part of a camel-case name weighs against a word.
_PART_BOOST = 0.15
#: Neighbouring words asked as neighbouring parts of one name, at most.
_MOST_PAIRS = 40
#: Of the weighted names of an artefact, those asked for.
_MOST_WEIGHED = 40
_QUOTED = re.compile('"([^"]+)"|\u201c([^\u201d]+)\u201d')
#: What the index holds of a row word for word; its time is read anew from `ts`.
STORED = tuple(name for name in Chunk.__struct_fields__ if name != "ts_us")
_decode = msgspec.json.Decoder(list[Any]).decode
#: Rows asked for by one query.
_MANY = 500


class LexicalQuery(Struct, frozen=True, kw_only=True):
    """A question in words and what its hits must satisfy; None means no condition.

    Attributes:
        text: Free text; only "double quotes" mean something: the words must stand side by side.
        names: Further words and names, each with its weight against a word of the text; the
            rarest are asked for.
        since_us: Earliest time, inclusive; rows without a time are left out once it is given.
        until_us: Latest time, exclusive; likewise.
    """

    text: str
    names: tuple[tuple[str, float], ...] = ()
    session_ids: frozenset[str] | None = None
    block_types: frozenset[str] | None = None
    tools: frozenset[str] | None = None
    harnesses: frozenset[str] | None = None
    since_us: int | None = None
    until_us: int | None = None


class Coverage(Struct, frozen=True, kw_only=True):
    """How much of a question's words passages hold, rare words counting for more; in 0..1.

    Attributes:
        held: Per passage, the share of the question it holds.
        unknown: The share that no row of the memory holds.
    """

    held: tuple[float, ...]
    unknown: float


class Words:
    """The words index as it was once; later commits do not change it. For any thread."""

    def __init__(self, searcher: Any, schema: Any, analyzer: Any) -> None:
        """Wrap a tantivy searcher; use `LexicalIndex.words`."""
        self._searcher = searcher
        self._schema = schema
        self._analyzer = analyzer

    def count(self) -> int:
        """Return how many rows it holds."""
        return int(self._searcher.num_docs)

    def rows(self, ids: Sequence[str]) -> list[Chunk]:
        """Return those of the rows that are here, in no fixed order."""
        found: list[Chunk] = []
        for start in range(0, len(ids), _MANY):
            part = ids[start : start + _MANY]
            found += self._read(self._one_of("id", part), 2 * len(part))
        return found

    def session_rows(
        self, session_id: str, *, first: int | None = None, last: int | None = None
    ) -> list[Chunk]:
        """Return a session's rows in no fixed order, those of `seq` in `[first, last]` if given."""
        from tantivy import FieldType, Occur, Query

        query = self._one_of("session_id", [session_id])
        if first is not None or last is not None:
            low = _LOWEST if first is None else first
            high = _HIGHEST if last is None else last
            near = Query.range_query(self._schema, "seq", FieldType.Integer, low, high)
            query = Query.boolean_query([(Occur.Must, query), (Occur.Must, near)])
        return self._read(query, max(self.count(), 1))

    def _one_of(self, field: str, values: Sequence[str]) -> Any:
        from tantivy import Query

        return Query.const_score_query(Query.term_set_query(self._schema, field, list(values)), 0.0)

    def _read(self, query: Any, limit: int) -> list[Chunk]:
        found = self._searcher.search(query, limit, count=False).hits
        return [_row(self._searcher.doc(address)["row"][0]) for _, address in found]

    def search(self, query: LexicalQuery, limit: int) -> list[tuple[str, float]]:
        """Return ids and BM25 scores, best first.

        A quoted phrase is required; when nothing has it, its words are searched like the rest.
        """
        text = uniform(query.text)
        phrases = [first or second for first, second in _QUOTED.findall(text)]
        hits = self._run(self._words(query, text, phrases), query, limit) if phrases else []
        return hits or self._run(self._words(query, text, []), query, limit)

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

    def frequency(self, word: str) -> int:
        """Return how many rows hold a word; of a name that is several, the rarest counts."""
        terms = self._analyzer.analyze(uniform(word))
        return min((int(self._searcher.doc_freq("text", term)) for term in terms), default=0)

    def coverage(self, question: str, passages: Sequence[str], *, ignored: str = "") -> Coverage:
        """Return how much of a question's words and names each passage holds.

        Args:
            question: Free text.
            passages: What may hold them.
            ignored: Words that do not count where there are others.
        """
        weights, known = self._weights(uniform(question))
        small = set(self._analyzer.analyze(ignored))
        weights = {word: w for word, w in weights.items() if word not in small} or weights
        total = sum(weights.values()) or 1.0
        held = []
        for passage in map(uniform, passages):
            there = set(self._analyzer.analyze(f"{passage} {' '.join(further_words(passage))}"))
            folded = passage.casefold()
            held.append(sum(w for term, w in weights.items() if term in there or term in folded))
        missing = sum(weight for term, weight in weights.items() if term not in known)
        return Coverage(held=tuple(one / total for one in held), unknown=missing / total)

    def _weights(self, text: str) -> tuple[dict[str, float], set[str]]:
        """Return what each word and name of a question weighs, and which of them are here."""
        rows, weights, known = self._searcher.num_docs, {}, set()
        counted = [
            (word, weight, max(self._count("text", word), self._count("parts", word)))
            for word, weight in self.terms(text).items()
        ]
        pairs = dict.fromkeys(unspaced_terms(text, singles=False))
        counted += [(pair, 1.0, self._count("cjk", pair)) for pair in pairs]
        for word, weight, frequency in counted:
            weights[word] = weight * _rarity(frequency, rows)
            known |= {word} if frequency else set()
        for name in joined_names(text)[:_MOST_NAMES]:
            phrase = self._phrase(name)
            if phrase is not None:
                is_here = bool(self._searcher.search(phrase, 1, count=False).hits)
                weights[name.casefold()] = _rarity(self.frequency(name) if is_here else 0, rows)
                known |= {name.casefold()} if is_here else set()
        return weights, known

    def _count(self, field: str, term: str) -> int:
        return int(self._searcher.doc_freq(field, term))

    def _run(self, words: Any, query: LexicalQuery, limit: int) -> list[tuple[str, float]]:
        if words is None or limit < 1:
            return []
        import tantivy

        must = [(tantivy.Occur.Must, part) for part in self._filters(query)]
        if must:
            words = tantivy.Query.boolean_query([(tantivy.Occur.Must, words), *must])
        found = self._searcher.search(words, limit, count=False).hits
        return [(self._searcher.doc(address)["id"][0], float(score)) for score, address in found]

    def _words(self, query: LexicalQuery, text: str, phrases: Sequence[str]) -> Any:
        from tantivy import Occur, Query

        clauses = [(Occur.Should, name) for name in self._weighted(query.names)]
        for word, weight in self.terms(text).items():
            whole = Query.boost_query(self._term("text", word), weight)
            clauses.append((Occur.Should, whole))
            if frequency := int(self._searcher.doc_freq("parts", word)):
                worth = 1.0 if word in SIGNED_WORDS else _PART_BOOST
                worth *= _rarity(frequency, self._searcher.num_docs)
                part = Query.const_score_query(self._term("parts", word), worth)
                clauses.append((Occur.Should, part))
        for pair, frequency in self._pairs(text):
            parts = Query.phrase_query(self._schema, "parts", list(pair))
            worth = _NAME_BOOST * _rarity(frequency, self._searcher.num_docs)
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
        pairs = dict.fromkeys(itertools.pairwise(self._analyzer.analyze(text)))
        counted = (
            (pair, min(int(self._searcher.doc_freq("parts", word)) for word in pair))
            for pair in itertools.islice(pairs, _MOST_PAIRS)
        )
        return [(pair, frequency) for pair, frequency in counted if frequency]

    def _weighted(self, names: Sequence[tuple[str, float]]) -> list[Any]:
        """Return queries for the rarest of weighted names that are here at all."""
        from tantivy import Query

        rated = []
        for name, weight in names:
            words: list[Any] = self._analyzer.analyze(uniform(name))
            frequency = min((int(self._searcher.doc_freq("text", w)) for w in words), default=0)
            if frequency:
                rated.append((weight * _rarity(frequency, self._searcher.num_docs), weight, words))
        rated.sort(key=lambda one: -one[0])
        return [
            Query.boost_query(
                Query.phrase_query(self._schema, "text", words)
                if len(words) > 1
                else self._term("text", words[0]),
                weight,
            )
            for _, weight, words in rated[:_MOST_WEIGHED]
        ]

    def _phrase(self, text: str) -> Any:
        """Return a query for the words of a text side by side, None for fewer than two words."""
        from tantivy import Query

        words: list[Any] = self._analyzer.analyze(text)
        return Query.phrase_query(self._schema, "text", words) if len(words) > 1 else None

    def _beginning_with(self, prefix: str) -> list[str]:
        found = self._searcher.terms_with_prefix("text", prefix, limit=_MOST_COMPLETIONS)
        return [term for term, _ in found]

    def _rarest(self, words: list[str]) -> list[str]:
        if len(words) <= _MOST_TERMS:
            return words
        return sorted(words, key=lambda word: int(self._searcher.doc_freq("text", word)))[
            :_MOST_TERMS
        ]

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
                    _LOWEST if query.since_us is None else query.since_us,
                    _HIGHEST if query.until_us is None else query.until_us,
                    include_upper=False,
                )
            )
        return [Query.const_score_query(part, 0.0) for part in parts]


def _rarity(frequency: int, total: int) -> float:
    """Return what BM25 gives a term that stands once in a text of usual length: its idf.

    The `parts` field cannot be scored by BM25 itself: most rows have none, so any that has some
    counts as overlong.
    """
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def stored(row: Chunk) -> list[Any]:
    """Return what the index keeps of a row."""
    return [getattr(row, name) for name in STORED]


def _row(text: str) -> Chunk:
    values = dict(zip(STORED, _decode(text), strict=True))
    return Chunk(**values, ts_us=parse_ts(values["ts"]))
