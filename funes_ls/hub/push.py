"""`funes push`: what the other side lacks, through the gate, as one commit that is guarded.

Every string that leaves has been scanned by the gate as it leaves. What is sent is read from the
dataset again and compared with what was scanned, so that nothing else can go in its place.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from funes_ls.hub import card, push_copy, receipts
from funes_ls.hub.decisions import Choice, Decisions, choice, read_decisions
from funes_ls.hub.known import Known, known_at, same_model
from funes_ls.hub.publishable import (
    Fresh,
    Offer,
    SessionShare,
    fresh_rows,
    leaving_rows,
    noted,
    offered,
    waiting_rows,
)
from funes_ls.hub.receipts import Receipt
from funes_ls.hub.reindex import REINDEX_FROM, reindexed, unindexed_rows
from funes_ls.hub.remote import Change, Head, HeadMoved, Remote
from funes_ls.hub.session_facts import write_facts
from funes_ls.indexer import dataset as lance
from funes_ls.indexer.dataset_shared import SharedDataset
from funes_ls.indexer.errors import FunesError, MemoryStateError, SecretFound
from funes_ls.indexer.memory import MemoryView
from funes_ls.indexer.progress import Cancelled, IndexEvent, Progress, ignore_progress, never

#: So often is it done again when somebody else was faster.
_MOST_TRIES = 10
#: So often is a commit tried again that the other side failed over, with a longer rest each time.
_MOST_FAULTS = 1
_REST_S = 0.5
#: A push that is waited for waits so long for another one of this machine.
_PATIENCE_S = 600.0


class PushRequest(Struct, frozen=True, kw_only=True):
    """What is asked of a push.

    Attributes:
        dry_run: Only say what would leave; `texts`: with the text of every block.
        create: Make the memory, private, where there is none.
        force_reindex: Have the indexes over there cover every row, also with nothing new.
        patient: Wait for another push of this machine.
        only_new: For a push that nobody watches: publish only where somebody has done so by hand
            before, and ask nothing of the network when nothing has come since then.
    """

    dry_run: bool = False
    texts: bool = False
    create: bool = False
    force_reindex: bool = False
    patient: bool = True
    only_new: bool = False


class PushAnswer(Struct, kw_only=True):
    """What has left, or would.

    Attributes:
        state: `pushed`, `would_push`, `up_to_date`, `declined`: not the memory that was meant, or
            `not_begun`: nobody has published there by hand yet.
        revision: Where the memory stands now.
        chunks: It holds so many now; before, of a dry run.
        sessions: Of which something went.
        blocks: Of them, with `passages` (chunks) of `size_bytes` bytes of text.
        uploaded_bytes: Of all files of the commits.
        waiting: Chunks that go once they have a vector.
        pending: Sessions of the project that are to be looked at first.
        excluded: Sessions that are kept back.
        other: Sessions of other repositories.
        own_blocks: Blocks the user keeps back.
        naming_home: Blocks that leave with the name of the user's home in what was said.
        withheld: In how many blocks each rule found something; those stay.
        withheld_blocks: How many blocks that are.
        created: Whether the repository was made for it; `first`: whether it held nothing.
        reindexed: Whether its indexes were made to cover every row.
        private: Whether others cannot read the memory; None where that is not told.
    """

    memory: str
    state: str = "up_to_date"
    private: bool | None = None
    revision: str = ""
    chunks: int = 0
    sessions: list[SessionShare] = []
    blocks: int = 0
    passages: int = 0
    size_bytes: int = 0
    uploaded_bytes: int = 0
    waiting: int = 0
    pending: int = 0
    excluded: int = 0
    other: int = 0
    own_blocks: int = 0
    naming_home: int = 0
    withheld: dict[str, int] = {}
    withheld_blocks: int = 0
    created: bool = False
    first: bool = False
    reindexed: bool = False


#: `strange`: the memory shares nothing with this one; `public`: all can read it, and nothing was
#: published there from here before; `opened`: it was private when something was. Whether it is
#: meant is asked with its name.
Doubt = Literal["strange", "public", "opened"]
Meant = Callable[[str, Doubt], bool]


def _no_word(_private: bool | None) -> None:
    """Tell nobody."""


def push(
    view: MemoryView,
    remote: Remote,
    home: Path,
    request: PushRequest,
    *,
    is_meant: Meant,
    told: Callable[[bool | None], None] = _no_word,
    progress: Progress = ignore_progress,
    cancelled: Cancelled = never,
) -> PushAnswer:
    """Publish what a memory elsewhere lacks, or only say what that is.

    Args:
        view: Of the local memory, at one moment.
        remote: The memory elsewhere.
        home: Of the local memory.
        request: What is asked.
        is_meant: Asked where it is in doubt that this memory is the one meant.
        told: Told whether the memory is private, before anything is sent.
        progress: Told how it goes on.
        cancelled: Asked now and then.

    Raises:
        MemoryStateError: the memory is missing, may not be written, or is of another model.
        SecretFound: all that is new holds secrets.
        GateError: nobody can say what is clean; nothing has left.
        BackendError: the other side, or the disk, failed.
    """
    with receipts.publishing(home, remote.spec, wait_s=_PATIENCE_S if request.patient else 0.0):
        run = _Push(view, remote, home, request, progress)
        return run.result(is_meant, told, cancelled)


class _Push:
    """One push."""

    def __init__(
        self,
        view: MemoryView,
        remote: Remote,
        home: Path,
        request: PushRequest,
        progress: Progress,
    ) -> None:
        self.view = view
        self.remote = remote
        self.home = home
        self.request = request
        self.progress = progress
        self.spec = remote.spec
        self.answer = PushAnswer(memory=self.spec.text)
        self.decisions: Decisions = read_decisions(home, self.spec)

    def result(
        self, is_meant: Meant, told: Callable[[bool | None], None], cancelled: Cancelled
    ) -> PushAnswer:
        if self.request.only_new and self._is_settled():
            return self.answer
        head, known = self._newest(self._head)
        self.answer.first, self.answer.private = head.is_empty, head.private
        told(head.private)
        chosen = self._chosen(known)
        fresh = fresh_rows(self.view, known.ids, chosen.going)
        self.answer.waiting = waiting_rows(self.view, chosen)
        self.answer.chunks = known.rows
        is_dry = self.request.dry_run
        doubts = [] if is_dry else self._doubts(head, known, fresh)
        if not all(is_meant(self.spec.text, doubt) for doubt in doubts):
            self.answer.state = "declined"
            return self.answer
        offer = Offer()
        if fresh.offsets:
            offer = offered(
                self.view,
                fresh,
                withheld=self.decisions.withheld,
                told=lambda done, total: self.progress(
                    IndexEvent(phase="scrub", done=done, total=total)
                ),
                cancelled=cancelled,
                texts=self.request.texts and is_dry,
            )
        self._tell(offer)
        if offer.withheld_blocks and not offer.rows:
            raise _all_withheld(self.answer)
        if is_dry:
            self.answer.state = "would_push" if offer.rows else "up_to_date"
            return self.answer
        if offer.rows:
            known = self._published(head, known, offer, fresh)
        self._reindex(known)
        return self.answer

    def _doubts(self, head: Head, known: Known, fresh: Fresh) -> list[Doubt]:
        """Return why this may not be the memory that is meant."""
        if not fresh.offsets:
            return []
        found: list[Doubt] = []
        before = receipts.read_receipt(self.home, self.spec)
        if head.private is False and (before is None or before.private is not False):
            found.append("opened" if before is not None and before.private else "public")
        if not fresh.shared and (known.ids or head.has_others):
            found.append("strange")
        return found

    def _is_settled(self) -> bool:
        """Tell whether nothing was published by hand yet, or all that may go is there already."""
        receipt = receipts.read_receipt(self.home, self.spec)
        if receipt is None:
            self.answer.state = "not_begun"
            return True
        ids = receipts.known_ids(self.home, self.spec, receipt)
        if ids is None:
            return False
        self.answer.chunks = receipt.rows
        going = choice(self.decisions, self.view.catalog.sessions()).going
        return not fresh_rows(self.view, ids, going).offsets

    def _head(self) -> Head:
        try:
            return self.remote.head()
        except MemoryStateError as exc:
            if exc.kind != "missing":
                raise
            if self.request.dry_run:
                return Head(revision="", is_empty=True)
            if not self.request.create:
                raise self._missing(exc) from exc
        self.answer.created = True
        return self.remote.create(private=True)

    def _missing(self, exc: MemoryStateError) -> MemoryStateError:
        if self.spec.kind != "hub":
            return exc
        make = f"make it, private: `funes push {self.spec.text} --create`."
        return MemoryStateError(exc.message, hint=f"Check its name, or {make}", kind="missing")

    def _newest(self, ask: Callable[[], Head]) -> tuple[Head, Known]:
        """Return where the memory stands, and what it holds there."""
        for _ in range(_MOST_TRIES):
            head = ask()
            try:
                return head, self._known(head)
            except HeadMoved:  # between the two
                continue
        raise self._busy()

    def _known(self, head: Head) -> Known:
        def fetching(done: int, total: int | None) -> None:
            self.progress(IndexEvent(phase="fetch", done=done, total=total or 0))

        known = known_at(self.remote, head, self.home, progress=fetching)
        dataset = self.view.dataset
        if dataset is not None:
            same_model(known, dataset, self.spec.text)
        self.answer.revision = head.revision
        return known

    def _busy(self) -> MemoryStateError:
        return MemoryStateError(
            f"{self.spec.text} was changed by others {_MOST_TRIES} times in a row.",
            hint="Run the command again.",
            kind="busy",
        )

    def _chosen(self, known: Known) -> Choice:
        """Return what may go; sessions that were taken back only if somebody wants them again."""
        chosen = choice(self.decisions, self.view.catalog.sessions())
        back = {one for one in chosen.going if self._is_back(one, known)}
        chosen.going -= back
        chosen.excluded |= back
        self.answer.pending = len(chosen.pending)
        self.answer.excluded = len(chosen.excluded)
        self.answer.other = len(chosen.other)
        return chosen

    def _is_back(self, session_id: str, known: Known) -> bool:
        is_wanted = session_id in self.decisions.included
        return known.facts.is_withdrawn(session_id) and not is_wanted

    def _tell(self, offer: Offer) -> None:
        answer = self.answer
        answer.sessions = list(offer.sessions.values())
        answer.blocks = sum(one.blocks for one in answer.sessions)
        answer.passages = len(offer.rows)
        answer.size_bytes = offer.size_bytes
        answer.withheld = dict(sorted(offer.withheld.items(), key=lambda one: (-one[1], one[0])))
        answer.withheld_blocks = offer.withheld_blocks
        answer.own_blocks = offer.own
        answer.naming_home = offer.naming_home

    def _published(self, head: Head, known: Known, offer: Offer, fresh: Fresh) -> Known:
        """Commit what is offered, again when the head has moved; return what is there then."""
        faults = 0
        with push_copy.new_copy(self.home, self.spec) as folder:
            for _ in range(_MOST_TRIES):
                self._drop_taken_back(offer, fresh, known)
                if known.ids >= offer.rows.keys():  # an answer was lost, or others had them, too
                    if known.source is not None:
                        self._keep(known, known.source)
                    self.answer.state = "pushed"
                    return known
                try:
                    return self._committed(head, known, offer, folder)
                except HeadMoved:
                    pass
                except FunesError as exc:
                    if exc.kind not in ("hub", "offline"):
                        raise
                    faults += 1
                    if faults > _MOST_FAULTS and self._unmoved(head):
                        raise
                    time.sleep(_REST_S * 2**faults)
                head, known = self._newest(self.remote.head)
        raise self._busy()

    def _unmoved(self, head: Head) -> bool:
        return self.remote.head().revision == head.revision

    def _drop_taken_back(self, offer: Offer, fresh: Fresh, known: Known) -> None:
        """Keep sessions here that somebody has taken back while they were being scanned."""
        for name in [one for one in offer.sessions if self._is_back(one, known)]:
            del offer.sessions[name]
            offer.facts.pop(name, None)
            for row in fresh.by_session[name]:
                offer.rows.pop(row, None)
                offer.offsets.pop(row, None)
            self._tell(offer)

    def _committed(self, head: Head, known: Known, offer: Offer, folder: Path) -> Known:
        copy, rows, sent = self._copy(known, offer, folder)
        if not sent:  # none of it is any more what was scanned
            return known
        facts = known.facts.merged(offer.facts)
        if facts.sessions != known.facts.sessions:
            write_facts(copy.sessions, facts)
        before = receipts.read_receipt(self.home, self.spec)
        own = before.sessions if before else {}
        fresh = sum(1 for one in offer.sessions if one not in own | known.facts.sessions)
        sessions = known.sessions + fresh
        stamp = known.stamp or self._stamp()
        counts = card.Counts(chunks=rows, sessions=sessions, model=stamp, at=time.time())
        made = card.due(self.remote, head, counts, before=known.card)
        add = copy.added(self.spec)
        if made.changed and made.text is not None:
            add[card.NAME] = made.text.encode()
        self.progress(IndexEvent(phase="send", done=0, total=_size(add)))
        message = f"{'Publish' if head.is_empty else 'Add'} {len(sent):,} chunks"
        after = self.remote.commit(Change(add=add, message=message), parent=head)
        self.progress(IndexEvent(phase="send", done=_size(add), total=_size(add)))
        answer = self.answer
        answer.uploaded_bytes += _size(add)
        answer.state, answer.revision = "pushed", after.revision
        answer.chunks, answer.passages = rows, len(sent)
        now = Known(
            head=after,
            ids=known.ids | sent,
            rows=rows,
            facts=facts,
            stamp=stamp,
            unindexed=unindexed_rows(copy) if head.is_empty else known.unindexed + len(sent),
            card=made.text,
            sessions=sessions,
        )
        self._keep(now, copy.base)
        return now

    def _stamp(self) -> str:
        return self.view.dataset.stamp if self.view.dataset is not None else ""

    def _copy(
        self, known: Known, offer: Offer, folder: Path
    ) -> tuple[push_copy.WorkingCopy, int, frozenset[str]]:
        """Return a working copy with the new rows, how many it has then, and which are new."""
        sent: set[str] = set()
        if known.source is None:
            local = self.view.dataset
            assert local is not None  # something is offered
            copy = push_copy.empty(folder)
            lance.create(copy.base, stamp=local.stamp, dim=local.dim)
        else:
            copy = push_copy.to_append(known.source, folder, version=known.head.version)
        dataset = SharedDataset(copy.base)
        rows = leaving_rows(self.view, offer, schema=dataset.schema, known=known.ids)
        dataset.add(noted(rows, sent))
        count = dataset.count()
        if known.source is None:
            dataset.index()
            dataset.keep_newest()
        return copy, count, frozenset(sent)

    def _keep(self, known: Known, copy: Path) -> None:
        before = receipts.read_receipt(self.home, self.spec)
        sessions = dict(before.sessions) if before else {}
        for share in self.answer.sessions:
            sessions[share.session_id] = sessions.get(share.session_id, 0) + share.passages
        receipt = Receipt(
            memory=self.spec.text,
            revision=known.head.revision,
            pushed_at=time.time(),
            rows=known.rows,
            all_sessions=known.sessions,
            unindexed=known.unindexed,
            sessions=sessions,
            waiting=self.answer.waiting,
            pending=self.answer.pending,
            withheld=self.answer.withheld,
            card=known.card,
            private=known.head.private,
        )
        receipts.save(self.home, self.spec, receipt, ids=known.ids, copy=copy)

    def _reindex(self, known: Known) -> None:
        if known.head.is_empty:
            return
        if known.unindexed < REINDEX_FROM and not self.request.force_reindex:
            return
        self.progress(IndexEvent(phase="tidy"))
        done = reindexed(self.remote, self.home)
        if done is None:
            return
        self.answer.reindexed = True
        self.answer.revision = done.head.revision
        self.answer.uploaded_bytes += done.uploaded_bytes


def _size(files: dict[str, Path | bytes]) -> int:
    return sum(len(one) if isinstance(one, bytes) else one.stat().st_size for one in files.values())


def _all_withheld(answer: PushAnswer) -> SecretFound:
    found = ", ".join(f"{rule} ×{count}" for rule, count in answer.withheld.items())
    return SecretFound(
        f"Nothing went to {answer.memory}: all that is new there holds secrets ({found}).",
        hint="`funes scrub` takes them out of the local memory; then push again.",
    )
