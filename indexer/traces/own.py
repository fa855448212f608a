"""Tells what an agent asked funes itself, so that its answers are never indexed again."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any, Literal

OwnCall = Literal["", "part", "whole"]

_VERBS = frozenset({"recall", "get", "ask", "sessions", "related", "blame"})
_TOOL = re.compile(
    r"(?:^|[^a-z0-9])funes(?:[-_]?ls)?[^a-z0-9]+"
    r"(?:recall|get|ask|sessions|related|blame|status|search)\w*$",
    re.IGNORECASE,
)
_SERVER = re.compile(r"^mcp[_./:-]+(?:\w+[_-])?funes(?:[-_]ls)?(?:[_./:-]|$)", re.IGNORECASE)
_SUBSTITUTED = re.compile(r"(?:\$\(|`|<\()\s*([^)`]*)")
_RAW_CALL = re.compile(
    r"(?:^|[\s;&|(\"'`/])funes(?:\s+-\S+)*\s+(?:recall|get|ask|sessions|related|blame)\b"
)
#: Tools whose free-form input is a program; a patch that mentions funes is not a call.
_RUNS_TEXT = re.compile(r"exec|shell|bash|terminal|command|run|code|js|python", re.IGNORECASE)
#: How the MCP server begins what it quotes, whatever a client calls the server and its tools.
_QUOTED = re.compile(r"the two lines marked ([0-9a-f]{16}) is quoted\b.{0,200}?<<<\1", re.DOTALL)
_BEGINNING_CHARS = 2_000
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SEPARATORS = frozenset({";", "&&", "||", "|", "&", "|&", "(", ")", ";;"})
_WRAPPERS = frozenset(
    {"env", "time", "sudo", "command", "exec", "nohup", "nice", "timeout"}
    | {"uvx", "uv", "run", "npx"}
)
_SHELLS = frozenset({"bash", "sh", "zsh", "fish", "dash", "pwsh", "powershell"})
#: Commands that only dress up what funes answered.
_DRESSING = frozenset(
    {"cd", "head", "tail", "cat", "less", "jq", "grep", "rg", "sed", "awk", "wc", "sort", "cut"}
    | {"tee", "tr", "uniq", "true", "echo"}
)


def own_call(name: str | None, text: str, *, server: str = "") -> OwnCall:
    """Return "whole" for a call that only asks funes, "part" for one that also does other things.

    Args:
        name: The tool's name.
        text: Its input as recorded: JSON, or the raw text of a free-form tool.
        server: The MCP server or namespace where the trace records one apart from the name.
    """
    if "funes" not in text and "funes" not in (name or "") and "funes" not in server:
        return ""
    if _names_funes(name or "", server):
        return "whole"
    if not text.lstrip().startswith(("{", '"')):
        asks = _RUNS_TEXT.search(name or "") and _RAW_CALL.search(text)
        return (_command_verdict(text) or "part") if asks else ""
    verdicts = [_command_verdict(command) for command in _commands(text)]
    if not any(verdicts):
        return ""
    return "whole" if all(verdict == "whole" for verdict in verdicts) else "part"


def own_answer(name: str | None, text: str) -> bool:
    """Tell whether a tool result is funes's own.

    Args:
        name: The tool's name, None when the trace does not say.
        text: What it answered.
    """
    return own_call(name, "") == "whole" or _QUOTED.search(text[:_BEGINNING_CHARS]) is not None


def _names_funes(name: str, server: str) -> bool:
    lowered = server.lower().strip("_")
    if lowered.startswith("mcp__"):
        lowered = lowered[5:]
    if lowered in {"funes", "funes-ls", "funes_ls"}:
        return True
    return _TOOL.search(name) is not None or _SERVER.match(name) is not None


def _commands(text: str) -> Iterator[str | list[str]]:
    """Yield the shell commands in a tool input, each a command line or an argument list."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(value, str):
        yield value
    if not isinstance(value, dict):
        return
    for key in ("command", "cmd", "script", "commands", "input", "code"):
        found = value.get(key)
        words = isinstance(found, list) and all(isinstance(part, str) for part in found)
        if isinstance(found, str) or (words and found):
            yield found


def _command_verdict(command: str | list[str]) -> OwnCall:
    if isinstance(command, list):
        return _words_verdict(command)
    if "funes" not in command:
        return ""
    simple = _simple_commands(command)
    if simple is None:
        return "part" if _RAW_CALL.search(command) else ""
    verdicts = [_words_verdict(words) for words in simple]
    asks = any(verdicts)
    if asks and all(v == "whole" or _is_dressing(w) for v, w in zip(verdicts, simple, strict=True)):
        return "whole"
    inner = any(_RAW_CALL.search(found) for found in _SUBSTITUTED.findall(command))
    return "part" if asks or inner else ""


def _simple_commands(command: str) -> list[list[str]] | None:
    """Return the simple commands of a command line, None when its quoting cannot be followed."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    simple: list[list[str]] = [[]]
    try:
        for token in lexer:
            if token in _SEPARATORS or not token.strip(";&|()\n"):
                simple.append([])
            else:
                simple[-1].append(token)
    except ValueError:
        return None
    return [words for words in simple if words]


def _words_verdict(words: list[str]) -> OwnCall:
    words = _unwrapped(words)
    if not words:
        return ""
    program = words[0].replace("\\", "/").rsplit("/", 1)[-1].lower()
    if program in _SHELLS:
        return _shell_verdict(words[1:])
    if program.startswith("python") and words[1:2] == ["-m"] and len(words) > 2:
        program, words = words[2], words[2:]
    if program not in {"funes", "funes.exe", "funes-ls", "funes_ls"}:
        return ""
    return "whole" if _VERBS & set(words[1:5]) else ""


def _unwrapped(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and (
        words[at] in _WRAPPERS
        or _ASSIGNMENT.match(words[at])
        or (at > 0 and (words[at].startswith("-") or words[at].rstrip("sm").isdigit()))
    ):
        at += 1
    return words[at:]


def _shell_verdict(arguments: list[str]) -> OwnCall:
    for at, argument in enumerate(arguments[:-1]):
        if argument.startswith("-") and argument.lower().endswith(("c", "command")):
            return _command_verdict(arguments[at + 1])
    return ""


def _is_dressing(words: list[str]) -> bool:
    return bool(words) and words[0] in _DRESSING
