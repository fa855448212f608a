"""The gate: what it finds, what it lets through, and that every doubt keeps things here."""

import base64
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from funes_ls.gate import process
from funes_ls.gate.canaries import canaries
from funes_ls.gate.check import Block, check, digest
from funes_ls.gate.child import is_placeholder
from funes_ls.indexer.errors import FunesError, GateError

#: What a child is that behaves in one wrong way: {} is what it does about each frame.
_CHILD = """
import hashlib, msgspec, os, sys, time
from funes_ls.gate import child
from funes_ls.gate.messages import *
from funes_ls.indexer.pipes import read_message, write_message
from betterleaks import scan_string
source, target = sys.stdin.buffer, sys.stdout.buffer
def say(reply): write_message(target, msgspec.msgpack.encode(reply))
total = 0
while (body := read_message(source)) is not None:
    ask = msgspec.msgpack.decode(body, type=Ask)
    reply = child.answer(ask, scan_string) if ask.texts else Reply(total)
    total += reply.count if ask.texts else 0
    marked = any("zanzibar" in text for text in ask.texts)
{}
    say(reply)
    if not ask.texts: break
"""


def secret() -> str:
    return canaries()[0]


def blocks(*texts: str) -> list[Block]:
    return [Block(f"b{number}", text) for number, text in enumerate(texts)]


def misbehaving(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    lines = "\n".join(f"    {line}" for line in what.splitlines())
    command: Sequence[str] = (sys.executable, "-c", _CHILD.format(lines))
    monkeypatch.setattr(process, "COMMAND", command)


def test_dirty_blocks_are_withheld_whole_and_the_rest_passes() -> None:
    texts = ["plain talk of kettles", f"use {secret()} for it", "more of it", canaries()[2]]
    report = check(blocks(*texts))
    assert report.withheld == {"b1": ["github-pat"], "b3": ["private-key"]}
    assert report.passed == {"b0": digest(texts[0]), "b2": digest(texts[2])}
    assert report.scanned == 4
    assert report.counts() == {"github-pat": 1, "private-key": 1}


def test_only_the_bytes_that_passed_are_allowed() -> None:
    report = check(blocks("plain", secret()))
    assert report.allows("b0", "plain")
    assert not report.allows("b0", "plain ")
    assert not report.allows("b1", "plain")
    assert not report.allows("b9", "plain")


def test_one_key_with_two_texts_is_withheld() -> None:
    report = check([Block("b", "plain"), Block("b", "other"), Block("b", "plain")])
    assert not report.allows("b", "plain")
    assert not report.allows("b", "other")


@pytest.mark.parametrize("encoded_times", [1, 2])
def test_base64_is_looked_into(encoded_times: int) -> None:
    text = f'{{"password": 1}} export {secret()}\n'
    for _ in range(encoded_times):
        text = base64.b64encode(text.encode()).decode()
    report = check(blocks(f"echo {text} | base64 -d"))
    assert report.withheld["b0"] == ["github-pat"]


def test_wrapped_base64_is_looked_into() -> None:
    text = base64.encodebytes((f"a line of text\nexport {secret()}\n" * 2).encode()).decode()
    assert "github-pat" in check(blocks(text)).withheld["b0"]


@pytest.mark.parametrize(
    "disguise",
    [
        "{} # gitleaks:allow",
        "{} // betterleaks:allow",
        "{} # GitLeaks: ALLOW",
        '{{\\"a\\": \\"x\\\\n{}\\\\n\\"}}',
    ],
)
def test_markers_and_escapes_hide_nothing(disguise: str) -> None:
    assert check(blocks(disguise.format(secret()))).withheld["b0"] == ["github-pat"]


def test_colours_and_unseen_characters_hide_nothing() -> None:
    made = secret()
    cut = made[:30] + "\x1b[0m\x1b[1;31m" + made[30:]
    unseen = made[:30] + "\u200b" + made[30:]
    assert set(check(blocks(cut, unseen)).withheld) == {"b0", "b1"}


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_what_cannot_be_scanned_is_withheld(text: str) -> None:
    report = check(blocks("plain", text))
    assert report.withheld == {"b1": ["not-scannable"]}
    assert list(report.passed) == ["b0"]


@pytest.mark.parametrize(
    "text",
    [
        "password = <redacted>",
        "GITHUB_TOKEN=<redacted>",
        "postgres://svc:<redacted>@db1.prod.net:5432/x",
        "-----BEGIN RSA PRIVATE KEY-----\n<redacted>\n-----END RSA PRIVATE KEY-----",
        'curl -H "Authorization: Bearer <redacted>" -u deploy-bot:<redacted> https://x.io',
        "AccountKey=<redacted>;EndpointSuffix=core.windows.net",
    ],
)
def test_the_placeholder_passes(text: str) -> None:
    assert check(blocks(text)).withheld == {}


def test_the_placeholder_of_the_reference_passes() -> None:
    assert check(blocks('password = "[REDACTED:generic-api-key]"')).withheld == {}


def test_a_secret_beside_the_placeholder_does_not_pass() -> None:
    assert is_placeholder("<redacted>")
    assert is_placeholder("[REDACTED:generic-api-key]")
    assert not is_placeholder("<redacted>Ab3dE9fGh2jK")
    assert not is_placeholder("[REDACTED:Ab3dE9fGh2jK")
    text = f"TOKEN=<redacted> {secret()}"
    assert check(blocks(text)).withheld["b0"] == ["github-pat"]


def test_many_blocks_and_large_ones_are_all_scanned() -> None:
    made = secret()
    texts = ["word " * 40_000] * 12 + [f"{'word ' * 500_000}{made}"] + ["tiny"] * 9000
    done: list[int] = []
    report = check(blocks(*texts), progress=done.append)
    assert report.withheld == {"b12": ["github-pat"]}
    assert report.scanned == len(texts) == done[-1]
    assert len(report.passed) == len(texts) - 1
    assert done == sorted(done)
    assert len(done) > 5


def test_a_check_can_be_cancelled() -> None:
    with pytest.raises(FunesError) as caught:
        check(blocks("plain"), cancelled=lambda: True)
    assert caught.value.kind == "cancelled"


def test_also_with_nothing_to_scan_the_scanner_must_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check([]).scanned == 0
    misbehaving(monkeypatch, "reply = Reply(reply.count, reply.digests)")
    with pytest.raises(GateError):
        check([])


@pytest.mark.parametrize(
    "what",
    [
        "reply = Reply(reply.count, reply.digests)",
        "reply = Reply(reply.count, reply.digests, reply.hits[1:])",
        "reply = Reply(reply.count - 1, reply.digests, reply.hits)",
        "if ask.texts: reply = Reply(reply.count, [b'0' * 32] * reply.count, reply.hits)",
        "if ask.texts: reply = Reply(reply.count, reply.digests[:-1], reply.hits)",
        "os._exit(0)",
        "os._exit(7)",
        "target.write(b'nonsense' * 9); target.flush(); os._exit(0)",
        "target.write(b'\\0\\0\\0\\x50half'); target.flush(); os._exit(0)",
        "if not ask.texts: os._exit(0)",
        "if not ask.texts: say(reply); os._exit(1)",
        "if not ask.texts: reply = Reply(0)",
    ],
)
def test_a_scanner_that_cannot_be_trusted_keeps_everything_here(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    misbehaving(monkeypatch, what)
    with pytest.raises(GateError) as caught:
        check(blocks("plain", secret()))
    assert caught.value.kind == "gate_broken"
    assert "Nothing may leave" in str(caught.value)
    assert "funes scan" in caught.value.hint


def test_a_missing_scanner_keeps_everything_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "betterleaks.py").write_text("raise ImportError\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(GateError) as caught:
        check(blocks("plain"))
    assert caught.value.kind == "gate_missing"
    assert "betterleaks" in str(caught.value)


def test_a_scanner_that_hangs_keeps_everything_here(monkeypatch: pytest.MonkeyPatch) -> None:
    misbehaving(monkeypatch, "time.sleep(60)")
    monkeypatch.setattr(process, "_START_S", 0.5)
    with pytest.raises(GateError, match="did not answer in time"):
        check(blocks("plain"))


def test_a_check_may_take_only_so_long() -> None:
    with pytest.raises(GateError) as caught:
        check(blocks("plain"), timeout_s=0.0)
    assert caught.value.kind == "gate_slow"


def test_a_block_that_ends_the_scanner_is_withheld_and_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    misbehaving(monkeypatch, "if marked: os._exit(9)")
    texts = ["plain", secret(), "zanzibar", "other", secret()]
    report = check(blocks(*texts))
    assert report.withheld == {
        "b1": ["github-pat"],
        "b2": ["scanner-crashed"],
        "b4": ["github-pat"],
    }
    assert list(report.passed) == ["b0", "b3"]
    assert report.scanned == 5


def test_no_folder_one_is_in_lends_the_child_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "betterleaks.py").write_text("raise SystemExit(1)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert check(blocks("plain")).withheld == {}


def test_canaries_are_new_each_time() -> None:
    assert not set(canaries()) & set(canaries())
