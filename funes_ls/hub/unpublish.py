"""`funes unpublish`: takes sessions back from a memory elsewhere, as far as that can be done.

The dataset is written anew without their rows and the history is dropped where that can be. Nothing
here can reach what others have copied meanwhile: the answer says so.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from funes_ls.hub import card, push_copy, receipts
from funes_ls.hub.decisions import read_decisions, write_decisions
from funes_ls.hub.known import is_chunk_id
from funes_ls.hub.reading import readable
from funes_ls.hub.remote import SESSIONS, Change, Head, HeadMoved, Remote
from funes_ls.hub.session_facts import Facts, read_facts, without, write_facts
from funes_ls.indexer import dataset as lance
from funes_ls.indexer.dataset_shared import SharedDataset
from funes_ls.indexer.errors import FunesError, MemoryStateError, UsageError
from funes_ls.indexer.progress import IndexEvent, Progress, ignore_progress

_MOST_TRIES = 10
_PATIENCE_S = 600.0
_LEAST_CHARS = 4

_COPIES = (
    "Copies that were made of it before cannot be reached from here: downloads and caches of "
    "others, forks, and what a program has recalled from it."
)
_HISTORY = (
    "Its history could not be dropped: older commits hold the sessions until you delete them."
)
_FILES = "Files that no commit names any more may stay there for a while, for who knows their hash."
_BUCKET = (
    "A bucket that keeps older versions of its files (versioning, soft deletion) holds them until "
    "those are deleted, too."
)
_SECRETS = "If a secret was in them, change it where it is used."


class Taken(Struct, frozen=True, kw_only=True):
    """A session that goes, and its chunks over there."""

    session_id: str
    title: str = ""
    chunks: int = 0


class UnpublishAnswer(Struct, kw_only=True):
    """What was taken back, or would be.

    Attributes:
        state: `unpublished`, or `would_unpublish` of a dry run.
        chunks: Of all the sessions; `left` stay there.
        squashed: Whether the history is gone; `purged`: the files that only it named, too.
        decisions: File that keeps them from being sent again.
        note: What a person should know.
    """

    memory: str
    state: str
    sessions: list[Taken] = []
    chunks: int = 0
    left: int = 0
    squashed: bool = False
    purged: bool = False
    revision: str = ""
    decisions: str = ""
    note: str = ""


def unpublish(
    remote: Remote,
    home: Path,
    wanted: Sequence[str],
    *,
    dry_run: bool = False,
    progress: Progress = ignore_progress,
) -> UnpublishAnswer:
    """Take sessions out of a memory elsewhere.

    Args:
        remote: The memory.
        home: Of this machine's memory.
        wanted: Ids of sessions, or the start of one.
        dry_run: Only say what would go.
        progress: Told how it goes on.

    Raises:
        UsageError: a session is not there, or its id fits several.
        MemoryStateError: the memory cannot be read or written.
        BackendError: the other side, or the disk, failed.
    """
    with receipts.publishing(home, remote.spec, wait_s=_PATIENCE_S):
        head, base = _newest(remote, progress)
        facts = read_facts(base / SESSIONS)
        counts = readable(remote.spec, lambda: _counts(base, head.version))
        chosen = _with_subagents([_meant(one, counts, remote) for one in wanted], counts, facts)
        answer = _answer(remote, chosen, counts, facts)
        if dry_run:
            return answer
        # First of all they are not sent again, whatever happens to the rest.
        decisions = read_decisions(home, remote.spec)
        for one in chosen:
            decisions.decide(one, "exclude")
        answer.decisions = str(write_decisions(home, remote.spec, decisions))
        after = _rewritten(remote, home, chosen, progress)
        answer.revision = after.revision
        # Contents that older commits name are listed while there are such commits.
        answer.purged = _purged(remote)
        answer.squashed = remote.squash(f"Take back {len(chosen):,} sessions")
        if answer.squashed:
            answer.revision = remote.head().revision
            answer.purged = _purged(remote) and answer.purged
        answer.state = "unpublished"
        doubts = [] if answer.squashed else [_HISTORY]
        doubts += [_FILES] if answer.squashed and not answer.purged else []
        doubts += [_BUCKET] if remote.spec.kind == "store" else []
        answer.note = " ".join([*doubts, _COPIES, _SECRETS])
        return answer


def _newest(remote: Remote, progress: Progress) -> tuple[Head, Path]:
    """Return where the memory stands and its files."""

    def fetching(done: int, total: int | None) -> None:
        progress(IndexEvent(phase="fetch", done=done, total=total or 0))

    for _ in range(_MOST_TRIES):
        head = remote.head()
        try:
            return head, remote.fetched(head, progress=fetching)
        except HeadMoved:
            continue
    raise _busy(remote)


def _busy(remote: Remote) -> MemoryStateError:
    return MemoryStateError(
        f"{remote.spec.text} was changed by others {_MOST_TRIES} times in a row.",
        hint="Run the command again.",
        kind="busy",
    )


def _counts(base: Path, version: int | None) -> dict[str, int]:
    counts: dict[str, int] = {}
    for batch in lance.open_dataset(base).at(version).scan(["session_id"], batch_rows=65_536):
        for name in batch.column("session_id").to_pylist():
            counts[name] = counts.get(name, 0) + 1
    return counts


def _meant(given: str, counts: dict[str, int], remote: Remote) -> str:
    if given in counts:
        return given
    near = [one for one in counts if one and one.startswith(given)]
    if len(near) == 1 and len(given) >= _LEAST_CHARS:
        return near[0]
    if near:
        raise UsageError(
            f"{given!r} is the start of {len(near):,} sessions of {remote.spec.text}.",
            hint="Give more of its id.",
        )
    raise UsageError(
        f"{remote.spec.text} holds no session {given!r}.",
        hint=f"`funes sessions --memory {remote.spec.text}` lists them.",
        kind="no_such_session",
    )


def _with_subagents(chosen: list[str], counts: dict[str, int], facts: Facts) -> list[str]:
    """Return sessions with all that their sub-agents left there, each once."""
    found = dict.fromkeys(chosen)
    todo = list(found)
    while todo:
        parent = todo.pop()
        fact = facts.sessions.get(parent)
        names = {parent, fact.inner_id if fact is not None else ""} - {""}
        for one in facts.sessions.values():
            is_its = one.subagent and one.parent_id in names and one.session_id in counts
            if is_its and one.session_id not in found:
                found[one.session_id] = None
                todo.append(one.session_id)
    return list(found)


def _answer(
    remote: Remote, chosen: list[str], counts: dict[str, int], facts: Facts
) -> UnpublishAnswer:
    taken = [
        Taken(
            session_id=one,
            title=fact.title if (fact := facts.sessions.get(one)) is not None else "",
            chunks=counts[one],
        )
        for one in chosen
    ]
    chunks = sum(one.chunks for one in taken)
    return UnpublishAnswer(
        memory=remote.spec.text,
        state="would_unpublish",
        sessions=taken,
        chunks=chunks,
        left=sum(counts.values()) - chunks,
        note=_COPIES,
    )


def _purged(remote: Remote) -> bool:
    """Have contents removed that nothing names any more, where the place can do that."""
    purge: Callable[[], bool] | None = getattr(remote, "purge", None)
    if purge is None:  # a bucket has no contents without a name
        return True
    try:
        return purge()
    except FunesError:
        return False


def _rewritten(remote: Remote, home: Path, sessions: list[str], progress: Progress) -> Head:
    spec = remote.spec
    with push_copy.new_copy(home, spec) as folder:
        for _ in range(_MOST_TRIES):
            head, source = _newest(remote, progress)
            progress(IndexEvent(phase="rewrite"))
            copy = push_copy.to_rewrite(source, folder, version=head.version)
            dataset = SharedDataset(copy.base)
            dataset.delete_sessions(sessions)
            dataset.rewrite()
            dataset.index()
            dataset.keep_newest()
            facts = without(read_facts(source / SESSIONS), sessions)
            write_facts(copy.sessions, facts)
            add = copy.added(spec)
            state = lance.state(copy.base)
            left = card.Counts(
                chunks=state.rows,
                sessions=len(_counts(copy.base, None)),
                model=state.stamp,
                at=time.time(),
            )
            made = card.due(remote, head, left)
            if made.changed and made.text is not None:
                add[card.NAME] = made.text.encode()
            change = Change(
                add=add,
                delete=copy.deleted(spec),
                message=f"Take back {len(sessions):,} sessions",
            )
            progress(IndexEvent(phase="send"))
            try:
                after = remote.commit(change, parent=head)
            except HeadMoved:
                continue
            _keep(remote, home, after, copy, sessions, made.text)
            return after
    raise _busy(remote)


def _keep(
    remote: Remote,
    home: Path,
    head: Head,
    copy: push_copy.WorkingCopy,
    sessions: list[str],
    text: str | None,
) -> None:
    """Bring the receipt up to what is there now; after a squash the next push reads it anew."""
    receipt = receipts.read_receipt(home, remote.spec)
    if receipt is None:  # nothing was published from here
        return
    dataset = lance.open_dataset(copy.base)
    ids = {
        one
        for batch in dataset.scan(["id"], batch_rows=65_536)
        for one in batch.column("id").to_pylist()
        if is_chunk_id(one)
    }
    receipt.revision = head.revision
    receipt.rows = dataset.count()
    receipt.all_sessions = len(_counts(copy.base, None))
    receipt.unindexed = 0
    receipt.card = text
    for one in sessions:
        receipt.sessions.pop(one, None)
    receipts.save(home, remote.spec, receipt, ids=frozenset(ids), copy=copy.base)
