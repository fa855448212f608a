"""What simple shell commands change: text sent into files, sed, cp, mv, rm and their git kin."""

import re
from collections.abc import Iterator

from funes_ls.indexer.calls.paths import settled
from funes_ls.indexer.calls.shell_lex import Redirect, Simple, Word
from funes_ls.indexer.calls.unified import unified_events
from funes_ls.indexer.facts import FileEvent

_INTO = {">": "write", ">|": "write", ">>": "append"}
_ESCAPE = re.compile(r"\\([nt\\\"'])")
_ESCAPES = {"n": "\n", "t": "\t"}
_LEVEL = re.compile(r"(?:-p|--strip=)(\d)")
_NOWHERE = ("/dev/", "&")


def printed(name: str, words: list[Word], part: Simple, piped: str | None) -> str | None:
    """Return what a command prints where that can be told, None elsewhere."""
    if name == "cat":
        body = _body(part)
        others = [word.text for word in words[1:] if word.text != "-"]
        return (body if body is not None else piped) if not others else None
    if name == "tee":
        body = _body(part)
        return body if body is not None else piped
    if name in ("", ":", "true"):
        return ""
    if name == "echo":
        return _echoed(words[1:])
    return _formatted(words[1:]) if name == "printf" else None


def changes(
    name: str, words: list[Word], part: Simple, cwd: str, text: str | None
) -> Iterator[FileEvent]:
    """Yield what a command changes; `text` is what it prints, where that is known."""
    if text is not None:
        for redirect in part.redirects:
            yield from _redirected(redirect, cwd, text)
        if name == "tee":
            yield from _teed(words[1:], cwd, text)
    elif name == "cat":
        yield from _copied_by_cat(words[1:], part, cwd)
    if name == "patch" or (name == "git" and len(words) > 1 and words[1].text == "apply"):
        yield from _patched(words, part, cwd)
    if name == "git" and len(words) > 1 and words[1].text in ("mv", "rm"):
        name, words = words[1].text, words[1:]
    if name in ("cp", "mv"):
        yield from _moved(name, _operands(words[1:]), cwd)
    elif name in ("rm", "unlink"):
        for word in _operands(words[1:]):
            if path := _path(word, cwd):
                yield FileEvent(kind="delete", path=path)
    elif name in ("sed", "gsed", "perl"):
        yield from _sed(words[1:], cwd)


def _patched(words: list[Word], part: Simple, cwd: str) -> Iterator[FileEvent]:
    """Yield what a diff does that a script holds."""
    diff = _body(part)
    tries = any(word.text in ("--check", "--dry-run", "-R", "--reverse") for word in words)
    if diff is None or tries:
        return
    levels = [found for word in words if (found := _LEVEL.fullmatch(word.text))]
    yield from unified_events(diff, cwd, strip=int(levels[-1][1]) if levels else 1)


def _redirected(redirect: Redirect, cwd: str, text: str) -> Iterator[FileEvent]:
    kind = _INTO.get(redirect.op)
    if kind and redirect.fd in ("", "1", "&") and (path := _path(redirect.target, cwd)):
        yield FileEvent(kind="append" if kind == "append" else "write", path=path, new=text)


def _teed(words: list[Word], cwd: str, text: str) -> Iterator[FileEvent]:
    adds = any(word.text in ("-a", "--append") for word in words)
    for word in _operands(words):
        if path := _path(word, cwd):
            yield FileEvent(kind="append" if adds else "write", path=path, new=text)


def _copied_by_cat(words: list[Word], part: Simple, cwd: str) -> Iterator[FileEvent]:
    sources = _operands(words)
    targets = [one for one in part.redirects if one.op in (">", ">|") and one.fd in ("", "1")]
    if len(sources) == 1 and len(targets) == 1:
        source, target = _path(sources[0], cwd), _path(targets[0].target, cwd)
        if source and target and source != target:
            yield FileEvent(kind="copy", path=target, source=source)


def _moved(name: str, operands: list[Word], cwd: str) -> Iterator[FileEvent]:
    if len(operands) < 2:
        return
    target = _path(operands[-1], cwd)
    is_folder = len(operands) > 2 or operands[-1].text.endswith(("/", "/."))
    is_folder = is_folder or operands[-1].text in (".", "..")
    for word in operands[:-1]:
        source = _path(word, cwd)
        if source and target:
            path = f"{target}/{source.rsplit('/', 1)[-1]}" if is_folder else target
            yield FileEvent(kind="copy" if name == "cp" else "move", path=path, source=source)


def _sed(words: list[Word], cwd: str) -> Iterator[FileEvent]:
    """Yield the script of an editing in place for each file."""
    scripts: list[str] = []
    files: list[Word] = []
    in_place = extended = False
    rest = iter(words)
    for word in rest:
        text = word.text
        if re.match(r"-[nErpsz0-9]*i|--in-place", text):
            in_place = True
            extended = extended or "E" in text or "r" in text[:4]
            if text.endswith("e"):
                scripts.append(next(rest, Word(text="")).text)
        elif text in ("-e", "--expression", "-pe"):
            scripts.append(next(rest, Word(text="")).text)
        elif text.startswith("-"):
            extended = extended or text in ("-E", "-r")
        elif in_place and not text:
            continue  # sed of the BSDs: -i ''
        elif not scripts:
            scripts.append(text if word.known else "")
        else:
            files.append(word)
    for word in files if in_place else ():
        if path := _path(word, cwd):
            yield FileEvent(kind="sed", path=path, new="\n".join(scripts), every=extended)


def _echoed(words: list[Word]) -> str | None:
    escapes, ending = False, "\n"
    while words and re.fullmatch(r"-[neE]+", words[0].text):
        escapes = escapes or "e" in words[0].text
        ending = "" if "n" in words[0].text else ending
        words = words[1:]
    if not all(word.known for word in words):
        return None
    text = " ".join(word.text for word in words)
    return (_unescaped(text) if escapes else text) + ending


def _formatted(words: list[Word]) -> str | None:
    if words and words[0].text == "--":
        words = words[1:]
    if not words or not all(word.known for word in words):
        return None
    form, values = words[0].text, [word.text for word in words[1:]]
    holes = form.count("%s")
    if form.replace("%s", "").replace("%%", "").count("%"):
        return None
    form = _unescaped(form)
    if not holes:
        return form.replace("%%", "%")
    parts: list[str] = []
    for start in range(0, max(len(values), 1), holes):
        given = iter(values[start : start + holes])
        parts.append(re.sub("%s", lambda _, given=given: next(given, ""), form))  # type: ignore[misc]
    return "".join(parts).replace("%%", "%")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), text)


def _body(part: Simple) -> str | None:
    bodies = [one.body for one in part.redirects if one.body is not None]
    return bodies[-1] if bodies else None


def _operands(words: list[Word]) -> list[Word]:
    for index, word in enumerate(words):
        if word.text == "--":
            return [*_operands(words[:index]), *words[index + 1 :]]
    return [word for word in words if not word.text.startswith("-")]


def _path(word: Word, cwd: str) -> str:
    if not word.known or word.text.startswith(_NOWHERE):
        return ""
    return settled(word.text, cwd)
