"""`funes engine`: how the engine is, its log, and ending or renewing it."""

import argparse
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from funes_ls import render
from funes_ls.cli.asking import START_S
from funes_ls.cli.progress import PHASES, duration
from funes_ls.engine.address import Address, read_address
from funes_ls.engine.client import EngineError, connect, open_socket
from funes_ls.engine.peers import peer_pid
from funes_ls.engine.starts import forget_crashes
from funes_ls.indexer.home import home_dir
from funes_ls.render import counted
from funes_ls.sending import as_object

_ANSWER_S = 5.0
#: An engine that has been asked to end gets so long before it is ended.
_END_S = 5.0
_LOOK_S = 0.02


def engine(args: argparse.Namespace) -> int:
    """Run one of the actions; without one, show the status."""
    action = args.action or "status"
    args.json = getattr(args, "json", False)
    home = home_dir(os.environ)
    actions = {"status": _status, "stop": _stop, "restart": _restart, "logs": _logs}
    return actions[action](args, home)


def _status(args: argparse.Namespace, home: Path) -> int:
    try:
        with connect(home, client="cli", start=False) as connection:
            found = connection.request("engine/status", {}, timeout_s=_ANSWER_S)
    except EngineError as exc:
        if exc.kind != "engine_down":
            raise
        _say(args, "No engine runs; the next command that needs one starts it.", {"running": False})
        return 0
    _say(args, engine_text(as_object(found)), {"running": True, **found})
    return 0


def engine_text(found: Any) -> str:
    """Return how the engine is, for a person."""
    lines = [
        f"engine    process {found.pid}, version {found.version}, "
        f"up {duration(found.uptime_s)}, {counted(found.clients, 'client')}",
        f"at        {found.address}",
        f"memory    {_memory(found)}",
        f"watching  {_watching(found)}",
        f"indexing  {_indexing(found)}",
    ]
    if found.rss_bytes:
        lines.append(f"uses      {found.rss_bytes / 1e6:.0f} MB")
    return "\n".join([*lines, *([found.note] if found.note else [])])


def _memory(found: Any) -> str:
    if not found.generation and not found.model:
        return "not open yet"
    return f"generation {found.generation}, {found.model or 'no model loaded'}"


def _watching(found: Any) -> str:
    if found.watching in ("off", "starting"):
        return str(found.watching)
    how = "looking again and again" if found.watching == "polling" else "told by the system"
    return f"{counted(found.roots, 'place')}, {how}"


def _indexing(found: Any) -> str:
    if not found.indexing:
        return "nothing to do"
    parts = [PHASES.get(found.indexing, "waiting for another writer")]
    if found.total:
        parts.append(f"{found.done:,} of {found.total:,}")
    if found.eta_s:
        parts.append(f"about {duration(found.eta_s)} left")
    return ", ".join(parts)


def _stop(args: argparse.Namespace, home: Path) -> int:
    ended = end_engine(home)
    text = "The engine has ended." if ended else "No engine runs."
    _say(args, text, {"running": False, "stopped": ended})
    return 0


def _restart(args: argparse.Namespace, home: Path) -> int:
    end_engine(home)
    forget_crashes(home)
    with connect(home, client="cli", wait_s=START_S) as connection:
        found = connection.request("engine/status", {}, timeout_s=_ANSWER_S)
    _say(args, f"The engine runs anew as process {found['pid']}.", {"running": True, **found})
    return 0


def end_engine(home: Path) -> bool:
    """End the engine of a home, by force if it does not listen to reason; tell if there was one."""
    address = read_address(home)
    pid = _listening_pid(address) if address else 0
    if address is None or not pid:
        return False
    patience_s = _END_S if _ask_to_end(home) else 0.0
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if _is_gone(pid, within_s=patience_s):
            break
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        patience_s = _END_S
    _is_gone(pid, within_s=_END_S)
    return True


def _ask_to_end(home: Path) -> bool:
    """Return whether the engine has heard that it is to end."""
    try:
        with connect(home, client="cli", start=False) as connection:
            connection.request("engine/stop", {"reason": "a person asked"}, timeout_s=_ANSWER_S)
    except EngineError as exc:
        return exc.kind == "engine_down"  # it hangs up once it ends
    return True


def _listening_pid(address: Address) -> int:
    """Return the process at the other end, 0 when nobody listens.

    The record may be of a process long dead, whose number another one has now: where the system
    tells who listens, that counts.
    """
    try:
        with open_socket(address) as sock:
            return peer_pid(sock) or address.pid
    except OSError:
        return 0


def _is_gone(pid: int, *, within_s: float) -> bool:
    ends = time.monotonic() + within_s
    while time.monotonic() < ends:
        if not _is_alive(pid):
            return True
        time.sleep(_LOOK_S)
    return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Return whether a process has ended and only its starter has not looked yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] == ["Z"]


def _logs(args: argparse.Namespace, home: Path) -> int:
    path = home / "logs" / "engine.log"
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-args.n :]
    except FileNotFoundError:
        lines = []
    text = "\n".join(render.safe(line) for line in lines) or f"Nothing was logged at {path} yet."
    _say(args, text, {"path": str(path), "lines": lines})
    return 0


def _say(args: argparse.Namespace, text: str, value: dict[str, Any]) -> None:
    if args.json:
        render.write_json(value)
    else:
        render.write(text)
