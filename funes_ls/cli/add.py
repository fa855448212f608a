"""`funes add`: shows what would change, asks, reads the sessions there are, and changes it."""

import argparse
import os

from funes_ls import render
from funes_ls.cli import plans
from funes_ls.cli.output import confirm, notice
from funes_ls.indexer.errors import UsageError
from funes_ls.install import apply
from funes_ls.install.plan import Plan, wanted_for
from funes_ls.install.registry import TITLES, setup_of

_NO_MEMORY = "There is no memory yet; `funes index` makes one."


def add(args: argparse.Namespace) -> int:
    """Give an agent the memory; 1 when something could not be done."""
    from funes_ls.cli import first_index, publishing

    setup = setup_of(args.agent)
    tips = publishing.how_to(args)
    args.memory = publishing.offered(args) or args.memory
    elsewhere = publishing.remote_spec(args.memory)
    wanted = wanted_for(
        args.agent, setup.PROGRAM, memory=_memory(args.memory), env=os.environ
    )._replace(force=args.force)
    plan = apply.plan_add(setup, wanted)
    if args.dry_run:
        return _show(args, plan, done=False)
    if plan.problems and not plan.steps:
        return _show(args, plan, done=True)
    needed = elsewhere is not None or args.memory in (None, "local")
    is_first = not args.no_index and first_index.is_due(wanted, needed=needed)
    if not plan.steps and not plans.can_ask(args):  # nothing is changed: there is only to tell
        return _show(args, _with_word(plan) if is_first else plan, done=True)
    plans.refuse_unasked(args)
    if is_first and not _may_read(args):
        notice("Nothing was installed.", quiet=args.quiet)
        return 1
    if plan.steps and not plans.agreed(plan, args, f"Give {TITLES[args.agent]} this memory?"):
        notice("Nothing was changed.", quiet=args.quiet)
        return 1
    told = publishing.prepare(elsewhere, args) if elsewhere is not None else []
    wants_vectors = is_first and first_index.read_words(args)
    done = apply.add(setup, wanted)
    told += [*publishing.bind(args.agent, elsewhere), *tips]
    if args.no_index and first_index.is_due(wanted, needed=needed):
        told.append(_NO_MEMORY)
    done = done._replace(notes=(*done.notes, *told))
    code = _show(args, done, done=True, vectors=_vectors(args) if wants_vectors else "")
    if elsewhere is not None and not code:
        publishing.first_push(elsewhere, args)
    return code


def _vectors(args: argparse.Namespace) -> str:
    from funes_ls.cli import first_index

    try:
        return first_index.vectors_left(args)
    except KeyboardInterrupt:  # the agent has its memory: that is said all the same
        return "`funes index` goes on with the vectors, which find what other words say."


def _memory(spec: str | None) -> str:
    """Return how the memory is named from anywhere; "" is the local one.

    Raises:
        UsageError: there is no such memory.
    """
    if spec in (None, "", "local"):
        return ""
    from funes_ls.hub.spec import parse_spec
    from funes_ls.indexer.settings import load_settings

    found = parse_spec(str(spec), load_settings(os.environ)[0])
    if found.path is None:
        return found.text
    if not any((found.path / name).exists() for name in ("catalog.db", "chunks.lance")):
        raise UsageError(
            f"No memory at {spec}: nothing was indexed there yet.",
            hint="Name `local`, the folder of a memory, or <org>/<repo> on the Hub.",
            kind="no_such_memory",
        )
    return str(found.path.absolute())


def _with_word(plan: Plan) -> Plan:
    return plan._replace(notes=(*plan.notes, _NO_MEMORY))


def _may_read(args: argparse.Namespace) -> bool:
    return args.yes or confirm(
        "There is no memory yet. Read the sessions of your agents into one now?", default=True
    )


def _show(args: argparse.Namespace, plan: Plan, *, done: bool, vectors: str = "") -> int:
    code = 1 if plan.problems else 0
    if args.json:
        render.write_json(plans.as_object(args.agent, plan, done=done, vectors=vectors))
        return code
    if not done:
        render.write("\n".join(plans.lines(plan)) or _nothing(args.agent))
        return code
    for line in plan.problems:
        notice(f"funes: {line}")
    said = [_summary(args.agent, plan), vectors, *plan.notes, *plans.by_hand(plan)]
    render.write("\n".join(filter(None, said)))
    return code


def _summary(agent: str, plan: Plan) -> str:
    title = TITLES[agent]
    if plan.problems:
        return f"{title} is not set up whole."
    if plan.by_hand:
        return ""
    if not plan.steps:
        return _nothing(agent)
    return f"{title} has this memory from its next session on; `funes remove {agent}` undoes it."


def _nothing(agent: str) -> str:
    return f"{TITLES[agent]} has this memory already; there is nothing to change."
