"""`funes push`: publishes what a memory elsewhere lacks, or shows what that is."""

import argparse
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from funes_ls import render
from funes_ls.cli.output import confirm, is_terminal, notice
from funes_ls.cli.progress import aside, shown
from funes_ls.indexer.errors import MemoryStateError, UsageError
from funes_ls.render import counted

if TYPE_CHECKING:
    from funes_ls.hub.push import Doubt, PushAnswer, PushRequest
    from funes_ls.hub.remote import Remote
    from funes_ls.indexer.settings import Settings

_MOST_SHOWN = 20
_TITLE_CHARS = 60


def push(args: argparse.Namespace) -> int:
    """Publish to a memory; 0 also when there is nothing new, 1 when it was not the one meant."""
    from funes_ls.hub.push import PushRequest
    from funes_ls.indexer.settings import load_settings

    if args.texts and not args.dry_run:
        raise UsageError("--texts shows what would leave.", hint="Pass `--dry-run` with it.")
    settings, _ = load_settings(os.environ)
    remote = remote_of(args.memory, settings)
    request = PushRequest(
        dry_run=args.dry_run,
        texts=args.texts,
        create=args.create,
        force_reindex=args.force_reindex,
    )
    answer = pushed(args, settings, remote, request)
    if args.json:
        render.write_json(as_object(answer))
    else:
        render.write("\n".join(lines(answer)))
    return 1 if answer.state == "declined" else 0


def remote_of(memory: str, settings: "Settings") -> "Remote":
    """Return the memory elsewhere that a person named.

    Raises:
        UsageError: kind `not_remote`: it is on this machine.
    """
    from funes_ls.hub.remote import open_remote
    from funes_ls.hub.spec import parse_spec

    spec = parse_spec(memory, settings)
    if not spec.is_remote:
        raise UsageError(
            f"{spec.text} is on this machine; a memory is published elsewhere.",
            hint="Name <org>/<repo> on the Hub, or s3://<bucket>/<folder>.",
            kind="not_remote",
        )
    return open_remote(spec, os.environ, cache_dir=settings.home / "remote")


def pushed(
    args: argparse.Namespace, settings: "Settings", remote: "Remote", request: "PushRequest"
) -> "PushAnswer":
    """Publish, after asking to make the memory where there is none."""
    from msgspec.structs import replace

    try:
        return _pushed(args, settings, remote, request)
    except MemoryStateError as exc:
        if exc.kind != "missing" or not _may_create(args, remote):
            raise
    return _pushed(args, settings, remote, replace(request, create=True))


def _may_create(args: argparse.Namespace, remote: "Remote") -> bool:
    if args.yes or args.dry_run or not is_terminal() or remote.spec.kind != "hub":
        return False
    return confirm(f"There is no {remote.spec.text}. Make it, private?", default=False)


def _pushed(
    args: argparse.Namespace, settings: "Settings", remote: "Remote", request: "PushRequest"
) -> "PushAnswer":
    from funes_ls.hub.push import push as run
    from funes_ls.memories import OpenEachTime

    with (
        shown(quiet=args.quiet) as progress,
        OpenEachTime(settings).reading("local") as memory,
        memory.snapshot() as view,
    ):
        return run(
            view,
            remote,
            settings.home,
            request,
            is_meant=lambda name, doubt: _is_meant(name, args, doubt),
            told=lambda private: _warn_of_public(remote.spec.text, private),
            progress=progress,
        )


def is_public(memory: str) -> str:
    """Return what is said of a memory that everyone can read."""
    return f"{memory} is PUBLIC: everyone can read what is published there."


def _warn_of_public(memory: str, private: bool | None) -> None:
    """Say before anything leaves that everyone can read it; `--quiet` does not keep that back."""
    if private is False:
        with aside():
            notice(is_public(memory))


_DOUBTS: "Mapping[Doubt, str]" = {
    "strange": "{memory} holds nothing of this machine's sessions",
    "public": "{memory} is public, and nothing was published there from this machine yet",
    "opened": "{memory} was private when this machine last published there, and is public now",
}


def _is_meant(memory: str, args: argparse.Namespace, doubt: "Doubt") -> bool:
    # Programs were told that it is public, and go on as before.
    if args.yes or (doubt == "public" and not is_terminal()):
        return True
    said = _DOUBTS[doubt].format(memory=memory)
    if not is_terminal():
        raise UsageError(
            f"{said}; is it the memory you mean?",
            hint="Pass `--yes` if it is.",
            kind="not_confirmed",
        )
    with aside():
        is_meant = confirm(f"{said}. Publish to it?", default=False)
    if is_meant:
        return True
    notice("Nothing was published.", quiet=args.quiet)
    return False


def as_object(answer: "PushAnswer") -> object:
    """Return an answer as it is printed with `--json`."""
    import msgspec

    return msgspec.to_builtins(answer)


def lines(answer: "PushAnswer") -> Iterator[str]:
    """Yield an answer as text."""
    memory = render.safe(answer.memory)
    if answer.state == "declined":
        return
    if answer.state == "would_push":
        yield f"Would leave for {memory}{_readers(answer)}: {_amount(answer)}."
        yield from _sessions(answer)
    elif answer.state == "pushed":
        made = " (new, private)" if answer.created and answer.private else _readers(answer)
        yield (
            f"Published to {memory}{made}: {_amount(answer)}; "
            f"{answer.uploaded_bytes / 1e6:.1f} MB sent. "
            f"It holds {counted(answer.chunks, 'chunk')} now."
        )
    elif answer.chunks:
        yield f"{memory} is up to date ({counted(answer.chunks, 'chunk')})."
    else:
        yield f"There is nothing to publish to {memory}."
    yield from _notes(answer)


def _readers(answer: "PushAnswer") -> str:
    return " (PUBLIC)" if answer.private is False else ""


def _amount(answer: "PushAnswer") -> str:
    return (
        f"{counted(len(answer.sessions), 'session')}, {counted(answer.blocks, 'block')}, "
        f"{counted(answer.passages, 'passage')}, {answer.size_bytes / 1e6:.2f} MB of text"
    )


def _sessions(answer: "PushAnswer") -> Iterator[str]:
    for one in answer.sessions[:_MOST_SHOWN]:
        title = " ".join(render.safe(one.title).split())[:_TITLE_CHARS]
        yield (
            f"  {render.safe(one.session_id)}  {counted(one.blocks, 'block')}, "
            f"{counted(one.passages, 'passage')}, {one.size_bytes:,} bytes  {title}".rstrip()
        )
        for share in one.shares:
            if share.text is not None:
                name = render.safe(" ".join(filter(None, (share.block_type, share.tool_name))))
                yield f"    {render.safe(share.id)}  {name}"
                yield from (f"    | {render.safe(line)}" for line in share.text.splitlines())
    if (more := len(answer.sessions) - _MOST_SHOWN) > 0:
        yield f"  and {counted(more, 'more session')}; --json lists all"


def _notes(answer: "PushAnswer") -> Iterator[str]:
    memory = render.safe(answer.memory)
    if answer.withheld_blocks:
        found = ", ".join(
            f"{render.safe(rule)} ×{count}" for rule, count in answer.withheld.items()
        )
        yield (
            f"{counted(answer.withheld_blocks, 'block')} kept back for what looks like secrets: "
            f"{found}. Run `funes scrub`, then push again."
        )
    if answer.naming_home and answer.state == "would_push":
        yield (
            f"The name of your home folder stands in what was said in "
            f"{counted(answer.naming_home, 'block')}, which leaves as it is."
        )
    if answer.own_blocks:
        yield f"{counted(answer.own_blocks, 'block')} kept back as you decided."
    if answer.excluded:
        yield f"{counted(answer.excluded, 'session')} kept back as you decided."
    if answer.pending:
        yield (f"{counted(answer.pending, 'session')} to be decided on: `funes curate {memory}`.")
    if answer.waiting:
        yield (
            f"{counted(answer.waiting, 'chunk')} without a vector yet; `funes index` makes them, "
            "the next push takes them."
        )
    if answer.reindexed:
        yield f"All of {memory} is indexed."
