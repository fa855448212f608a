"""What every request of the protocol may carry."""

from msgspec import Struct

Token = int | str


class Params(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What every request may carry.

    Attributes:
        work_done_token: Progress is told under this token.
        partial_result_token: Answers come under this token as they grow, if the method can.
    """

    work_done_token: Token | None = None
    partial_result_token: Token | None = None
