"""Private keys go as a whole, however they are shown; public ones stay."""

import json
import time
from collections.abc import Callable

import pytest

from funes_ls.indexer.redaction import keys
from funes_ls.indexer.redaction.redactor import Redactor
from tests.credentials import Source, armored, body_of, pieces

_NAMES = [
    f"{kind}PRIVATE" + " KEY" for kind in ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ")
] + ["PGP PRIVATE" + " KEY BLOCK"]


def lines(block: str, put: Callable[[int, str], str]) -> str:
    return "".join(put(at, line) for at, line in enumerate(block.splitlines(), 1))


#: How files are shown.
_SHOWN: dict[str, Callable[[str], str]] = {
    "as it is": lambda block: block,
    "in other words": lambda block: f"This is it:\n\n{block}\nKeep it.",
    "crlf": lambda block: block.replace("\n", "\r\n"),
    "one line": lambda block: block.replace("\n", " "),
    "escaped": lambda block: 'KEY="' + block.replace("\n", "\\n") + '"',
    "json": lambda block: json.dumps({"key": block}),
    "json in json": lambda block: json.dumps(json.dumps({"key": block})),
    "cat -n": lambda block: lines(block, lambda at, line: f"{at:6}\t{line}\n"),
    "numbered": lambda block: lines(block, lambda at, line: f"{at:6}→{line}\n"),
    "diff": lambda block: lines(block, lambda _, line: f"+{line}\n"),
    "quoted": lambda block: lines(block, lambda _, line: f"> {line}\n"),
    "yaml": lambda block: "key: |\n" + lines(block, lambda _, line: f"    {line}\n"),
    "strings": lambda block: lines(block, lambda _, line: f'    "{line}\\n"\n'),
    "added strings": lambda block: lines(block, lambda _, line: f'    "{line}\\n" +\n'),
    "colours": lambda block: lines(block, lambda _, line: f"\x1b[32m{line}\x1b[0m\n"),
    "element": lambda block: f"<key>{block}</key>",
}


def left(clean: str, block: str) -> list[str]:
    return [line for line in body_of(block) if any(piece in clean for piece in pieces(line))]


@pytest.mark.parametrize("shown", _SHOWN)
@pytest.mark.parametrize("name", _NAMES)
def test_no_line_of_a_key_is_left(redactor: Redactor, name: str, shown: str) -> None:
    block = armored(Source(6), name)
    text = _SHOWN[shown](block)
    clean = redactor.text(text).text
    assert left(clean, block) == []


@pytest.mark.parametrize("shown", ["as it is", "numbered", "cat -n", "diff", "json"])
def test_a_key_that_breaks_off_goes_to_its_end(redactor: Redactor, shown: str) -> None:
    block = armored(Source(7), "RSA PRIVATE" + " KEY", lines=20)
    text = _SHOWN[shown](block)
    clean = redactor.text(text[:700]).text
    assert left(clean, block) == []


@pytest.mark.parametrize("shown", ["as it is", "numbered", "cat -n", "diff"])
def test_a_key_without_its_begin_goes_from_its_first_line(redactor: Redactor, shown: str) -> None:
    block = armored(Source(8), "RSA PRIVATE" + " KEY", lines=20)
    text = _SHOWN[shown](block)
    rest = text[text.index(body_of(block)[6]) - (8 if shown in ("numbered", "cat -n") else 0) :]
    clean = redactor.text(f"The end of it:\n{rest}").text
    assert left(clean, block) == []
    assert clean.startswith("The end of it:\n")


def test_an_encrypted_key_keeps_its_headers_only(redactor: Redactor) -> None:
    made = Source(9)
    block = armored(made, "RSA PRIVATE" + " KEY")
    head, _, rest = block.partition("\n")
    info = f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{made.of(32, '0123456789ABCDEF')}\n\n"
    clean = redactor.text(f"{head}\n{info}{rest}").text
    assert left(clean, block) == []


def test_several_keys_go_and_what_stands_between_stays(redactor: Redactor) -> None:
    made = Source(10)
    first, second = (armored(made, "PRIVATE" + " KEY") for _ in range(2))
    certificate = armored(made, "CERTIFICATE")
    clean = redactor.text(f"{first}{certificate}between\n{second}after\n").text
    assert left(clean, first) == [] and left(clean, second) == []
    assert f"{certificate}between\n" in clean and clean.endswith("after\n")


@pytest.mark.parametrize(
    "name", ["CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY", "PGP PUBLIC KEY BLOCK", "X509 CRL"]
)
def test_what_is_public_stays(redactor: Redactor, name: str) -> None:
    text = f"$ cat it\n{armored(Source(11), name)}$ "
    assert redactor.text(text).text is text


@pytest.mark.parametrize(
    "text",
    [
        "grep -rn 'BEGIN RSA PRIVATE" + " KEY' .",
        "if '-----BEGIN PRIVATE" + " KEY-----' in text:\n    raise ValueError('a key')\n",
        "-----BEGIN PRIVATE" + " KEY-----\n...\n-----END PRIVATE" + " KEY-----\n",
        "-----BEGIN PRIVATE" + " KEY-----\n<your key>\n-----END PRIVATE" + " KEY-----\n",
        "The header -----BEGIN PRIVATE" + " KEY----- starts a key in this format.\n",
    ],
)
def test_words_about_keys_stay(redactor: Redactor, text: str) -> None:
    assert redactor.text(text).text is text


def test_a_key_of_putty_goes_and_its_public_half_is_no_matter(redactor: Redactor) -> None:
    made = Source(12)
    body = [made.of(64), made.of(64), f"{made.of(31)}="]
    mac = made.of(64, "0123456789abcdef")
    inside = "\n".join(body)
    text = (
        "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: laptop\n"
        f"Public-Lines: 1\n{made.of(48)}\nPrivate-Lines: 3\n{inside}\nPrivate-MAC: {mac}\n"
    )
    clean = redactor.text(text).text
    assert not any(piece in clean for line in (*body, mac) for piece in pieces(line))
    assert "Comment: laptop" in clean


def test_spans_are_in_the_text_and_hold_the_lines() -> None:
    block = armored(Source(13), "PRIVATE" + " KEY")
    text = f"before {block} after"
    (span,) = keys.blocks(text)
    start, end, rule = span
    assert rule == "funes.private-key"
    assert text[start:end] == "\n".join(body_of(block))


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE" + " KEY-----\n" + "abcdefghij1\n" * 50_000,
        "-----BEGIN RSA PRIVATE" + " KEY-----\n" + "\\" * 300_000,
        "Private-Lines: 3\n" * 20_000,
    ],
    ids=["short", "backslashes", "putty"],
)
def test_long_texts_are_looked_through_in_time(text: str) -> None:
    start = time.monotonic()
    list(keys.blocks(text))
    assert time.monotonic() - start < 10
