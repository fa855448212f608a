"""What holds of every further harness: the same session in each of them, whole and damaged."""

import json
import os
import random
import sqlite3
from pathlib import Path

import pytest

from funes_ls.indexer.calls.builder import FactsBuilder, Piece
from funes_ls.indexer.errors import TraceError
from funes_ls.indexer.model import Problem, Turn
from funes_ls.indexer.names import HARNESSES
from funes_ls.indexer.traces import Unit, source_for
from funes_ls.indexer.traces.registry import detect, units_of
from tests.indexer.traces.reading import read_all, stored_texts
from tests.indexer.traces.samples_more import ANSWER, CODE, FILE, PROMPT, SAMPLES, THOUGHT

pytestmark = pytest.mark.parametrize("harness", SAMPLES)


def test_the_session_is_read_whole(harness: str, tmp_path: Path) -> None:
    path = SAMPLES[harness](tmp_path)
    turns, problems, session = read_all(source_for(harness), path)
    assert problems == []
    kinds = [(block.block_type, turn.role) for turn in turns for block in turn.blocks]
    answered_by = {"qwen": "tool", "copilot": "tool", "cline": "user"}.get(harness, "assistant")
    assert kinds == [
        ("text", "user"),
        ("thinking", "assistant"),
        ("tool_use", "assistant"),
        ("tool_result", answered_by),
        ("text", "assistant"),
    ]
    texts = [block.text.strip() for turn in turns for block in turn.blocks]
    assert (texts[0], texts[4]) == (PROMPT, ANSWER)
    assert THOUGHT in texts[1]
    call, answer = (b for t in turns for b in t.blocks if b.block_type.startswith("tool"))
    assert call.tool_name == answer.tool_name
    assert call.tool_use_id == answer.tool_use_id
    assert (session.cwd, session.title) == ("/work/demo", PROMPT)
    assert {turn.workdir for turn in turns} == {"-work-demo"}
    assert all(turn.ts for turn in turns)
    assert len({turn.turn_uuid for turn in turns}) == len(turns)
    assert [turn.seq for turn in turns] == list(range(len(turns)))
    assert {turn.harness for turn in turns} == {HARNESSES[harness]} == {session.harness}


def test_the_file_it_wrote_is_known(harness: str, tmp_path: Path) -> None:
    turns, _, session = read_all(source_for(harness), SAMPLES[harness](tmp_path))
    builder = FactsBuilder(session.cwd)
    found = []
    for turn in turns:
        for index, block in enumerate(turn.blocks):
            piece = Piece(
                turn_uuid=turn.turn_uuid,
                parent_uuid=turn.parent_uuid,
                seq=turn.seq,
                block_idx=index,
                ts_us=None,
                role=turn.role,
                block_type=block.block_type,
                tool_name=block.tool_name,
                tool_use_id=block.tool_use_id,
                text=block.text,
            )
            found += [event for fact in builder.add(piece) for event in fact.events]
    writes = [(event.path, event.new.strip()) for event in found if event.kind == "write"]
    assert writes == [(FILE, CODE.strip())]


def test_it_is_found_in_its_place(harness: str, tmp_path: Path) -> None:
    path = SAMPLES[harness](tmp_path)
    source = source_for(harness)
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "none")}
    (root,) = [root for root in source.roots(tmp_path, env) if root.exists()]
    (unit,) = source.units(root)
    assert isinstance(unit, Unit)
    assert unit.path == path
    assert [found.key for _, found in units_of(path, [(source, root)])] == [unit.key]
    assert detect(path).harness == HARNESSES[harness]
    assert source.units_at(root, root / "elsewhere.txt") == []


def test_read_again_all_ids_stay(harness: str, tmp_path: Path) -> None:
    source = source_for(harness)
    path = SAMPLES[harness](tmp_path)
    (unit,) = source.units(path)
    assert isinstance(unit, Unit)
    first = source.read(unit)
    before = [item for item in first if isinstance(item, Turn)]
    again = source.read(unit, resume=first.resume)
    after = [item for item in again if isinstance(item, Turn)]
    assert first.resume
    assert after == (before if again.restarted else [])


def test_it_does_not_store_what_funes_answered(harness: str, tmp_path: Path) -> None:
    path = SAMPLES[harness](tmp_path)
    names = ("write_to_file", "write_file", "create_file", '"create"', '"write"')
    if path.suffix == ".db" or harness == "cline":
        pytest.skip("its call cannot be renamed in the bytes")
    text = path.read_text(encoding="utf-8")
    for name in names:
        text = text.replace(name, name.replace(name.strip('"'), "mcp__funes__recall"))
    path.write_text(text, encoding="utf-8")
    stored = "\n".join(stored_texts(read_all(source_for(harness), path)[0]))
    assert "tool_result" not in stored
    assert PROMPT in stored


def test_an_unknown_form_is_told(harness: str, tmp_path: Path) -> None:
    path = SAMPLES[harness](tmp_path)
    if path.suffix == ".db":
        with sqlite3.connect(path) as base:
            base.execute("ALTER TABLE part RENAME COLUMN data TO body")
        base.close()
        found = list(source_for(harness).units(path))
        assert [one.kind for one in found if isinstance(one, Problem)] == ["unknown_format"]
        return
    text = path.read_text(encoding="utf-8")
    for old in ("messages", "parts", "content", "requests"):
        text = text.replace(f'"{old}"', f'"{old}Renamed"')
    for old in ("user.message", "assistant.message", "tool.execution_complete"):
        text = text.replace(old, f"renamed.{old}")
    path.write_text(text, encoding="utf-8")
    turns, problems, _ = read_all(source_for(harness), path)
    assert turns == []
    assert [one.kind for one in problems] == ["unknown_format"]


def test_damage_is_told_and_never_raised(harness: str, tmp_path: Path) -> None:
    path = SAMPLES[harness](tmp_path)
    data = path.read_bytes()
    source, chance = source_for(harness), random.Random(5)
    told = 0
    for number in range(120):
        damaged = bytearray(data)
        if number % 3 == 0:
            del damaged[chance.randrange(len(damaged)) :]
        elif number % 3 == 1:
            for _ in range(8):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        else:
            at = chance.randrange(len(damaged))
            damaged[at : at + 40] = b"\0" * 40
        path.write_bytes(bytes(damaged))
        for unit in source.units(path):
            told += isinstance(unit, Problem)
            items = list(source.read(unit)) if isinstance(unit, Unit) else []
            told += any(isinstance(item, Problem) for item in items)
            assert all(isinstance(item, (Turn, Problem)) for item in items)
    assert told > 0


def test_values_of_wrong_types_are_passed_over(harness: str, tmp_path: Path) -> None:
    path = SAMPLES[harness](tmp_path)
    if path.suffix == ".db":
        pytest.skip("its values are columns")
    lines = path.read_text(encoding="utf-8").splitlines()
    chance = random.Random(9)
    for _ in range(150):
        changed = [json.dumps(_spoilt(json.loads(line), chance)) for line in lines]
        path.write_text("\n".join(changed) + "\n", encoding="utf-8")
        for item in read_all(source_for(harness), path)[0]:
            assert isinstance(item.turn_uuid, str)
            assert isinstance(item.ts, str)
            assert all(isinstance(block.text, str) for block in item.blocks)


def _spoilt(value: object, chance: random.Random) -> object:
    if chance.random() < 0.06:
        return chance.choice([None, 7, -1.5, True, "text", [], {}, [[{}]], {"text": 3}])
    if isinstance(value, dict):
        return {key: _spoilt(item, chance) for key, item in value.items()}
    if isinstance(value, list):
        return [_spoilt(item, chance) for item in value]
    return value


def test_a_pipe_is_refused(harness: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TraceError):
        list(source_for(harness).units(pipe))
