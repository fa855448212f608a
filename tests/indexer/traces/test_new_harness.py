"""The example of docs/new-harness.md works as it stands there."""

import re
from pathlib import Path
from typing import Any

from tests.indexer.traces.reading import read_all
from tests.indexer.traces.samples_more import write_json

PAGE = Path(__file__).parents[3] / "docs" / "new-harness.md"


def test_the_example_reads_a_session(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    assert found[1].count("\n") < 100
    names: dict[str, Any] = {}
    exec(compile(found[1], str(PAGE), "exec"), names)
    log = [{"who": "user", "text": "hello", "at": "2026-03-02T10:00:00Z"}, 7]
    path = write_json(tmp_path / "one.json", {"cwd": "/work/demo", "log": log})
    turns, problems, session = read_all(names["ExampleSource"](), path)
    assert [(turn.turn_uuid, turn.blocks[0].text) for turn in turns] == [("one-0", "hello")]
    assert (problems, session.cwd, session.title) == ([], "/work/demo", "hello")
    write_json(path, {"log": None})
    assert [one.kind for one in read_all(names["ExampleSource"](), path)[1]] == ["unknown_format"]
