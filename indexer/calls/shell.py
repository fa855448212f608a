"""What shell scripts do to files: here-documents, redirections, sed, cp, mv, rm, and reads.

A script is followed without being run. What it says only once it runs (variables, loops, globs) is
left out.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from funes_ls.indexer.calls import shell_files, shell_reads
from funes_ls.indexer.calls.mentions import is_file_name
from funes_ls.indexer.calls.outcome import Outcome
from funes_ls.indexer.calls.patch import find_patch, patch_events
from funes_ls.indexer.calls.paths import settled
from funes_ls.indexer.calls.shell_lex import Simple, Word, commands
from funes_ls.indexer.facts import FileEvent

_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh$")
_SCRIPT_FLAG = re.compile(r"-[a-z]*c$")
_BEFORE = frozenset(
    ("then", "do", "else", "{", "!", "time", "sudo", "command", "builtin", "exec", "nohup", "if")
)
_ASSIGNS = re.compile(r"[A-Za-z_]\w*=")
_DEEPEST = 3
#: Commands that print nothing, so that what another one prints is all of the answer.
_SILENT = frozenset(("cd", "set", "export", "true", ":", "pushd", "source", "."))


class Scene(Struct, kw_only=True):
    """Where a script stands while it is followed.

    Attributes:
        cwd: The present folder, "" when it is not known.
        piped: What the command before a pipe prints, None when that is not known.
    """

    cwd: str
    piped: str | None = None


def script_of(args: dict[str, Any]) -> str:
    """Return the shell script that a call runs, "" when it runs none."""
    for key in ("command", "cmd", "script", "code_to_run"):
        value = args.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return _of_words(value)
    action = args.get("action")
    return script_of(action) if isinstance(action, dict) else ""


def _of_words(words: list[str]) -> str:
    if len(words) >= 3 and _SHELLS.match(words[0]) and _SCRIPT_FLAG.match(words[1]):
        return words[2]
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def script_events(
    script: str, outcome: Outcome, cwd: str, *, folder: str = "", depth: int = 0
) -> Iterator[FileEvent]:
    """Yield what a script did to files, and which it showed.

    Args:
        script: As it was given to a shell.
        outcome: What its answer tells. Of a script that failed, what stands before its last
            statement was done all the same.
        cwd: Folder of the session.
        folder: Where the script was started, "" for the session's folder.
        depth: Of shells within shells.
    """
    patch = find_patch(script)
    if patch and "apply_patch" in script:
        place = _place_of_patch(script, settled(folder, cwd) if folder else cwd)
        yield from patch_events(patch, place) if outcome.ok else ()
        return
    parts = commands(script)
    scene = Scene(cwd=settled(folder, cwd) if folder else cwd)
    last = _last_statement(parts)
    sole = _sole(parts)
    for index, part in enumerate(parts):
        if not outcome.ok and index >= last:
            return
        yield from _one(part, parts, index, scene, outcome, sole=sole, depth=depth)


def _place_of_patch(script: str, cwd: str) -> str:
    found = re.match(r"\s*cd\s+([^\s;&|'\"$]+|'[^']+'|\"[^\"$]+\")\s*(?:&&|;|\n)", script)
    return settled(found[1].strip("'\""), cwd) if found else cwd


def _last_statement(parts: list[Simple]) -> int:
    """Return where the last chain of commands begins: one of them is what failed."""
    for index in range(len(parts) - 1, 0, -1):
        if parts[index].before not in ("&&", "||", "|", "|&"):
            return index
    return 0


def _sole(parts: list[Simple]) -> Simple | None:
    """Return the command whose output is the whole answer, None when there are several."""
    speaking = [one for one in parts if one.words and one.words[0].text not in _SILENT]
    return speaking[0] if len(speaking) == 1 else None


def _one(
    part: Simple,
    parts: list[Simple],
    index: int,
    scene: Scene,
    outcome: Outcome,
    *,
    sole: Simple | None,
    depth: int,
) -> Iterator[FileEvent]:
    words = bare(part.words)
    name = words[0].text.rsplit("/", 1)[-1] if words else ""
    piped = scene.piped if part.before in ("|", "|&") else None
    scene.piped = None
    if name in ("cd", "pushd") and len(words) == 2:
        scene.cwd = settled(words[1].text, scene.cwd) if words[1].known else ""
        return
    if _SHELLS.match(name) and len(words) >= 3 and _SCRIPT_FLAG.match(words[1].text):
        if depth < _DEEPEST:
            yield from script_events(words[2].text, outcome, scene.cwd, depth=depth + 1)
        return
    scene.piped = shell_files.printed(name, words, part, piped)
    yield from shell_files.changes(name, words, part, scene.cwd, scene.piped)
    is_seen = part is sole and not any(one.op in (">", ">>", ">|") and one.fd != "2"
                                       for one in part.redirects)  # fmt: skip
    yield from shell_reads.seen(
        name, words, scene.cwd, outcome.text if is_seen and outcome.ok else None
    )
    for word in words[1:] if outcome.ok else ():
        if word.known and is_file_name(word.text) and (path := settled(word.text, scene.cwd)):
            yield FileEvent(kind="mention", path=path)


def bare(words: list[Word]) -> list[Word]:
    """Return the words of a command without keywords, assignments and wrappers before it."""
    at = 0
    while at < len(words) and (words[at].text in _BEFORE or _ASSIGNS.match(words[at].text)):
        at += 1
    return words[at:]
