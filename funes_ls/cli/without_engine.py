"""Answers in this process, with the functions that the engine calls too."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from funes_ls import protocol, service
from funes_ls.indexer.settings import load_settings
from funes_ls.memories import Memories, OpenEachTime

Watch = Callable[[Any], None]


def answer_to(
    method: str, params: dict[str, Any], env: Mapping[str, str], *, on_partial: Watch | None = None
) -> Any:
    """Return the struct that answers a request.

    Raises:
        FunesError: there is no answer.
    """
    settings, _ = load_settings(env)
    memories = OpenEachTime(settings)
    asked = protocol.params_of(method, params)
    if on_partial is not None:
        return _staged(cast(protocol.RecallParams, asked), memories, on_partial)
    return _METHODS[method](asked, memories)


def _staged(params: protocol.RecallParams, memories: Memories, on_partial: Watch) -> Any:
    answer = None
    for answer in service.recall_staged(params, memories):
        if answer.legs["vector"] == "pending":
            on_partial(answer)
    return answer


def _status(params: protocol.StatusParams, memories: Memories) -> Any:
    if params.problems:
        return {"problems": service.problems(memories, memory=params.memory)}
    return service.status(memories, memory=params.memory)


_METHODS: dict[str, Callable[[Any, Memories], Any]] = {
    "funes/recall": service.recall,
    "funes/get": service.get,
    "funes/sessions": service.sessions,
    "funes/status": _status,
    "funes/related": service.related,
    "funes/forget": service.forget,
    "funes/memories": lambda _params, memories: service.memories_of(memories),
}
