"""A reading without secrets: what a trace says never gets past this as it stands there."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.chunk import elide
from funes_ls.indexer.model import Block, Problem, SessionMeta, Turn, path_text
from funes_ls.indexer.redaction.base import Counts, Redaction
from funes_ls.indexer.traces.base import Reading, Unit
from funes_ls.indexer.traces.texts import munge, title_of

_HIDDEN = "hidden:"
#: Values of a reader's state that say nothing of the session.
_OWN_VALUES = ("digest", "harness", "version")


def as_stored(unit: Unit, catalog: Catalog) -> Unit:
    """Return a unit under the key that it is stored by: its own, or the one of `hidden_key`."""
    if catalog.source(unit.key) is not None:
        return unit
    known = catalog.source(hidden := hidden_key(unit.key))
    return unit if known is None else replace(unit, key=hidden, shown=known.path)


def hidden_key(key: str) -> str:
    """Return what stands for the key of a trace with a secret in its path."""
    if key.startswith(_HIDDEN):
        return key
    return _HIDDEN + hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:24]


class Clean(Reading, Protocol):
    """A reading without secrets, wherever that was seen to."""

    @property
    def cwd(self) -> str:
        """Where the session ran, as it is: to look there, never to be kept."""
        ...

    @property
    def path(self) -> str:
        """The trace's path as it may be shown and kept."""
        ...

    @property
    def counts(self) -> Counts:
        """How often each rule found something in the turns so far."""
        ...


class CleanReading:
    """A reading whose turns, problems, session and state hold no secrets; see `Clean`."""

    def __init__(self, reading: Reading, unit: Unit, redaction: Redaction | None) -> None:
        """Wrap the reading of a unit; None lets everything through as it is."""
        self._reading = reading
        self._unit = unit
        self._redaction = redaction
        self._titles: dict[str, str] = {}
        self._raw_meta: SessionMeta | None = None
        self._meta: SessionMeta | None = None
        self._folders: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Turn | Problem]:
        """Yield what the reading does, without secrets."""
        if self._redaction is None:
            yield from self._reading
            return
        for item in self._reading:
            yield self._turn(item) if isinstance(item, Turn) else self._problem(item)

    @property
    def session(self) -> SessionMeta:
        """What the trace says of its session."""
        raw = self._reading.session
        if self._redaction is None:
            return raw
        if self._meta is None or raw != self._raw_meta:
            self._raw_meta = replace(raw, remotes=list(raw.remotes))  # the reader fills its own
            given = replace(raw, title=self._titles.get(raw.title, raw.title))
            meta, _ = self._redaction.meta(given)
            self._meta = replace(
                meta,
                session_id=self._name(raw.session_id),
                inner_id=self._name(raw.inner_id),
                parent_id=self._name(raw.parent_id),
            )
            if self._meta.cwd != raw.cwd and (named := munge(raw.cwd)):
                self._folders[named] = munge(self._meta.cwd) or ""
        return self._meta

    @property
    def cwd(self) -> str:
        """Where the session ran, as it is: to look there, never to be kept."""
        return self._reading.session.cwd

    @property
    def counts(self) -> Counts:
        """How often each rule found something in the turns so far."""
        return self._counts

    @property
    def resume(self) -> bytes:
        """The reader's state: it holds the title, the folder and the names of tools."""
        raw = self._reading.resume
        if self._redaction is None or not raw:
            return raw
        state = msgspec.msgpack.decode(raw)
        joined = "\n".join(_strings(state))
        if self._redaction.text(joined).text == joined and not (self._titles or self._folders):
            return raw
        return msgspec.msgpack.encode(self._clean(state))

    @property
    def offset(self) -> int:
        """See `Reading`."""
        return self._reading.offset

    @property
    def restarted(self) -> bool:
        """See `Reading`."""
        return self._reading.restarted

    @property
    def late_names(self) -> bool:
        """See `Reading`."""
        return self._reading.late_names

    @property
    def failed(self) -> bool:
        """See `Reading`."""
        return self._reading.failed

    @property
    def skipped(self) -> dict[str, int]:
        """See `Reading`."""
        return self._reading.skipped

    @property
    def path(self) -> str:
        """The trace's path as it may be shown and kept."""
        if self._unit.shown:
            return self._unit.shown
        path = path_text(self._unit.path)
        return path if self._redaction is None else self._without_folders(self._id(path))

    def _turn(self, raw: Turn) -> Turn:
        assert self._redaction is not None
        _ = self.session  # what its folder is called is known before its turns are
        raw = _lean(raw)
        # Every turn has these two, and the same ones.
        workdir, path = self._id(raw.workdir), self._id(raw.source_path)
        lean = replace(raw, workdir="", source_path="")
        turn, found = self._redaction.turn(lean)
        is_same = turn is lean and (workdir, path) == (raw.workdir, raw.source_path)
        turn = raw if is_same else replace(turn, workdir=workdir, source_path=path)
        if found:
            self._counts.update(found)
            self._note_titles(raw, turn)
        session_id = self._name(raw.session_id)
        if session_id != raw.session_id:  # the name of its file, of which other ids are made
            turn = replace(
                turn,
                session_id=session_id,
                turn_uuid=raw.turn_uuid.replace(raw.session_id, session_id),
                parent_uuid=raw.parent_uuid and raw.parent_uuid.replace(raw.session_id, session_id),
            )
        if self._folders or self._unit.shown:
            is_own = raw.source_path in (self._unit.key, self._unit.container)
            shown = self._unit.shown if is_own else ""  # a row of a table may tell another one
            path = shown or self._without_folders(turn.source_path)
            workdir = self._without_folders(turn.workdir)
            turn = replace(turn, workdir=workdir, source_path=path)
        return turn

    def _id(self, value: str) -> str:
        """Return an id or a path without secrets; each is looked at once."""
        if value not in self._ids:
            self._ids[value] = self._text(value) if value else value
        return self._ids[value]

    def _name(self, session_id: str) -> str:
        """Return a session's id without secrets; no two sessions get the same one."""
        clean = self._id(session_id)
        if clean == session_id:
            return session_id
        told = hashlib.sha256(session_id.encode("utf-8", "surrogateescape")).hexdigest()
        self._names[session_id] = name = f"{clean}-{told[:8]}"
        return name

    def _note_titles(self, raw: Turn, turn: Turn) -> None:
        """Note what a prompt is called without secrets: in a title one may be cut in half."""
        if raw.role != "user":
            return
        for before, after in zip(_blocks(raw), _blocks(turn), strict=True):
            if before.text != after.text and (title := title_of(before.text)):
                self._titles[title] = title_of(after.text)
                self._meta = None  # it may have been cleaned by its own words alone

    def _without_folders(self, path: str) -> str:
        """Return a path without folders that harnesses name after one with a secret in its name."""
        for raw, clean in self._folders.items():
            path = path.replace(raw, clean)
        return path

    def _clean_path(self, path: str) -> str:
        return self._without_folders(self._text(path))

    def _problem(self, raw: Problem) -> Problem:
        path, message = self._clean_path(raw.path), self._text(raw.message)
        if (path, message) == (raw.path, raw.message):
            return raw
        return replace(raw, path=path, message=message)

    def _text(self, text: str) -> str:
        assert self._redaction is not None
        return self._redaction.text(text).text

    def _clean(self, value: Any, key: str = "") -> Any:
        """Return a part of a state without secrets."""
        if isinstance(value, str) and key not in _OWN_VALUES:
            if value in self._names:
                return self._names[value]
            return self._clean_path(self._titles.get(value, value))
        if isinstance(value, dict):
            return {self._clean(name): self._clean(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self._clean(one) for one in value]
        return value


def _lean(turn: Turn) -> Turn:
    """Return a turn without the pictures in it, which are not stored: they may be most of it."""
    if not any(elide(block.text) is not block.text for block in _blocks(turn)):
        return turn
    blocks, others = _without_pictures(turn.blocks), turn.ext_blocks
    return replace(turn, blocks=blocks, ext_blocks=others and _without_pictures(others))


def _without_pictures(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(replace(block, text=elide(block.text)) for block in blocks)


def _blocks(turn: Turn) -> tuple[Block, ...]:
    return (*turn.blocks, *(turn.ext_blocks or ()))


def _strings(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, str) and key not in _OWN_VALUES:
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _strings(name)
            yield from _strings(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
