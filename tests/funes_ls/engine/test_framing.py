"""Messages are taken out of a stream however it is cut, and nothing else is taken for one."""

import pytest

from funes_ls.engine.framing import (
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    FramingError,
    Incoming,
    TooLong,
    body_length,
    frame,
)


def bodies(data: bytes, *, cut: int) -> list[bytes]:
    incoming, found = Incoming(), []
    for start in range(0, len(data), cut):
        incoming.add(data[start : start + cut])
        while (body := incoming.take()) is not None:
            found.append(body)
    assert incoming.rest() == b""
    return found


@pytest.mark.parametrize("cut", [1, 2, 7, 1000])
def test_messages_come_out_whole_however_the_stream_is_cut(cut: int) -> None:
    sent = [b"{}", b"", '{"a": "ü"}'.encode(), b"x" * 300]
    assert bodies(b"".join(frame(body) for body in sent), cut=cut) == sent


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 7",
        b"content-length:7",
        b"CONTENT-LENGTH :   7  ",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 7",
        b"Content-Length: 7\r\nContent-Type: x",
        b"X-Other: 1\r\nContent-Length: 7",
    ],
)
def test_header_names_in_any_case_and_others_beside(header: bytes) -> None:
    assert body_length(header) == 7


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"Content-Length: ",
        b"Content-Length: -1",
        b"Content-Length: +7",
        b"Content-Length: 0x7",
        b"Content-Length: seven",
        b"Content-Length: 9999999999999999999999",
        b"Length: 7",
        b"{}",
    ],
)
def test_no_length_is_no_message(header: bytes) -> None:
    with pytest.raises(FramingError):
        body_length(header)


def test_a_body_that_is_too_long_says_how_much_to_skip() -> None:
    with pytest.raises(TooLong) as caught:
        body_length(b"Content-Length: %d" % (MAX_BODY_BYTES + 1))
    assert caught.value.size_bytes == MAX_BODY_BYTES + 1


def test_a_header_without_end_is_given_up() -> None:
    incoming = Incoming()
    incoming.add(b"x" * (MAX_HEADER_BYTES - 1))
    assert incoming.take() is None
    incoming.add(b"x")
    with pytest.raises(FramingError):
        incoming.take()


@pytest.mark.parametrize("cut", [1 << 20, 1 << 23, 1 << 30])
def test_what_comes_behind_a_body_that_is_too_long_is_taken(cut: int) -> None:
    size = MAX_BODY_BYTES + 5
    data = b"Content-Length: %d\r\n\r\n" % size + b"x" * size + frame(b"{}")
    incoming, found, refused = Incoming(), [], 0
    for start in range(0, len(data), cut):
        incoming.add(data[start : start + cut])
        while True:
            try:
                body = incoming.take()
            except TooLong:
                refused += 1
                continue
            if body is None:
                break
            found.append(body)
    assert (refused, found, incoming.is_between) == (1, [b"{}"], True)
