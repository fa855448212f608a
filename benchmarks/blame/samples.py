"""The truth of the sample sessions: their scripts, replayed step by step on real text."""

from collections import defaultdict
from collections.abc import Iterator

from benchmarks.blame.author import File, Line, World
from tests.traces.script import Script, Step, load_scripts


def sample_worlds() -> Iterator[World]:
    """Yield the projects of the sample sessions whose files sessions wrote from the start."""
    projects: dict[str, list[Script]] = defaultdict(list)
    for script in load_scripts():
        if script.head["harness"] != "parquet" and "parent" not in script.head:
            projects[script.cwd].append(script)
    for cwd, scripts in sorted(projects.items()):
        files = _files(scripts)
        if files:
            yield World(scripts=scripts, files=files, cwd=cwd)


def _files(scripts: list[Script]) -> list[File]:
    steps = sorted(
        ((step, ask) for script in scripts for step, ask in _asked(script)),
        key=lambda one: one[0].at,
    )
    files: dict[str, File] = {}
    for step, ask in steps:
        if step.failed:
            continue
        if step.kind == "write":
            files[step.text] = File(path=step.text, lines=_written(step, ask, files))
        elif step.kind == "edit" and step.text in files:
            _edit(files, step, ask)
    return list(files.values())


def _asked(script: Script) -> Iterator[tuple[Step, str]]:
    ask = ""
    for step in script.steps:
        if step.kind == "user":
            ask = step.text
        yield step, ask


def _written(step: Step, ask: str, files: dict[str, File]) -> list[Line]:
    """Return the lines of a write; of a file that stood there before the script must not differ."""
    if step.text in files:
        raise ValueError(f"{step.text} is written twice: say who owns which line")
    return [Line(text=text, ask=ask) for text in step.new.splitlines()]


def _edit(files: dict[str, File], step: Step, ask: str) -> None:
    """Apply an edit of whole lines; a file it does not fit is no longer known."""
    file, old = files[step.text], step.old.split("\n")
    texts = [line.text for line in file.lines]
    places = [n for n in range(len(texts)) if texts[n : n + len(old)] == old]
    if len(places) != 1:
        del files[step.text]
        return
    was = {line.text: line for line in file.lines[places[0] : places[0] + len(old)]}
    new = [was.get(text, Line(text=text, ask=ask)) for text in step.new.split("\n")]
    file.lines[places[0] : places[0] + len(old)] = new
