"""Takes a shell script apart: simple commands, their words, redirections and here-documents.

Only what is plain counts. A word in which something is expanded is marked, since nobody knows what
it came to.
"""

import re

from msgspec import Struct

_OPERATORS = re.compile(r"&&|\|\||;;|\|&|[;&|\n()]")
_REDIRECT = re.compile(r"(\d*|&)(>>|>\||>&|<<<|<<-|<<|<&|<>|>|<)")
_BLANK = re.compile(r"[ \t\r]+|\\\n")
_EXPANDS = re.compile(r"[\w({@*#?$!]")
_VARIABLE = re.compile(r"\$\w*")
#: What stands for itself outside of quotes, and within double ones.
_PLAIN = re.compile(r"[\w./=:,@%+~^\]}{!-]+")
_QUOTED = re.compile(r'[^"\\$`]+')
_MOST = 400


class Word(Struct, frozen=True, kw_only=True):
    """A word without its quotes; `known` is False when something in it is expanded."""

    text: str
    known: bool = True


class Redirect(Struct, kw_only=True):
    """A redirection; of a here-document `body` is the text once it was read."""

    op: str
    fd: str
    target: Word
    body: str | None = None
    is_literal: bool = False


class Simple(Struct, kw_only=True):
    """A simple command.

    Attributes:
        before: The operator before it, "" at the start: `;` `&&` `||` `|` `(` …
    """

    words: list[Word] = []
    redirects: list[Redirect] = []
    before: str = ""


def commands(script: str) -> list[Simple]:
    """Return the simple commands of a script in order; what cannot be taken apart ends it."""
    return _Lexer(script).run()


class _Lexer:
    """One pass over a script."""

    def __init__(self, script: str) -> None:
        self._text = script
        self._at = 0
        self._done: list[Simple] = []
        self._now = Simple()
        self._waiting: list[Redirect] = []

    def run(self) -> list[Simple]:
        try:
            while self._at < len(self._text) and len(self._done) < _MOST:
                self._step()
        except ValueError:
            return self._done  # a quote that never ends, say
        self._end("")
        return self._done

    def _step(self) -> None:
        text, at = self._text, self._at
        if blank := _BLANK.match(text, at):
            self._at = blank.end()
        elif text[at] == "#" and (at == 0 or text[at - 1] in " \t\n;"):
            end = text.find("\n", at)
            self._at = len(text) if end < 0 else end
        elif redirect := _REDIRECT.match(text, at):
            self._redirect(redirect)
        elif operator := _OPERATORS.match(text, at):
            self._at = operator.end()
            self._end(operator[0])
            if operator[0] == "\n":
                self._bodies()
        else:
            self._now.words.append(self._word())

    def _end(self, operator: str) -> None:
        if self._now.words or self._now.redirects:
            self._done.append(self._now)
            self._now = Simple(before=operator)
        elif operator != "\n":
            self._now.before = operator

    def _redirect(self, found: re.Match[str]) -> None:
        self._at = found.end()
        op = found[2]
        while blank := _BLANK.match(self._text, self._at):
            self._at = blank.end()
        start = self._at
        target = self._word()
        one = Redirect(op=op, fd=found[1], target=target)
        if op in ("<<", "<<-"):
            one.is_literal = any(sign in self._text[start : self._at] for sign in "'\"\\")
            self._waiting.append(one)
        self._now.redirects.append(one)

    def _bodies(self) -> None:
        for one in self._waiting:
            self._body(one)
        self._waiting = []

    def _body(self, one: Redirect) -> None:
        lines: list[str] = []
        while self._at < len(self._text):
            end = self._text.find("\n", self._at)
            end = len(self._text) if end < 0 else end
            line = self._text[self._at : end]
            self._at = end + 1
            if one.op == "<<-":
                line = line.lstrip("\t")
            if line.rstrip("\r") == one.target.text:
                break
            lines.append(line)
        body = "".join(f"{line}\n" for line in lines)
        one.body = body if one.is_literal else re.sub(r"\\([$`\\])", r"\1", body)
        self._at = min(self._at, len(self._text))

    def _word(self) -> Word:
        parts: list[str] = []
        known = True
        start = self._at
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign in " \t\r\n;&|()<>" and not (sign == "(" and self._at > start):
                break
            part, plain = self._part(sign)
            parts.append(part)
            known = known and plain
        if self._at == start:
            self._at += 1  # a sign of no word: never stand still
        return Word(text="".join(parts), known=known)

    def _part(self, sign: str) -> tuple[str, bool]:
        text, at = self._text, self._at
        if plain := _PLAIN.match(text, at):
            self._at = plain.end()
            return plain[0], True
        if sign == "'":
            end = text.index("'", at + 1)
            self._at = end + 1
            return text[at + 1 : end], True
        if sign == '"':
            return self._quoted()
        if sign == "\\":
            self._at = at + 2
            return text[at + 1 : at + 2].replace("\n", ""), True
        if sign == "$" and text.startswith("$'", at):
            self._at = at + 1
            part, _ = self._part("'")
            return part, "\\" not in part
        if sign in "$`(":
            return self._expanded()
        self._at = at + 1
        return sign, sign not in "*?["

    def _expanded(self) -> tuple[str, bool]:
        """Pass over an expansion; it may hold quotes and blanks."""
        text, at = self._text, self._at
        if text[at] == "`":
            end = text.index("`", at + 1) + 1
        elif text.startswith("$(", at) or text[at] == "(":
            end = _closing(text, text.index("(", at), "()")
        elif text.startswith("${", at):
            end = _closing(text, at + 1, "{}")
        else:
            found = _VARIABLE.match(text, at)
            end = max(found.end() if found else 0, at + 1)
        self._at = end
        return text[at:end], False

    def _quoted(self) -> tuple[str, bool]:
        text = self._text
        self._at += 1
        parts: list[str] = []
        known = True
        while text[self._at : self._at + 1] != '"':
            if self._at >= len(text):
                raise ValueError
            if plain := _QUOTED.match(text, self._at):
                parts.append(plain[0])
                self._at = plain.end()
                continue
            sign = text[self._at]
            if sign == "\\" and text[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\", "\n"):
                parts.append(text[self._at + 1].replace("\n", ""))
                self._at += 2
            elif sign == "`" or (sign == "$" and _EXPANDS.match(text, self._at + 1)):
                parts.append(self._expanded()[0])
                known = False
            else:
                parts.append(sign)
                self._at += 1
        self._at += 1
        return "".join(parts), known


def _closing(text: str, at: int, pair: str) -> int:
    """Return the place after the bracket that closes the one at a place; quotes are heeded."""
    depth = 0
    quote = ""
    while at < len(text):
        sign = text[at]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == pair[0]:
            depth += 1
        elif sign == pair[1]:
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    raise ValueError
