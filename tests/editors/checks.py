"""What every editor must have seen, whichever it is."""

import subprocess
from pathlib import Path
from typing import Any

from tests.editors.editor import KNOWN_ASK, Sample, Seen, processes_of, program, servers_of, within

INVALID_PARAMS = -32602


def everything(seen: Seen, sample: Sample, *, virtual: bool = False) -> None:
    """Judge all that a probe told, and that nothing is left running."""
    assert seen["end"] is True
    for check in (requests, hover, lenses, symbols, actions, progress, settings):
        check(seen)
    document(seen, virtual=virtual)
    nothing_is_left(seen, sample)


def requests(seen: Seen) -> None:
    """The project's own requests, and params that do not fit."""
    hits = seen.answer("recall")["hits"]
    assert 1 <= len(hits) <= 3
    assert any("attempt" in hit["text"] for hit in hits)
    assert [hit["rank"] for hit in hits] == list(range(1, len(hits) + 1))
    error = seen["recall_bad"]["error"]
    assert error["code"] == INVALID_PARAMS
    assert "query" in error["message"]
    status = seen.answer("status")
    assert status["sessions"] >= 25
    assert status["chunks"] > 0


def hover(seen: Seen) -> None:
    """Who wrote a known line and what was asked, in the editor's own window or echo area."""
    shown = " ".join(seen["hover"]).replace("\\", "")
    assert "claude" in shown and KNOWN_ASK in shown, shown
    assert len([line for line in seen["hover"] if line.strip()]) <= 3, shown


def lenses(seen: Seen) -> None:
    """A cheap list first, titles when resolved."""
    listed = seen.answer("lenses")
    assert len(listed) >= 1
    assert listed[0]["range"]["start"]["line"] == 0
    titles = seen["lens_titles"]
    assert titles
    assert any("session" in title.lower() for title in titles), titles


def symbols(seen: Seen) -> None:
    """Sessions by the words of their titles."""
    found = seen["symbols"]
    assert found
    assert all("gauge" in text.lower() for text in found), found


def actions(seen: Seen) -> None:
    """The two things to do with lines."""
    titles = [one["title"] for one in seen.answer("actions")]
    assert any("Recall" in title for title in titles), titles
    assert any("Why" in title for title in titles), titles


def why(lines: list[str]) -> None:
    """The page of a line: its text, what was asked, the way to the turns."""
    assert lines[0].startswith("# Why line "), lines
    assert KNOWN_ASK in lines, lines
    assert any(line.startswith("→ funes get ") for line in lines), lines


def document(seen: Seen, *, virtual: bool) -> None:
    """A turn, as a read-only file or as a document without one."""
    opened: dict[str, Any] = seen["definition"]
    assert "".join(opened["lines"]).strip(), opened
    name = Path(str(opened["name"])).name
    assert "session" in str(opened["name"]) and not name.startswith("file-"), opened
    assert any(line.startswith("## ") for line in opened["lines"]), opened
    if virtual:
        assert "funes:/" in str(opened["name"]), opened
    else:
        path = Path(str(opened["name"]).removeprefix("file://"))
        assert path.is_absolute(), opened
    # Emacs as root takes every file for writable; then the file's mode says what was meant.
    assert opened["readonly"] is True or opened.get("writable") == 0, opened


def progress(seen: Seen) -> None:
    """One begin and one end a token, the begin first."""
    seen.answer("index")
    kinds: dict[str, list[str]] = {}
    for one in seen["progress"]:
        kinds.setdefault(str(one["token"]), []).append(one["kind"])
    assert kinds
    for told in kinds.values():
        assert told[0] == "begin"
        assert told[-1] == "end"
        assert set(told[1:-1]) <= {"report"}


def settings(seen: Seen) -> None:
    """A changed setting counts at once."""
    assert seen["settings"] == {"hits": 1}


def nothing_is_left(seen: Seen, sample: Sample) -> None:
    """The server has ended with its editor; the engine stays until it is told to end."""
    assert seen["stopped"] is True
    assert within(5, lambda: not servers_of(sample)), servers_of(sample)
    stay = processes_of(sample)  # the engine's scanner for secrets may be at rest beside it
    assert len([line for line in stay.values() if "redaction.child" not in line]) == 1, stay
    stop = subprocess.run(
        [str(program("funes")), "engine", "stop"],
        env=sample.env,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert stop.returncode == 0, stop.stderr
    assert within(5, lambda: not processes_of(sample)), processes_of(sample)
