"""Tells a secret from what only stands where one could: a placeholder, a name, code, a digest."""

import math
import re
from collections import Counter

#: What stands for a secret in the redacted text.
MARK = "<redacted>"

#: Parts of values that say: put yours here.
_PLACEHOLDER = re.compile(
    r"""(?ix) example | placeholder | changeme | change[_-]?me | replace[_-]?(?:me|with|this)
    | your[_-] | [_-]your | yourpass | yoursecret | yourtoken | xxxx | \*\*\* | \.\.\. | …
    | redacted | insert[_-] | dummy | todo | fixme | ^(?:my|the|some|an?)[_-]
    | \$\{ | \{\{ | \$\( | <[a-z] | %\( | %s | process\.env | os\.environ | getenv | import\.meta
    | secrets\.[a-z_]+ | ^\$ | ^%[a-z_]+%$ | ^@[a-z_]+@$ | not[_-]?a[_-]?real | test[_-]?only
    | -here$ | _here$ | 0123456789abcdef | 1234567890 | abcdefghij | deadbeef | ^(.)\1+$ | (.)\2{5,}
    """
)
#: An expression of code: a call, an index, an attribute, a type.
_CODE = re.compile(
    r"""(?x) ^[!&*~@-]*[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_$][\w$]*)*
    (?:$|[(\[{)\]}?!]|\.$|,$|;$|:$)
    """
)
_PATH = re.compile(r"^(?:~|\.{1,2}|[A-Za-z]:)?/[\w.@ +~-]+(?:/|$)|^[\w.-]+(?:/[\w.@-]+)+\.\w{1,6}$")
_UUID = re.compile(r"(?i)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_HEX = re.compile(r"^(?:[0-9a-f]+|[0-9A-F]+)$")
_DIGEST = re.compile(r"(?i)^(?:sha\d+|md5|blake\w*|h\d)[-:=]|^0x[0-9a-f]+$|^sha256$")
_WORDY = re.compile(r"[A-Za-z]?[a-z]+|[A-Z]+|[0-9]+")
_DATE = re.compile(r"^\d{4}-\d\d-\d\d|^\d+(?:\.\d+)*$|^v?\d+\.\d+")

#: The word a value stands behind, and what such words are not about.
_NOT_SECRET_KEY = re.compile(
    r"""(?ix) (?: public | pub[_-]?key | (?:input|output|max|min|num|total|prompt|completion|cache|
    cached|reasoning|n|thinking|used|left|budget|per|special|pad|eos|bos|unk|mask|sep|cls|stop|next|
    page|continuation|sort|primary|foreign|partition|row|object|dict|group|map|lookup|index)
    [_. -]?(?:read[_-]?|write[_-]?|creation[_-]?|input[_-]?|output[_-]?)*(?:tokens?|keys?)
    | tokeni[sz] | tokens | secret[_-]?(?:name|arn|id|ref|path|version|manager|key[_-]?ref|store)
    | secretname | secretref | (?:token|password|secret|key)[_. -]?(?:type|count|name|id|url|uri
    |file|path|length|len|hash|fingerprint|endpoint|expir\w*|expires\w*|usage|limit|policy
    |field|hint|prompt|
    ttl|issuer|audience|format|status|label|prefix|algorithm|size|index)
    | (?:key|token)(?:id|type|name|path|file) | fingerprint | integrity | checksum | digest
    | author | passwordless | signature | thumbprint | password_reset | key_salt
    )[\]"'`]*\s*(?::=|=>|->|==|[:=(|,])?\s*[a-z_.]*\(?["'`]*$"""
)
_STRONG_KEY = re.compile(
    r"""(?ix) (?: password | passwd | passphrase | pwd | secret | token | credential
    | (?:api|access|auth|app|admin|license|account|encryption|master|private|service)[_ .-]?key
    | _pat
    )[\]"'`]*\s*(?::=|=>|->|==|[:=(|,])?\s*["'`]*$"""
)
#: Values people use where there is nothing to keep secret.
_WEAK = frozenset(
    [
        "password",
        "passwd",
        "pass",
        "secret",
        "token",
        "postgres",
        "root",
        "admin",
        "user",
        "test",
        "guest",
        "mysql",
        "redis",
        "mongo",
        "letmein",
        "qwerty",
        "123456",
        "12345678",
        "default",
        "none",
        "null",
        "true",
        "false",
        "undefined",
        "string",
        "required",
        "example",
        "pw",
        "pwd",
        "foobar",
        "minioadmin",
        "rabbitmq",
    ]
)


def is_placeholder(value: str) -> bool:
    """Return whether a value only stands for one."""
    rest = value.replace(MARK, "").strip("\"'`<>[](){}.,;: ")
    return (
        len(rest) < 4
        or (MARK in value and len(rest) < 8)
        or rest.lower() in _WEAK
        or _PLACEHOLDER.search(value) is not None
        or (rest.startswith("/") and _PATH.match(rest) is not None and not _mixed(rest))
    )


def is_random(value: str, *, least: int = 8) -> bool:
    """Return whether a value looks made by chance, and not written as a name, path or code."""
    if len(value) < least or _DIGEST.match(value) or _DATE.match(value) or is_placeholder(value):
        return False
    if _UUID.match(value):
        return False
    if _HEX.match(value):
        return len(value) >= 20 and len(set(value)) >= 8 and not value.isdigit()
    if _CODE.match(value) and not _jumbled(value):
        return False
    if _PATH.match(value) and not _jumbled(value):
        return False
    if "://" in value:
        return False
    return _jumbled(value)


def is_secret_of(value: str, before: str) -> bool:
    """Return whether the value that stands behind `before` is a secret.

    Args:
        value: As found.
        before: Some text before it, ending with what names the value.
    """
    if is_placeholder(value) or _NOT_SECRET_KEY.search(before):
        return False
    strong = _STRONG_KEY.search(before) is not None
    if _UUID.match(value):
        return strong
    if strong and not _CODE.match(value) and "://" not in value and not _PATH.match(value):
        return _as_password(value)
    return is_random(value)


def is_password(value: str) -> bool:
    """Return whether a value is no placeholder, where only a password can stand."""
    return not is_placeholder(value) and not re.match(r"^[$%{<\[(]", value)


def _as_password(value: str) -> bool:
    """Return whether a value could be a password: more kinds of characters than a word has."""
    if _DATE.match(value) or _DIGEST.match(value):
        return False
    if _HEX.match(value):
        return len(value) >= 16 and len(set(value)) >= 6 and not value.isdigit()
    if re.match(r"^[\w.]+\(", value) and not _jumbled(value.split("(")[0]):
        return False
    kinds = sum(
        re.search(kind, value) is not None for kind in ("[a-z]", "[A-Z]", r"\d", r"[^\w\s]")
    )
    has_digit = any(char.isdigit() for char in value)
    return _jumbled(value) or (kinds >= 3 and len(value) >= (8 if has_digit else 14))


def _mixed(value: str) -> bool:
    return sum(any(test(c) for c in value) for test in (str.isdigit, str.isupper, str.islower)) == 3


def _jumbled(value: str) -> bool:
    """Return whether letters and digits change as they do by chance, in a long enough run."""
    letters = [char for char in value if char.isalnum()]
    if len(letters) < 8:
        return _mixed(value) and len(value) >= 8 and _changes(value) >= 3
    parts = _WORDY.findall(value)
    average = len(letters) / max(1, len(parts))
    has_digit = any(char.isdigit() for char in letters)
    if not has_digit:
        upper = sum(char.isupper() for char in letters)
        return len(letters) >= 16 and average < 2.6 and 4 <= upper <= len(letters) - 4
    if average < 3.2 and entropy(value) >= 2.9:
        return True
    return len(letters) >= 24 and average < 4.5 and entropy(value) >= 3.6 and _mixed(value)


def _changes(value: str) -> int:
    return max(0, len(_WORDY.findall(value)) - 1)


def entropy(value: str) -> float:
    """Return the bits a character of the value has (Shannon)."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())
