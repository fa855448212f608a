"""What the read path is asked and what it answers, as structs whose JSON is the product's own."""

import shlex
from collections.abc import Callable

from msgspec import Struct

from funes_ls.retrieval.artefact import Artefact, Asked

#: What may reorder the best candidates; see `RecallRequest.rerank`.
OFF, LATE, CROSS, AUTO = "off", "late", "cross", "auto"

#: Asked between stages; True means the asker has lost interest.
IsCancelled = Callable[[], bool]


def never() -> bool:
    """Say that nobody has lost interest."""
    return False


class RecallFilter(Struct, frozen=True, kw_only=True):
    """Limits on what may be a hit; empty means no limit. Applied before the cut, in every leg.

    Attributes:
        harness: A name of `HARNESSES` or the stored facet (`claude`, `claude_code`).
        project: A folder (absolute, or its last names such as `api/proxy`), the stored munged
            form, or a repository's name.
        project_repos: Repositories (`owner/name`) that are the same project under another
            path; the caller asks git for them.
        repo: `owner/name`, or the name alone.
        cwd: A folder the session ran in, or one above it.
        path: A file or folder the session touched, absolute or its last names.
        since: Words or a date, see `timespec`; hits are not earlier.
        until: Words or a date; hits are not later. A date or month counts whole.
        session: A session id, or the start of exactly one.
        tool: A tool's name, any case.
        no_subagents: Leaves out sub-agent sessions.
    """

    block_type: str = ""
    harness: str = ""
    project: str = ""
    project_repos: tuple[str, ...] = ()
    repo: str = ""
    cwd: str = ""
    path: str = ""
    branch: str = ""
    session: str = ""
    tool: str = ""
    since: str = ""
    until: str = ""
    no_subagents: bool = False


class Scale(Struct, frozen=True, kw_only=True):
    """The best scores there are: BM25 and cosine, 0 where a leg found nothing."""

    words: float
    vector: float


class RecallRequest(Struct, frozen=True, kw_only=True):
    """One question.

    Attributes:
        query: Free text as typed; never read as query syntax, but for `"phrases"` and inline
            filters such as `project:/work/api`; may be empty beside an artefact.
        artefact: A diff, a trace or a file that is asked with.
        candidates: Size of the fused pool that a reranker sees.
        half_life_days: Age at which the age part of a score has halved; 0 turns age off.
        age_floor: The smallest factor age can give a score, in 0..1.
        neighbors: Sequence steps around a hit to attach; 0 for none.
        vector_weight: Share of the vector leg in the mixed score, in 0..1.
        prior_tool_use: Factor on hits that are tool calls.
        prior_tool_result: Factor on hits that are tool answers.
        rerank: What reorders the best candidates: `late` or `auto` compares token vectors, where
            the memory keeps some; `off`. Others are the asker's to pass.
        filter: Limits on hits.
        memory_name: How the memory was named by the asker; goes into each `get` command.
        scale: What scores are shares of, where several memories are asked; None for the best of
            this one.
    """

    query: str
    k: int = 8
    candidates: int = 30
    half_life_days: float = 30.0
    age_floor: float = 0.85
    neighbors: int = 1
    vector_weight: float = 0.65
    prior_tool_use: float = 0.9
    prior_tool_result: float = 0.8
    rerank: str = OFF
    filter: RecallFilter = RecallFilter()
    memory_name: str = "local"
    artefact: Artefact | None = None
    scale: Scale | None = None


class Explain(Struct, frozen=True, kw_only=True):
    """Why a hit stands where it stands.

    Attributes:
        words: Rank (from 1) in the words leg, None when that leg did not find it.
        vector: Rank (from 1) in the vector leg, None when that leg did not find it.
        words_score: BM25 score, None without a rank.
        vector_score: Cosine, None when the chunk has no vector or the leg did not run.
        fused: The mix of both legs, in 0..1.
        prior: Factor of the block type, for passing remarks of brevity, of what the question names
            (a time, an agent), and beside an artefact of sessions that touched none of its files.
        age: Factor of the age.
    """

    words: int | None = None
    vector: int | None = None
    words_score: float | None = None
    vector_score: float | None = None
    fused: float = 0.0
    prior: float = 1.0
    age: float = 1.0


class Neighbor(Struct, frozen=True, kw_only=True):
    """A chunk said close to a hit, in the same session but another turn."""

    session_id: str
    turn_uuid: str
    seq: int
    ts: str
    role: str
    block_type: str
    tool_name: str | None
    text: str


class Revisit(Struct, frozen=True, kw_only=True):
    """The latest later place where what a hit is about came up again.

    Attributes:
        how: `file` (changed again) or `passage` (nearly the same was said).
        path: Of the file, "" for a passage.
        get: The command that shows the turn.
    """

    how: str
    session_id: str
    turn_uuid: str
    ts: str
    path: str = ""
    get: str = ""


class Hit(Struct, frozen=True, kw_only=True):
    """A chunk returned for a question, with where it comes from.

    Attributes:
        rank: From 1.
        score: In 0..1, comparable within one answer only.
        inner_id: The session's id as its harness knows it, for reopening; "" when the same.
        ts: As recorded when that is a date, else ISO 8601 of it or of the nearest known time,
            else "".
        age_s: Seconds since the hit was said, 0 for future times, None when unknown.
        embedded: False while the chunk is findable by words only.
        also_in: Ids of other sessions that hold this very passage (resumed, forked, replayed).
        repeats: How many further times the passage stands in this same session.
        get: The command that shows the turn.
        memory: The one it was read from.
        revisited: Where its subject came up again later, None when nothing is known of that.
    """

    rank: int
    score: float
    session_id: str
    inner_id: str
    turn_uuid: str
    seq: int
    ts: str
    age_s: int | None
    harness: str
    workdir: str
    cwd: str
    repo: str
    branch: str
    title: str
    role: str
    block_type: str
    tool_name: str | None
    text: str
    embedded: bool
    also_in: tuple[str, ...]
    repeats: int
    neighbors: tuple[Neighbor, ...]
    get: str
    explain: Explain
    memory: str = "local"
    revisited: Revisit | None = None


class RecallAnswer(Struct, frozen=True, kw_only=True):
    """Everything `funes recall --json` prints.

    Attributes:
        memory: The one that was really read; several by their names, with commas between.
        generation: Counts the changes of the memory; equal generations answer alike.
        note: What a person should know of this answer, "" when there is nothing to say.
        legs: Per leg `ran`, `off`, `empty`, `failed`, `no_model` or `pending`.
        timings_ms: Milliseconds per stage.
        asked: What an artefact was understood to ask, None when none was given.
        confidence: How likely it is that one of the first hits answers the question, in 0..1;
            None where that is not judged: for artefacts and for what words find at first.
        weak: Whether that is little: the hits are what is nearest, and perhaps no answer.
    """

    memory: str
    generation: int
    note: str
    legs: dict[str, str]
    hits: tuple[Hit, ...]
    timings_ms: dict[str, float]
    asked: Asked | None = None
    confidence: float | None = None
    weak: bool = False


class TurnBlock(Struct, frozen=True, kw_only=True):
    """One block of a turn, its pieces joined without their overlap."""

    block_type: str
    tool_name: str | None
    text: str


class TurnView(Struct, frozen=True, kw_only=True):
    """One turn as `get` shows it; `asked` marks the turn that was asked for."""

    turn_uuid: str
    seq: int
    ts: str
    role: str
    blocks: tuple[TurnBlock, ...]
    asked: bool = False


class GetAnswer(Struct, frozen=True, kw_only=True):
    """A turn and the turns around it, in the order of the trace.

    Attributes:
        session_id: In full, also when a prefix was given.
        found: False when the memory holds no such turn; then `turns` is empty, and `harness` is ""
            when it holds no such session.
        files: What calls of the session that succeeded changed or read, absolute where the session
            tells: files of the turns shown, in their order, then the others'; each once, not all.
        reopen: The command that goes on with the session in its harness, () where there is none.
        note: What a person should know of the memory that was read, "" for nothing.
    """

    memory: str
    session_id: str
    turn_uuid: str
    found: bool
    harness: str = ""
    workdir: str = ""
    cwd: str = ""
    repo: str = ""
    title: str = ""
    turns: tuple[TurnView, ...] = ()
    files: tuple[str, ...] = ()
    reopen: tuple[str, ...] = ()
    note: str = ""


def get_command(session_id: str, turn_uuid: str, *, memory_name: str = "local") -> str:
    """Return the shell command that shows a turn of the named memory."""
    words = ["funes", "get"]
    if memory_name not in ("", "local"):
        words += ["--memory", memory_name]
    ids = [session_id, turn_uuid]
    if any(word.startswith("-") for word in ids):
        words.append("--")
    return shlex.join(words + ids)
