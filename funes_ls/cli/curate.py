"""`funes curate`: decides what may be published to a memory, by hand or by options."""

import argparse
import os
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from funes_ls import render
from funes_ls.cli.output import confirm, is_terminal, notice
from funes_ls.render import counted

if TYPE_CHECKING:
    from funes_ls.curate.candidates import Candidates
    from funes_ls.hub.decisions import Decisions
    from funes_ls.hub.remote import Remote
    from funes_ls.indexer.memory import MemoryView
    from funes_ls.indexer.settings import Settings

_MARKS = {"include": "+", "exclude": "-", "pending": "?"}
_TITLE_CHARS = 70


def curate(args: argparse.Namespace) -> int:
    """Decide on sessions; afterwards, in a terminal, offer to publish."""
    from funes_ls.cli.push import remote_of
    from funes_ls.hub.decisions import read_decisions
    from funes_ls.indexer.settings import load_settings
    from funes_ls.memories import OpenEachTime

    settings, _ = load_settings(os.environ)
    remote = remote_of(args.memory, settings)
    decisions = read_decisions(settings.home, remote.spec)
    with OpenEachTime(settings).reading("local") as memory, memory.snapshot() as view:
        decided = _decided(args, view, decisions, remote, settings)
        is_reviewed = not decided and _is_interactive(args)
        if is_reviewed:
            _review(view, decisions, remote, settings)
        from funes_ls.curate.candidates import candidates

        found = candidates(view, decisions)
    _show(args, found, decisions, decided, remote, settings, is_reviewed=is_reviewed)
    if is_reviewed and found.count("include"):
        return _offer(args, settings, remote)
    return 0


def _is_interactive(args: argparse.Namespace) -> bool:
    if args.json or os.environ.get("FUNES_NO_TUI") or os.environ.get("TERM") == "dumb":
        return False
    return is_terminal() and sys.stdout.isatty()


def _decided(
    args: argparse.Namespace,
    view: "MemoryView",
    decisions: "Decisions",
    remote: "Remote",
    settings: "Settings",
) -> list[str]:
    """Record what the options say, all of it or nothing, and return it in words."""
    from funes_ls.curate.candidates import block_of, candidates, check_project, chosen
    from funes_ls.hub.decisions import write_decisions

    memory = remote.spec.text
    said = []
    if args.project:
        check_project(args.project, view, decisions, memory)
        if decisions.project != args.project:
            decisions.name_project(args.project)
            said.append(f"{memory} is of {args.project}; only included sessions go there.")
    found = candidates(view, decisions).sessions
    for verdict in ("include", "exclude"):
        for given in getattr(args, verdict) or ():
            one = chosen(given, found, memory)
            decisions.decide(
                one.session_id, "include" if verdict == "include" else "exclude", chunks=one.chunks
            )
            said.append(f"{verdict}d {one.session_id}")
    for given in args.withhold or ():
        block = block_of(given, view)
        decisions.withhold(block.key, back=True)
        said.append(f"withheld block {block.key}")
    if said:
        write_decisions(settings.home, remote.spec, decisions)
    return said if args.include or args.exclude or args.withhold else []


def _review(
    view: "MemoryView", decisions: "Decisions", remote: "Remote", settings: "Settings"
) -> None:
    from funes_ls.curate.review import Review
    from funes_ls.hub.decisions import write_decisions

    def save() -> None:
        write_decisions(settings.home, remote.spec, decisions)

    Review(view, decisions, remote.spec.text, save).run()


def _offer(args: argparse.Namespace, settings: "Settings", remote: "Remote") -> int:
    from funes_ls.cli.push import lines, pushed
    from funes_ls.hub.push import PushRequest

    name = remote.spec.text
    if not (args.yes or confirm(f"Publish to {name} now?", default=False)):
        notice(f"Nothing was published; `funes push {name}` does so.", quiet=args.quiet)
        return 0
    args.dry_run = False
    answer = pushed(args, settings, remote, PushRequest())
    render.write("\n".join(lines(answer)))
    return 1 if answer.state == "declined" else 0


def _show(
    args: argparse.Namespace,
    found: "Candidates",
    decisions: "Decisions",
    decided: list[str],
    remote: "Remote",
    settings: "Settings",
    *,
    is_reviewed: bool,
) -> None:
    from funes_ls.hub.decisions import decisions_path
    from funes_ls.hub.receipts import known_ids, read_receipt

    path = decisions_path(settings.home, remote.spec)
    if args.json:
        render.write_json(_as_object(found, decisions, decided, remote, str(path)))
        return
    lines = [render.safe(f"{line}.") for line in decided]
    lines += [] if decided or is_reviewed else _listed(found)
    lines += _counts(found, decisions, remote)
    receipt = read_receipt(settings.home, remote.spec)
    if receipt is not None:
        there = [counted(count, noun) for count, noun in (
            (sum(map(decisions.is_excluded, receipt.sessions)), "session"),
            (len(decisions.withheld & (known_ids(settings.home, remote.spec, receipt) or set())),
             "block"),
        ) if count]  # fmt: skip
        if there:
            lines.append(
                f"Published before, and to stay: {' and '.join(there)}; "
                f"`funes unpublish SESSION {render.safe(remote.spec.text)}` takes sessions back, "
                "`--include SESSION` sends them again without their blocks that stay."
            )
    if path.exists():
        lines.append(f"Decisions: {render.safe(str(path))}")
    render.write("\n".join(lines))


def _as_object(
    found: "Candidates", decisions: "Decisions", decided: list[str], remote: "Remote", path: str
) -> dict[str, Any]:
    import msgspec

    return {
        "memory": remote.spec.text,
        "project": decisions.project,
        "decisions": path,
        "recorded": decided,
        "sessions": msgspec.to_builtins(found.sessions),
        "withheld_blocks": sorted(decisions.withheld),
        "other": found.other,
        "unresolvable": found.unresolvable,
    }


def _listed(found: "Candidates") -> Iterator[str]:
    for one in found.sessions:
        day = (
            datetime.fromtimestamp(one.ended_us / 1e6).strftime("%Y-%m-%d") if one.ended_us else ""
        )
        title = " ".join(render.safe(one.title).split())[:_TITLE_CHARS]
        count = counted(one.chunks, "chunk")
        yield (
            f"{_MARKS[one.state]} {day:10}  {render.safe(one.session_id)}  {count}  {title}"
        ).rstrip()


def _counts(found: "Candidates", decisions: "Decisions", remote: "Remote") -> list[str]:
    memory = render.safe(remote.spec.text)
    if not found.sessions:
        of = f" of {render.safe(decisions.project)}" if decisions.project else ""
        lines = [f"There is no session{of} to decide on for {memory}."]
    else:
        lines = [
            f"{found.count('include'):,} go (+), {found.count('exclude'):,} stay (-), "
            f"{found.count('pending'):,} to be decided on (?)."
        ]
    if decisions.withheld:
        lines.append(f"{counted(len(decisions.withheld), 'block')} kept back.")
    if found.other or found.unresolvable:
        lines.append(
            f"Not of this project: {counted(found.other, 'session')} of other repositories, "
            f"{found.unresolvable:,} of none that is known."
        )
    return lines
