"""Passwords that people think of: words put together, a name with a number, digits."""

import re

#: Words of which names of things, notices and made-up passwords are made.
_COMMON = re.compile(
    r"(?i)pass(?!age)|secret|token|user|name|field|input|hash|sha\d|md5|utf|base64|encod|crypt|test"
    r"|demo|dummy|fake|mock|sample|temp|default|wrong|invalid|valid|current|new|old|your|admin"
    r"|changeme|letmein|qwert|welcome|hunter\d|foo|bar|abc|asdf|1234|login|reset|forgot|confirm"
)
_STOP_WORDS = frozenset(
    """
    access account admin all also and any api app are auth been but can cannot change changed client
    config confirm current default did does email empty encrypted enter env error example false
    field file for forgot forgotten form from generated get has hash have hidden hint how input into
    invalid its key link login manager may missing must name new none not null old one only optional
    our page passphrase password please policy post put random required reset root secret see
    service set should store stored string test text than that the then this token true two type use
    used user username users using valid value var variable was were what when where which who why
    will with wrong you your
    """.split()  # noqa: SIM905 - so many words are easier to read without quotes
)
_MARKUP = re.compile(r"[\s(){}\[\]<>]|://")
#: How many words the phrase of a wallet has, and what is in none.
_WALLET_SIZES = (12, 15, 18, 21, 24)
_NO_WALLET = frozenset(["the", "and", "for", "are", "your", "please"])


def is_password(value: str) -> bool:
    """Return whether a value is digits, or letters with digits, and no name of a thing."""
    if value.isdigit():
        return len(value) >= 6 and len(set(value)) >= 4
    if len(value) < 8 or _MARKUP.search(value) or _COMMON.search(value):
        return False
    return any(map(str.isalpha, value)) and any(map(str.isdigit, value))


def is_words(value: str) -> bool:
    """Return whether a value is words that make a passphrase, and no sentence and no name."""
    words = _words(value)
    return 4 <= len(words) <= 10 and _STOP_WORDS.isdisjoint(words) and len(set(words)) >= 3


def is_wallet(value: str) -> bool:
    """Return whether a value is as many words as the phrase of a wallet has."""
    words = _words(value)
    return len(words) in _WALLET_SIZES and _NO_WALLET.isdisjoint(words)


def _words(value: str) -> list[str]:
    """Return the words of a value; none where it has anything else."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", value)
    words = [word.lower() for word in re.split(r"[ ._-]+", parted) if word]
    return words if all(word.isalpha() and 3 <= len(word) <= 12 for word in words) else []
