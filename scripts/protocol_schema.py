"""Writes `docs/protocol.schema.json` anew from the structs that engine and fronts share.

With `--check` it writes nothing and fails when the file is not current.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from funes_ls import protocol
from funes_ls.handlers.documents import DocumentAnswer, DocumentParams
from funes_ls.indexer.model import Problem
from funes_ls.retrieval.answers import GetAnswer, RecallAnswer
from funes_ls.retrieval.sessions import SessionsAnswer
from funes_ls.service import IndexReport, Status

PATH = Path(__file__).resolve().parents[1] / "docs" / "protocol.schema.json"


class Problems(Struct, frozen=True, kw_only=True):
    """What `funes/status` answers when `problems` is asked for."""

    problems: tuple[Problem, ...]


class Empty(Struct, frozen=True, kw_only=True):
    """Nothing but that it was done."""


ANSWERS: dict[str, Any] = {
    "funes/recall": RecallAnswer,
    "funes/get": GetAnswer,
    "funes/sessions": SessionsAnswer,
    "funes/status": Status | Problems,
    "funes/related": protocol.RelatedAnswer,
    "funes/blame": protocol.BlameAnswer,
    "funes/index": IndexReport,
    "funes/forget": protocol.ForgetAnswer,
    "funes/scrub": protocol.ScrubAnswer,
    "funes/memories": protocol.MemoriesAnswer,
    "funes/ask": protocol.AskAnswer,
    "funes/document": DocumentAnswer,
    "engine/hello": protocol.HelloAnswer,
    "engine/status": protocol.EngineStatus,
    "engine/stop": Empty,
    "engine/touch": Empty,
    "engine/pull": protocol.PullAnswer,
}
PARAMS: dict[str, type[Struct]] = {**protocol.METHODS, "funes/document": DocumentParams}
NOTIFICATIONS: dict[str, type[Struct]] = {
    "funes/didIndex": protocol.DidIndex,
    "engine/progress": protocol.EngineProgress,
}


def schema() -> str:
    """Return the schema as the file has it."""
    answers = [kind for answer in ANSWERS.values() for kind in _alternatives(answer)]
    kinds = [*PARAMS.values(), *answers, *NOTIFICATIONS.values()]
    _, components = msgspec.json.schema_components(
        list(dict.fromkeys(kinds)), ref_template="#/$defs/{name}"
    )
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The protocol of funes-ls",
        "description": "Made by scripts/protocol_schema.py; see protocol.md.",
        "protocol": protocol.PROTOCOL,
        "methods": {
            name: {"params": _ref(PARAMS[name]), "result": _result(ANSWERS[name])}
            for name in sorted(PARAMS)
        },
        "notifications": {name: {"params": _ref(kind)} for name, kind in NOTIFICATIONS.items()},
        "$defs": {name: components[name] for name in sorted(components)},
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _alternatives(answer: Any) -> list[type[Struct]]:
    return list(getattr(answer, "__args__", (answer,)))


def _result(answer: Any) -> dict[str, Any]:
    refs = [_ref(kind) for kind in _alternatives(answer)]
    return refs[0] if len(refs) == 1 else {"anyOf": refs}


def _ref(kind: type[Struct]) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{kind.__name__}"}


def main() -> int:
    """Write the file, or compare it."""
    if "--check" in sys.argv[1:]:
        current = PATH.is_file() and PATH.read_text(encoding="utf-8") == schema()
        if not current:
            print("docs/protocol.schema.json is not current; run scripts/protocol_schema.py.")
        return 0 if current else 1
    PATH.write_text(schema(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
