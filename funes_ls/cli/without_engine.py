"""Answers in this process, with the functions that the engine calls too."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from funes_ls import protocol, service
from funes_ls.indexer.settings import load_settings
from funes_ls.memories import OpenEachTime

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
        return service.recall(cast(protocol.RecallParams, asked), memories, on_words=on_partial)
    return service.ANSWERS[method](asked, memories)
