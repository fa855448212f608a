"""Shows what adding or removing would change, as text or as one object."""

import argparse
from difflib import unified_diff
from typing import Any

from funes_ls import render
from funes_ls.cli.output import confirm, is_terminal, notice
from funes_ls.indexer.errors import UsageError
from funes_ls.install import apply, files
from funes_ls.install.plan import Change, Plan

_MOST_LINES = 60
_CONTEXT = 1


def refuse_unasked(args: argparse.Namespace) -> None:
    """Refuse to change anything when nobody is there to be asked and nobody has said yes.

    Raises:
        UsageError: so it is.
    """
    if not can_ask(args):
        raise UsageError(
            "Without a terminal, changing an agent's files has to be confirmed.",
            hint="Pass `--yes`, or `--dry-run` to see what would change.",
        )


def can_ask(args: argparse.Namespace) -> bool:
    """Return whether somebody is there to be asked, or has said yes already."""
    return bool(args.yes or is_terminal())


def agreed(plan: Plan, args: argparse.Namespace, question: str) -> bool:
    """Return whether the person agrees to a plan that he is shown."""
    if args.yes:
        return True
    notice("\n".join(lines(plan)))
    return confirm(question, default=True)


def lines(plan: Plan) -> list[str]:
    """Return what a plan would do, with the changes of files that are not our own."""
    shown: list[str] = []
    for step in plan.steps:
        if not isinstance(step, Change):
            shown.append(f"run    {' '.join(apply.describe(step))}")
            shown += [f"       which writes {path}" for path in step.touches]
        elif step.is_own:
            shown.append(f"write  {step.path}")
        else:
            shown += _change_lines(step)
    shown += [f"note   {line}" for line in plan.notes]
    shown += [f"wrong  {line}" for line in plan.problems]
    shown += by_hand(plan)
    return [render.safe(line) for line in shown]


def by_hand(plan: Plan) -> list[str]:
    """Return what is left to a person."""
    if not plan.by_hand:
        return []
    return ["To do by hand:", *(f"    {row}" for one in plan.by_hand for row in one.splitlines())]


def _change_lines(step: Change) -> list[str]:
    try:
        before = files.read(step.path)
        after = step.edit(before)
    except files.ConfigError as exc:
        return [f"wrong  {exc}"]
    if after is None:
        return [f"delete {step.path}"]
    old, new = ((data or b"").decode("utf-8", "replace").splitlines() for data in (before, after))
    diff = list(unified_diff(old, new, n=_CONTEXT, lineterm=""))[2:]
    more = len(diff) - _MOST_LINES
    shown = [f"       {line}" for line in diff[:_MOST_LINES]]
    return [
        f"{'change' if before is not None else 'make  '} {step.path}",
        *shown,
        *([f"       … {more} more lines"] if more > 0 else []),
    ]


def as_object(agent: str, plan: Plan, *, done: bool, **more: Any) -> dict[str, Any]:
    """Return a plan as it is printed with `--json`."""
    return {
        "agent": agent,
        "done": done,
        "steps": [_step_object(step) for step in plan.steps],
        "by_hand": list(plan.by_hand),
        "notes": list(plan.notes),
        "problems": list(plan.problems),
        **more,
    }


def _step_object(step: Any) -> dict[str, Any]:
    if isinstance(step, Change):
        return {"file": str(step.path), "own": step.is_own}
    return {"run": list(step.argv), "writes": [str(path) for path in step.touches]}
