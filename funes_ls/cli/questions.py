"""The commands that only read: each asks one thing and prints the answer."""

import argparse
import os
import sys
from typing import Any

from funes_ls import render
from funes_ls.cli.artefacts import artefact_of
from funes_ls.cli.asking import answer_to
from funes_ls.cli.output import notice, use_color
from funes_ls.indexer.home import expanded
from funes_ls.sending import Params, as_object

#: Options of `recall` that overrule settings -> their names on the wire.
_OVERRULING = {
    "k": "k",
    "candidates": "candidates",
    "half_life": "halfLife",
    "neighbors": "neighbors",
    "rerank": "rerank",
}
_FILTERS = ("harness", "project", "repo", "cwd", "path", "branch", "since", "until")


def recall(args: argparse.Namespace) -> int:
    """Print the passages that answer a question."""
    params = _recall_params(args)
    if args.stream:
        from funes_ls.cli.stream import stream

        return stream(params, args)
    answer = answer_to("funes/recall", params, args)
    if args.json:
        render.write_json(answer)
    else:
        found = as_object(answer)
        notice(found.note, quiet=args.quiet)
        render.write(render.recall_text(found, explain=args.explain))
    return 0


def _recall_params(args: argparse.Namespace) -> Params:
    overruling = {name: getattr(args, option) for option, name in _OVERRULING.items()}
    if args.half_life is not None:
        overruling["halfLife"] = max(0.0, args.half_life)
    artefact = artefact_of(args)
    return {
        "query": " ".join(args.words),
        "artefact": artefact,
        "type": args.type,
        "tool": args.tool,
        "session": args.session,
        **session_filters(args),
        **overruling,
    }


def session_filters(args: argparse.Namespace) -> Params:
    """Return the filters of a command line as they are sent, folders made absolute."""
    found: Params = {name: getattr(args, name) for name in _FILTERS}
    for name in ("cwd", "path"):
        if str(found[name]).startswith(("./", "../", "~")) or found[name] == ".":
            found[name] = str(expanded(found[name]).absolute())
    return {**found, "noSubagents": args.no_subagents, **named_memory(args.memory)}


def named_memory(given: str | list[str] | None) -> Params:
    """Return the memory, or the several, that a command line names."""
    if not isinstance(given, list):
        return {"memory": given}
    return {"memories": given} if len(given) > 1 else {"memory": given[0]}


def get(args: argparse.Namespace) -> int:
    """Print one turn with the turns around it."""
    params = {
        "sessionId": args.session,
        "turnUuid": args.turn,
        "window": args.window,
        "memory": args.memory,
    }
    answer = answer_to("funes/get", params, args)
    if args.json:
        render.write_json(answer)
        return 0
    found = as_object(answer)
    notice(found.note, quiet=args.quiet)
    is_person = sys.stdin.isatty() and sys.stdout.isatty()
    layout = args.format or ("human" if is_person else "agent")
    if layout == "agent" or not found.found:
        render.write(render.get_text(found))
        return 0
    from funes_ls.render_human import get_human, terminal_width

    color = use_color(sys.stdout.isatty())
    width = terminal_width(os.environ.get("COLUMNS"))
    render.write(get_human(found, color=color, width=width, highlight=args.highlight))
    return 0


def status(args: argparse.Namespace) -> int:
    """Print what a memory holds, or what could not be read or is kept out."""
    from funes_ls.render_report import excluded_text, problems_text, status_text

    params: Params = {
        "memory": args.memory,
        "problems": args.problems,
        "excluded": args.excluded,
    }
    answer = answer_to("funes/status", params, args)
    if args.json:
        render.write_json(answer)
    elif args.problems:
        render.write(problems_text(as_object(answer).problems))
    elif args.excluded:
        render.write(excluded_text(as_object(answer).excluded))
    else:
        render.write(status_text(as_object(answer)))
    return 0


def sessions(args: argparse.Namespace) -> int:
    """Print a page of sessions."""
    from funes_ls.render_report import sessions_text

    params = {
        "title": args.title,
        "limit": args.limit,
        "offset": args.offset,
        **session_filters(args),
    }
    return print_answer(answer_to("funes/sessions", params, args), sessions_text, args)


def memories(args: argparse.Namespace) -> int:
    """Print which memories there are."""
    from funes_ls.render_report import memories_text

    return print_answer(answer_to("funes/memories", {}, args), memories_text, args)


def print_answer(answer: Any, text_of: Any, args: argparse.Namespace) -> int:
    """Print an answer, as text or as its JSON, and return the exit code."""
    if args.json:
        render.write_json(answer)
    else:
        found = as_object(answer)
        notice(getattr(found, "note", ""), quiet=args.quiet)
        render.write(text_of(found))
    return 0
