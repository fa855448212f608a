"""What `funes add` does for a memory elsewhere: looks at it, binds to it, offers to publish."""

import argparse
import os
from typing import TYPE_CHECKING

from funes_ls import render
from funes_ls.cli.output import confirm, is_terminal, notice
from funes_ls.indexer.errors import FunesError, MemoryStateError
from funes_ls.indexer.home import home_dir

if TYPE_CHECKING:
    from funes_ls.hub.remote import Remote
    from funes_ls.hub.spec import MemorySpec

_OWN_NAME = "funes-memory"
#: Kinds of errors that may pass by themselves: the agent gets the memory all the same.
_PASSING = ("offline", "hub")


def remote_spec(memory: str | None) -> "MemorySpec | None":
    """Return which memory elsewhere is named, None for one on this machine.

    Raises:
        UsageError: there is no such memory.
    """
    if memory in (None, "", "local"):
        return None
    from funes_ls.hub.spec import parse_spec
    from funes_ls.indexer.settings import load_settings

    spec = parse_spec(str(memory), load_settings(os.environ)[0])
    return spec if spec.is_remote else None


def offered(args: argparse.Namespace) -> str | None:
    """Offer a memory on the Hub to who named none and has a token; return its name, or None.

    The Hub is asked nothing unless somebody agrees.
    """
    from funes_ls.hub import hub_client

    if not _may_offer(args) or hub_client.token_of(os.environ)[0] is None:
        return None
    asked = "Publish its sessions to a private dataset of yours on the Hub, and recall from there?"
    if not confirm(asked, default=False):
        return None
    try:
        return f"{hub_client.user_of(os.environ)}/{_OWN_NAME}"
    except FunesError as exc:
        notice(f"funes: {exc} Going on with the local memory.")
        return None


def how_to(args: argparse.Namespace) -> list[str]:
    """Return how a memory gets onto the Hub, for who named none and has no token."""
    from funes_ls.hub import hub_client

    if not _may_offer(args) or hub_client.token_of(os.environ)[0] is not None:
        return []
    return [
        "To have it on other machines too: `hf auth login`, then "
        f"`funes add {args.agent} <your name there>/{_OWN_NAME}`."
    ]


def _may_offer(args: argparse.Namespace) -> bool:
    return args.memory is None and is_terminal() and not (args.yes or args.json or args.dry_run)


def prepare(spec: "MemorySpec", args: argparse.Namespace) -> list[str]:
    """See that sessions can be published to a memory, before anything is installed.

    Returns what is to be told. Nothing is made unless somebody agrees.

    Raises:
        GateError: nobody could say what is clean.
        MemoryStateError: the memory is missing, or not for this user.
    """
    from funes_ls.cli.push import is_public
    from funes_ls.gate.check import check

    check(())
    try:
        head = _remote(spec).head()
    except FunesError as exc:
        if exc.kind in _PASSING:
            return [f"{exc.message} Its sessions are published once it can be reached."]
        if exc.kind != "missing":
            raise
        return [_made(spec, args, exc)]
    return [is_public(spec.text)] if head.private is False else []


def _made(spec: "MemorySpec", args: argparse.Namespace, missing: FunesError) -> str:
    """Make a memory that is not there, after asking."""
    asked = f"There is no {spec.text}. Make it, private?"
    if not is_terminal() or not confirm(asked, default=False):
        raise MemoryStateError(
            missing.message,
            hint=f"`funes push {spec.text} --create` makes it, private.",
            kind="missing",
        )
    _remote(spec).create(private=True)
    return f"{spec.text} is made, private."


def bind(agent: str, spec: "MemorySpec | None") -> list[str]:
    """Publish an agent's sessions to a memory from now on, or to none; return what to tell."""
    from funes_ls.hub import binding

    home = home_dir(os.environ)
    if spec is None:
        before = binding.unbind(home, agent)
        return [f"Its sessions are no longer published to {before}."] if before else []
    binding.bind(home, agent, spec.text)
    return [
        f"Once you have run `funes push {spec.text}` (`--dry-run` shows what would leave), what is "
        "new is published there whenever a session begins or ends."
    ]


def first_push(spec: "MemorySpec", args: argparse.Namespace) -> None:
    """Offer to publish at once, in a terminal."""
    if args.json or not is_terminal() or not (home_dir(os.environ) / "memory").is_dir():
        return
    if not confirm(f"Publish the local memory to {spec.text} now?", default=False):
        return
    from funes_ls.cli.push import lines, pushed
    from funes_ls.hub.push import PushRequest
    from funes_ls.indexer.settings import load_settings

    settings, _ = load_settings(os.environ)
    asked = argparse.Namespace(**{**vars(args), "dry_run": False, "yes": False})
    try:
        answer = pushed(asked, settings, _remote(spec), PushRequest())
    except FunesError as exc:  # the agent has the memory: only this did not work
        notice(f"funes: {exc}")
        return
    render.write("\n".join(lines(answer)))


def _remote(spec: "MemorySpec") -> "Remote":
    from funes_ls.hub.remote import open_remote

    return open_remote(spec, os.environ, cache_dir=home_dir(os.environ) / "remote")
