"""JSON is taken, refused and written as the compat profile does."""

import json
import math
import random
import struct
from typing import Any

import pytest

from funes_ls.indexer.traces import jsonvalue, lines


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":"\\ud83d"}',
        b'{"a":"\\udc00"}',
        b'"\\udc00\\ud83d"',
        b"NaN",
        b"[Infinity]",
        b'"a\x01b"',
        b"\xef\xbb\xbf{}",
        b'{"a":1}\x00',
        b"1e999",
        b"01",
        b"[1,]",
        b"{'a':1}",
        b"[" * 128 + b"]" * 128,
        b"[" * 100_000,
    ],
)
def test_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        jsonvalue.parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b' {"a":1,"b":2,"a":3} \r', {"a": 3, "b": 2}),
        (b'"\\ud83d\\ude00"', "😀"),
        (b'"\\u0000\\/"', "\0/"),
        (b"[-0.5, 1E5]", [-0.5, 100000.0]),
    ],
)
def test_taken(text: bytes, value: Any) -> None:
    assert jsonvalue.parse(text) == value


def test_depth_limit_is_127() -> None:
    assert jsonvalue.parse(b"[" * 127 + b"]" * 127)
    mixed = b'{"a":[' * 64 + b"]}" * 64
    with pytest.raises(ValueError):
        jsonvalue.parse(mixed)
    assert jsonvalue.parse(b'{"a":[' * 63 + b"0" + b"]}" * 63)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [1.0, None, True]}, '{"b":1,"a":[1.0,null,true]}'),
        (1e-7, "1e-7"),
        (1e16, "1e16"),
        (1e15, "1000000000000000.0"),
        (1e-5, "0.00001"),
        (-0.0, "-0.0"),
        (2**64 - 1, "18446744073709551615"),
        ('é\x00\x1f\x7f\b\f\n\r\t"\\/', '"é\\u0000\\u001f\x7f\\b\\f\\n\\r\\t\\"\\\\/"'),
    ],
)
def test_written(value: Any, text: str) -> None:
    assert jsonvalue.dumps(value) == text


def plain_float(value: float) -> str:
    """Return a float in serde_json's form, made from the shortest digits that read back."""
    sign, digits = ("-" if math.copysign(1, value) < 0 else ""), repr(abs(value))
    mantissa, _, exponent = digits.partition("e")
    whole, _, fraction = mantissa.partition(".")
    significant = (whole + fraction).lstrip("0")
    point = len(whole) - (len(whole + fraction) - len(significant)) + int(exponent or 0)
    significant = significant.rstrip("0")
    if not significant:
        return f"{sign}0.0"
    if len(significant) <= point <= 16:
        return f"{sign}{significant}{'0' * (point - len(significant))}.0"
    if 0 < point <= 16:
        return f"{sign}{significant[:point]}.{significant[point:]}"
    if -5 < point <= 0:
        return f"{sign}0.{'0' * -point}{significant}"
    tail = f".{significant[1:]}" if len(significant) > 1 else ""
    return f"{sign}{significant[0]}{tail}e{point - 1}"


def test_floats_are_written_as_serde_json_does() -> None:
    chance = random.Random(11)
    values = [struct.unpack("<d", chance.randbytes(8))[0] for _ in range(3000)]
    values += [round(chance.uniform(-1e4, 1e4), chance.randrange(6)) for _ in range(1000)]
    values += [float(f"{chance.randrange(1, 99)}e{chance.randrange(-12, 25)}") for _ in range(1000)]
    for value in values:
        if math.isfinite(value):
            assert jsonvalue.dumps(value) == plain_float(value)


def test_exotic_integers_become_doubles() -> None:
    raw = b'{"a":-0,"b":18446744073709551616,"c":[-9223372036854775809, -0 ],"d":-10,"e":12}'
    assert jsonvalue.is_exotic(raw)
    written = jsonvalue.dumps(jsonvalue.parse_exact(raw))
    assert written == (
        '{"a":-0.0,"b":1.8446744073709552e19,"c":[-9.223372036854776e18,-0.0],"d":-10,"e":12}'
    )
    assert not jsonvalue.is_exotic(b'{"a":-0.5,"b":-10,"t":"2026-01-05T00:00:00"}')


def contents(raw: bytes) -> tuple[list[Any], bool, bool]:
    found = lines.content(raw)
    assert found is not None
    return list(found.records), found.compat, found.lost


def test_a_line_with_bad_utf8_or_odd_space_around_is_compat() -> None:
    assert contents(b'{"a":"x\xff"}\n') == ([{"a": "x\ufffd"}], True, False)
    assert contents("\u3000\x0b{}\x85\n".encode()) == ([{}], True, False)


def test_a_blank_line_is_nothing() -> None:
    assert lines.content(b"\r\n") is None
    assert lines.content("\u3000\u2028".encode()) is None


@pytest.mark.parametrize(
    ("raw", "records"),
    [
        (b'\xef\xbb\xbf{"a":1}\r\n', [{"a": 1}]),
        (b'{"a":1}' + b"\0" * 9000, [{"a": 1}]),
        (b'{"a":1}\0\0{"a":2}', [{"a": 1}, {"a": 2}]),
        (b'{"a":1}{"a":2}', [{"a": 1}, {"a": 2}]),
        (b'{"a":"\\ud83d!"}', [{"a": "\ufffd!"}]),
        (b'{"\\udc00":"\\ud83d\\ude00"}', [{"\ufffd": "😀"}]),
        (b'{"a":"tab\there"}', [{"a": "tab\there"}]),
        (b'{"a":' + b"[" * 130 + b"]" * 130 + b"}", None),
    ],
)
def test_what_compat_refuses_is_read_with_care(raw: bytes, records: list[Any] | None) -> None:
    found, compat, lost = contents(raw)
    assert (compat, lost) == (False, False)
    assert len(found) == 1 if records is None else found == records


@pytest.mark.parametrize(
    ("raw", "records"),
    [
        (b'{"type":"user","mess{"type":"user","a":1}', [{"type": "user", "a": 1}]),
        (b'{"a":1}garbage', [{"a": 1}]),
        (b"\0" * 4096, []),
        (b"not json {", []),
        (b'{"a":' * 5000, []),
        (b'{"a":' + b"[" * 900 + b"]" * 900 + b"}", []),
    ],
)
def test_what_cannot_be_read_is_told(raw: bytes, records: list[Any]) -> None:
    assert contents(raw) == (records, False, True)


@pytest.mark.parametrize("between", [b"", b"\r", b" \r ", b"\0"])
def test_every_record_of_one_line_is_read(between: bytes) -> None:
    records = [{"type": "user", "n": n} for n in range(40)]
    raw = between.join(json.dumps(record).encode() for record in records)
    assert contents(raw + b"\n") == (records, False, False)


def test_records_glued_to_torn_ones_are_read_up_to_a_bound() -> None:
    torn, sound = b'{"type":"user","mess', b'{"type":"user"}'
    found, _, lost = contents((torn + sound * 10) * 10)
    assert (len(found), lost) == (100, True)
    found, _, lost = contents((torn + sound) * 40)
    assert (len(found), lost) == (16, True)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "raw", [b"1 " * 4_000_000, b'{"type":' * 500_000, b'{"id":"' * 500_000, b"[]" * 2_000_000]
)
def test_what_is_full_of_beginnings_is_given_up_soon(raw: bytes) -> None:
    assert contents(raw) == ([], False, True)


@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_beyond_the_doubles_are_refused_but_read_with_care(sign: str) -> None:
    """1.797e308 is the greatest double: 309 digits may fit."""
    fits = f'{{"a":"","n":{sign}1{"0" * 308}}}'.encode()
    assert jsonvalue.dumps(jsonvalue.parse_exact(fits)) == f'{{"a":"","n":{sign}1e308}}'
    assert contents(fits)[1:] == (True, False)
    for digits in ("2" + "0" * 308, "7" * 400, "7" * 4_300, "7" * 5_000):
        raw = f'{{"a": "x", "n": [{sign}{digits}]}}'.encode()
        with pytest.raises(ValueError):
            jsonvalue.parse(raw)
        assert contents(raw) == ([{"a": "x", "n": [sign + digits]}], False, False)
        padded = raw.replace(b'"x"', b'"' + b"x" * 63 + b'"')
        with pytest.raises(ValueError):
            jsonvalue.parse(padded.decode())


def test_many_digits_in_a_string_or_with_an_exponent_are_taken() -> None:
    for text in (f'{{"a":"{"7" * 5_000}"}}', f'{{"a":[1{"0" * 5_000}e-4900,0.{"3" * 5_000}]}}'):
        assert contents(text.encode())[1:] == (True, False)
        assert contents(text.replace('{"a', '{"b": ": 7", "a').encode())[1:] == (True, False)
