"""The request that takes another memory into the local one, and its answer."""

from msgspec import Struct

from funes_ls.protocol_base import Params


class PullParams(Params, frozen=True, kw_only=True):
    """`engine/pull`: take in what a memory elsewhere holds, from a copy on this machine.

    Attributes:
        memory: Its name, as it is shown.
        base: Directory with the copy.
        revision: Which state of it that is.
        version: Of its dataset, None for the newest there is.
        accept: Take it also when it shares nothing with the local memory, which is not empty.
    """

    memory: str
    base: str
    revision: str = ""
    version: int | None = None
    accept: bool = False


class PullAnswer(Struct, frozen=True, kw_only=True):
    """What was taken in.

    Attributes:
        state: `pulled`, `up_to_date`, or `strange`: nothing was taken in, for it shares nothing
            with the local memory.
        sessions: Of which something came.
        chunks: That came, with their vectors; `known` were here already.
        forgotten: Chunks of sessions that were forgotten here; they stay away.
        odd: Chunks that were left out: their ids are not those of their places.
        model: Of the vectors.
        note: What a person should know.
    """

    memory: str
    state: str
    sessions: int = 0
    chunks: int = 0
    known: int = 0
    forgotten: int = 0
    odd: int = 0
    model: str = ""
    note: str = ""
