"""Finds secrets in texts and takes them out, before anything is stored, embedded or shown.

The scanner is Kingfisher with its own rules and with ours (`indexer/rules`). It never uses the
network: nothing found is validated.
"""

import hashlib
import random
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from unicodedata import normalize

import msgspec
from msgspec import Struct

from funes_ls.indexer.errors import ScannerError
from funes_ls.indexer.model import Block, SessionMeta, Turn
from funes_ls.indexer.redaction import chosen, judge, keys, views
from funes_ls.indexer.redaction.judge import MARK

_RULES = Path(__file__).resolve().parents[1] / "rules"
_ENGINE = "kingfisher-secret-scanner"
#: So many texts without secrets are known again: sessions tell many of them more than once.
_MOST_KNOWN = 30_000
#: Rounds until nothing more is found, and seconds for one look.
_ROUNDS, _TIMEOUT_S = 8, 60.0
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Rules of the engine that find names of accounts and the like, which are no secrets.
_NAMES = re.compile(
    r"(?i)-(?:account-name|username|user-name|client-id|tenant-id|app-id|project-id|host|domain|region|email)$"
)
_OURS = "funes."
#: Rules of ours whose values are judged by what stands before them; by themselves; as what a
#: markup says they are; as passwords.
_BY_KEY = {
    "funes.assignment", "funes.assignment-quoted", "funes.assignment-single",
    "funes.assignment-script", "funes.option", "funes.line",
}  # fmt: skip
_BY_CHANCE = {
    "funes.prose", "funes.sentence", "funes.address-user", "funes.header", "funes.header-key",
    "funes.signed-address", "funes.registry-auth", "funes.prefixed", "funes.jwk",
    "funes.cookie-file", "funes.path-key", "funes.mail-login", "funes.client-key", "funes.unseal",
    "funes.key-pair", "funes.cookie-record", "funes.link", "funes.told", "funes.printed",
    "funes.before-name", "funes.told-login", "funes.bracketed",
    "funes.begun", "funes.login-token", "funes.commented", "funes.session-cookie", "funes.shown",
    "funes.by-host", "funes.user-line", "funes.peer", "funes.coded", "funes.below",
}  # fmt: skip
_PASSWORDS = {
    "funes.address-password", "funes.address-password-any", "funes.client-password",
    "funes.client-user", "funes.netrc", "funes.pgpass", "funes.connection", "funes.source-name",
    "funes.piped", "funes.counted", "funes.terraform", "funes.terraform-output",
    "funes.client-login", "funes.record", "funes.login-arguments", "funes.package-login",
    "funes.slashed",
}  # fmt: skip
_TOLD = {
    "funes.prose", "funes.sentence", "funes.told", "funes.told-login", "funes.bracketed",
    "funes.printed", "funes.shown",
}  # fmt: skip
_NAMED = {
    "funes.element", "funes.pair", "funes.statement", "funes.prompt", "funes.login",
    "funes.account", "funes.storepass", "funes.sent", "funes.sent-line", "funes.form-field",
    "funes.variable", "funes.positional", "funes.snmp", "funes.last-word", "funes.dialogue",
    "funes.asked", "funes.element-value", "funes.radio", "funes.typed", "funes.signing",
    "funes.page-field", "funes.here-text", "funes.tunnel",
}  # fmt: skip
_LISTS = {
    "funes.codes": judge.is_codes, "funes.bytes": judge.is_bytes, "funes.salt": judge.is_salt,
}  # fmt: skip
_PHRASES = {"funes.phrase", "funes.phrase-single"}
#: Rows of tables and the like, of which any value may be one.
_ROWS = {"funes.statement-values", "funes.cells", "funes.fields", "funes.columns", "funes.shares"}
_VALUE = re.compile(r"[^\s,|;\"'`()<>\\]{8,}")
_COOKIES = {"funes.cookie", "funes.cookie-option", "funes.cookie-code"}
_COOKIE = re.compile(r"([\w.%-]+)(?:=|[\"']\s*:\s*[\"'])([^;,\s\"']{8,})")
#: Names of phrases that have a certain number of words.
_WALLET = re.compile(r"(?i)mnemonic|seed|recovery|backup|phrase")
#: Before what lets somebody in, even if it is an id.
_BEARER = re.compile(r"(?i)\b(?:bearer|basic)\s$")
#: Before the password in a file of logins.
_LOGIN = re.compile(r"\b(?:login|machine|default)\s+\S+\s")
#: So much of a token that whoever showed it cut off is still a secret.
_CUT = 20

Span = tuple[int, int, str]


class Redacted(Struct, frozen=True):
    """A text without its secrets.

    Attributes:
        text: The very same object when there are none.
        counts: How often each rule found one, by the rule's id.
    """

    text: str
    counts: dict[str, int]


class Redactor:
    """Takes secrets out of texts, turns and what is said of sessions; made by `load`."""

    def __init__(self, scanner: Any, stamp: str) -> None:
        """Keep a scanner that is ready."""
        self._scanner = scanner
        self.stamp = stamp
        self._clean_texts: set[bytes] = set()  # hashes of texts without secrets

    @classmethod
    def load(cls, cache_dir: Path) -> "Redactor":
        """Return a redactor that has shown that it finds secrets.

        The first time, its rules are compiled, which takes seconds; they are kept in `cache_dir`.

        Raises:
            ScannerError: `scanner_missing` or `scanner_broken`.
        """
        try:
            import kingfisher_sdk
        except ImportError as exc:
            raise ScannerError("The scanner is not installed.", kind="scanner_missing") from exc
        try:
            cache_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            cache_dir.chmod(0o700)
        except OSError:
            cache_dir = cache_dir.resolve()  # the rules are compiled each time then
        try:
            rules = kingfisher_sdk.Rules(
                [str(path) for path in _rule_files()], confidence="low", cache_dir=str(cache_dir)
            )
            policy = kingfisher_sdk.DetectionPolicy(
                inline_ignores=False,
                markup_context=False,
                cli_match_semantics=False,
                base64_max_depth=3,
                base64_max_input_bytes=None,
            )
            redactor = cls(kingfisher_sdk.Scanner(rules, policy=policy), current_stamp())
        except ScannerError:
            raise
        except Exception as exc:
            raise ScannerError(_unloadable(exc)) from exc
        redactor._prove()
        return redactor

    def text(self, text: str) -> Redacted:
        """Return a text without its secrets; the very same text when there are none.

        Raises:
            ScannerError: the scanner failed.
        """
        if len(text) < 6:
            return Redacted(text, {})
        known = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if known in self._clean_texts:
            return Redacted(text, {})
        done = self._settled(text)
        if done.text is text:
            if len(self._clean_texts) >= _MOST_KNOWN:
                self._clean_texts.clear()
            self._clean_texts.add(known)
        return done

    def _settled(self, text: str) -> Redacted:
        """Return a text in which nothing more is found."""
        current, counts = text, dict[str, int]()
        for _ in range(_ROUNDS):
            spans = self._spans(current)
            if not (spans and (spans := _merged(spans))):
                return Redacted(current, counts)
            for _, _, rule in spans:
                counts[rule] = counts.get(rule, 0) + 1
            current = _without(current, spans)
        return Redacted(MARK, {**counts, "funes.unsettled": 1})  # rather nothing than a secret

    def turn(self, turn: Turn) -> tuple[Turn, dict[str, int]]:
        """Return a turn without its secrets, and how often each rule found one."""
        counts = Counter[str]()
        blocks = tuple(self._block(block, counts) for block in turn.blocks)
        others = turn.ext_blocks
        if others is not None:
            others = tuple(self._block(block, counts) for block in others)
        workdir = self._clean(turn.workdir, counts)
        source_path = self._clean(turn.source_path, counts)
        if not counts:
            return turn, {}
        changed = msgspec.structs.replace(
            turn, blocks=blocks, ext_blocks=others, workdir=workdir, source_path=source_path
        )
        return changed, dict(counts)

    def meta(self, meta: SessionMeta) -> tuple[SessionMeta, dict[str, int]]:
        """Return what a trace says of its session without secrets."""
        counts = Counter[str]()
        changed = msgspec.structs.replace(
            meta,
            cwd=self._clean(meta.cwd, counts),
            remotes=[self._clean(remote, counts) for remote in meta.remotes],
            branch=self._clean(meta.branch, counts),
            title=self._clean(meta.title, counts),
        )
        return (changed, dict(counts)) if counts else (meta, {})

    def _block(self, block: Block, counts: Counter[str]) -> Block:
        text = self._clean(block.text, counts)
        name = self._clean(block.tool_name, counts) if block.tool_name else block.tool_name
        if text is block.text and name is block.tool_name:
            return block
        return msgspec.structs.replace(block, text=text, tool_name=name)

    def _clean(self, text: str, counts: Counter[str]) -> str:
        done = self.text(text)
        counts.update(done.counts)
        return done.text

    def _spans(self, text: str) -> list[Span]:
        found = [*keys.blocks(text), *self._scanned(text)]
        plain = views.plain(text)
        if plain is not None:
            found += [(*plain.origin(a, b), rule) for a, b, rule in self._scanned(plain.text)]
        for view in views.joined(text if plain is None else plain.text):
            for start, end, rule in self._scanned(view.text):
                start, end = view.origin(start, end)
                found.append((*((start, end) if plain is None else plain.origin(start, end)), rule))
        return found

    def _scanned(self, text: str) -> Iterable[Span]:
        """Return what the scanner finds and what is judged a secret, in places of characters."""
        body = _scannable(text)
        try:
            found = self._scanner.scan(body, timeout=_TIMEOUT_S)
        except Exception as exc:
            raise ScannerError(f"It failed over a text ({type(exc).__name__}).") from None
        return self._judged(text, body, found) if found else ()

    def _judged(self, text: str, body: bytes, found: Iterable[Any]) -> Iterator[Span]:
        places = None if len(body) == len(text) else _places(body, found)
        for one in found:
            start, end = one.location["start_offset"], one.location["end_offset"]
            rule = one.rule_id.removeprefix("custom.")
            if self.is_name(rule) or not 0 <= start < end <= len(body):
                continue
            if places is not None:
                start, end = places[start], places[end]
            yield from _judged(text, start, end, rule, one.secret)

    @staticmethod
    def is_name(rule: str) -> bool:
        """Return whether a rule finds names of accounts and the like, which are no secrets."""
        return not rule.startswith(_OURS) and _NAMES.search(rule) is not None

    def _prove(self) -> None:
        """Look for canaries.

        Raises:
            ScannerError: one was not found.
        """
        for name, (text, secret) in _canaries().items():
            if secret in self.text(text).text:
                raise ScannerError(f"It does not find what it must find: {name}.")


def _places(body: bytes, found: Iterable[Any]) -> dict[int, int]:
    """Return which character each end of a finding is, in one pass over the bytes."""
    wanted = {one.location[name] for one in found for name in ("start_offset", "end_offset")}
    places, at, characters = {}, 0, 0
    for offset in sorted(wanted):
        if offset <= len(body):
            characters += len(body[at:offset].decode("utf-8", "ignore"))
            places[offset], at = characters, offset
    return places


def _judged(text: str, start: int, end: int, rule: str, secret: str) -> Iterator[Span]:
    """Yield what of a finding is a secret."""
    value = text[start:end]
    stripped = value.replace(MARK, "").strip()
    if len(stripped) < 4:
        return
    if rule in _COOKIES:
        for pair in _COOKIE.finditer(text, start, end):
            if judge.is_random(pair[2], least=12):
                yield pair.start(2), pair.end(2), rule
        return
    if rule in _ROWS:
        for part in _VALUE.finditer(text, start, end):
            if judge.is_random(part[0], least=10):
                yield part.start(), part.end(), rule
        return
    before = text[max(0, start - 80) : start]
    if not before.isascii():
        before = normalize("NFC", before)  # as the names are that it is looked through for
    encoded = secret not in value and value not in secret  # found inside of Base64
    if encoded:
        before, value = "", secret
    if _is_secret(value, before, rule, encoded=encoded):
        yield start, end, rule


def _is_secret(value: str, before: str, rule: str, *, encoded: bool) -> bool:
    shown = value.rstrip("\"',;:)]}")
    if shown.endswith(("...", "…")):
        value = shown.rstrip(".…")
        if len(value) < _CUT:
            return False  # cut off by who showed it
    trimmed = value.rstrip(").,;:]}\"'")
    if rule in _BY_KEY:
        return judge.is_secret_of(trimmed, "secret: " if encoded else before)
    if rule in ("funes.prefixed", "funes.begun") and judge.is_name(trimmed):
        return False
    if _BEARER.search(before) and judge.is_bearer(trimmed):
        return True
    if rule == "funes.printed" and judge.is_id(trimmed):
        return True
    if rule in _BY_CHANCE:
        return judge.is_random(value.rstrip(").,;:]}"), least=10 if rule in _TOLD else 12)
    if rule == "funes.near":
        return judge.is_near(value, before)
    if rule == "funes.words":
        is_wallet = _WALLET.search(before[-40:]) and chosen.is_wallet(value)
        return bool(is_wallet) or chosen.is_words(value)
    if rule in _LISTS:
        return _LISTS[rule](value)
    if rule in _PHRASES:
        return judge.is_phrase(value, before)
    if rule in _NAMED:
        return judge.is_named_secret(value)
    if rule == "funes.client-password" and before[-1:].isspace():
        return judge.is_named_secret(value)  # a port, a folder or a database as likely
    if rule == "funes.netrc" and not _LOGIN.search(before):
        return judge.is_named_secret(value)  # a sentence
    if rule in _PASSWORDS:
        return judge.is_password(value)
    if rule.startswith(_OURS):
        return judge.is_token(value)
    return not judge.is_placeholder(value)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans that do not overlap, in order; the first rule that found one names it."""
    done: list[Span] = []
    for start, end, rule in sorted(spans):
        if done and start < done[-1][1]:
            done[-1] = (done[-1][0], max(done[-1][1], end), done[-1][2])
        elif end > start:
            done.append((start, end, rule))
    return done


def _without(text: str, spans: list[Span]) -> str:
    parts, position = [], 0
    for start, end, _ in spans:
        parts += [text[position:start], MARK]
        position = end
    return "".join([*parts, text[position:]])


def _scannable(text: str) -> bytes:
    """Return a text's bytes as the scanner can take them, each character where it was."""
    if not text.isascii():
        if text[0] == "\ufeff":
            text = f"\u2003{text[1:]}"  # as long; the scanner would drop the mark
        text = _SURROGATE.sub("\ufffd", text)
    return text.encode().replace(b"\0", b" ")


@cache
def _rule_files() -> list[Path]:
    files = sorted(_RULES.glob("*.yml"))
    if not files:
        raise ScannerError("Its rules are not installed.", kind="scanner_missing")
    return files


def _unloadable(exc: Exception) -> str:
    """Return which rule or file keeps the rules from being loaded, as far as that is told.

    A message of the scanner names rules and files of ours; nothing of a session was read yet.
    """
    said = str(exc)
    for path in _rule_files():
        for rule in re.findall(r"(?m)^    id: (\S+)$", path.read_text("utf-8", "replace")):
            if re.search(rf"{re.escape(rule)}(?![\w-])", said):
                return f"Its rule {rule} in {path} cannot be used ({type(exc).__name__})."
        if str(path) in said:
            return f"Its rules in {path} cannot be read ({type(exc).__name__})."
    return f"Its rules cannot be loaded ({type(exc).__name__})."


def own_rules() -> list[str]:
    """Return the ids of our rules."""
    texts = (path.read_text(encoding="utf-8") for path in _rule_files())
    return [found for text in texts for found in re.findall(r"(?m)^    id: (\S+)$", text)]


@cache
def current_stamp() -> str:
    """Return which scanner with which rules and which code of ours this is, loading nothing.

    Raises:
        ScannerError: there is no scanner.
    """
    try:
        engine = version(_ENGINE)
    except PackageNotFoundError as exc:
        raise ScannerError("The scanner is not installed.", kind="scanner_missing") from exc
    own = hashlib.sha256()
    for path in [
        *_rule_files(),
        *(Path(module.__file__ or "") for module in (chosen, judge, keys, views)),
    ]:
        own.update(path.read_bytes().replace(b"\r\n", b"\n"))
    own.update(Path(__file__).read_bytes().replace(b"\r\n", b"\n"))
    return f"kingfisher-{engine}+{own.hexdigest()[:12]}"


def _canaries() -> dict[str, tuple[str, str]]:
    """Return texts with a secret each, new ones every time."""
    source = random.SystemRandom()

    def made(size: int, alphabet: str = string.ascii_letters + string.digits) -> str:
        return "".join(source.choice(alphabet) for _ in range(size - 3)) + "x7Q"

    token, password, value, body = made(36), made(20), made(40), made(600)
    return {
        "token": (f"export GITHUB_TOKEN=ghp_{token}", token),
        "address": (f"postgres://svc:{password}@db1.internal:5432/x", password),
        "assignment": (f'SERVICE_API_KEY="{value}"', value),
        "key": (f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----", body),
    }
