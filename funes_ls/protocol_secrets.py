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
