"""Messages as LSP frames them: `Content-Length` headers, an empty line, a JSON body.

Standard library only. Header names are taken in any case and others than the length are tolerated.
"""

#: Longest body taken; recalled passages are far smaller, and nothing may fill the memory.
MAX_BODY_BYTES = 32 << 20
MAX_HEADER_BYTES = 8 << 10


class FramingError(Exception):
    """Where the next message begins cannot be known; the connection has to end."""


class TooLong(FramingError):
    """A body of `size_bytes` is longer than is taken."""

    def __init__(self, size_bytes: int) -> None:
        """Keep how long it is."""
        super().__init__(f"a message of {size_bytes:,} bytes; {MAX_BODY_BYTES:,} are taken")
        self.size_bytes = size_bytes


def frame(body: bytes) -> bytes:
    """Return a body with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def body_length(header: bytes) -> int:
    """Return what a block of header lines says of the body's length.

    Raises:
        FramingError: it says nothing that is a length.
        TooLong: the body is longer than is taken.
    """
    for line in header.split(b"\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            digits = value.strip()
            if not digits.isdigit() or len(digits) > 15:
                break
            size = int(digits)
            if size > MAX_BODY_BYTES:
                raise TooLong(size)
            return size
    raise FramingError("no Content-Length")


class Incoming:
    """Bytes as they come in, taken out message by message."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._data = bytearray()
        self._size: int | None = None
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take what has come in; what is left of a body that is too long is dropped."""
        dropped = min(self._left_out, len(data))
        self._left_out -= dropped
        self._data += data[dropped:] if dropped else data

    @property
    def is_between(self) -> bool:
        """Return whether no message has come in partly."""
        return not (self._data or self._size is not None or self._left_out)

    def take(self) -> bytes | None:
        """Return the next whole body, None until it is there.

        Raises:
            TooLong: a body is longer than is taken; what comes behind it can be taken.
            FramingError: the bytes are something else.
        """
        if self._size is None:
            header = self._header()
            if header is None:
                return None
            try:
                self._size = body_length(header)
            except TooLong as exc:
                self._leave_out(exc.size_bytes)
                raise
        if len(self._data) < self._size:
            return None
        body = bytes(self._data[: self._size])
        del self._data[: self._size]
        self._size = None
        return body

    def _leave_out(self, size_bytes: int) -> None:
        here = min(size_bytes, len(self._data))
        del self._data[:here]
        self._left_out = size_bytes - here

    def rest(self) -> bytes:
        """Return what has come in and was not taken; only between two messages."""
        return bytes(self._data)

    def _header(self) -> bytes | None:
        end = self._data.find(b"\r\n\r\n", 0, MAX_HEADER_BYTES)
        if end < 0:
            if len(self._data) >= MAX_HEADER_BYTES:
                raise FramingError("the header is too long")
            return None
        header = bytes(self._data[:end])
        del self._data[: end + 4]
        return header
