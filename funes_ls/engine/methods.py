"""What each method of the protocol calls, where it runs and how long it may take."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from funes_ls import protocol, service

if TYPE_CHECKING:
    from funes_ls.engine.core import Core, Lane

Tell = Callable[[Any], None]
_RECALL_S = 10.0
_GET_S = 5.0
_TABLE_S = 2.0


class Asked(Struct, frozen=True, kw_only=True):
    """A request as its function sees it.

    Attributes:
        env: Where the front says that harnesses keep sessions.
        cancelled: Whether nobody waits for the answer any more.
        partial: Takes answers so far, None when the front wants none.
        progress: Takes begin, reports and end of work, None likewise.
    """

    params: protocol.Params
    core: "Core"
    env: Mapping[str, str]
    cancelled: Callable[[], bool]
    partial: Tell | None
    progress: Tell | None


class Method(Struct, frozen=True, kw_only=True):
    """How a method is run.

    Attributes:
        lane: Whose threads it runs on.
        limit_s: After so long it is given up; None for never.
        ends_when_withdrawn: Its answer is awaited when it is withdrawn: it ends by itself.
    """

    run: Callable[[Asked], Any]
    lane: "Lane" = "tables"
    limit_s: float | None = _TABLE_S
    ends_when_withdrawn: bool = False

    @property
    def is_question(self) -> bool:
        """Return whether somebody may be waiting for it: background work steps aside."""
        return self.lane != "waits"


def _answer(method: str) -> Callable[[Asked], Any]:
    """Return what answers as a command without an engine does."""
    answer = service.ANSWERS[method]
    return lambda asked: answer(asked.params, asked.core.current_memories())


def _recall(asked: Asked) -> Any:
    params = cast(protocol.RecallParams, asked.params)
    memories = asked.core.current_memories()
    return service.recall(params, memories, cancelled=asked.cancelled, on_words=asked.partial)


def _status(asked: Asked) -> Any:
    params = cast(protocol.StatusParams, asked.params)
    answer = service.status_or_problems(params, asked.core.current_memories())
    if not isinstance(answer, service.Status) or params.memory not in ("", "local"):
        return answer
    # Said here alone: whoever looks at the memory learns why it may not be current.
    note = asked.core.indexing.state().note
    return replace(answer, note=f"{answer.note} {note}".strip()) if note else answer


def _index(asked: Asked) -> Any:
    params = cast(protocol.IndexParams, asked.params)
    return asked.core.indexing.run(
        params, env=asked.env, cancelled=asked.cancelled, progress=asked.progress
    )


def _forget(asked: Asked) -> Any:
    params = cast(protocol.ForgetParams, asked.params)
    return asked.core.indexing.forget(params, cancelled=asked.cancelled, progress=asked.progress)


def _scrub(asked: Asked) -> Any:
    params = cast(protocol.ScrubParams, asked.params)
    return asked.core.indexing.scrub(params, cancelled=asked.cancelled, progress=asked.progress)


def _pull(asked: Asked) -> Any:
    params = cast(protocol.PullParams, asked.params)
    return asked.core.indexing.pull(params, cancelled=asked.cancelled, progress=asked.progress)


def _ask(asked: Asked) -> Any:
    from funes_ls.ask import ask

    tell = asked.partial
    return ask(
        cast(protocol.AskParams, asked.params),
        asked.core.current_memories(),
        on_text=lambda text: tell({"text": text}) if tell is not None else None,
        cancelled=asked.cancelled,
        env={**asked.core.env, **asked.env},
    )


def _engine_status(asked: Asked) -> Any:
    return asked.core.status()


def _stop(_asked: Asked) -> Any:
    return {}  # the engine ends once this is answered


def _touch(asked: Asked) -> Any:
    asked.core.touch({"paths": cast(protocol.TouchParams, asked.params).paths})
    return {}


METHODS: dict[str, Method] = {
    "funes/recall": Method(run=_recall, lane="queries", limit_s=_RECALL_S),
    "funes/get": Method(run=_answer("funes/get"), lane="lookups", limit_s=_GET_S),
    "funes/sessions": Method(run=_answer("funes/sessions"), lane="lookups", limit_s=_GET_S),
    "funes/status": Method(run=_status, lane="lookups", limit_s=_GET_S),
    "funes/related": Method(run=_answer("funes/related"), lane="lookups", limit_s=_GET_S),
    "funes/blame": Method(run=_answer("funes/blame")),
    "funes/memories": Method(run=_answer("funes/memories"), lane="lookups", limit_s=_GET_S),
    "funes/index": Method(run=_index, lane="waits", limit_s=None, ends_when_withdrawn=True),
    "funes/forget": Method(run=_forget, lane="waits", limit_s=None, ends_when_withdrawn=True),
    "funes/scrub": Method(run=_scrub, lane="waits", limit_s=None, ends_when_withdrawn=True),
    "funes/ask": Method(run=_ask, lane="waits", limit_s=None, ends_when_withdrawn=True),
    "engine/status": Method(run=_engine_status),
    "engine/stop": Method(run=_stop),
    "engine/touch": Method(run=_touch),
    "engine/pull": Method(run=_pull, lane="waits", limit_s=None, ends_when_withdrawn=True),
}
