"""The requests of the protocol: method names, params (camelCase) and what they answer.

Engine and fronts share this file; `docs/protocol.md` is its prose, with an example per method.
An answer has the keys, in snake_case, that `funes … --json` prints.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from funes_ls.protocol_base import Params as Params
from funes_ls.protocol_base import Token as Token
from funes_ls.protocol_pull import PullAnswer as PullAnswer
from funes_ls.protocol_pull import PullParams as PullParams
from funes_ls.protocol_secrets import ForgetAnswer as ForgetAnswer
from funes_ls.protocol_secrets import ForgetParams as ForgetParams
from funes_ls.protocol_secrets import ScrubAnswer as ScrubAnswer
from funes_ls.protocol_secrets import ScrubParams as ScrubParams

#: Grows when an older front and a newer engine, or the reverse, no longer understand each other.
PROTOCOL = 1

# Codes of JSON-RPC and LSP 3.17.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
CONTENT_MODIFIED = -32801
REQUEST_FAILED = -32803


class FilterParams(Params, frozen=True, kw_only=True):
    """Limits on sessions, as on the command line; "" is no limit. See `RecallFilter`."""

    memory: str = ""
    harness: str = ""
    project: str = ""
    repo: str = ""
    cwd: str = ""
    path: str = ""
    branch: str = ""
    since: str = ""
    until: str = ""
    no_subagents: bool = False


#: Fields of `FilterParams` that limit sessions; `RecallFilter` has the same.
SESSION_FILTERS = tuple(
    name
    for name in FilterParams.__struct_fields__
    if name not in (*Params.__struct_fields__, "memory")
)


def session_filters(params: FilterParams) -> dict[str, Any]:
    """Return the limits on sessions that a request sets, by field."""
    return {name: getattr(params, name) for name in SESSION_FILTERS}


class ArtefactParams(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A thing of work that is asked with.

    Attributes:
        kind: `diff`, `trace` (a stack trace, a compiler's or a test's output, a log) or `file`.
        text: Of the diff or trace; of the file when it is not to be read from the disk.
        path: Of the file.
    """

    kind: Literal["diff", "trace", "file"]
    text: str | None = None
    path: str = ""


class RecallParams(FilterParams, frozen=True, kw_only=True):
    """`funes/recall`. What is None is as the settings have it; see `RecallRequest`.

    Attributes:
        memories: Several memories that are asked at once, in place of `memory`.
        only_named: No other memory may answer for one that cannot be reached.
        query: May be empty beside an artefact, which it narrows.
    """

    memories: tuple[str, ...] = ()
    only_named: bool = False
    query: str = ""
    artefact: ArtefactParams | None = None
    type: str = ""
    tool: str = ""
    session: str = ""
    k: int | None = None
    candidates: int | None = None
    half_life: float | None = None
    age_floor: float | None = None
    neighbors: int | None = None
    vector_weight: float | None = None
    prior_tool_use: float | None = None
    prior_tool_result: float | None = None
    rerank: str | None = None


class GetParams(Params, frozen=True, kw_only=True):
    """`funes/get`: a turn and those within `window` steps of it."""

    session_id: str
    turn_uuid: str
    window: int = 3
    memory: str = ""


class SessionsParams(FilterParams, frozen=True, kw_only=True):
    """`funes/sessions`: a page of sessions, newest first."""

    title: str = ""
    limit: int = 50
    offset: int = 0


class StatusParams(Params, frozen=True, kw_only=True):
    """`funes/status`; with `problems` or `excluded` it lists these instead."""

    memory: str = ""
    problems: bool = False
    excluded: bool = False


class DocumentId(Struct, frozen=True, kw_only=True):
    """A document as LSP names it."""

    uri: str


class Position(Struct, frozen=True, kw_only=True):
    """A place in a document, both from 0; `character` counts as the client negotiated."""

    line: int
    character: int


class Range(Struct, frozen=True, kw_only=True):
    """A stretch of a document, end exclusive."""

    start: Position
    end: Position


class RelatedParams(Params, frozen=True, kw_only=True, rename="camel"):
    """`funes/related`: sessions that have to do with a file, by `textDocument` or `path`.

    Attributes:
        range: Whose names are looked for in what was said; None is the whole file.
        facts_only: Only sessions whose calls had to do with the file, and no passages.
    """

    text_document: DocumentId | None = None
    path: str = ""
    range: Range | None = None
    limit: int = 20
    facts_only: bool = False
    memory: str = ""


class BlameParams(Params, frozen=True, kw_only=True, rename="camel"):
    """`funes/blame`: who wrote the lines of a file.

    Attributes:
        text: Its unsaved text; None reads the file.
        as_of: When the text was like this, as `since` takes times; "" is now.
    """

    text_document: DocumentId | None = None
    path: str = ""
    text: str | None = None
    as_of: str = ""
    range: Range | None = None
    memory: str = ""


class IndexParams(Params, frozen=True, kw_only=True):
    """`funes/index`: see `IndexRequest`; `thinking` None is as the settings have it."""

    target: str = ""
    origin: str = ""
    harness: str = ""
    limit: int | None = None
    words_only: bool = False
    finish: bool = False
    thinking: bool | None = None


class MemoriesParams(Params, frozen=True, kw_only=True):
    """`funes/memories`: the memories there are, and in which state."""


class AskParams(FilterParams, frozen=True, kw_only=True):
    """`funes/ask`: one grounded answer by a coding agent, streamed as partial results."""

    question: str
    agent: str = ""
    k: int | None = None
    dry_run: bool = False


# Between a front and its engine only.


class HelloParams(Params, frozen=True, kw_only=True):
    """`engine/hello`, the first request of every connection.

    Attributes:
        version: Of the front's program.
        client: What the front is: `cli`, `lsp`, `mcp`, `hook`.
        pid: Of the front.
        token: Where the socket cannot be guarded by file modes.
        env: Variables that say where harnesses keep sessions, as the front sees them.
        notify: The front wants `funes/didIndex` and `engine/progress`.
    """

    version: str
    protocol: int = PROTOCOL
    client: str = ""
    pid: int = 0
    token: str = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    notify: bool = False


class HelloAnswer(Struct, frozen=True, kw_only=True):
    """Who answers to `engine/hello`."""

    version: str
    protocol: int
    pid: int
    home: str


class StopParams(Params, frozen=True, kw_only=True):
    """`engine/stop`: finish the batch under way, answer, and end."""

    reason: str = ""


class TouchParams(Params, frozen=True, kw_only=True):
    """`engine/touch`: these traces have grown; a hook says so."""

    paths: tuple[str, ...]


class FilePassage(Struct, frozen=True, kw_only=True):
    """A passage of a session that says most about a file, verbatim, cut at 2,000 characters."""

    text: str
    turn_uuid: str
    get: str


class RelatedSession(Struct, frozen=True, kw_only=True):
    """A session that has to do with a file.

    Attributes:
        relation: The strongest there is: `edited`, `read`, `mentioned` (in a call or its
            output), `symbols` (names of the file came up) or `similar` (one did, elsewhere).
        edits, reads, mentions: How often.
        last_us: When it last had to do with the file, UTC microseconds.
        get: The command that shows where the session begins.
    """

    session_id: str
    harness: str
    title: str
    cwd: str
    branch: str
    started_us: int | None
    ended_us: int | None
    turns: int
    relation: str
    get: str
    edits: int = 0
    reads: int = 0
    mentions: int = 0
    last_us: int | None = None
    passage: FilePassage | None = None


class RelatedAnswer(Struct, frozen=True, kw_only=True):
    """Sessions that have to do with a file, strongest first; `total` counts those left off too.

    Attributes:
        last_us: When the latest of all of them last had to do with the file, UTC microseconds.
    """

    path: str
    generation: int
    total: int
    sessions: tuple[RelatedSession, ...]
    last_us: int | None = None
    memory: str = ""
    note: str = ""


class BlameLines(Struct, frozen=True, kw_only=True):
    """Lines that one turn wrote; `start` and `end` count from 1, both included.

    Attributes:
        confidence: `exact` (written so, here), `moved` (written elsewhere), `similar` (the text
            was changed since, never a fact) or `mentioned`.
        ask_turn_uuid: What the user had asked.
        reason_turn_uuid: What the agent said just before it wrote.
        from_path: The file it was written in where that is another one, else "".
        evidence: What says so: `trace`, `git-ai` or `agent-trace`.
    """

    start: int
    end: int
    confidence: str
    session_id: str
    turn_uuid: str
    seq: int
    ts: str
    harness: str
    ask_turn_uuid: str = ""
    reason_turn_uuid: str = ""
    from_path: str = ""
    evidence: str = "trace"


class BlameTurn(Struct, frozen=True, kw_only=True):
    """A turn that wrote lines, and why: `ask` and `reason` verbatim, cut at 2,000 characters."""

    session_id: str
    turn_uuid: str
    seq: int
    ts: str
    harness: str
    title: str
    cwd: str
    branch: str
    ask: str
    ask_get: str
    reason: str
    reason_get: str
    get: str


class BlameAnswer(Struct, frozen=True, kw_only=True):
    """Who wrote a file's lines, as far as is known; lines that are not named are unclaimed.

    Attributes:
        lines: In the order of the file, none twice.
        turns: Those that `lines` name, each once.
    """

    path: str
    memory: str
    generation: int
    lines: tuple[BlameLines, ...]
    turns: tuple[BlameTurn, ...]
    note: str = ""


class AskSource(Struct, frozen=True, kw_only=True):
    """A passage that was handed to the agent; `cited` when its answer names the session."""

    rank: int
    session_id: str
    turn_uuid: str
    ts: str
    harness: str
    cited: bool
    get: str


class AskAnswer(Struct, frozen=True, kw_only=True):
    """What an agent made of the passages it was handed.

    Attributes:
        agent: Who answered, or would.
        answer: "" when nothing was found or nothing was asked.
        prompt: What was, or would be, sent.
        unknown: Sessions that the answer names and that were not handed over.
        note: What a person should know.
        installed: The agents that could be asked here.
    """

    question: str
    memory: str
    agent: str
    answer: str
    prompt: str
    sources: tuple[AskSource, ...]
    unknown: tuple[str, ...]
    note: str
    seconds: float
    installed: tuple[str, ...] = ()


class MemoryInfo(Struct, frozen=True, kw_only=True):
    """One memory; `state` is `ready`, `empty`, `missing` or why it cannot be read."""

    name: str
    path: str
    state: str
    model: str
    sessions: int
    chunks: int
    current: bool


class MemoriesAnswer(Struct, frozen=True, kw_only=True):
    """The memories there are."""

    memories: tuple[MemoryInfo, ...]


class EngineStatus(Struct, frozen=True, kw_only=True):
    """How the engine is; `funes engine status --json` prints it.

    Attributes:
        watching: `native`, `polling`, `off` or `starting`.
        indexing: Phase of the work under way, "" when idle.
        rss_bytes: Resident memory, 0 where the system does not tell.
        note: What a person should know.
    """

    version: str
    protocol: int
    pid: int
    home: str
    address: str
    uptime_s: float
    clients: int
    generation: int
    model: str
    watching: str
    roots: int
    indexing: str
    done: int
    total: int
    eta_s: float | None
    rss_bytes: int
    note: str = ""


class DidIndex(Struct, frozen=True, kw_only=True):
    """`funes/didIndex`: what is recalled from now on is of this generation."""

    generation: int
    sessions: tuple[str, ...]


class EngineProgress(Struct, frozen=True, kw_only=True):
    """`engine/progress`: what the engine indexes, `phase` "" when it has nothing left to do."""

    phase: str
    done: int
    total: int
    eta_s: float | None
    words_only: int


#: Method -> its params; the engine serves all of these.
METHODS: dict[str, type[Params]] = {
    "funes/recall": RecallParams,
    "funes/get": GetParams,
    "funes/sessions": SessionsParams,
    "funes/status": StatusParams,
    "funes/related": RelatedParams,
    "funes/blame": BlameParams,
    "funes/index": IndexParams,
    "funes/forget": ForgetParams,
    "funes/scrub": ScrubParams,
    "funes/memories": MemoriesParams,
    "funes/ask": AskParams,
    "engine/hello": HelloParams,
    "engine/status": MemoriesParams,
    "engine/stop": StopParams,
    "engine/touch": TouchParams,
    "engine/pull": PullParams,
}


def params_of(method: str, raw: Any) -> Params:
    """Return a request's params, checked.

    Raises:
        msgspec.ValidationError: they do not fit; the message names the field.
        KeyError: there is no such method.
    """
    return msgspec.convert({} if raw is None else raw, METHODS[method])
