"""`funes scrub`: takes secrets out of what is stored and says how many, never which."""

import argparse
import os
from typing import Any

from funes_ls import render
from funes_ls.cli.long import long_answer
from funes_ls.indexer.progress import Progress
from funes_ls.render import counted
from funes_ls.sending import as_object


def scrub(args: argparse.Namespace) -> int:
    """Scrub the local memory, or with `--dry-run` only say what would be taken out."""

    def here(progress: Progress) -> Any:
        from funes_ls import service
        from funes_ls.indexer.settings import load_settings
        from funes_ls.memories import OpenEachTime
        from funes_ls.protocol_secrets import ScrubParams

        settings, _ = load_settings(os.environ)
        params = ScrubParams(dry_run=args.dry_run)
        return service.scrub(params, OpenEachTime(settings), progress=progress)

    answer = long_answer("funes/scrub", {"dryRun": args.dry_run}, args, here)
    if args.json:
        render.write_json(answer)
    else:
        render.write(_text(as_object(answer)))
    return 0


def _text(found: Any) -> str:
    if found.state == "empty":
        return "The memory is empty: there is nothing to scrub."
    scanned = f"{counted(found.sessions, 'session')} with {counted(found.blocks, 'block')}"
    if found.state == "clean":
        return f"Already clean: {scanned} scanned, no secrets found."
    would = "would be " if found.state == "found" else ""
    lines = [
        f"{scanned} scanned.",
        f"{counted(found.redacted, 'block')} {would}redacted, {found.dropped:,} {would}taken out "
        f"whole, {counted(found.details, 'detail')} (titles, paths and the like) {would}cleaned.",
    ]
    lines += [f"  {count:6,}  {render.safe(rule)}" for rule, count in found.counts.items()]
    if found.requeued and found.state == "scrubbed":
        lines.append(
            f"{counted(found.requeued, 'chunk')} can be found by words; vectors follow with the "
            "next `funes index`, or by themselves while the engine runs."
        )
    for memory in found.published:
        lines.append(f"{render.safe(memory)} holds some of it still.")
    return "\n".join([*lines, found.note])
