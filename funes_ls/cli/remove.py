"""`funes remove`: shows what would be taken back from an agent, asks, and takes it back."""

import argparse
import os

from funes_ls import render
from funes_ls.cli import plans, publishing
from funes_ls.cli.output import notice
from funes_ls.install import apply
from funes_ls.install.plan import Plan, wanted_for
from funes_ls.install.registry import TITLES, setup_of


def remove(args: argparse.Namespace) -> int:
    """Take everything back that was given to an agent; 1 when something could not be."""
    setup = setup_of(args.agent)
    wanted = wanted_for(args.agent, setup.PROGRAM, memory="", env=os.environ)
    plan = apply.plan_remove(setup, wanted)
    is_there = bool(plan.steps or plan.problems or wanted.folder.exists())
    if args.dry_run or not is_there:
        return _show(args, plan, done=False, is_there=is_there)
    plans.refuse_unasked(args)
    if plan.steps and not plans.agreed(plan, args, f"Take this back from {TITLES[args.agent]}?"):
        notice("Nothing was changed.", quiet=args.quiet)
        return 1
    done = apply.remove(setup, wanted)
    told = publishing.bind(args.agent, None)
    return _show(args, done._replace(notes=(*done.notes, *told)), done=True, is_there=True)


def _show(args: argparse.Namespace, plan: Plan, *, done: bool, is_there: bool) -> int:
    code = 1 if plan.problems else 0
    title = TITLES[args.agent]
    if args.json:
        render.write_json(plans.as_object(args.agent, plan, done=done))
        return code
    if not is_there:
        render.write(f"{title} has nothing of funes; there is nothing to remove.")
        return code
    if not done:
        render.write("\n".join(plans.lines(plan)) or f"Our own files under {title} would go.")
        return code
    for line in plan.problems:
        notice(f"funes: {line}")
    told = "Not everything could be removed." if code else f"Removed from {title}."
    render.write("\n".join([told, *plan.notes, *plans.by_hand(plan)]))
    return code
