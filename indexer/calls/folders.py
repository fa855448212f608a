"""Makes of what happens to a folder what happens to each file that a session knows in it."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from funes_ls.indexer.facts import FileEvent

#: Paths that are kept of a session, those named last.
_MOST_KNOWN = 300
_KNOWN_BY = frozenset(("write", "edit", "append", "read", "sed", "move", "copy"))


def for_each_file(events: Iterable[FileEvent], known: list[str]) -> Iterator[FileEvent]:
    """Yield events, those of folders as events of the files in them.

    Args:
        events: What a call did, in order.
        known: Files the session has to do with; kept up to date.
    """
    for event in events:
        made = list(_of_files(event, known))
        for one in made:
            _note(one, known)
        yield from made


def _of_files(event: FileEvent, known: list[str]) -> Iterator[FileEvent]:
    if event.kind not in ("move", "copy", "delete"):
        yield event
        return
    source = event.source or event.path
    target = event.path
    if event.source and _inside(target, known) and source != target:
        target = f"{target}/{source.rsplit('/', 1)[-1]}"
    files = _inside(source, known)
    if not files or source in known:
        yield event if target == event.path else replace(event, path=target)
        return
    for file in files:
        rest = file[len(source) :]
        if event.kind == "delete":
            yield replace(event, path=file)
        else:
            yield replace(event, path=f"{target}{rest}", source=file)


def _inside(folder: str, known: list[str]) -> list[str]:
    return sorted(path for path in known if path.startswith(f"{folder}/"))


def _note(event: FileEvent, known: list[str]) -> None:
    gone = event.source if event.kind == "move" else event.path if event.kind == "delete" else ""
    if gone in known:
        known.remove(gone)
    if event.kind in _KNOWN_BY:
        if event.path in known:
            known.remove(event.path)
        known.append(event.path)
        del known[:-_MOST_KNOWN]
