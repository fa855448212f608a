"""What the gate and its child say to one another, as MessagePack."""

from msgspec import Struct


class Ask(Struct, frozen=True):
    """Texts to scan; without any: the end, to be answered with all that was scanned."""

    texts: list[str]


class Hit(Struct, frozen=True):
    """What was found in a text: where it stands in the frame, the rules, lines from 1 (0: none)."""

    at: int
    rules: list[str]
    lines: list[int]


class Reply(Struct, frozen=True):
    """What was scanned, as proof, and what was found.

    Attributes:
        count: Texts scanned: of the frame, at the end of the run.
        digests: SHA-256 of each, as UTF-8.
        hits: Of the texts that hold something.
        missing: True when the scanner is not installed.
    """

    count: int
    digests: list[bytes] = []
    hits: list[Hit] = []
    missing: bool = False
