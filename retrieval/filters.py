"""Turns what a person asks for (a project, a branch, last week) into limits on rows."""

from collections.abc import Callable, Sequence
from datetime import tzinfo

from msgspec import Struct

from funes_ls.indexer.catalog import Catalog, Session
from funes_ls.indexer.catalog_filters import SessionFilter
from funes_ls.indexer.errors import MemoryStateError, UsageError
from funes_ls.indexer.memory import MemoryView
from funes_ls.indexer.model import BLOCK_TYPES, HARNESSES
from funes_ls.retrieval import paths
from funes_ls.retrieval.answers import RecallFilter
from funes_ls.retrieval.limits import Limits
from funes_ls.retrieval.timespec import time_range

#: Tools whose names have humps that a person may not type.
_HUMPED = (
    "AskUserQuestion", "BashOutput", "ExitPlanMode", "KillShell", "MultiEdit", "NotebookEdit",
    "NotebookRead", "SlashCommand", "TodoRead", "TodoWrite", "WebFetch", "WebSearch",
)  # fmt: skip

Test = Callable[[Session], bool]


class Resolved(Struct, frozen=True, kw_only=True):
    """A filter as limits, with what to say when it lets no session through.

    Attributes:
        note: Names the filters that no session satisfies, "" when some does.
    """

    limits: Limits
    note: str = ""


def resolve(
    wanted: RecallFilter, memory: MemoryView, *, now_us: int, zone: tzinfo | None = None
) -> Resolved:
    """Return the limits of a filter.

    Args:
        wanted: What was asked for.
        memory: Whose sessions are meant.
        now_us: What relative times count from.
        zone: The user's zone; None for the machine's.

    Raises:
        UsageError: A harness, type, time or session prefix that means nothing or too much.
        MemoryStateError: The memory does not record harnesses.
    """
    since_us, until_us = time_range(wanted.since, wanted.until, now_us=now_us, zone=zone)
    harness = harness_facet(wanted.harness, memory.catalog) if wanted.harness else ""
    session_ids = matching_ids(wanted, memory.catalog)
    return Resolved(
        limits=Limits(
            session_ids=session_ids,
            block_types=frozenset({block_type(wanted.block_type)}) if wanted.block_type else None,
            tools=tool_names(wanted.tool) if wanted.tool else None,
            harnesses=frozenset({harness}) if harness else None,
            since_us=since_us,
            until_us=until_us,
        ),
        note=_no_session(wanted) if session_ids is not None and not session_ids else "",
    )


def block_type(name: str) -> str:
    """Return a block type as stored.

    Raises:
        UsageError: There is no such type.
    """
    stored = name.strip().lower().replace("-", "_")
    if stored not in BLOCK_TYPES:
        raise UsageError(
            f"There is no block type {name!r}.", hint=f"Use one of: {', '.join(BLOCK_TYPES)}."
        )
    return stored


def harness_facet(name: str, catalog: Catalog) -> str:
    """Return a harness as stored, from its short or stored name or one a memory brings along.

    Raises:
        UsageError: No such harness.
        MemoryStateError: The memory does not say which harness its rows are from.
    """
    word = name.strip().lower()
    facet = HARNESSES.get(word, word)
    stored = {session.harness for session in catalog.sessions()}
    if facet in HARNESSES.values():
        if stored == {""}:
            raise MemoryStateError(
                "This memory was made before harnesses were recorded, so it cannot be "
                f"filtered by {name}.",
                hint="Ask without --harness.",
                kind="no_harness_column",
            )
        return facet
    exact = {value for value in stored if value and value.lower() == word}
    if not exact:
        raise UsageError(
            f"There is no harness {name!r}.", hint=f"Use one of: {', '.join(HARNESSES)}."
        )
    return min(exact)


def tool_names(name: str) -> frozenset[str]:
    """Return the spellings that a tool's name as typed may be stored under."""
    word = name.strip()
    humped = {known for known in _HUMPED if known.lower() == word.lower()}
    return frozenset({word, word.lower(), word[:1].upper() + word[1:].lower(), *humped})


def matching_ids(wanted: RecallFilter, catalog: Catalog) -> frozenset[str] | None:
    """Return the sessions that the session part of a filter lets through, None for all.

    Raises:
        UsageError: The start of a session id fits several sessions.
    """
    if not any(
        (
            wanted.session, wanted.project, wanted.project_repos, wanted.repo, wanted.cwd,
            wanted.path, wanted.branch, wanted.no_subagents,
        )
    ):  # fmt: skip
        return None
    return frozenset(session.session_id for session in matching_sessions(wanted, catalog))


def matching_sessions(
    wanted: RecallFilter,
    catalog: Catalog,
    *,
    title: str = "",
    harness: str = "",
    since_us: int | None = None,
    until_us: int | None = None,
) -> list[Session]:
    """Return the sessions a filter lets through, newest first.

    Args:
        wanted: Its session part counts; type and tool are of rows.
        catalog: Where they are listed.
        title: Words the title must hold.
        harness: A stored facet.
        since_us: Ended at or after.
        until_us: Started before.

    Raises:
        UsageError: The start of a session id fits several sessions.
    """
    found = catalog.sessions(
        SessionFilter(
            harness=harness,
            branch=wanted.branch.strip(),
            no_subagents=wanted.no_subagents,
            since_us=since_us,
            until_us=until_us,
            text=title,
        )
    )
    if wanted.session:
        session = find_session(wanted.session, catalog)
        found = [one for one in found if session and one.session_id == session.session_id]
    if wanted.cwd:
        cwd = paths.normal(wanted.cwd)
        found = [one for one in found if one.cwd and paths.is_under(paths.normal(one.cwd), cwd)]
    if wanted.repo:
        found = [one for one in found if is_repo(one.repo, wanted.repo)]
    if wanted.project or wanted.project_repos:
        found = of_project(found, wanted.project, wanted.project_repos)
    if wanted.path:
        found = touching(found, wanted.path, catalog)
    return found


def find_session(name: str, catalog: Catalog) -> Session | None:
    """Return the session of an id, or of the start of one; None when there is none.

    An id as a harness knows it counts where no session of ours begins like that.

    Raises:
        UsageError: Several sessions begin like that.
    """
    word = name.strip()
    whole = catalog.session(word) if word else None
    if whole is not None or not word:
        return whole
    near = catalog.sessions_like(word)
    ours = [one for one in near if one.session_id.startswith(word)]
    found = ours or [one for one in near if one.inner_id.startswith(word)]
    if len(found) > 1:
        some = ", ".join(one.session_id for one in found[:3])
        raise UsageError(
            f"The session id {word!r} fits several sessions: {some}"
            f"{', …' if len(found) > 3 else ''}.",
            hint="Give more of it; `funes sessions` lists them.",
            kind="ambiguous_session",
        )
    return found[0] if found else None


def is_repo(stored: str, wanted: str) -> bool:
    """Tell whether a session's repositories include `owner/name`, or one named so, any case."""
    word = wanted.strip().removesuffix(".git").strip("/").lower()
    names = stored.lower().split()
    return any(name == word or name.endswith("/" + word) for name in names)


def of_project(
    sessions: Sequence[Session], project: str, repos: Sequence[str] = ()
) -> list[Session]:
    """Return the sessions of a project, by the first rule that lets any through.

    Recorded folders come first: equal or below, the last names of one, without case, above (for
    the path of an open file); then repositories by name; then the stored munged form. Sessions of
    `repos` belong too.
    """
    same_repo = {one.session_id for one in sessions if any(is_repo(one.repo, r) for r in repos)}
    chosen: set[str] = set()
    for rule in _project_rules(project) if project.strip() else ():
        chosen = {one.session_id for one in sessions if rule(one)}
        if chosen:
            break
    return [one for one in sessions if one.session_id in chosen or one.session_id in same_repo]


def _project_rules(project: str) -> list[Test]:
    name = paths.normal(project)
    if paths.is_absolute(name):
        return [
            lambda one: one.cwd != "" and paths.is_under(_cwd(one), name),
            lambda one: one.cwd != "" and paths.is_under(_cwd(one).lower(), name.lower()),
            lambda one: len(_cwd(one)) > 1 and paths.is_under(name, _cwd(one)),
            lambda one: not one.cwd and one.workdir == paths.munged(name),
        ]
    return [
        lambda one: one.cwd != "" and paths.ends_with(_cwd(one), name),
        lambda one: one.cwd != "" and paths.ends_with(_cwd(one).lower(), name.lower()),
        lambda one: is_repo(one.repo, name),
        lambda one: one.workdir == project.strip(),
        lambda one: not one.cwd and one.workdir.endswith("-" + paths.munged(name)),
        lambda one: one.cwd != "" and paths.holds(_cwd(one), name),
    ]


def _cwd(session: Session) -> str:
    return paths.normal(session.cwd) if session.cwd else ""


def touching(sessions: Sequence[Session], path: str, catalog: Catalog) -> list[Session]:
    """Return the sessions that touched a file, or a file in a folder.

    Traces name files by absolute paths or relative to the session's folder; both are compared
    with absolute paths and with the last names of one.
    """
    name = paths.normal(path)
    near = catalog.session_ids(SessionFilter(path=name.rsplit("/", 1)[-1]))
    near |= catalog.session_ids(SessionFilter(path=name))
    named = [one for one in sessions if one.session_id in near and touched(one, name, catalog)]
    return named or [one for one in sessions if touched(one, name, catalog, below=True)]


def touched(session: Session, name: str, catalog: Catalog, *, below: bool = False) -> bool:
    """Tell whether a session touched a file of that name, or one below a folder of that name."""
    whole = paths.is_absolute(name)
    for written in catalog.files(session.session_id):
        file = paths.normal(written, base=session.cwd)
        if below and (paths.is_under(file, name) if whole else paths.holds(file, name)):
            return True
        if file == name or (not whole and paths.ends_with(file, name)):
            return True
    return False


def _no_session(wanted: RecallFilter) -> str:
    said = [
        f"--{flag} {value}"
        for flag, value in (
            ("session", wanted.session), ("project", wanted.project), ("repo", wanted.repo),
            ("cwd", wanted.cwd), ("path", wanted.path), ("branch", wanted.branch),
        )
        if value
    ]  # fmt: skip
    if wanted.no_subagents and not said:
        return "Every session here is a sub-agent's, and those were left out."
    return f"No session matches {' with '.join(said)}. `funes sessions` lists what there is."
