"""Text as the words index takes it: rows and questions are made uniform in the same way."""

import re
import unicodedata

_CODE_POINT = re.compile(r"\\u([0-9a-fA-F]{4})")
#: JSON's escapes, a backslash's own aside while the others are undone.
_ESCAPES = (("\\\\", "\0"), ("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ('\\"', '"'), ("\\/", "/"))
#: Letters whose accents tantivy's ASCII folding leaves, and the soft hyphen.
_FOLDS = str.maketrans(
    "\u0451\u0401\u03ac\u03ad\u03ae\u03af\u03cc\u03cd\u03ce\u0390\u03b0\u03ca\u03cb\u03c2",
    "\u0435\u0415\u03b1\u03b5\u03b7\u03b9\u03bf\u03c5\u03c9\u03b9\u03c5\u03b9\u03c5\u03c3",
    "\u00ad",
)
#: First bytes, in UTF-8, of what `_FOLDS` names.
_FOLD_LEADS = (b"\xce", b"\xcf", b"\xd0", b"\xd1", b"\xc2\xad")


def searchable_text(text: str, block_type: str) -> str:
    """Return a row's text as words: JSON escapes undone in tool calls, Unicode made uniform."""
    if "\\" in text and _holds_json(text, block_type):
        text = _unescaped(text)
    return uniform(text)


def uniform(text: str) -> str:
    """Return text with compatibility forms and accents that have two spellings made one."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    data = text.encode("utf-8", "replace")
    # Translating costs more than all else here, and few texts hold such letters.
    return text.translate(_FOLDS) if any(lead in data for lead in _FOLD_LEADS) else text


def _holds_json(text: str, block_type: str) -> bool:
    # A result is JSON-escaped when its line breaks are written out; `C:\new` in plain text is not.
    if block_type == "tool_use":
        return True
    return block_type == "tool_result" and "\\n" in text and "\n" not in text


def _unescaped(text: str) -> str:
    for escape, char in _ESCAPES:
        text = text.replace(escape, char)
    if "\\u" in text:
        text = _CODE_POINT.sub(_char, text)
    return text.replace("\0", "\\")


def _char(match: re.Match[str]) -> str:
    value = int(match[1], 16)
    return " " if 0xD800 <= value < 0xE000 else chr(value)
