"""Makes a question and its filters ready to be searched, before anything is."""

from datetime import tzinfo

from msgspec import Struct

from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.memory import MemoryView
from funes_ls.indexer.model import BLOCK_TYPES, HARNESSES
from funes_ls.retrieval import filters
from funes_ls.retrieval import query as queries
from funes_ls.retrieval.answers import RecallFilter, RecallRequest
from funes_ls.retrieval.artefact import Inquiry, inquiry_of
from funes_ls.retrieval.artefact_files import sessions_with
from funes_ls.retrieval.limits import Limits
from funes_ls.retrieval.preference import NONE, Preference, preference_of, within

#: Tools whose short names may be meant as an inline filter.
_INLINE_TOOLS = frozenset(
    {
        "bash", "read", "write", "edit", "grep", "glob", "task", "shell", "exec_command",
        "apply_patch", "terminal", "patch",
    }
)  # fmt: skip


class Plan(Struct, frozen=True, kw_only=True):
    """What is going to be searched for.

    Attributes:
        text: The question without its inline filters; may be empty beside an artefact.
        inquiry: What an artefact asks.
        preferred: Sessions that touched the files it names.
        preference: What the text names besides its subject.
        notes: What a person should know about how the question was understood.
    """

    request: RecallRequest
    text: str
    limits: Limits
    now_us: int
    notes: tuple[str, ...] = ()
    inquiry: Inquiry | None = None
    preferred: frozenset[str] = frozenset()
    preference: Preference = NONE

    @property
    def narrow(self) -> Limits | None:
        """Return the limits of what is preferred, None when nothing is."""
        return within(self.limits, self.preference)

    @property
    def subject(self) -> str:
        """Return the question without what it names besides, "" for an id alone."""
        return self.text if self.preference is NONE else self.preference.subject

    @property
    def meaning(self) -> str:
        """Return what is meant, as text: the question and what an artefact says."""
        return self.text if self.inquiry is None else f"{self.text}\n{self.inquiry.text}".strip()


def plan(
    request: RecallRequest, memory: MemoryView, *, now_us: int, zone: tzinfo | None = None
) -> Plan:
    """Return what a request comes down to in a memory.

    Raises:
        UsageError: The question is empty, wordless or far too long, or a filter means nothing.
        MemoryStateError: The memory lacks what a filter asks of it.
    """
    inquiry = inquiry_of(request.artefact) if request.artefact is not None else None
    alone = inquiry is not None and not request.query.strip()
    text = "" if alone else queries.clean(request.query)
    wanted, text, notes = _take_inline(request.filter, text, memory, now_us, zone)
    resolved = filters.resolve(wanted, memory, now_us=now_us, zone=zone)
    if resolved.note:
        notes.append(resolved.note)
    preference = NONE
    if inquiry is None and not resolved.limits.nothing:
        preference = preference_of(text, wanted, memory.catalog, now_us=now_us, zone=zone)
    if preference.note:
        notes.append(preference.note)
    return Plan(
        request=request,
        text=text,
        limits=resolved.limits,
        now_us=now_us,
        notes=tuple(notes),
        inquiry=inquiry,
        preferred=sessions_with(inquiry.files if inquiry else (), memory.catalog),
        preference=preference,
    )


def _take_inline(
    wanted: RecallFilter, text: str, memory: MemoryView, now_us: int, zone: tzinfo | None
) -> tuple[RecallFilter, str, list[str]]:
    """Take `key:value` parts as filters where that makes sense, and leave them as words else."""
    taken: list[queries.Inline] = []
    notes: list[str] = []
    for inline in queries.inline_filters(text):
        if _is_meant(inline, memory, now_us, zone):
            taken.append(inline)
        elif inline.field in ("project", "repo", "cwd"):
            notes.append(f"No session matches {inline.written}; it was taken as words.")
    rest = queries.without(text, taken)
    if not any(queries.is_wordy(char) for char in rest):
        return wanted, text, []
    for inline in taken:
        wanted = queries.with_inline(wanted, inline)
    return wanted, rest, notes


def _is_meant(inline: queries.Inline, memory: MemoryView, now_us: int, zone: tzinfo | None) -> bool:
    if inline.field == "block_type":
        return inline.value in BLOCK_TYPES
    if inline.field == "harness":
        return inline.value in HARNESSES or inline.value in HARNESSES.values()
    if inline.field == "tool":
        return inline.value.lower() in _INLINE_TOOLS
    only = queries.with_inline(RecallFilter(), inline)
    try:
        resolved = filters.resolve(only, memory, now_us=now_us, zone=zone)
    except FunesError:
        return False
    return not resolved.limits.nothing
