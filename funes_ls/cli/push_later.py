"""The push at the beginning and the end of a session: by itself, asking nothing, seen by nobody."""

import os
import time
from contextlib import suppress
from pathlib import Path

from funes_ls.engine.client import connect
from funes_ls.hub.binding import bindings
from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.home import home_dir, make_private

#: The engine has so long to read what the session has just said, and to embed it.
_SETTLE_S = 60.0
_LOOK_S = 1.0
_ASK_S = 10.0
_LOG_BYTES = 200_000
LOG = "push.log"


def main(memory: str) -> int:
    """Publish to a memory that an agent is bound to; the log says how it went, never of what."""
    home = home_dir(os.environ)
    try:
        if memory not in bindings(home).values():  # it was taken back meanwhile
            return 0
        _settle(home)
        said = _pushed(memory)
    except FunesError as exc:
        said = f"{exc.kind}: {exc.message}"
    except BaseException as exc:
        said = f"internal error ({type(exc).__name__})"
    with suppress(OSError):
        _log(home, f"{memory} {said}")
    return 0


def _settle(home: Path) -> None:
    """Wait until the engine has nothing left to index, where one runs; not for ever."""
    if os.environ.get("FUNES_ENGINE") == "inline":
        return
    ends = time.monotonic() + _SETTLE_S
    while time.monotonic() < ends:
        time.sleep(_LOOK_S)
        try:
            with connect(home, client="hook", start=False, wait_s=_ASK_S) as connection:
                status = connection.request("engine/status", {}, timeout_s=_ASK_S)
        except FunesError:
            return
        if not status["indexing"]:
            return


def _pushed(memory: str) -> str:
    from funes_ls.hub.push import PushRequest, push
    from funes_ls.hub.remote import open_remote
    from funes_ls.hub.spec import parse_spec
    from funes_ls.indexer.settings import check_whole, load_settings
    from funes_ls.memories import OpenEachTime

    settings, _ = load_settings(os.environ)
    check_whole(settings)
    remote = open_remote(
        parse_spec(memory, settings), os.environ, cache_dir=settings.home / "remote"
    )
    with OpenEachTime(settings).reading("local") as local, local.snapshot() as view:
        answer = push(
            view,
            remote,
            settings.home,
            PushRequest(patient=False, only_new=True),
            is_meant=lambda _name, _doubt: False,
        )
    kept = f", {answer.withheld_blocks} blocks kept back" if answer.withheld_blocks else ""
    return f"{answer.state}: {answer.passages} chunks{kept}"


def _log(home: Path, line: str) -> None:
    path = home / "logs" / LOG
    make_private(path.parent)
    is_full = path.exists() and path.stat().st_size > _LOG_BYTES
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with path.open("w" if is_full else "a", encoding="utf-8", errors="replace") as log:
        log.write(f"{stamp} {line}\n")
