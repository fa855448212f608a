"""Secrets are taken out of texts, turns and what is said of sessions; the rest stays."""

import base64
import builtins
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from funes_ls.indexer.errors import ScannerError
from funes_ls.indexer.model import Block, SessionMeta, Turn
from funes_ls.indexer.redaction import redactor as module
from funes_ls.indexer.redaction.judge import MARK
from funes_ls.indexer.redaction.redactor import Redactor, current_stamp
from tests.credentials import Source, github, negatives, password, positives

#: A text of up to some megabytes may take so long on a slow machine that does other things too.
_LONG_S = 20.0


def source(seed: int = 5) -> Source:
    return Source(seed)


def turn(*blocks: Block, **more: Any) -> Turn:
    known: dict[str, Any] = {
        "session_id": "s1",
        "turn_uuid": "t1",
        "parent_uuid": None,
        "seq": 0,
        "ts": "2026-03-02T10:00:00Z",
        "role": "assistant",
        "workdir": "/work/demo",
        "source_path": "/traces/s1.jsonl",
        "harness": "claude",
        "record": 0,
    }
    return Turn(blocks=blocks, **{**known, **more})


class TestTexts:
    def test_only_the_secret_goes(self, redactor: Redactor) -> None:
        token = github(source())
        done = redactor.text(f"before\nexport GITHUB_TOKEN={token}\nafter")
        assert done.text == f"before\nexport GITHUB_TOKEN={MARK}\nafter"
        assert sum(done.counts.values()) == 1

    def test_each_of_several_goes(self, redactor: Redactor) -> None:
        made = source()
        first, second, secret = github(made), github(made), password(made)
        text = f"a={first} b={first}\nc={second}\npostgres://app:{secret}@db1/x\n"
        done = redactor.text(text)
        assert done.text == f"a={MARK} b={MARK}\nc={MARK}\npostgres://app:{MARK}@db1/x\n"
        assert sum(done.counts.values()) == 4

    @pytest.mark.parametrize("text", ["", "a", "\0", "\ud800", "\ufeff", "plain", "é" * 9])
    def test_a_text_without_any_is_the_very_same(self, redactor: Redactor, text: str) -> None:
        done = redactor.text(text)
        assert done.text is text and done.counts == {}

    def test_clean_texts_are_the_very_same(self, redactor: Redactor) -> None:
        for _, text in negatives(11):
            again = f"{text}\n"
            done = redactor.text(again)
            assert done.text is again and done.counts == {}

    def test_what_was_looked_at_stays_as_it_is(self, redactor: Redactor) -> None:
        for one in positives(12):
            clean = redactor.text(one.text).text
            again = redactor.text(clean)
            assert again.text is clean and again.counts == {}, (one.kind, one.context)

    def test_the_mark_is_no_secret(self, redactor: Redactor) -> None:
        text = f'PASSWORD={MARK}\n{{"token": "{MARK}"}}\npostgres://app:{MARK}@db1/x\n-p{MARK}'
        assert redactor.text(text).text is text

    def test_counts_hold_ids_of_rules_only(self, redactor: Redactor) -> None:
        for one in positives(13)[::7]:
            for rule, count in redactor.text(one.text).counts.items():
                assert count > 0
                assert rule.replace(".", "").replace("-", "").replace("_", "").isalnum()
                assert not one.leaks(rule)

    def test_what_is_never_settled_is_not_shown(self, redactor: Redactor) -> None:
        """A scanner that finds something in whatever is left ends with nothing left."""

        class Everywhere:
            def scan(self, body: bytes, timeout: float) -> list[SimpleNamespace]:
                place = {"start_offset": 0, "end_offset": len(body)}
                return [SimpleNamespace(location=place, rule_id="x.y-1", secret="qX7w" * 4)]

        text = "qX7w" * 4
        done = Redactor(Everywhere(), "any").text(text)
        assert "qX7w" not in done.text


class TestOddTexts:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("a\0", "\0b"),
            ("\0\0\0 ", "\0"),
            ("x\ud800é ", " \udfff"),
            ("\ud800", ""),
            ("\ufeff", ""),
            ("\ufeff\ufeffé ", "\ufeff"),
            ("😀é→ ", " é😀"),
            ("\u200b", "\u200b"),
            ("\x1b[1m", "\x1b[0m"),
            ("\r\n", "\r\n"),
            ("ключ ", " ключ"),
            ("\u2028", "\u2029"),
        ],
    )
    def test_a_secret_goes_and_its_surroundings_stay(
        self, redactor: Redactor, before: str, after: str
    ) -> None:
        token = github(source())
        clean = redactor.text(f"{before}TOKEN={token}{after} end").text
        assert clean.startswith(f"{before}TOKEN={MARK}") and clean.endswith(" end")
        assert token not in clean and len(clean) <= len(f"{before}TOKEN={MARK}{after} end")

    def test_places_are_characters_and_not_bytes(self, redactor: Redactor) -> None:
        made = source()
        tokens = [github(made) for _ in range(5)]
        text = "".join(f"é{'→' * at}😀 TOKEN={token} ü\n" for at, token in enumerate(tokens))
        wanted = "".join(f"é{'→' * at}😀 TOKEN={MARK} ü\n" for at in range(5))
        assert redactor.text(text).text == wanted

    @pytest.mark.parametrize("depth", [1, 2, 3])
    def test_base64_in_base64(self, redactor: Redactor, depth: int) -> None:
        blob = f"GITHUB_TOKEN={github(source())}\n"
        for _ in range(depth):
            blob = base64.b64encode(blob.encode()).decode()
        clean = redactor.text(f"data: {blob}\n").text
        assert clean == f"data: {MARK}\n"

    @pytest.mark.parametrize("depth", [1, 3, 5])
    def test_json_in_json(self, redactor: Redactor, depth: int) -> None:
        secret = password(source())
        text = json.dumps({"env": {"DB_PASSWORD": secret}})
        for _ in range(depth):
            text = json.dumps({"payload": text})
        clean = redactor.text(text).text
        assert clean == text.replace(secret, MARK)
        for _ in range(depth):
            clean = json.loads(clean)["payload"]
        assert json.loads(clean) == {"env": {"DB_PASSWORD": MARK}}

    @pytest.mark.parametrize(
        "filler",
        [
            lambda s: s.of(1_000_000),
            lambda s: "x " * 500_000,
            lambda s: '\\"b\\n' * 200_000,
            lambda s: "abc1234def\n" * 90_000,
            lambda s: "password=" * 50_000,
            lambda s: '"a1b2c3d4"+' * 50_000,
            lambda s: "\x1b[0m" * 250_000,
            lambda s: "é→" * 500_000,
            lambda s: s.b64(700_000),
            lambda s: "Private-Lines: 3\n" * 20_000,
        ],
        ids=[
            "letters",
            "words",
            "escapes",
            "lines",
            "names",
            "pieces",
            "colours",
            "unicode",
            "base64",
            "putty",
        ],
    )
    def test_a_long_text_is_looked_through_in_time(
        self, redactor: Redactor, filler: Callable[[Source], str]
    ) -> None:
        made = source()
        token = github(made)
        text = f"{filler(made)} GITHUB_TOKEN={token} end"
        start = time.monotonic()
        clean = redactor.text(text).text
        assert time.monotonic() - start < _LONG_S
        assert token not in clean and clean.endswith(" end")


class TestTurns:
    def test_every_text_of_a_turn_is_looked_through(self, redactor: Redactor) -> None:
        made = source()
        tokens = [github(made) for _ in range(5)]
        before = turn(
            Block(block_type="text", text=f"use {tokens[0]} please"),
            Block(
                block_type="tool_use",
                text=f'{{"command": "echo {tokens[1]}"}}',
                tool_name=f"run {tokens[2]}",
                tool_use_id="c1",
            ),
            ext_blocks=(Block(block_type="text", text=f"or {tokens[3]}"),),
            workdir=f"/work/{tokens[4]}",
            source_path=f"/traces/{tokens[4]}.jsonl",
        )
        after, counts = redactor.turn(before)
        assert after == turn(
            Block(block_type="text", text=f"use {MARK} please"),
            Block(
                block_type="tool_use",
                text=f'{{"command": "echo {MARK}"}}',
                tool_name=f"run {MARK}",
                tool_use_id="c1",
            ),
            ext_blocks=(Block(block_type="text", text=f"or {MARK}"),),
            workdir=f"/work/{MARK}",
            source_path=f"/traces/{MARK}.jsonl",
        )
        assert sum(counts.values()) == 6

    def test_a_clean_turn_is_the_very_same(self, redactor: Redactor) -> None:
        before = turn(
            Block(block_type="text", text="Look at the tests of the parser."),
            Block(block_type="tool_use", text='{"command": "ls"}', tool_name="Bash"),
        )
        after, counts = redactor.turn(before)
        assert after is before and counts == {}

    def test_a_block_without_any_is_the_very_same(self, redactor: Redactor) -> None:
        plain = Block(block_type="text", text="nothing of the kind")
        before = turn(plain, Block(block_type="text", text=f"key {github(source())}"))
        after, _ = redactor.turn(before)
        assert after.blocks[0] is plain and after.blocks[1].text == f"key {MARK}"

    def test_what_is_said_of_a_session(self, redactor: Redactor) -> None:
        made = source()
        token, secret = github(made), password(made)
        before = SessionMeta(
            session_id="s1",
            harness="claude",
            cwd=f"/work/{token}",
            remotes=[f"https://me:{secret}@git.example.net/a.git", "git@example.net:a/b.git"],
            branch=f"try-{token}",
            title=f"Use {token} for it",
        )
        after, counts = redactor.meta(before)
        assert after == SessionMeta(
            session_id="s1",
            harness="claude",
            cwd=f"/work/{MARK}",
            remotes=[f"https://me:{MARK}@git.example.net/a.git", "git@example.net:a/b.git"],
            branch=f"try-{MARK}",
            title=f"Use {MARK} for it",
        )
        assert sum(counts.values()) == 4
        assert token in before.cwd, "the caller's own is left as it is"

    def test_a_clean_session_is_the_very_same(self, redactor: Redactor) -> None:
        before = SessionMeta(session_id="s1", harness="claude", cwd="/work/demo", title="Hello")
        after, counts = redactor.meta(before)
        assert after is before and counts == {}


class TestScanner:
    def test_the_stamp_is_known_without_loading_it(self, redactor: Redactor) -> None:
        assert redactor.stamp == current_stamp()
        assert "+" in redactor.stamp

    def test_other_rules_have_another_stamp(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = current_stamp()
        (tmp_path / "own.yml").write_text("rules: []\n", encoding="utf-8")
        monkeypatch.setattr(module, "_rule_files", lambda: [tmp_path / "own.yml"])
        assert current_stamp.__wrapped__() != before

    def test_its_rules_are_kept_private(self, tmp_path: Path, redactor: Redactor) -> None:
        if sys.platform == "win32":
            pytest.skip("no modes of files there")
        cache = tmp_path / "rules"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kingfisher_sdk.Rules", lambda *a, **k: None)
            patch.setattr("kingfisher_sdk.Scanner", lambda *a, **k: redactor._scanner)
            Redactor.load(cache)
        assert cache.stat().st_mode & 0o077 == 0

    def test_an_error_over_a_text_holds_nothing_of_it(self) -> None:
        token = github(source())

        class Failing:
            def scan(self, body: bytes, timeout: float) -> list[Any]:
                raise RuntimeError(f"cannot read {body.decode()}")

        with pytest.raises(ScannerError) as caught:
            Redactor(Failing(), "any").text(f"TOKEN={token}")
        shown: BaseException | None = caught.value
        assert token not in f"{shown} {shown!r} {caught.value.message} {caught.value.hint}"
        assert caught.value.__cause__ is None and caught.value.__suppress_context__

    def test_it_is_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = builtins.__import__

        def importing(name: str, *args: Any, **kwargs: Any) -> Any:
            if name == "kingfisher_sdk":
                raise ImportError(name)
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", importing)
        with pytest.raises(ScannerError) as caught:
            Redactor.load(tmp_path / "rules")
        assert caught.value.kind == "scanner_missing"

    def test_its_rules_do_not_load(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: Any, **__: Any) -> None:
            raise ValueError("rule 7 cannot be compiled")

        monkeypatch.setattr("kingfisher_sdk.Rules", broken)
        with pytest.raises(ScannerError) as caught:
            Redactor.load(tmp_path / "rules")
        assert caught.value.kind == "scanner_broken"

    def test_its_rules_are_not_there(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(module, "_RULES", tmp_path)
        with pytest.raises(ScannerError) as caught:
            module._rule_files.__wrapped__()
        assert caught.value.kind == "scanner_missing"

    def test_one_that_finds_nothing_is_not_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Blind:
            def scan(self, body: bytes, timeout: float) -> list[Any]:
                return []

        monkeypatch.setattr("kingfisher_sdk.Rules", lambda *a, **k: None)
        monkeypatch.setattr("kingfisher_sdk.Scanner", lambda *a, **k: Blind())
        with pytest.raises(ScannerError) as caught:
            Redactor.load(tmp_path / "rules")
        assert caught.value.kind == "scanner_broken"
        assert "does not find" in caught.value.message


def test_a_rule_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.yml"
    file.write_text(
        "rules:\n  - name: Mine\n    id: funes.mine\n    confidence: medium\n"
        "    min_entropy: 0.0\n    pattern: '(?=x)(secret)'\n    examples: []\n"
    )
    monkeypatch.setattr(module, "_rule_files", lambda: [file])
    with pytest.raises(ScannerError) as caught:
        Redactor.load(tmp_path / "cache")
    assert "rule funes.mine" in caught.value.message and str(file) in caught.value.message
    file.write_text("rules:\n  - [")
    with pytest.raises(ScannerError) as caught:
        Redactor.load(tmp_path / "cache")
    assert f"rules in {file}" in caught.value.message
