"""Names of `funes:` documents. A name says everything that is needed to write the document.

    funes:/turn/SESSION/TURN.md     a turn with those around it
    funes:/session/SESSION.md       how a session begins
    funes:/recall/WORDS.md?TOKEN    what was recalled for a question
    funes:/file/NAME.md?TOKEN       sessions that touched a file
    funes:/why/NAME.md?TOKEN        where lines of a file come from

A token is URL-safe base64 of JSON, since editors re-code query strings as they please.
"""

import base64
import binascii
import json
import re
import shlex
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import Struct

from funes_ls.handlers.failures import Refused, bad_params

SCHEME = "funes"
_SUFFIX = ".md"
#: A question in a name is cut: editors and file systems have limits.
MOST_QUERY_CHARS = 1500


class Address(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a document shows.

    Attributes:
        kind: `turn`, `session`, `recall`, `file` or `why`.
        line: From 0, of the file at `path`.
        last: The last line, included.
        digest: Of the text of these lines, as they were when they were asked about.
    """

    kind: str
    session: str = ""
    turn: str = ""
    query: str = ""
    path: str = ""
    line: int = 0
    last: int = 0
    digest: str = ""
    memory: str = ""


def uri_of(address: Address) -> str:
    """Return the URI of a document."""
    if address.kind in ("turn", "session"):
        ids = [address.session] + ([address.turn] if address.kind == "turn" else [])
        path = "/".join(quote(one, safe="") for one in ids)
        rest = Address(kind=address.kind, memory=address.memory)
        token = f"?{_token(rest)}" if address.memory else ""
        return f"{SCHEME}:/{address.kind}/{path}{_SUFFIX}{token}"
    name = slug(address.query or address.path.replace("\\", "/").rpartition("/")[2])
    return f"{SCHEME}:/{address.kind}/{quote(name)}{_SUFFIX}?{_token(address)}"


def address_of(uri: str) -> Address:
    """Return what the document of a URI shows.

    Raises:
        Refused: it is no document of ours.
    """
    parts = urlsplit(uri)
    kind, _, name = unquote(parts.path).lstrip("/").partition("/")
    if parts.scheme != SCHEME or not name:
        raise _unknown()
    token = _of_token(unquote(parts.query)) if parts.query else Address(kind=kind)
    if kind in ("recall", "file", "why"):
        if not parts.query or token.kind != kind:
            raise _unknown()
        return token
    name = name.removesuffix(_SUFFIX)
    if kind == "session":
        return Address(kind=kind, session=name, memory=token.memory)
    session, _, turn = name.rpartition("/")
    if kind != "turn" or not session:
        raise _unknown()
    return Address(kind=kind, session=session, turn=turn, memory=token.memory)


def address_of_command(command: str) -> Address | None:
    """Return the document that a `funes get` command is about, None when it is none."""
    try:
        words = [word for word in shlex.split(command) if word != "--"]
    except ValueError:
        return None
    if words[:2] != ["funes", "get"]:
        return None
    rest, memory = words[2:], ""
    if rest[:1] == ["--memory"]:
        memory, rest = "".join(rest[1:2]), rest[2:]
    if len(rest) != 2 or not rest[0]:
        return None
    kind = "turn" if rest[1] else "session"
    return Address(kind=kind, session=rest[0], turn=rest[1], memory=memory)


def slug(text: str) -> str:
    """Return a few words of a text that may stand in a file's name."""
    words = re.findall(r"[\w.]+", text)
    return "-".join(words)[:40].strip("-.") or "document"


def _token(address: Address) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(address)).decode("ascii").rstrip("=")


def _of_token(text: str) -> Address:
    try:
        raw: Any = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return msgspec.convert(raw, Address)
    except (ValueError, binascii.Error, msgspec.ValidationError) as exc:
        raise _unknown() from exc


def _unknown() -> Refused:
    return bad_params("There is no such document.")
