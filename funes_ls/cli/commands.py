"""Which function each command is; only the one that was asked for is loaded."""

import argparse
import os
from importlib import import_module

from funes_ls.cli.output import notice

#: Commands that the engine answers: function of `questions`.
_QUESTIONS = ("recall", "get", "status", "sessions", "memories")
#: Other commands that need no settings of their own.
_PLAIN = (
    *("engine", "forget", "scrub", "scan", "push", "pull", "unpublish", "curate", "ask"),
    *("related", "blame", "add", "remove", "mcp"),
)
#: Commands that work in this process, with its settings.
_WITH_SETTINGS = ("index", "parse", "model")


def run(args: argparse.Namespace) -> int:
    """Run the command that was parsed and return its exit code."""
    name = args.command
    if name in _WITH_SETTINGS:
        return _run_with_settings(args)
    module = import_module(f"funes_ls.cli.{'questions' if name in _QUESTIONS else name}")
    code: int = getattr(module, name)(args)
    return code


def _run_with_settings(args: argparse.Namespace) -> int:
    from funes_ls.indexer.settings import load_settings

    overrides = {"thinking": False} if getattr(args, "no_thinking", False) else {}
    settings, warnings = load_settings(os.environ, overrides=overrides)
    for warning in warnings:
        notice(f"funes: {warning}", quiet=getattr(args, "quiet", False))
    command = getattr(import_module(f"funes_ls.cli.{args.command}"), args.command)
    code: int = command(args, settings)
    return code
