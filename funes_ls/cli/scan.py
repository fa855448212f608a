"""`funes scan`: says which rules found secrets and where, never the secrets."""

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from funes_ls import render
from funes_ls.cli.output import notice
from funes_ls.cli.progress import shown
from funes_ls.render import counted

if TYPE_CHECKING:
    from funes_ls.scanning import Finding, Place, ScanAnswer

#: What push ends with when it withholds something, too.
_FOUND = 2
_MOST_SHOWN = 50


def scan(args: argparse.Namespace) -> int:
    """Scan a memory or files; 0 when they are clean, 2 when they are not."""
    import msgspec

    from funes_ls.indexer.settings import load_settings
    from funes_ls.scanning import existing
    from funes_ls.scanning import scan as run

    settings, _ = load_settings(os.environ)
    target = existing(args.target or "local", settings)
    with shown(quiet=args.quiet) as progress:
        answer = run(target, settings, progress=progress)
    if args.json:
        render.write_json(msgspec.to_builtins(answer))
    else:
        render.write("\n".join(_lines(answer)))
    if answer.unread:
        notice(
            f"funes: {counted(answer.unread, 'file')} could not be read in full.", quiet=args.quiet
        )
    return _FOUND if answer.found else 0


def _lines(answer: "ScanAnswer") -> Iterator[str]:
    by = " and ".join(answer.scanners)
    scanned = f"{counted(answer.blocks, 'text')} ({answer.size_bytes / 1e6:.1f} MB) scanned by {by}"
    if not answer.found:
        yield f"Clean: {scanned}, no secrets found."
        return
    yield f"{counted(len(answer.found), 'place')} with secrets; {scanned}."
    for rule, count in answer.counts.items():
        yield f"  {count:6,}  {render.safe(rule)}"
    yield ""
    for one in answer.found[:_MOST_SHOWN]:
        yield f"{_where(one.place)}: {_rules(one)}"
    if len(answer.found) > _MOST_SHOWN:
        yield f"… and {len(answer.found) - _MOST_SHOWN:,} more; --json lists all."
    yield answer.note


def _where(place: "Place") -> str:
    """Return a place as one finds it: a session and its turn, or a file and its line."""
    if place.session_id:
        turn = f" turn {place.turn_uuid}" if place.turn_uuid else ""
        field = "" if place.field == "text" else f" {place.field}"
        return render.safe(f"session {place.session_id}{turn}{field}")
    return render.safe(f"{place.path}:{place.line}" if place.line else place.path)


def _rules(one: "Finding") -> str:
    return render.safe(
        ", ".join(f"{rule} ({scanner})" for scanner, rules in one.rules.items() for rule in rules)
    )
