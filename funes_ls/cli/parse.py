"""`funes parse`: what would be indexed of a trace, as turns, as compat rows, or as JSON lines."""

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from funes_ls import parsing, render
from funes_ls.cli.output import notice
from funes_ls.indexer.model import Chunk, Problem, Turn
from funes_ls.indexer.settings import Settings

_HEADER = (
    "file", "id", "seq", "role", "block_type", "tool_name", "ts", "workdir", "block_idx",
    "split_idx", "text_sha1",
)  # fmt: skip
_TEXT_CHARS = 300


def parse(args: argparse.Namespace, _settings: Settings) -> int:
    """Print the turns of every trace at a path; nothing is stored."""
    if args.rows:
        render.write("\t".join(_HEADER))
    for parsed in parsing.parse(args.path, harness=args.harness or ""):
        if isinstance(parsed, Problem):
            _report(parsed)
        elif args.rows:
            _write_rows(parsed, args.path)
        elif args.json:
            _write_json_lines(parsed)
        else:
            _write_turns(parsed)
    return 0


def _turns(parsed: parsing.ParsedUnit) -> Iterator[Turn]:
    """Yield turns; problems go to stderr as they come up."""
    for item in parsing.items_of(parsed):
        if isinstance(item, Problem):
            _report(item)
        else:
            yield item


def _report(problem: Problem) -> None:
    place = f"{problem.path}:{problem.line}" if problem.line else problem.path
    notice(f"{place}: {problem.kind}: {problem.message}")


def _write_rows(parsed: parsing.ParsedUnit, root: Path) -> None:
    name = _file_name(parsed, root)
    for turn in _turns(parsed):
        for row in parsing.rows_of(turn, compat=True):
            render.write("\t".join(_row_cells(name, row)))


def _file_name(parsed: parsing.ParsedUnit, root: Path) -> str:
    """Return the trace's path as the user would write it: below the path that was given."""
    path = Path(parsed.unit.container or parsed.unit.key)
    return str(path if path.is_relative_to(root) or root.is_file() else parsed.unit.path)


def _row_cells(name: str, row: Chunk) -> list[str]:
    digest = hashlib.sha1(row.text.encode(), usedforsecurity=False).hexdigest()[:12]
    cells = [
        name,
        row.id,
        str(row.seq),
        row.role,
        row.block_type,
        row.tool_name or "",
        row.ts,
        row.workdir,
        str(row.block_idx),
        str(row.split_idx),
        digest,
    ]
    return [cell.replace("\t", " ").replace("\n", " ") for cell in cells]


def _write_json_lines(parsed: parsing.ParsedUnit) -> None:
    for turn in _turns(parsed):
        for row in parsing.rows_of(turn, compat=False):
            render.write_json({**msgspec.structs.asdict(row), "extra": turn.extra})


def _write_turns(parsed: parsing.ParsedUnit) -> None:
    count = 0
    render.write(f"# {render.safe(parsed.unit.key)} ({parsed.source.harness})")
    for turn in _turns(parsed):
        count += 1
        mark = " extra" if turn.extra else ""
        render.write(
            f"[{render.safe(turn.ts)}] {turn.role} seq{turn.seq} turn={turn.turn_uuid}{mark}"
        )
        for block in turn.blocks:
            name = f" {block.tool_name}" if block.tool_name else ""
            own = " (funes's own answer, not stored)" if block.own else ""
            text = " ".join(render.safe(block.text[: _TEXT_CHARS * 2]).split())
            cut = "…" if len(text) > _TEXT_CHARS or len(block.text) > _TEXT_CHARS * 2 else ""
            render.write(f"  {block.block_type}{name}{own}: {text[:_TEXT_CHARS]}{cut}")
    render.write(f"# {count} turns\n")
