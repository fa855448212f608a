"""What the product decides to do: takes and returns structs, prints nothing.

Every edge (the CLI, and the language server and MCP server to come) calls these functions.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from funes_ls.index_run import IndexReport, IndexRequest, model_ref, run_index
from funes_ls.indexer.catalog import Source, now_us
from funes_ls.indexer.chunk import chunks_of
from funes_ls.indexer.errors import BackendError, MemoryStateError, UsageError
from funes_ls.indexer.memory import Memory, open_memory
from funes_ls.indexer.model import HARNESSES, Chunk, Problem, Turn
from funes_ls.indexer.repos import repo_of
from funes_ls.indexer.settings import Settings
from funes_ls.indexer.traces import TraceSource, Unit, detect, source_for
from funes_ls.retrieval.answers import GetAnswer, RecallAnswer, RecallFilter, RecallRequest

if TYPE_CHECKING:
    from funes_ls.indexer.embedding import Embedder
    from funes_ls.retrieval.sessions import SessionsAnswer

__all__ = [
    "IndexReport",
    "IndexRequest",
    "Status",
    "asking",
    "get",
    "parse",
    "problems",
    "recall",
    "run_index",
    "sessions",
    "status",
]


class Status(Struct, frozen=True, kw_only=True):
    """What a memory holds; `funes status --json` prints it.

    Attributes:
        state: `ready`, `empty` or `missing`.
        model: Stamp of its vectors, "" while it has none.
        generation: Grows with every change.
        turns: Distinct turns: copies that a resumed or forked session holds count once.
        words_only: Chunks that wait for their vector.
        pending_sources: Traces read before that have changed since; new ones are not looked for.
        problems: Count of what could not be read; listed by `funes status --problems`.
        last_indexed_us: When something was last stored, UTC µs.
        size_bytes: Disk taken by the memory.
    """

    memory: str
    path: str
    state: str
    model: str = ""
    generation: int = 0
    sessions: int = 0
    turns: int = 0
    chunks: int = 0
    projects: int = 0
    harnesses: dict[str, int] = {}
    words_only: int = 0
    pending_sources: int = 0
    problems: int = 0
    last_indexed_us: int | None = None
    size_bytes: int = 0
    note: str = ""


@contextmanager
def opened(settings: Settings, spec: str) -> Iterator[Memory]:
    """Open the memory a person named, for reading.

    Args:
        settings: Settings in force.
        spec: `local`, or the path of a memory.

    Raises:
        MemoryStateError: it is missing, damaged, or of a newer format.
        UsageError: it is a kind of memory that cannot be read yet.
    """
    memory = open_memory(_memory_path(settings, spec), derived=settings.home / "derived")
    try:
        yield memory
    finally:
        memory.close()


def _memory_path(settings: Settings, spec: str) -> Path:
    if spec in ("", "local"):
        return settings.memory_dir
    path = Path(spec).expanduser()
    if "://" in spec or not path.exists():
        raise UsageError(
            f"No memory at {spec}.",
            hint="Name `local` or the path of a memory; remote memories come in a later version.",
            kind="no_such_memory",
        )
    nested = path / "memory"
    return nested if nested.is_dir() else path


def recall(request: RecallRequest, settings: Settings) -> RecallAnswer:
    """Return the passages that answer a question, best first.

    Raises:
        UsageError: an empty question, or a filter value that does not exist.
        MemoryStateError: see `opened`.
    """
    from funes_ls.retrieval.query import clean

    clean(request.query)  # a question without words is refused before anything is loaded
    with asking(settings, request.memory_name) as ask:
        return ask(request)


@contextmanager
def asking(settings: Settings, spec: str) -> Iterator[Callable[[RecallRequest], RecallAnswer]]:
    """Yield a function that answers questions from one memory, its model loaded once."""
    from funes_ls.retrieval.recall import recall as search

    with opened(settings, spec) as memory:
        embedder = _query_embedder(memory, settings)

        def ask(request: RecallRequest) -> RecallAnswer:
            asked = replace(request, filter=with_repos(request.filter))
            return search(asked, memory, embedder, now_us=now_us())

        yield ask


def with_repos(wanted: RecallFilter) -> RecallFilter:
    """Return the filter with what git calls a named project, so that moved folders are found."""
    if not wanted.project or not Path(wanted.project).is_absolute():
        return wanted
    return replace(wanted, project_repos=tuple(repo_of(wanted.project).split()))


def sessions(
    wanted: RecallFilter,
    settings: Settings,
    *,
    title: str = "",
    limit: int = 50,
    offset: int = 0,
    spec: str = "local",
) -> "SessionsAnswer":
    """Return a page of the sessions a filter lets through, newest first.

    Raises:
        UsageError: a filter value that means nothing.
        MemoryStateError: see `opened`.
    """
    from funes_ls.retrieval.sessions import SessionsRequest, list_sessions

    request = SessionsRequest(filter=with_repos(wanted), text=title, limit=limit, offset=offset)
    with opened(settings, spec) as memory:
        return list_sessions(request, memory, now_us=now_us())


def _query_embedder(memory: Memory, settings: Settings) -> "Embedder | None":
    """Return the model the memory's vectors are of; None when it has none or it is not here."""
    from funes_ls.indexer import embedding

    if not memory.state().embedded:
        return None
    try:
        return embedding.load(model_ref(settings, memory.state().stamp), settings.models_dir)
    except BackendError:
        return None


def get(
    session_id: str, turn_uuid: str, settings: Settings, *, window: int = 3, spec: str = "local"
) -> GetAnswer:
    """Return one turn with the turns around it.

    Raises:
        UsageError: the session id is the start of several.
        MemoryStateError: see `opened`.
    """
    from funes_ls.retrieval.get import get as fetch

    with opened(settings, spec) as memory:
        return fetch(session_id, turn_uuid, memory, window=window, memory_name=spec)


def status(settings: Settings, *, spec: str = "local") -> Status:
    """Return what a memory holds; no memory yet is a state, not an error.

    Raises:
        MemoryStateError: it is damaged or of a newer format.
    """
    path = _memory_path(settings, spec)
    try:
        with opened(settings, spec) as memory:
            return _status(memory, path, spec)
    except MemoryStateError as exc:
        if exc.kind != "missing":
            raise
        return Status(memory=spec or "local", path=str(path), state="missing", note=str(exc))


def _status(memory: Memory, path: Path, spec: str) -> Status:
    state = memory.state()
    sessions = memory.catalog.sessions()
    chunks = state.embedded + state.words_only
    harnesses = Counter(session.harness or "other" for session in sessions)
    return Status(
        memory=spec or "local",
        path=str(path),
        state="ready" if chunks else "empty",
        model=state.stamp,
        generation=state.generation,
        sessions=state.sessions,
        turns=memory.turns,
        chunks=chunks,
        projects=len({session.cwd or session.workdir for session in sessions}),
        harnesses=dict(sorted(harnesses.items())),
        words_only=state.words_only,
        pending_sources=sum(_has_changed(source) for source in memory.catalog.sources()),
        problems=state.problems,
        last_indexed_us=max((session.updated_at for session in sessions), default=None),
        size_bytes=sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        note=" ".join(state.notes),
    )


def _has_changed(source: Source) -> bool:
    """Tell whether a trace file differs from what was read; databases are not asked."""
    if source.key.startswith(f"{source.path}#") or source.harness == HARNESSES["hermes"]:
        return False
    try:
        found = Path(source.path).stat()
    except (OSError, ValueError):
        return False  # gone or out of reach: what was read of it stays
    return (found.st_size, found.st_mtime_ns) != (source.size, source.mtime_ns)


def problems(settings: Settings, *, spec: str = "local") -> list[Problem]:
    """Return what could not be read, by path and line."""
    with opened(settings, spec) as memory:
        return memory.catalog.problems()


class ParsedUnit(Struct, frozen=True, kw_only=True):
    """A trace as a reader sees it: items come in file order."""

    source: TraceSource
    unit: Unit


def parse(path: Path, *, harness: str = "") -> Iterator[ParsedUnit | Problem]:
    """Yield the traces at a path, by name and age, without storing anything.

    Raises:
        UsageError: no such path, or an unknown harness.
    """
    path = path.expanduser()
    if not path.exists():
        raise UsageError(f"No such path: {path}", kind="no_such_path")
    source = source_for(harness) if harness else detect(path)
    units: list[Unit] = []
    for unit in source.units(path):
        if isinstance(unit, Problem):
            yield unit
        else:
            units.append(unit)
    for unit in sorted(units, key=lambda one: (str(one.path), one.row, one.mtime_ns)):
        yield ParsedUnit(source=source, unit=unit)


def items_of(parsed: ParsedUnit) -> Iterator[Turn | Problem]:
    """Yield a trace's turns and problems in file order."""
    yield from parsed.source.read(parsed.unit)


def rows_of(turn: Turn, *, compat: bool) -> list[Chunk]:
    """Return the rows a turn gives: those of the compat profile, or those that are stored."""
    return [] if compat and turn.extra else list(chunks_of(turn, compat=compat))
