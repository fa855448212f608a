"""What the product decides to do: takes and returns structs, prints nothing.

The engine calls these functions with memories it keeps open; a command without an engine calls
the same ones with memories opened for it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from funes_ls.artefact_input import artefact_of
from funes_ls.blame_answer import blame
from funes_ls.file_answers import related
from funes_ls.forgetting import forget
from funes_ls.hub.spec import MemorySpec, parse_spec
from funes_ls.index_run import IndexReport, IndexRequest, run_index
from funes_ls.indexer import excluded
from funes_ls.indexer.catalog import Session, Source, now_us
from funes_ls.indexer.errors import BackendError, FunesError, MemoryStateError, UsageError
from funes_ls.indexer.excluded import KeptOut
from funes_ls.indexer.memory import Memory
from funes_ls.indexer.model import HARNESSES, Problem
from funes_ls.indexer.redaction import record
from funes_ls.indexer.repos import repo_of
from funes_ls.indexer.settings import Settings, check_setting
from funes_ls.memories import Memories, Origin
from funes_ls.protocol import (
    FilterParams,
    GetParams,
    MemoriesAnswer,
    MemoryInfo,
    RecallParams,
    SessionsParams,
    StatusParams,
    session_filters,
)
from funes_ls.remote_status import RemoteState, known_names, remote_infos, remote_state
from funes_ls.reranking import reranker_of
from funes_ls.retrieval.answers import (
    GetAnswer,
    IsCancelled,
    RecallAnswer,
    RecallFilter,
    RecallRequest,
    Scale,
    never,
)
from funes_ls.scrubbing import scrub

if TYPE_CHECKING:
    from funes_ls.indexer.embedding import Embedder
    from funes_ls.retrieval.sessions import SessionsAnswer

__all__ = [
    "ANSWERS",
    "IndexReport",
    "IndexRequest",
    "Status",
    "blame",
    "forget",
    "get",
    "memories_of",
    "problems",
    "recall",
    "recall_staged",
    "related",
    "run_index",
    "scrub",
    "sessions",
    "status",
    "status_or_problems",
]


class Status(Struct, frozen=True, kw_only=True):
    """What a memory holds; `funes status --json` prints it.

    Attributes:
        state: `ready`, `empty`, `missing`, or `locked` while it is being made ready; of a memory
            elsewhere also why it cannot be read, such as `offline`, or `fetching`.
        model: Stamp of its vectors, "" while it has none.
        generation: Grows with every change.
        turns: Distinct turns: copies that a resumed or forked session holds count once.
        words_only: Chunks that wait for their vector.
        pending_sources: Traces read before that have changed since; new ones are not looked for.
        problems: Count of what could not be read; listed by `funes status --problems`.
        last_indexed_us: When something was last stored, UTC µs.
        size_bytes: Disk taken by the memory.
        token_chunks: Chunks whose words have vectors of their own, for `rerank`.
        token_bytes: What these vectors take, all in all.
        redaction: Whether secrets are taken out of what is stored from now on: `on` or `off`.
        redacted: Secrets that were taken out, by rule; never what they were.
        scrub_due: Whether rows are stored that were read with older rules for secrets, or none.
        excluded: Traces that are kept out.
        remote: Of a memory elsewhere, what it and this machine have of one another.
        local: Of a memory elsewhere, how the local one is.
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
    token_chunks: int = 0
    token_bytes: int = 0
    redaction: str = "on"
    redacted: dict[str, int] = {}
    scrub_due: bool = False
    excluded: int = 0
    note: str = ""
    remote: RemoteState | None = None
    local: "Status | None" = None


def recall(
    params: RecallParams,
    memories: Memories,
    *,
    cancelled: IsCancelled = never,
    on_words: Callable[[RecallAnswer], None] | None = None,
) -> RecallAnswer:
    """Return the passages that answer a question, best first.

    Args:
        params: The question.
        memories: Where to look.
        cancelled: Asked between stages.
        on_words: Told first what words alone answer, as soon as they do.

    Raises:
        UsageError: an empty question, or a filter value that does not exist.
        MemoryStateError: see `Memories.reading`.
        FunesError: kind `cancelled`.
    """
    names = named_memories(params)
    if len(names) > 1:
        return _recall_several(params, names, memories, cancelled)
    if on_words is not None:
        *_, answer = _told(recall_staged(params, memories, cancelled=cancelled), on_words)
        return answer
    request = recall_request(params, memories.settings)
    origin = Origin(falls_back=not params.only_named)
    if not memories.wait_until_whole():
        return _still_loading(_words(request, memories, cancelled, origin))
    return _whole(request, memories, cancelled, origin)


def recall_staged(
    params: RecallParams, memories: Memories, *, cancelled: IsCancelled = never
) -> Iterator[RecallAnswer]:
    """Yield what words alone answer, as soon as they do, then the whole answer; see `recall`."""
    from funes_ls.retrieval.recall import recall_staged as search

    if len(named_memories(params)) > 1:
        yield recall(params, memories, cancelled=cancelled)
        return
    request = recall_request(params, memories.settings)
    origin = Origin(falls_back=not params.only_named)
    if not memories.is_whole:  # words need not wait for what the whole answer needs
        yield _words(request, memories, cancelled, origin)
        yield recall(params, memories, cancelled=cancelled)
        return
    with memories.reading(request.memory_name, whole=True, origin=origin) as memory:
        embedder = memories.embedder(memory)
        request = replace(request, memory_name=origin.name)
        reranker = reranker_of(request, memory, memories, cancelled)
        for answer in search(
            request, memory, embedder, now_us=now_us(), cancelled=cancelled, reranker=reranker
        ):
            yield _noted(answer, origin)


def _noted(answer: RecallAnswer, origin: Origin) -> RecallAnswer:
    note = " ".join(part for part in (origin.note, answer.note) if part)
    return replace(answer, note=note) if note != answer.note else answer


def _told(
    answers: Iterator[RecallAnswer], on_words: Callable[[RecallAnswer], None]
) -> Iterator[RecallAnswer]:
    for answer in answers:
        if "pending" in answer.legs.values():
            on_words(answer)
        yield answer


def named_memories(params: RecallParams) -> tuple[str, ...]:
    """Return the memories that a question names, each once; () for the usual one."""
    return tuple(dict.fromkeys(name or "local" for name in params.memories))


def _recall_several(
    params: RecallParams, names: tuple[str, ...], memories: Memories, cancelled: IsCancelled
) -> RecallAnswer:
    """Return one answer of several memories; what cannot be read is told, unless it is all."""
    from funes_ls.retrieval.several import fused

    request = recall_request(params, memories.settings)
    models: dict[str, Embedder] = {}
    scale, notes, failed = _scale_of(request, names, memories, models)
    answers = []
    for name in names:
        if name in failed:
            continue
        one = replace(request, memory_name=name, scale=scale)
        answers.append(_whole(one, memories, cancelled, Origin(falls_back=False), models))
    answer = fused(answers, k=request.k, one_scale=scale is not None)
    return replace(answer, note=" ".join([*notes, *([answer.note] if answer.note else [])]))


def _scale_of(
    request: RecallRequest,
    names: tuple[str, ...],
    memories: Memories,
    models: "dict[str, Embedder]",
) -> tuple[Scale | None, list[str], set[str]]:
    """Return the scale that memories of one model share, what to tell, and which cannot be read.

    Raises:
        FunesError: none of them can be read.
    """
    from funes_ls.retrieval.recall import best_scores
    from funes_ls.retrieval.several import AskedOnce, common

    scales, stamps = [], set()
    failed: dict[str, FunesError] = {}
    for name in names:
        try:
            with memories.reading(name, whole=True) as memory:
                embedder = memories.embedder(memory)
                if embedder is not None:
                    embedder = models.setdefault(
                        embedder.stamp, cast("Embedder", AskedOnce(embedder))
                    )
                scales.append(best_scores(request, memory, embedder, now_us=now_us()))
                stamps.add(embedder.stamp if embedder is not None else None)
        except (MemoryStateError, BackendError) as exc:
            failed[name] = exc
    if len(failed) == len(names):
        raise failed[names[0]]
    notes = [f"{name} was left out: {exc.message}" for name, exc in failed.items()]
    return common(scales) if len(stamps) == 1 else None, notes, set(failed)


def _whole(
    request: RecallRequest,
    memories: Memories,
    cancelled: IsCancelled,
    origin: Origin,
    models: "Mapping[str, Embedder] | None" = None,
) -> RecallAnswer:
    """Return the answer of one memory; `models` are those that have been asked already."""
    from funes_ls.retrieval.recall import recall as search

    with memories.reading(request.memory_name, whole=True, origin=origin) as memory:
        embedder = memories.embedder(memory)
        if models and embedder is not None:
            embedder = models.get(embedder.stamp, embedder)
        alone = models is None  # reading what several memories have would take too long
        found = search(
            replace(request, memory_name=origin.name),
            memory,
            embedder,
            now_us=now_us(),
            cancelled=cancelled,
            reranker=reranker_of(request, memory, memories, cancelled) if alone else None,
        )
    return _noted(found, origin)


def _words(
    request: RecallRequest, memories: Memories, cancelled: IsCancelled, origin: Origin
) -> RecallAnswer:
    from funes_ls.retrieval.recall import recall_words

    with memories.reading(request.memory_name, origin=origin) as memory:
        request = replace(request, memory_name=origin.name)
        found = recall_words(request, memory, now_us=now_us(), cancelled=cancelled)
    return _noted(found, origin)


def _still_loading(answer: RecallAnswer) -> RecallAnswer:
    note = "Answered by words only: the model is still being loaded."
    return replace(answer, legs={**answer.legs, "vector": "loading"}, note=note)


def recall_request(params: RecallParams, settings: Settings) -> RecallRequest:
    """Return a question with the settings where it says nothing itself.

    Raises:
        UsageError: it has no words, or a number is out of range.
    """
    from funes_ls.retrieval.query import clean

    artefact = artefact_of(params.artefact) if params.artefact is not None else None
    if artefact is None or params.query.strip():
        clean(params.query)  # a question without words is refused before anything is loaded
    own: dict[str, Any] = {
        "k": params.k,
        "candidates": params.candidates,
        "half_life_days": params.half_life,
        "age_floor": params.age_floor,
        "neighbors": params.neighbors,
        "vector_weight": params.vector_weight,
        "prior_tool_use": params.prior_tool_use,
        "prior_tool_result": params.prior_tool_result,
        "rerank": params.rerank,
    }
    given = {name: check_setting(name, value) for name, value in own.items() if value is not None}
    kept = {name: getattr(settings, name) for name in own}
    found = replace(
        session_filter(params), block_type=params.type, tool=params.tool, session=params.session
    )
    return RecallRequest(
        query=params.query,
        artefact=artefact,
        filter=found,
        memory_name=(named_memories(params) or (params.memory or settings.memory,))[0],
        **{**kept, **given},
    )


def session_filter(params: FilterParams) -> RecallFilter:
    """Return a filter with what git calls a named project, so that moved folders are found."""
    wanted = RecallFilter(**session_filters(params))
    if not wanted.project or not Path(wanted.project).is_absolute():
        return wanted
    return replace(wanted, project_repos=tuple(repo_of(wanted.project).split()))


def sessions(params: SessionsParams, memories: Memories) -> "SessionsAnswer":
    """Return a page of the sessions a filter lets through, newest first.

    Raises:
        UsageError: a filter value that means nothing.
        MemoryStateError: see `Memories.reading`.
    """
    from funes_ls.retrieval.sessions import SessionsRequest, list_sessions

    request = SessionsRequest(
        filter=session_filter(params),
        text=params.title,
        limit=params.limit,
        offset=params.offset,
    )
    origin = Origin()
    with memories.reading(_named(params.memory, memories), origin=origin) as memory:
        found = list_sessions(request, memory, now_us=now_us())
    return replace(found, memory=origin.name, note=origin.note)


def get(params: GetParams, memories: Memories) -> GetAnswer:
    """Return one turn with the turns around it.

    Raises:
        UsageError: the session id is the start of several.
        MemoryStateError: see `Memories.reading`.
    """
    from funes_ls.retrieval.get import get as fetch

    origin = Origin()
    with memories.reading(_named(params.memory, memories), origin=origin) as memory:
        found = fetch(
            params.session_id,
            params.turn_uuid,
            memory,
            window=params.window,
            memory_name=origin.name,
        )
    # A session of another machine cannot be gone on with on this one.
    is_remote = parse_spec(origin.name, memories.settings).is_remote
    reopen = () if is_remote else found.reopen
    return replace(found, note=origin.note, reopen=reopen)


def memories_of(memories: Memories) -> MemoriesAnswer:
    """Return the memories this home has to do with, and how they are."""
    settings = memories.settings
    names = known_names(settings)
    specs = {name: spec for name in names if (spec := _spec_of(name, settings)) is not None}
    elsewhere = remote_infos((one for one in specs.values() if one.is_remote), settings)
    found = {one.name: one for one in elsewhere}
    return MemoriesAnswer(
        memories=tuple(found.get(name) or _memory_info(name, memories) for name in names)
    )


def _spec_of(name: str, settings: Settings) -> MemorySpec | None:
    try:
        return parse_spec(name, settings)
    except UsageError:
        return None


def _memory_info(name: str, memories: Memories) -> MemoryInfo:
    settings = memories.settings
    state, model, sessions_, chunks = "", "", 0, 0
    try:
        with memories.reading(name, whole=True) as memory:
            found = memory.state()
        chunks, sessions_ = found.embedded + found.words_only, found.sessions
        state, model = "ready" if chunks else "empty", found.stamp
    except FunesError as exc:
        state = exc.kind
    return MemoryInfo(
        name=name,
        path=str(settings.memory_dir) if name == "local" else name,
        state=state,
        model=model,
        sessions=sessions_,
        chunks=chunks,
        current=name == (settings.memory or "local"),
    )


def _named(memory: str, memories: Memories) -> str:
    return memory or memories.settings.memory


def status_or_problems(params: StatusParams, memories: Memories) -> Status | dict[str, Any]:
    """Return what a memory holds, or what could not be read or is kept out if that is asked for.

    Raises:
        MemoryStateError: see `status`.
    """
    if params.problems:
        return {"problems": problems(memories, memory=params.memory)}
    if params.excluded:
        return {"excluded": kept_out(memories, memory=params.memory)}
    return status(memories, memory=params.memory)


def status(memories: Memories, *, memory: str = "") -> Status:
    """Return what a memory holds; no memory yet is a state, not an error.

    Raises:
        MemoryStateError: it is damaged or of a newer format.
    """
    settings = memories.settings
    spec = parse_spec(_named(memory, memories), settings)
    if spec.path is None:
        return _remote_status(spec, memories)
    try:
        # Whole: the model is a mark of the vectors.
        with memories.reading(spec.text, whole=True) as opened:
            return _status(opened, spec.path, spec, settings)
    except MemoryStateError as exc:
        if exc.kind not in ("missing", "locked"):
            raise
        return _unread(spec, settings, exc, path=str(spec.path))


def _remote_status(spec: MemorySpec, memories: Memories) -> Status:
    """Return what is here of a memory elsewhere, and how the local one is."""
    settings = memories.settings
    local, sessions_here = _local_status(memories)
    state, trouble = remote_state(spec, settings.home, sessions_here)
    origin = Origin(falls_back=False)
    try:
        with memories.reading(spec.text, whole=True, origin=origin) as opened:
            found = _status(opened, opened.base, spec, settings)
    except (MemoryStateError, BackendError) as exc:
        found = _unread(spec, settings, exc, path=spec.text)
    note = " ".join(part for part in (origin.note, found.note, trouble) if part)
    return replace(found, remote=state, local=local, note=note)


def _local_status(memories: Memories) -> tuple[Status, list[Session] | None]:
    settings = memories.settings
    spec = parse_spec("local", settings)
    try:
        with memories.reading("local", whole=True) as opened:
            return _status(opened, settings.memory_dir, spec, settings), opened.catalog.sessions()
    except (MemoryStateError, BackendError) as exc:
        return _unread(spec, settings, exc, path=str(settings.memory_dir)), None


def _unread(spec: MemorySpec, settings: Settings, exc: FunesError, *, path: str) -> Status:
    return Status(
        memory=spec.text, path=path, state=exc.kind, redaction=settings.redaction, note=str(exc)
    )


def _status(memory: Memory, path: Path, spec: MemorySpec, settings: Settings) -> Status:
    state = memory.state()
    tokens = memory.token_state()
    sessions = memory.catalog.sessions()
    chunks = state.embedded + state.words_only
    harnesses = Counter(session.harness or "other" for session in sessions)
    return Status(
        memory=spec.text,
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
        token_chunks=tokens.chunks,
        token_bytes=tokens.size_bytes,
        redaction=settings.redaction,
        redacted=record.counts(memory.catalog),
        scrub_due=spec.kind == "local" and record.wants_scrub(memory.catalog),
        excluded=excluded.count(memory.catalog),
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


def problems(memories: Memories, *, memory: str = "") -> list[Problem]:
    """Return what could not be read, by path and line."""
    with memories.reading(_named(memory, memories)) as opened:
        return opened.catalog.problems()


def kept_out(memories: Memories, *, memory: str = "") -> list[KeptOut]:
    """Return which traces are kept out, and why."""
    with memories.reading(_named(memory, memories)) as opened:
        return excluded.listed(opened.catalog)


#: Method of the protocol -> what answers it, with an engine and without.
ANSWERS: dict[str, Callable[[Any, Memories], Any]] = {
    "funes/recall": recall,
    "funes/get": get,
    "funes/sessions": sessions,
    "funes/status": status_or_problems,
    "funes/related": related,
    "funes/blame": blame,
    "funes/forget": forget,
    "funes/scrub": scrub,
    "funes/memories": lambda _params, memories: memories_of(memories),
}
