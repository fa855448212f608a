"""Takes in what a question is asked with, and reads the file that one names."""

from pathlib import Path

from funes_ls.indexer.errors import UsageError
from funes_ls.protocol import ArtefactParams
from funes_ls.retrieval.artefact import Artefact

#: As much of a file is read.
MOST_BYTES = 4 << 20
#: Where a NUL within this many bytes means that a file is no text, as git has it.
_HEAD_BYTES = 8_000


def artefact_of(params: ArtefactParams) -> Artefact:
    """Return an artefact with its text.

    Raises:
        UsageError: there is no text, or the file cannot be read as text.
    """
    text = params.text
    if text is None and params.kind == "file" and params.path:
        text = text_of(_read(Path(params.path)), params.path)
    if text is None or not (text.strip() or params.path):
        raise UsageError(
            f"The {params.kind} is empty.",
            hint="Give its `text`; for a file its `path` will do.",
        )
    return Artefact(kind=params.kind, text=text, path=params.path)


def _read(path: Path) -> bytes:
    try:
        if not path.is_absolute() or not path.is_file():
            raise UsageError(
                f"There is no file {path}.", hint="Give its absolute `path`, or its `text`."
            )
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or "not a path"
        raise UsageError(f"{path} cannot be read ({reason}).") from exc


def text_of(data: bytes, name: str) -> str:
    """Return bytes as text: UTF-8 or UTF-16 with its mark, what fits neither replaced.

    Raises:
        UsageError: they are no text.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if b"\0" in data[:_HEAD_BYTES]:
        raise UsageError(f"{name} is no text.", hint="A question is asked with text.")
    return data.decode("utf-8-sig", "replace")
