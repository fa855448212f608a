"""What a question names besides its subject: a time, an agent, a session, a file.

A person who writes "last Tuesday" or "in codex" means what was said then or there. That is
preferred, not required: words can mean something else, and the best of the rest is third at least.
"""

import re
from collections.abc import Sequence
from datetime import tzinfo

import numpy as np
from msgspec import Struct

from funes_ls.indexer.catalog import Catalog
from funes_ls.indexer.catalog_filters import SessionFilter
from funes_ls.indexer.errors import UsageError
from funes_ls.indexer.memory import MemoryView, Row
from funes_ls.indexer.model import HARNESSES
from funes_ls.indexer.names import is_scaffolding
from funes_ls.retrieval.answers import RecallFilter
from funes_ls.retrieval.artefact_files import sessions_with
from funes_ls.retrieval.dates import span_of
from funes_ls.retrieval.filters import find_session
from funes_ls.retrieval.fuse import Leg, Scores
from funes_ls.retrieval.limits import Limits

#: A longer text is a paste, and its dates and ids are not meant as directions.
_MOST_WORDS = 60
#: What a passage keeps of its score for each thing named that it is not of.
_OTHER_TIME, _OTHER_HARNESS, _OTHER_SESSION, _OTHER_FILE = 0.5, 0.5, 0.3, 0.95
#: The best passage that is not of all that was named comes no later than at this place, from 0.
_PLAIN_PLACE = 2
#: Steps from its start that are the beginning of a session.
_OPENING_STEPS = 40
_AGENTS = {"claude code": "claude", "claude": "claude", **{name: name for name in HARNESSES}}
_AGENT = re.compile(
    r"\b(?:in|with|from|by|via|using)\s+(?:the\s+|a\s+|an\s+|my\s+)?"
    rf"(?P<agent>{'|'.join(sorted(_AGENTS, key=len, reverse=True))})(?![\w/.-]\w)"
    rf"|\b(?P<other>{'|'.join(sorted(_AGENTS, key=len, reverse=True))})\s+sessions?\b",
    re.IGNORECASE,
)
#: Ids as harnesses make them: whole, or as much of one as is shown; or said to be one.
_ID = re.compile(
    r"(?<![\w/.-])(?:[0-9a-f]{8}(?:-[0-9a-f-]{1,28})?|agent-[0-9a-f]{6,}|\d{8}_\d{6}(?:_\w+)?"
    r"|ses_\w{8,})(?![\w/-]|\.\w)|(?<=\bsession )[\w-]{6,}",
)
#: Words by which a person asks for what is in force now.
_LATEST = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|last time|nowadays|these days|currently|at present"
    r"|as of now|by now)\b",
    re.IGNORECASE,
)
#: What the oldest of the passages that fit keeps of its score then, and what fitting means.
_OLDEST, _FITTING = 0.75, 0.6
_FILE = re.compile(r"(?<![\w/.@-])(?:[~\w.-]*/)*[\w.-]*\w\.[A-Za-z]\w{0,9}(?![\w/-]|\.\w)")


class Preference(Struct, frozen=True, kw_only=True):
    """What is preferred; every limit that is set was named.

    Attributes:
        limits: Time, harness, session; rows outside keep less of their score.
        files: Sessions that touched a file that was named.
        bare: The question is the id of a session and nothing else.
        newest: It asks for what is in force now.
        subject: The question without the words that name a time, an agent or a session.
        note: Says so.
    """

    limits: Limits = Limits()
    files: frozenset[str] = frozenset()
    bare: bool = False
    newest: bool = False
    subject: str = ""
    note: str = ""

    @property
    def searched(self) -> Limits | None:
        """Return the limits to search a second time with, None where there are none."""
        return None if self.limits == Limits() else self.limits


NONE = Preference()


def preference_of(
    text: str, wanted: RecallFilter, catalog: Catalog, *, now_us: int, zone: tzinfo | None = None
) -> Preference:
    """Return what a question prefers; what a filter says already is not looked for.

    Args:
        text: The question.
        wanted: Its filters.
        catalog: Of the memory that is asked.
        now_us: What "yesterday" counts from.
        zone: The user's zone; None for the machine's.
    """
    if not text or len(text.split()) > _MOST_WORDS:
        return NONE
    told: list[str] = []
    absent: list[str] = []
    named: list[str] = []
    since_us = until_us = None
    harnesses = sessions = None
    if not (wanted.since or wanted.until) and (span := span_of(text, now_us=now_us, zone=zone)):
        said = span.said if span.since_us is None else f"of {span.said}"
        named += span.words
        share = _share(SessionFilter(since_us=span.since_us, until_us=span.until_us), catalog)
        if share == "some":
            since_us, until_us = span.since_us, span.until_us
            told.append(said)
        elif share == "none":
            absent.append(said)
    agent, phrase = ("", "") if wanted.harness else _agent(text)
    if agent and _share(SessionFilter(harness=HARNESSES[agent]), catalog) == "some":
        harnesses = frozenset({HARNESSES[agent]})
        told.append(f"in {agent}")
        named.append(phrase)
    session, name = ("", "") if wanted.session else _session(text, catalog)
    if session:
        sessions = frozenset({session})
        told.append(f"in session {session}")
        named.append(name)
    return Preference(
        limits=Limits(
            session_ids=sessions, harnesses=harnesses, since_us=since_us, until_us=until_us
        ),
        files=frozenset() if wanted.path else sessions_with(_FILE.findall(text), catalog),
        bare=bool(session) and name == text.strip(),
        newest=_LATEST.search(text) is not None,
        subject=_without(text, named),
        note=_note(told, absent),
    )


def _share(wanted: SessionFilter, catalog: Catalog) -> str:
    """Return of how many sessions something is: `none`, `some`, or `all`, which tells nothing."""
    count = catalog.session_count(wanted)
    return "none" if not count else "some" if count < catalog.session_count() else "all"


def _without(text: str, named: list[str]) -> str:
    for words in named:
        text = text.replace(words, " ", 1)
    return " ".join(text.split())


def _note(told: list[str], absent: list[str]) -> str:
    notes = [f"No session is {', '.join(absent)}."] if absent else []
    if told:
        notes.append(f"What was said {', '.join(told)} comes first, as the question names it.")
    return " ".join(notes)


def _agent(text: str) -> tuple[str, str]:
    """Return the agent that a question names, and the words that do."""
    found = _AGENT.search(text)
    if found is None:
        return "", ""
    return _AGENTS[" ".join((found["agent"] or found["other"]).lower().split())], found[0]


def _session(text: str, catalog: Catalog) -> tuple[str, str]:
    """Return the session whose id a question names, and the id as it stands there."""
    for found in _ID.finditer(text):
        try:
            session = find_session(found[0], catalog)
        except UsageError:  # the start of several
            continue
        if session is not None:
            return session.session_id, found[0]
    return "", ""


def within(limits: Limits, preference: Preference) -> Limits | None:
    """Return what a second search is limited to, None where none is needed or nothing is left."""
    wanted = preference.searched
    if wanted is None:
        return None
    both = Limits(
        session_ids=_common(limits.session_ids, wanted.session_ids),
        block_types=limits.block_types,
        tools=limits.tools,
        harnesses=_common(limits.harnesses, wanted.harnesses),
        since_us=_latest(limits.since_us, wanted.since_us),
        until_us=wanted.until_us if limits.until_us is None else limits.until_us,
    )
    return None if both.nothing or both.harnesses == frozenset() else both


def _common(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _latest(one: int | None, other: int | None) -> int | None:
    known = [value for value in (one, other) if value is not None]
    return max(known, default=None)


def opening(memory: MemoryView, session_id: str, *, score: float) -> Leg:
    """Return how a session began, for who asks with its id alone."""
    rows = [
        row
        for row in memory.session_rows(session_id, first=0, last=_OPENING_STEPS)
        if row.block_type == "text" and not is_scaffolding(row.text)
    ]
    rows.sort(key=lambda row: (row.seq, row.block_idx, row.split_idx))
    return Leg(ids=[row.id for row in rows], scores=score * np.linspace(1.0, 0.5, len(rows)))


def lifted(preferred: Leg, plain: Leg) -> Leg:
    """Return what words found within a preference, its best as good as the best at large.

    The words that name a time or an agent stand in other passages, seldom in those that are meant.
    """
    if not len(plain.ids) or not len(preferred.ids):
        return preferred
    scale = max(1.0, float(plain.scores.max()) / max(float(preferred.scores.max()), 1e-9))
    return Leg(ids=preferred.ids, scores=preferred.scores * scale)


def joined(plain: Leg, preferred: Leg) -> Leg:
    """Return what a leg found at large and within a preference, best first, each once."""
    scores = dict(zip(plain.ids, plain.scores.tolist(), strict=True))
    for id_, score in zip(preferred.ids, preferred.scores.tolist(), strict=True):
        scores[id_] = max(score, scores.get(id_, 0.0))
    ordered = sorted(scores.items(), key=lambda one: -one[1])
    return Leg(ids=[id_ for id_, _ in ordered], scores=np.array([score for _, score in ordered]))


def preference_factors(rows: Sequence[Row], preference: Preference) -> Scores:
    """Return a factor for each row: 1 for what is all that was named, less for the rest."""
    factors = np.ones(len(rows))
    limits = preference.limits
    for n, row in enumerate(rows):
        if not limits.holds(row):
            factors[n] *= _OTHER_TIME
        if limits.harnesses is not None and row.harness not in limits.harnesses:
            factors[n] *= _OTHER_HARNESS
        if limits.session_ids is not None and row.session_id not in limits.session_ids:
            factors[n] *= _OTHER_SESSION
        if preference.files and row.session_id not in preference.files:
            factors[n] *= _OTHER_FILE
    return factors


def newest_factors(times_us: Scores, scores: Scores) -> Scores:
    """Return a factor for each passage that rises with its time, from the oldest that fits on.

    Args:
        times_us: UTC microseconds, NaN where unknown.
        scores: How well each fits.
    """
    if not len(scores):
        return np.ones(0)
    fitting = times_us[(scores >= _FITTING * scores.max()) & ~np.isnan(times_us)]
    if len(fitting) < 2 or fitting.max() == fitting.min():
        return np.ones(len(scores))
    share = (times_us - fitting.min()) / (fitting.max() - fitting.min())
    fresh: Scores = np.clip(np.nan_to_num(share, nan=0.5), 0.0, 1.0)
    return _OLDEST + (1.0 - _OLDEST) * fresh


def with_plain_answer(final: Scores, plain: Scores, factors: Scores) -> Scores:
    """Return final scores in which the best of what is not preferred comes early enough to be seen.

    Args:
        final: With the preference.
        plain: Without it.
        factors: Of the preference.
    """
    others = np.flatnonzero(factors < 1.0)
    if not len(others):
        return final
    best = others[np.argmax(plain[others])]
    raised = final.copy()
    if int((final > final[best]).sum()) > _PLAIN_PLACE:
        raised[best] = np.nextafter(np.sort(final)[-1 - _PLAIN_PLACE], np.inf)
    return raised
