"""The commands: each takes parsed arguments, makes one service call and prints its answer."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from funes_ls import render
from funes_ls.cli.output import notice, use_color
from funes_ls.indexer.settings import Settings, load_settings

Command = Callable[[argparse.Namespace, Settings], int]


def run(args: argparse.Namespace) -> int:
    """Run the command that was parsed and return its exit code."""
    settings, warnings = load_settings(os.environ, overrides=_overrides(args))
    for warning in warnings:
        notice(f"funes: {warning}", quiet=getattr(args, "quiet", False))
    return _COMMANDS[args.command](args, settings)


def _overrides(args: argparse.Namespace) -> dict[str, object]:
    names = {
        "k": "k",
        "candidates": "candidates",
        "half_life": "half_life_days",
        "neighbors": "neighbors",
        "memory": "memory",
    }
    found: dict[str, object] = {field: getattr(args, name, None) for name, field in names.items()}
    if found["half_life_days"] is not None:
        found["half_life_days"] = max(0.0, args.half_life)
    if getattr(args, "no_thinking", False):
        found["thinking"] = False
    return found


def _index(args: argparse.Namespace, settings: Settings) -> int:
    from funes_ls.cli.index import index

    return index(args, settings)


def _parse(args: argparse.Namespace, settings: Settings) -> int:
    from funes_ls.cli.parse import parse

    return parse(args, settings)


def _model(args: argparse.Namespace, settings: Settings) -> int:
    from funes_ls.cli.model import model

    return model(args, settings)


def _recall(args: argparse.Namespace, settings: Settings) -> int:
    from funes_ls import service
    from funes_ls.memories import OpenEachTime
    from funes_ls.protocol import RecallParams

    params = RecallParams(
        query=" ".join(args.words),
        type=args.type or "",
        tool=args.tool or "",
        session=args.session or "",
        **_session_filters(args),
    )
    answer = service.recall(params, OpenEachTime(settings))
    if args.json:
        render.write_json(answer)
    else:
        notice(answer.note, quiet=args.quiet)
        render.write(render.recall_text(answer, explain=args.explain))
    return 0


def _session_filters(args: argparse.Namespace) -> dict[str, Any]:
    names = ("harness", "project", "repo", "cwd", "path", "branch", "since", "until")
    found: dict[str, Any] = {name: getattr(args, name) or "" for name in names}
    for name in ("cwd", "path"):
        if str(found[name]).startswith(("./", "../", "~")) or found[name] == ".":
            found[name] = str(Path(str(found[name])).expanduser().absolute())
    return {**found, "no_subagents": args.no_subagents}


def _get(args: argparse.Namespace, settings: Settings) -> int:
    from funes_ls import service
    from funes_ls.memories import OpenEachTime
    from funes_ls.protocol import GetParams
    from funes_ls.render_human import get_human, terminal_width

    params = GetParams(session_id=args.session, turn_uuid=args.turn, window=args.window)
    answer = service.get(params, OpenEachTime(settings))
    if args.json:
        render.write_json(answer)
        return 0
    is_person = sys.stdin.isatty() and sys.stdout.isatty()
    layout = args.format or ("human" if is_person else "agent")
    if layout == "agent" or not answer.found:
        render.write(render.get_text(answer))
    else:
        color = use_color(sys.stdout.isatty())
        width = terminal_width(os.environ.get("COLUMNS"))
        render.write(get_human(answer, color=color, width=width, highlight=args.highlight))
    return 0


def _status(args: argparse.Namespace, settings: Settings) -> int:
    from funes_ls import service
    from funes_ls.cli.report import problems_text, status_text
    from funes_ls.memories import OpenEachTime

    memories = OpenEachTime(settings)
    if args.problems:
        listed = service.problems(memories)
        if args.json:
            render.write_json({"problems": listed})
        else:
            render.write(problems_text(listed))
        return 0
    answer = service.status(memories)
    if args.json:
        render.write_json(answer)
    else:
        render.write(status_text(answer))
    return 0


def _sessions(args: argparse.Namespace, settings: Settings) -> int:
    from funes_ls import service
    from funes_ls.cli.report import sessions_text
    from funes_ls.memories import OpenEachTime
    from funes_ls.protocol import SessionsParams

    params = SessionsParams(
        title=args.title or "",
        limit=args.limit,
        offset=args.offset,
        **_session_filters(args),
    )
    answer = service.sessions(params, OpenEachTime(settings))
    if args.json:
        render.write_json(answer)
    else:
        render.write(sessions_text(answer))
    return 0


_COMMANDS: dict[str, Command] = {
    "index": _index,
    "recall": _recall,
    "get": _get,
    "status": _status,
    "sessions": _sessions,
    "parse": _parse,
    "model": _model,
}
