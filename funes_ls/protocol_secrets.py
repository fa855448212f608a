"""Requests of the protocol that take things out of a memory, and what they answer."""

from msgspec import Struct

from funes_ls.protocol_base import Params


class ForgetParams(Params, frozen=True, kw_only=True):
    """`funes/forget`: take sessions out for good; `dryRun` only counts.

    What is given limits the sessions, all of it together; something must be.

    Attributes:
        session: Id of one, or the start of it.
        project: A folder, or its last names.
        match: A text that one of its blocks holds, whatever the case.
        before: Sessions that ended before it; as `since` takes times.
    """

    session: str = ""
    project: str = ""
    match: str = ""
    before: str = ""
    dry_run: bool = False


class ForgetSession(Struct, frozen=True, kw_only=True):
    """A session that goes; `subagent` when it is one's."""

    session_id: str
    title: str
    harness: str
    ended_us: int | None
    chunks: int
    subagent: bool


class ForgetAnswer(Struct, frozen=True, kw_only=True):
    """What forgetting took out, or would.

    Attributes:
        total: Sessions in all, their sub-agents' counted.
        subagents: How many of them are there only because they were sub-agents of others.
        chunks: Of all of them.
        sessions: The newest few.
        forgotten: Whether they have gone.
        pure: Whether no byte of them is left under the home; see `note` when it is not so.
        published: Memories elsewhere that hold some of them still.
        note: What a person should know.
    """

    total: int
    subagents: int
    chunks: int
    sessions: tuple[ForgetSession, ...]
    forgotten: bool
    pure: bool = False
    published: tuple[str, ...] = ()
    note: str = ""


class ScrubParams(Params, frozen=True, kw_only=True):
    """`funes/scrub`: take secrets out of what is stored; `dryRun` only counts."""

    dry_run: bool = False


class ScrubAnswer(Struct, frozen=True, kw_only=True):
    """What scrubbing took out, or would; never what it was.

    Attributes:
        state: `empty` (nothing is stored), `clean` (nothing was found), `found` (of a dry run)
            or `scrubbed`.
        sessions: Sessions that were scanned, `blocks` their blocks.
        redacted: Blocks that held secrets.
        dropped: Blocks taken out since they could not be cleaned.
        details: Titles, branches, folders, paths, problems and logs that held some.
        requeued: Chunks that get a new vector; until then they are found by words only.
        counts: How often each rule found something.
        stamp: Which scanner with which rules it was.
        pure: Whether no byte of it is left under the home; see `note` when it is not so.
        published: Memories elsewhere that hold some of it still.
        note: What a person should know.
    """

    state: str
    sessions: int
    blocks: int
    redacted: int
    dropped: int
    details: int
    requeued: int
    counts: dict[str, int]
    stamp: str
    pure: bool
    published: tuple[str, ...] = ()
    note: str = ""
