"""How status, problems and sessions look to a person."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from funes_ls import render
from funes_ls.indexer.times import format_us
from funes_ls.render import counted

if TYPE_CHECKING:
    from funes_ls.indexer.excluded import KeptOut
    from funes_ls.indexer.model import Problem
    from funes_ls.protocol import MemoriesAnswer
    from funes_ls.remote_status import RemoteState
    from funes_ls.retrieval.sessions import SessionsAnswer
    from funes_ls.service import Status

_TITLE_CHARS = 60
_PLACES = {"hub": "on the Hub", "store": "in an object store"}
_MOST_RULES = 8


def status_text(status: "Status") -> str:
    """Return the state of a memory; lines that have nothing to say are left out."""
    if status.remote is not None:
        return _remote_text(status)
    return _own_text(status)


def _remote_text(status: "Status") -> str:
    """Return what is here of a memory elsewhere, what is to go there, and how the local one is."""
    remote = status.remote
    assert remote is not None
    name = render.safe(status.memory)
    lines = [f"memory    {name} ({_PLACES.get(remote.kind, remote.kind)})"]
    if status.state in ("ready", "empty"):
        harnesses = ", ".join(f"{one} {count:,}" for one, count in status.harnesses.items())
        lines += [
            f"sessions  {status.sessions:,}{f' ({render.safe(harnesses)})' if harnesses else ''}",
            f"chunks    {status.chunks:,}",
            f"model     {render.safe(status.model) or 'not said'}",
        ]
    else:
        lines.append(f"state     {status.state}")
    if remote.project:
        lines.append(f"project   {render.safe(remote.project)}: only its sessions go there")
    if remote.pending_review:
        lines.append(
            f"review    {counted(remote.pending_review, 'session')} to decide on; "
            f"`funes curate {name}`"
        )
    lines += _push_lines(status.remote, name)
    if status.note:
        lines.append(status.note)
    if status.local is not None:
        lines += ["", _own_text(status.local)]
    return "\n".join(lines)


def _push_lines(remote: "RemoteState | None", name: str) -> list[str]:
    assert remote is not None
    if remote.pushed_us is None:
        return [f"pushed    never from here; `funes push {name}`"]
    said = {
        "current": "holds all that may go there",
        "pending": f"{remote.to_push:,} of {counted(remote.may_go, 'session')} to go; "
        f"`funes push {name}`",
    }.get(remote.coverage, "whether all is there is not known")
    lines = [f"pushed    {format_us(remote.pushed_us)} ({_ago(remote.pushed_us)} ago); {said}"]
    if remote.unindexed:
        lines.append(f"unindexed {counted(remote.unindexed, 'row')} there, as of the last push")
    if remote.withheld:
        lines.append(f"withheld  {rules_text(remote.withheld)}: secrets, which stayed here")
    return lines


def _ago(at_us: int) -> str:
    return age_text(max(0, time.time_ns() // 1000 - at_us) // 1_000_000)


def _own_text(status: "Status") -> str:
    if status.state == "missing":
        return f"{status.note}\n`funes index` reads the sessions your agents left on this machine."
    harnesses = ", ".join(f"{name} {count:,}" for name, count in status.harnesses.items())
    lines = [
        f"memory    {status.memory} ({status.path}, {status.size_bytes / 1e6:.1f} MB)",
        f"sessions  {status.sessions:,} in {status.projects:,} projects ({harnesses})",
        f"turns     {status.turns:,}",
        f"chunks    {status.chunks:,}",
        f"model     {status.model or 'none yet: words only'}",
    ]
    if status.token_chunks:
        each = status.token_bytes / status.token_chunks
        lines.append(
            f"tokens    of {counted(status.token_chunks, 'chunk')}, {each:,.0f} bytes each"
        )
    if status.words_only:
        lines.append(
            f"pending   {status.words_only:,} chunks are findable by words only; "
            "a running engine embeds them, and so does `funes index`"
        )
    if status.pending_sources:
        lines.append(
            f"changed   {counted(status.pending_sources, 'trace')} since last read; "
            "`funes index` reads what is new"
        )
    lines += _secret_lines(status)
    if status.problems:
        lines.append(f"problems  {status.problems:,}; `funes status --problems` lists them")
    if status.last_indexed_us is not None:
        at_us = status.last_indexed_us
        lines.append(f"indexed   {format_us(at_us)} ({_ago(at_us)} ago)")
    return "\n".join([*lines, *([status.note] if status.note else [])])


def _secret_lines(status: "Status") -> list[str]:
    lines = []
    if status.redaction == "off":
        lines.append("secrets   are stored as they are: `redaction` is off")
    elif status.redacted:
        lines.append(f"secrets   {rules_text(status.redacted)} taken out")
    if status.scrub_due:
        lines.append(
            "scrub     is due: sessions are stored that today's rules for secrets have not seen; "
            "run `funes scrub`"
        )
    if status.excluded:
        lines.append(
            f"excluded  {counted(status.excluded, 'session')} kept out; "
            "`funes status --excluded` lists them"
        )
    return lines


def rules_text(counts: Mapping[str, int]) -> str:
    """Return how many secrets there were, and of which rules the most: never what they were."""
    most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    named = ", ".join(f"{render.safe(rule)} {count:,}" for rule, count in most[:_MOST_RULES])
    more = ", …" if len(most) > _MOST_RULES else ""
    return f"{sum(counts.values()):,} ({named}{more})"


def age_text(age_s: int) -> str:
    """Return an age in its largest unit: `3 days`, `1 hour`."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if age_s >= size:
            count = age_s // size
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "less than a minute"


def problems_text(problems: "Sequence[Problem]") -> str:
    """Return one line for each thing that could not be read."""
    if not problems:
        return "no problems"
    return "\n".join(
        f"{render.safe(one.path)}{f':{one.line}' if one.line else ''}: {one.kind}: {one.message}"
        for one in problems
    )


#: What keeps a session out -> how that is said.
_REASONS = {
    "paths": "`exclude.paths` in config.toml",
    ".funesignore": "a .funesignore",
    "marker": "funes:private",
    "parent": "the session it is a sub-agent of",
}


def excluded_text(excluded: "Sequence[KeptOut]") -> str:
    """Return one line for each session that is kept out."""
    if not excluded:
        return "nothing is kept out"
    return "\n".join(
        f"{render.safe(one.path or one.session_id)}: kept out by "
        f"{_REASONS.get(one.reason, render.safe(one.reason))}"
        for one in excluded
    )


def sessions_text(answer: "SessionsAnswer") -> str:
    """Return a table of sessions, newest first, and how many there are in all."""
    if not answer.sessions:
        return "no sessions"
    rows = [
        (
            format_us(one.ended_us)[:16].replace("T", " "),
            one.harness,
            one.session_id,
            str(one.turns),
            one.cwd or one.workdir,
            one.title[:_TITLE_CHARS],
        )
        for one in answer.sessions
    ]
    text = render.table(rows, header=("ENDED", "HARNESS", "SESSION", "TURNS", "FOLDER", "TITLE"))
    shown = len(answer.sessions)
    return text if answer.total <= shown else f"{text}{shown} of {answer.total}; see --offset\n"


def memories_text(answer: "MemoriesAnswer") -> str:
    """Return a table of memories; `*` marks the one that is read by default."""
    rows = [
        (
            "*" if one.current else "",
            one.name,
            one.state,
            f"{one.sessions:,}",
            f"{one.chunks:,}",
            one.model or "-",
            one.path,
        )
        for one in answer.memories
    ]
    header = ("", "NAME", "STATE", "SESSIONS", "CHUNKS", "MODEL", "PATH")
    return render.table(rows, header=header)
