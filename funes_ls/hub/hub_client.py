"""The Hub's own client, set up for a quiet program: tokens, limits of time, errors in words."""

import contextlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funes_ls.indexer.errors import BackendError, FunesError, MemoryStateError
from funes_ls.indexer.home import expanded

if TYPE_CHECKING:
    from huggingface_hub import HfApi

#: Variables that may hold a token, in the order they are asked.
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")
_ENDPOINT = "https://huggingface.co"
#: Seconds for a connection, for more bytes to come, and for bytes to be taken.
_CONNECT_S, _READ_S, _WRITE_S = 10.0, 30.0, 60.0
_YES = {"1", "true", "yes", "on"}
_is_set_up = False


def endpoint(env: Mapping[str, str]) -> str:
    """Return the address of the Hub."""
    return (env.get("HF_ENDPOINT", "").strip() or _ENDPOINT).rstrip("/")


def hub_home(env: Mapping[str, str]) -> Path:
    """Return where the Hub's programs keep what they share."""
    if named := env.get("HF_HOME", "").strip():
        return expanded(os.path.expandvars(named))
    cache = env.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
    return expanded(cache) / "huggingface"


def cache_dir(env: Mapping[str, str]) -> Path:
    """Return where the Hub's programs keep downloads."""
    named = env.get("HF_HUB_CACHE", "").strip() or env.get("HUGGINGFACE_HUB_CACHE", "").strip()
    return expanded(os.path.expandvars(named)) if named else hub_home(env) / "hub"


def token_of(env: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the token to ask with, and where it is from; None and "" for none."""
    for name in TOKENS:
        if found := _one_line(env.get(name, "")):
            return found, name
    named = env.get("HF_TOKEN_PATH", "").strip()
    path = expanded(os.path.expandvars(named)) if named else hub_home(env) / "token"
    with contextlib.suppress(OSError, ValueError):
        if found := _one_line(path.read_text(encoding="utf-8")):
            return found, "hf auth login"
    return None, ""


def _one_line(text: str) -> str:
    return text.replace("\r", "").replace("\n", "").strip()


def client(env: Mapping[str, str], token: str | None) -> "HfApi":
    """Return the Hub's client for a token; without one it asks as nobody.

    Raises:
        MemoryStateError: kind `offline`: the user wants no network.
    """
    if env.get("HF_HUB_OFFLINE", "").strip().lower() in _YES:
        raise offline(env, "HF_HUB_OFFLINE is set")
    _set_up()
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint(env), token=token or False, library_name="funes-ls")


def user_of(env: Mapping[str, str]) -> str:
    """Return the name of whose token it is.

    Raises:
        FunesError: the token is not taken, or the Hub cannot be reached.
    """
    token, token_from = token_of(env)
    try:
        return str(client(env, token).whoami()["name"])
    except Exception as exc:
        raise explained(exc, "your account", env, token_from=token_from) from exc


def _set_up() -> None:
    """Bound every request in time, and keep bars and warnings off the terminal."""
    global _is_set_up
    if _is_set_up:
        return
    import httpx
    import huggingface_hub
    from huggingface_hub import utils
    from huggingface_hub.utils._http import hf_request_event_hook

    def bounded() -> httpx.Client:
        limits = httpx.Timeout(_READ_S, connect=_CONNECT_S, write=_WRITE_S, pool=_READ_S)
        return httpx.Client(
            event_hooks={"request": [hf_request_event_hook]}, follow_redirects=True, timeout=limits
        )

    huggingface_hub.set_client_factory(bounded)
    utils.disable_progress_bars()  # type: ignore[attr-defined]  # exported, but not by name
    for name in ("huggingface_hub", "httpx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    _is_set_up = True


def status_of(exc: BaseException) -> int:
    """Return the code the Hub answered with, 0 when it did not answer."""
    found = getattr(getattr(exc, "response", None), "status_code", 0)
    if not found and isinstance(exc, RuntimeError) and exc.__cause__ is not None:
        return status_of(exc.__cause__)
    return int(found or 0)


def explained(
    exc: Exception, name: str, env: Mapping[str, str], *, token_from: str, writing: bool = False
) -> FunesError:
    """Return what happened in words of ours: those of the Hub may hold anything.

    Args:
        exc: What the Hub's client raised.
        name: Of the memory.
        env: Tells the Hub's address.
        token_from: Where the token is from, "" for none.
        writing: Whether something was to be changed.
    """
    if isinstance(exc, FunesError):
        return exc
    if isinstance(exc, RuntimeError) and isinstance(exc.__cause__, Exception):
        exc = exc.__cause__  # a file could not be uploaded; this is why
    status = status_of(exc)
    if status == 401:
        return _unknown_to_the_hub(name, token_from)
    if status == 403:
        return _forbidden(name, token_from, writing=writing)
    if status == 404:
        return missing(name, token_from)
    if status == 429:
        return BackendError(
            f"The Hub has too many requests from here{_after(exc)}.",
            hint="Try again later; with a token more are allowed.",
            kind="hub",
        )
    if status:
        return BackendError(
            f"The Hub answers {status} for {name}.", hint="Try again later.", kind="hub"
        )
    if isinstance(exc, ValueError):  # a name that it does not take
        return missing(name, token_from)
    if isinstance(exc, OSError) and getattr(exc, "errno", None) is not None and _is_of_disk(exc):
        return BackendError(
            f"The files of {name} cannot be kept in {cache_dir(env)} ({exc.strerror}).",
            hint="Make room there, or set HF_HOME to a directory that can be written.",
            kind="disk",
        )
    return offline(env, type(exc).__name__)


def _is_of_disk(exc: OSError) -> bool:
    import errno

    return exc.errno in (errno.ENOSPC, errno.EACCES, errno.EPERM, errno.EROFS, errno.EDQUOT)


def offline(env: Mapping[str, str], reason: str) -> MemoryStateError:
    """Return that the Hub cannot be reached."""
    host = endpoint(env).partition("://")[2]
    return MemoryStateError(
        f"{host} cannot be reached ({reason}).",
        hint="Check the network, or read `--memory local`.",
        kind="offline",
    )


def missing(name: str, token_from: str) -> MemoryStateError:
    """Return that there is no such repository, as far as the token sees."""
    hint = "Check its name." if token_from else f"Check its name. {_login()}"
    return MemoryStateError(
        f"There is no dataset {name} on the Hub, or it is private.", hint=hint, kind="missing"
    )


def _unknown_to_the_hub(name: str, token_from: str) -> MemoryStateError:
    if token_from:
        return MemoryStateError(
            f"The Hub does not accept the token of {_source(token_from)}.",
            hint="Make a new one at huggingface.co/settings/tokens and log in with it.",
            kind="unauthorised",
        )
    return MemoryStateError(
        f"{name} is private, or there is no such dataset.",
        hint=f"Check its name. {_login()}",
        kind="unauthorised",
    )


def _forbidden(name: str, token_from: str, *, writing: bool) -> MemoryStateError:
    if writing:
        return MemoryStateError(
            f"The token of {_source(token_from)} may read {name} but not write to it."
            if token_from
            else f"Nobody may write to {name} without a token.",
            hint="Log in with a token that has write access to it.",
            kind="read_only_token",
        )
    return MemoryStateError(
        f"The Hub does not let you read {name}.",
        hint=f"Ask for access on its page. {'' if token_from else _login()}".strip(),
        kind="unauthorised",
    )


def _source(token_from: str) -> str:
    return token_from if token_from in TOKENS else f"`{token_from}`"


def _login() -> str:
    return "If it is private, set HF_TOKEN or run `hf auth login`, then `funes engine stop`."


def _after(exc: Exception) -> str:
    headers: Any = getattr(getattr(exc, "response", None), "headers", {})
    wait = str(headers.get("Retry-After", ""))
    return f", and asks to wait {wait} s" if wait.isdigit() and len(wait) < 6 else ""
