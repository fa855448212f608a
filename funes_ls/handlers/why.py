"""The page that says why lines of a file are there: the lines, the session, what was asked."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from funes_ls.handlers.addresses import Address
from funes_ls.handlers.line_facts import turn_of
from funes_ls.handlers.pages import QUOTED, Page, fenced, file_page, title_of
from funes_ls.handlers.wording import harness_word, since
from funes_ls.render import safe

_MOST_QUOTED = 60
_MOST_CHARS = 400
_CONFIDENCE = {
    "exact": "written so, in this file",
    "moved": "written so, but elsewhere",
    "similar": "similar text was written there; it is another one now, so this is a hint only",
    "mentioned": "talked of there; who wrote it is not known",
}
_EVIDENCE = {"git-ai": "by a git-ai note", "agent-trace": "by an Agent Trace record"}


def why_page(
    about: Address,
    blame: Mapping[str, Any],
    related: Mapping[str, Any] | None,
    *,
    source: Sequence[str],
) -> Page:
    """Return the page of where lines come from.

    Args:
        about: The lines.
        blame: The answer of `funes/blame`.
        related: That of `funes/related`, for when nothing is known of the lines themselves.
        source: The text of the lines, as far as the editor has it.
    """
    lines = [_heading(about), ""]
    if source:
        lines += [*fenced(safe(_numbered(about, source))), ""]
    if not blame["lines"]:
        lines += [
            "Not traced to a session.",
            "",
            *([safe(blame["note"]), ""] * bool(blame["note"])),
        ]
        rest = file_page(related).text if related and related["sessions"] else ""
        return Page(text="\n".join(lines) + "\n" + rest)
    lines += [QUOTED, ""]
    for turn in blame["turns"]:
        own = [one for one in blame["lines"] if turn_of(one) == turn_of(turn)]
        lines += _turn(turn, own, about)
    return Page(text="\n".join(lines))


def changed_page(about: Address) -> Page:
    """Return the page for lines that are no longer those which were asked about."""
    text = "The file has changed since this was asked: its lines there are others now."
    return Page(text=f"{_heading(about)}\n\n{text}\n")


def _heading(about: Address) -> str:
    verb = "is" if about.line == about.last else "are"
    return f"# Why {_named(about.line + 1, about.last + 1)} of {safe(about.path)} {verb} there"


def _named(start: int, end: int) -> str:
    return f"line {start:,}" if start == end else f"lines {start:,}–{end:,}"


def _numbered(about: Address, source: Sequence[str]) -> str:
    shown = [
        f"{about.line + at + 1:>6}  {line[:_MOST_CHARS]}"
        for at, line in enumerate(source[:_MOST_QUOTED])
    ]
    return "\n".join([*shown, *(["     …"] if len(source) > _MOST_QUOTED else [])])


def _turn(turn: Mapping[str, Any], own: Sequence[Mapping[str, Any]], about: Address) -> list[str]:
    who = [harness_word(turn["harness"]), since(turn["ts"]), title_of(turn["title"])]
    where = [safe(turn["ts"]), safe(turn["cwd"]), safe(turn["branch"])]
    lines = [f"## {' · '.join(filter(None, who))}", "", " · ".join(filter(None, where)), ""]
    lines += [*(f"- {text}" for text in _claims(own, about)), ""]
    for name, text, command in (
        ("Asked", turn["ask"], turn["ask_get"]),
        ("Said just before", turn["reason"], turn["reason_get"]),
    ):
        if text:
            lines += [f"{name}:", *fenced(safe(text).rstrip("\n")), *_lead(command), ""]
    return [*lines, "The turn that wrote:", *_lead(turn["get"]), ""]


def _claims(own: Sequence[Mapping[str, Any]], about: Address) -> Iterator[str]:
    for one in own:
        start, end = max(one["start"], about.line + 1), min(one["end"], about.last + 1)
        if start > end:
            continue
        said = [_CONFIDENCE.get(one["confidence"], safe(one["confidence"]))]
        if one["from_path"]:
            said.append(f"in {safe(one['from_path'])}")
        said.append(_EVIDENCE.get(one["evidence"], ""))
        yield f"{_named(start, end)}: {one['confidence']} ({', '.join(filter(None, said))})"


def _lead(command: str) -> list[str]:
    return [f"→ {safe(command)}"] if command else []
