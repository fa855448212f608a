"""Tells a secret from what only stands where one could: a placeholder, a name, code, a digest."""

import math
import re
from collections import Counter

from funes_ls.indexer.redaction import chosen

#: What stands for a secret in the redacted text.
MARK = "<redacted>"

#: Parts of values that say: put yours here.
_PLACEHOLDER = re.compile(
    r"""(?ix) example | placeholder | changeme | change[_-]?me | replace[_-]?(?:me|with|this)
    | your[_-] | [_-]your | yourpass | yoursecret | yourtoken | ^(?:my|the|some)[_-]
    | redacted | insert[_-] | dummy | -here$ | _here$ | not[_-]?a[_-]?real | test[_-]?only
    # Short words stand alone: by chance they stand in many a token.
    | (?<![a-z0-9])(?:x{3,}|todo|fixme)(?![a-z0-9]) | x{6} | \*\*\* | \.\.\. | …
    | 0123456789abcdef | 1234567890 | abcdefghij | deadbeef
    # Variables, templates and patterns.
    | \$\{ | \{\{ | \$\(\w | <[a-z][^<>]*> | %\(\w+\) | (?<!\w)%s(?!\w) | ^\$[a-z_]\w*\W*$
    | ^%[a-z_]+%$ | ^@[a-z_]+@$ | ^\{[^{}]*\}?$ | \(\?[:=!<] | ^\[[\w\ .-]+\]$ | ^\$[{(]
    | (?:^|[/:])secrets?/[\w-]+ | process\.env | os\.environ | getenv | import\.meta
    | secrets\.[a-z_]+
    | \[\^?[a-z0-9]-[a-z0-9] | \w\|\w+\|\w
    """
)
#: The same sign again and again: a placeholder, unless much else stands beside it.
_SAME = re.compile(r"(.)\1{5,}|^(.)\2+$")
#: Letters that do not follow one another in words.
_UNSAID = re.compile(
    r"(?i)[bcdfghjklmnpqrstvwxz]{5}|q[a-tv-z]|[jvxz][bcdfghjkmnpqrstvwxz]|[bcdfghkmpqtvw][jqxz]"
    r"|[fhkmpw][bv]|[bcpv]w|[lr]x|[bdgmptwk]c(?![khr])|h[cdfghjkpqz]|[cgkptvw]f"
)
#: An expression of code: a call, an index, an attribute, a type.
_CODE = re.compile(
    r"""(?x) ^[!&*~@-]*[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_$][\w$]*)*
    (?:$|[(\[{)\]}?]|!$|\.$|,$|;$|:$)
    """
)
#: What no value has that stands alone, and the words a name is made of.
_SIGNS_OF_CODE = re.compile(r"[(){}\[\]]|===|=>|:$")
_NAMED_PART = re.compile(r"[A-Z]?[a-z]{3,}")
_UNSPOKEN = re.compile(r"(?i)[bcdfghjklmnpqrstvwxz]{4}|^[^aeiouy]+$")
_LETTERS = re.compile(r"[A-Za-z]{8}")
_CODES = re.compile(r"[A-Za-z0-9]{3,}-[A-Za-z0-9]{3,}")
#: A call or an index of code, whatever its names look like.
_EXPRESSION = re.compile(r"^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*[(\[][\w.()\[\]'\"]*$")
#: Names joined by dots of which one is a word, or joined by bars as types are.
_DOTTED = re.compile(
    r"^(?=(?:.*[.|])?(?:[a-z]{3,}|[a-z]+(?:_[a-z0-9]+)+|[A-Z][a-z]+\w*Key)(?:$|[.|(\[]))"
    r"[A-Za-z_]\w*(?:[.|][A-Za-z_]\w*)+$"
)
#: What only a line of a program has, where no quotes say that it is a text.
_SCRIPT = re.compile(r"^(?:\+\+|--)|\bthis\.|\)\)|\}\)|\]\[|\|\||&&|^![01]\b|=>|\.\w+\(|^\[\w+=")
#: Words and a number, as things are named.
_CONSTANT = re.compile(r"^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+){2,}$")
_SNAKE = re.compile(r"^[A-Za-z]+\d?(?:_[A-Za-z]+\d?){4,}$")
_OF_NAME = re.compile(r"^(?:[A-Za-z][a-z]{0,13}\d{0,3}|\d{1,6})$")
_NUMBERED = re.compile(r"^[a-z]+(?:[-_.][a-z]+)*[-_.]v?\d{1,4}$")
_PATH = re.compile(r"^(?:~|\.{1,2}|[A-Za-z]:)?/[\w.@ +~-]+(?:/|$)|^[\w.-]+(?:/[\w.@-]+)+\.\w{1,6}$")
#: How a path of a file goes on that no value in Base64 does.
_FILE = re.compile(r"(?:/[^/]*){3}|\.\w{1,6}$")
_BASE64 = re.compile(r"^[A-Za-z0-9+/]{40,}={0,2}$")
_UUID = re.compile(r"(?i)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_HEX = re.compile(r"^(?:[0-9a-f]+|[0-9A-F]+)$")
_DIGEST = re.compile(
    r"(?i)^(?:sha\d+|md5|blake\w*|h\d|aws4-hmac)[-:=]|^0x[0-9a-f]+$|^sha256$|^(?:rsa|ecdsa|ssh)-[a-z0-9-]+$"
)
_WORDY = re.compile(r"[A-Za-z]?[a-z]+|[A-Z]+|[0-9]+")
_DATE = re.compile(r"^\d{4}-\d\d-\d\d|^\d+(?:\.\d+)*$|^v?\d+\.\d+[\w.+-]{0,24}$")

#: The word a value stands behind, and what such words are not about.
_NOT_SECRET_KEY = re.compile(
    r"""(?ix) (?: public | pub[_-]?key |
    (?:(?<![a-z0-9])|(?-i:(?<=[a-z])(?=[A-Z])))(?:input|output|max|min|num|total|prompt|completion|cache|
    cached|reasoning|n|thinking|used|left|budget|per|special|pad|eos|bos|unk|mask|sep|cls|stop|next|
    page|continuation|sort|primary|foreign|partition|row|object|dict|group|map|lookup|index
    |data|react|query|route|event)
    [_. -]?(?:read[_-]?|write[_-]?|creation[_-]?|input[_-]?|output[_-]?)*(?:tokens?|keys?)
    | tokeni[sz]\w* (?:\.\w+)? | \w*tokens(?!ecret|ession|igning|alt)\w* (?:\.\w+)?
    | (?:change|idempotency|client[_-]?request)[_-]?token | public[_-]?key[_-]?token
    | secret[_-]?(?:name|arn|id|ref|path|version|manager|key[_-]?ref|store)
    | secretname | secretref | (?:token|password|secret|key)[_. -]?(?:type|count|name|id|url|uri
    |file|path|length|len|hash|fingerprint|endpoint|expir\w*|expires\w*|usage|limit|policy
    |field|hint|prompt|
    ttl|issuer|audience|format|status|label|prefix|algorithm|size|index)
    | (?:key|token)(?:id|type|name|path|file) | fingerprint | integrity | checksum | digest
    | (?:recv|send|export|delete|list|search|refresh|locate)-keys? | (?:trusted|default|signing)-key
    | (?:key|token)[_-]?(?:sha\d+|md5|crc\d*|checksum|digest) | pub[_-]?key\w*
    | author | passwordless | signature | thumbprint | password_reset | key_salt
    )[\]"'`]*\s*(?::=|=>|->|==|[:=(|,])?\s*[a-z_.]*\(?["'`]*$"""
)
#: Between a name and its value: quotes, a type, an assignment.
_TAIL = r"""[\]"'`*]*\s*(?:\{[^{}"]*\}\s*)?
    (?::\s*&?(?:'static\s)?[a-z.]+\b\]?\s*=|:=|=>|->|==|[:=(|,：是为為は는은—–])?\s*(?:[|>][-+]?\s+|[&!][\w!]+\s+|<<-?\s*["']?\w+["']?\s+|\\\s+)?[bn]?["'`]*$"""
#: Names of what people think of, and not programs.
_CHOSEN = r"""password | passwd | passphrase | passcode | pwd
    | (?<![a-z])pw(?![a-z]) | (?<![a-z])pass | (?-i:[a-z]Pass)
    | (?:ssh|db|store|key|user|smtp|mail|ftp|admin|root|sudo|bind|auth|pg|become)pass
    | passwort | kennwort | contrase[ñn]a | senha | parola | mot\ de\ passe | wachtwoord | has[łl]o
    | l[öo]senord | adgangskode | passord | salasana | heslo | jelsz[óo] | [şs][iİ]fre
    | parolă | mật\ khẩu | пароль | κωδικ[όο]ς | סיסמ[הא] | كلمة\ (?:المرور|السر) | पासवर्ड
    | รหัสผ่าน | 密码 | 密碼 | 口令 | 暗証番号 | パスワード | 비밀번호 | 암호"""
_PASSWORD_KEY = re.compile(rf"(?ix)(?:{_CHOSEN}){_TAIL}")
_STRONG_KEY = re.compile(
    rf"""(?ix) (?: {_CHOSEN} | secret | token | credential | psk | salt | dsn | cookie
    | (?:api|access|auth|app|admin|license|account|encryption|master|private|secret|service)
      [_ .-]?key
    | key[_-]?base | [_.-]pat | (?-i:[a-z]Pat) ){_TAIL}"""
)
_PRIVATE_KEY = re.compile(rf"(?ix)(?:private[_ .-]?key|secret[_ .-]?key|_pk|mnemonic){_TAIL}")
#: A name; the one that stands last in a text counts, however far before its end.
_NAME = re.compile(
    r"(?i)(?<![\w.-])[\w.-]*?"
    r"(?:password|passwd|passphrase|secret|token|key|credential|pat|pwd|[_-]pass|[_-]auth"
    r"|(?-i:[a-z](?:Pass|Auth)))[\w.-]*"
)
#: A tag of a markup, and what stands before a quoted value.
_TAG = re.compile(r"</?\w+>")
_ASSIGNED = re.compile(r"(?:[=:>]|--?\w+)\s*[\"'`>]$")
#: Between a name and a value that is said to be one.
_VALUED = re.compile(
    r"^[\"'`]?:?\s*,?\s*[\"'`]?value[\"'`]?\s*[:=]\s*[\"'`]?$|^<>\s*<>$|^[\"'`]: b[\"']$"
)
#: Before what is a text and no name: a quote, or an assignment as shells and `.env` files have it.
_IS_TEXT = re.compile(r"[\"'`]$|(?:^|[\s;→|:>+\"'`])(?:export )?[A-Z][A-Z0-9_]*=$")
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
        "changeit",
        "hunter2",
        "password1",
        "password123",
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
        or _is_filler(value)
        or (rest.startswith("/") and _PATH.match(rest) is not None and not _mixed(rest))
    )


def is_name(value: str) -> bool:
    """Return whether a value is words and numbers joined by dashes, as folders are named."""
    return all(map(_OF_NAME.match, re.split("[-_]+", value.strip("-_"))))


def is_random(value: str, *, least: int = 8) -> bool:
    """Return whether a value looks made by chance, and not written as a name, path or code."""
    if len(value) < least or _DIGEST.match(value) or _DATE.match(value) or is_placeholder(value):
        return False
    if _UUID.match(value):
        return False
    if _HEX.match(value):
        return len(value) >= 20 and len(set(value)) >= 8 and not value.isdigit()
    if _is_code(value) or (_CODE.match(value) and not _jumbled(value)):
        return False
    is_path = _PATH.match(value) is not None and not _is_encoded(value)
    if is_path and (_FILE.search(value) or not _jumbled(value)):
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
    is_text = _IS_TEXT.search(before) is not None
    if not is_text and value[:2] != "0x" and value[-1:] != "!" and _is_of_code(value):
        return False  # most of what is found, and sooner told than all that follows
    if is_placeholder(value) or _NOT_SECRET_KEY.search(before):
        return False
    if value[0] == "/" and before.endswith("PWD="):
        return False  # where a shell is or was
    is_chosen = (is_text or value[-1:] == "!") and is_written(value)
    if (is_chosen or _is_unspoken(value)) and _PASSWORD_KEY.search(before):
        return True
    if value.startswith("0x"):
        return _is_private(value, before)
    if _is_code(value) if is_text else _is_of_code(value):
        return False
    strong = _STRONG_KEY.search(before) is not None
    if _UUID.match(value):
        return strong
    if strong and not _CODE.match(value) and "://" not in value and not _PATH.match(value):
        return _as_password(value)
    if strong and is_text and value.isalnum() and _is_chosen(value):
        return True
    return is_random(value)


def is_written(value: str) -> bool:
    """Return whether a value is a password that somebody thought of, where one is expected."""
    if _PATH.match(value) or (_DATE.match(value) and not value.isdigit()):
        return False
    if _DIGEST.match(value) or _NUMBERED.match(value):
        return False
    return chosen.is_words(value) or chosen.is_password(value)


def is_id(value: str) -> bool:
    """Return whether a value is an id, which is a secret where one lets somebody in."""
    return _UUID.match(value) is not None


def is_bearer(value: str) -> bool:
    """Return whether a value lets somebody in, where nothing but that or a word stands."""
    return is_id(value) or (len(value) >= 20 and _mixed(value) and not is_placeholder(value))


def is_phrase(value: str, before: str) -> bool:
    """Return whether a quoted text that may have spaces is a secret."""
    if is_placeholder(value) or _NOT_SECRET_KEY.search(before):
        return False
    if chosen.is_words(value):
        return _PASSWORD_KEY.search(before) is not None
    parts = value.split()
    longest = max(parts, key=len)
    return len(parts) <= 4 and len(longest) >= 16 and is_random(longest, least=16)


def is_near(value: str, before: str) -> bool:
    """Return whether a value that does not stand right behind a name is its secret.

    Args:
        value: As found.
        before: Some text before it, with the name.
    """
    names = list(_NAME.finditer(before := _TAG.sub("<>", before)))
    if not names or _NOT_SECRET_KEY.search(names[-1][0]) or is_placeholder(value):
        return False
    name, gap = names[-1][0].rpartition(".")[2], before[names[-1].end() :]
    is_text = name.isupper() or _ASSIGNED.search(gap) is not None
    if is_text and _PASSWORD_KEY.search(name) and (is_written(value) or _is_unspoken(value)):
        return True
    if _SIGNS_OF_CODE.search(value) and not _is_of_all_signs(value):
        return False
    if "\n" in gap and not re.search(r"[=:>|]|\n\s*\n", gap):
        return False  # the lines of a certificate
    if _UUID.match(value):
        is_beside = _VALUED.search(gap) is not None or ("\n" not in gap and name.isupper())
        return is_beside and _STRONG_KEY.search(name) is not None
    if value.startswith("0x"):
        return _is_private(value, name)
    if _HEX.match(value) and "\n" in gap and not re.search(r"[=:>]", gap):
        return False
    return is_random(value, least=12)


def _is_private(value: str, before: str) -> bool:
    """Return whether a number is a private key, and no address or hash of anything."""
    if len(value) < 66 or not _PRIVATE_KEY.search(before):
        return False
    return _HEX.match(value[2:]) is not None and len(set(value)) >= 8


def is_named_secret(value: str) -> bool:
    """Return whether a text that stands where a markup or a query has a secret is one."""
    if is_placeholder(value) or "://" in value or _PATH.match(value):
        return False
    if value.isalnum():
        is_word = _CODE.match(value) is not None and _HEX.match(value) is None
        return _is_chosen(value) or (not is_word and _as_password(value))
    return is_random(value) or (not _CODE.match(value) and _as_password(value))


def _is_of_all_signs(value: str) -> bool:
    """Return whether signs stand all over a long value, as programs make keys, and no code does."""
    signs = sum(not char.isalnum() for char in value)
    digits = sum(map(str.isdigit, value))
    return len(value) >= 32 and signs >= 6 and digits >= 2 and _LETTERS.search(value) is None


def is_codes(value: str) -> bool:
    """Return whether a list is codes, and no words with dashes."""
    codes = _CODES.findall(value)
    return len(codes) > 1 and sum(map(str.isalpha, "".join(codes))) < 0.95 * len("".join(codes))


def is_bytes(value: str) -> bool:
    """Return whether a list of numbers is the bytes of a key."""
    numbers = [int(number) for number in re.findall(r"\d+", value)]
    return len(numbers) >= 32 and max(numbers) < 256 and len(set(numbers)) >= 16


def is_salt(value: str) -> bool:
    """Return whether a long text with all kinds of signs is no advice to put one there."""
    return MARK not in value and len(value.split()) < 8 and len(set(value)) >= 16


def is_password(value: str) -> bool:
    """Return whether a value is no placeholder, where only a password can stand."""
    return (
        not is_placeholder(value) and not _is_code(value.rstrip(",;")) and not _SCRIPT.search(value)
    )


def is_token(value: str) -> bool:
    """Return whether what begins like a provider's token is one, and no word."""
    return not is_placeholder(value) and (
        any(char.isdigit() for char in value) or (len(value) >= 30 and not value.islower())
    )


def _is_code(value: str) -> bool:
    return any(form.match(value) for form in (_EXPRESSION, _DOTTED, _NUMBERED, _CONSTANT, _SNAKE))


def _is_of_code(value: str) -> bool:
    """Return whether a value that no quotes stand around is code."""
    return _is_code(value) or _SCRIPT.search(value) is not None


def _as_password(value: str) -> bool:
    """Return whether a value could be a password: more kinds of characters than a word has."""
    if _DATE.match(value) or _DIGEST.match(value):
        return False
    if _HEX.match(value):
        return len(value) >= 12 and len(set(value)) >= 6 and _changes(value) >= 3
    if re.match(r"^[\w.]+\(", value) and not _jumbled(value.split("(")[0]):
        return False
    kinds = sum(
        re.search(kind, value) is not None for kind in ("[a-z]", "[A-Z]", r"\d", r"[^\w\s]")
    )
    if re.search(r"\d", value):
        return _jumbled(value) or (kinds >= 3 and len(value) >= 8) or _is_chosen(value)
    return _jumbled(value) or (
        kinds >= 3 and len(value) >= 10 and re.search(r"[!@#$%^&*~?+]", value) is not None
    )


def _is_unspoken(value: str) -> bool:
    """Return whether small letters follow one another as in no words."""
    if len(value) < 12 or not (value.isascii() and value.isalpha() and value.islower()):
        return False
    return len(_UNSAID.findall(value)) >= 2


def _is_chosen(value: str) -> bool:
    """Return whether letters and digits are mixed more than names of things have them."""
    parts = _WORDY.findall(value)
    average = len(value) / len(parts)
    digits = sum(char.isdigit() for char in value)
    if _mixed(value):
        return average < 4.5 and len(parts) >= 4
    if digits and len(value) > digits:
        return average < 4 and len(parts) >= 4 and len(value) >= 10
    return len(value) >= 14 and average < 3.5 and not value.islower() and not value.isupper()


def _is_filler(value: str) -> bool:
    """Return whether a value is little more than one sign again and again."""
    rest, count = _SAME.subn("", value)
    return count > 0 and (len(rest) < 24 or not _mixed(rest))


def _is_unsaid(value: str) -> bool:
    """Return whether a long value without a break can be no words, however it is written."""
    if len(value) < 16 or not value.isalnum() or not any(char.isdigit() for char in value):
        return False
    hits = len(_UNSAID.findall(value))
    return hits >= 2 and _changes(value) >= 4


def _is_encoded(value: str) -> bool:
    """Return whether a value with slashes is Base64: a path has no such parts."""
    if not _BASE64.match(value):
        return False
    return any(len(part) >= 12 and _mixed(part) and _jumbled(part) for part in value.split("/"))


def _mixed(value: str) -> bool:
    return sum(any(test(c) for c in value) for test in (str.isdigit, str.isupper, str.islower)) == 3


def _jumbled(value: str) -> bool:
    """Return whether letters and digits change as they do by chance, in a long enough run."""
    letters = [char for char in value if char.isalnum()]
    if _mixed_case(value) and _spoken(value) * 2 >= len(letters):
        return False
    if _is_unsaid(value):
        return True
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


def _spoken(value: str) -> int:
    """Return how many letters are in parts that could be words."""
    parts = _NAMED_PART.findall(value)
    return sum(len(part) for part in parts if not _UNSPOKEN.search(part))


def _mixed_case(value: str) -> bool:
    return not value.islower() and not value.isupper()


def _changes(value: str) -> int:
    return max(0, len(_WORDY.findall(value)) - 1)


def entropy(value: str) -> float:
    """Return the bits a character of the value has (Shannon)."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())
