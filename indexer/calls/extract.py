"""From a call and its answer to the facts in it."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from funes_ls.indexer.calls.call import Call, word
from funes_ls.indexer.calls.outcome import Outcome, changed_nothing, outcome_of
from funes_ls.indexer.calls.patch import find_patch, patch_events
from funes_ls.indexer.calls.shell import script_events, script_of
from funes_ls.indexer.calls.tools import EDITOR_COMMANDS, tool_events
from funes_ls.indexer.calls.unified import is_unified, unified_events
from funes_ls.indexer.facts import FileEvent

#: A command of a call that is still running has no status yet.
_RUNNING = ("Process running with session ID", "Command running in background")
_HEAD_CHARS = 600
_MOST_SEEN = 500_000


class Found(Struct, frozen=True, kw_only=True):
    """What a call comes to; `command` is "" where none was run."""

    events: tuple[FileEvent, ...] = ()
    command: str = ""
    exit_status: int | None = None


def facts_of(call: Call) -> Found:
    """Return what an answered call did to files, or saw of them, and what it ran."""
    args = call.args()
    script = "" if word(args, "command") in EDITOR_COMMANDS else script_of(args)
    if script:
        return _of_script(call, args, script, outcome_of(call.output))
    patch = find_patch(word(args, "patch", "input", "patchText", "diff"))
    if patch:
        outcome = outcome_of(call.output)
        events = () if changed_nothing(outcome) else patch_events(patch, call.cwd)
        return Found(events=tuple(events))
    diff = word(args, "diff", "patch")
    if is_unified(diff):
        events = () if changed_nothing(outcome_of(call.output)) else unified_events(diff, call.cwd)
        return Found(events=tuple(events))
    outcome = outcome_of(call.output, is_file=True)
    return Found(events=tuple(_bounded(one) for one in tool_events(call, args, outcome)))


def _bounded(event: FileEvent) -> FileEvent:
    """Return an event without a text that is too long to keep of what was only seen."""
    if event.kind != "read" or len(event.new) <= _MOST_SEEN:
        return event
    return replace(event, new="", whole=False, first_line=0)


def is_script(text: str) -> bool:
    """Tell whether a call's input is one that runs a shell script."""
    if '"command"' not in text and '"cmd"' not in text:
        return False
    args = Call(tool="", text=text, output="").args()
    return word(args, "command") not in EDITOR_COMMANDS and bool(script_of(args))


def _of_script(call: Call, args: dict[str, object], script: str, outcome: Outcome) -> Found:
    if outcome.refused:
        return Found()
    folder = word(args, "workdir", "cwd", "working_directory", "directory", "dir") or ""
    events = _each_once(script_events(script, outcome, call.cwd, folder=folder))
    is_running = any(mark in outcome.text[:_HEAD_CHARS] for mark in _RUNNING)
    status = outcome.exit_status
    if status is None and outcome.ok and not is_running:
        status = 0
    return Found(events=tuple(_bounded(one) for one in events), command=script, exit_status=status)


def _each_once(events: Iterable[FileEvent]) -> list[FileEvent]:
    """Return events without mentions of files that others are of, or that came before."""
    given = list(events)
    seen = {one.path for one in given if one.kind != "mention"}
    seen |= {one.source for one in given}
    kept = []
    for one in given:
        if one.kind != "mention" or one.path not in seen:
            kept.append(one)
            seen.add(one.path)
    return kept
