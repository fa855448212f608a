"""Chunks: payloads elided, blocks rendered, texts split with overlap, ids by formula."""

import random

import pytest

from funes_ls.indexer.chunk import (
    WHITESPACE,
    chunk_id,
    chunks_of,
    elide,
    join_pieces,
    render,
    split,
)
from funes_ls.indexer.model import Block, Turn


def turn(*blocks: Block, **more: object) -> Turn:
    values: dict[str, object] = {
        "session_id": "sess",
        "turn_uuid": "uuid",
        "parent_uuid": None,
        "seq": 7,
        "ts": "2026-03-02T10:00:00Z",
        "role": "assistant",
        "blocks": blocks,
        "workdir": "-work-demo",
        "source_path": "/work/x.jsonl",
        "harness": "claude_code",
        "record": 9,
    }
    return Turn(**{**values, **more})  # type: ignore[arg-type]  # checked by the struct itself


@pytest.mark.parametrize(
    ("session_id", "turn_uuid", "expected"),
    [
        ("sess", "uuid", "088ee3e13e4321bc"),
        ("claude_session", "d753fba5-0c26-437f-82df-ba98aa773943", "859b80fcc6352877"),
        (
            "019ef2fb-6574-7f83-bd99-9118713271f2",
            "019ef2fb-6574-7f83-bd99-9118713271f2-0",
            "abb941d91ba3cead",
        ),
        ("pi_session", "765a0228", "5a964ba71f259b71"),
    ],
)
def test_ids_are_those_of_shared_memories(session_id: str, turn_uuid: str, expected: str) -> None:
    assert chunk_id(session_id, turn_uuid, 0, 0) == expected


def test_id_takes_any_text() -> None:
    assert len(chunk_id("a\ud800", "\udfff", 1, 2)) == 16


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see data:image/png;base64,iVBORw0KGgo= end", "see data:image/png;base64,[elided] end"),
        ("metadata;base64,AAAA", "metadata;base64,AAAA"),
        ("xdata:a;base64,AAAA", "xdata:a;base64,AAAA"),
        ("data:a b;base64,AAAA", "data:a b;base64,AAAA"),
        ('data:a";base64,AAAA', 'data:a";base64,AAAA'),
        ("data:a,b;base64,AAAA", "data:a,b;base64,AAAA"),
        ("data:;base64,", "data:;base64,"),
        (
            "(data:a;base64,AA)(data:b;base64,BB)",
            "(data:a;base64,[elided])(data:b;base64,[elided])",
        ),
        ("data:a;base64,AA;base64,BB", "data:a;base64,[elided];base64,BB"),
        ("no;base64,AA data:x;base64,BB", "no;base64,AA data:x;base64,[elided]"),
        ("AAAABBBBCCCC", "AAAABBBBCCCC"),
    ],
)
def test_only_payloads_of_data_uris_are_elided(text: str, expected: str) -> None:
    assert elide(text) == expected


def test_tool_blocks_carry_a_label() -> None:
    call = Block(block_type="tool_use", text='{"a":1}', tool_name="Bash")
    assert render(call) == '[tool_use Bash] {"a":1}'
    assert render(Block(block_type="tool_use", text="{}")) == "[tool_use None] {}"
    assert render(Block(block_type="tool_result", text=" out \n")) == "[tool_result]  out"
    named = Block(block_type="tool_result", text="out", tool_name="Read")
    assert render(named) == "[tool_result Read] out"
    assert render(Block(block_type="thinking", text=" as is ")) == " as is "


def test_short_text_is_one_trimmed_piece() -> None:
    assert list(split("\u3000 a line \x85")) == ["a line"]
    assert list(split("x" * 1200)) == ["x" * 1200]
    assert list(split(WHITESPACE)) == []
    assert list(split("\x1c")) == ["\x1c"]


def test_pieces_break_at_a_line_then_a_word_then_anywhere() -> None:
    lines = "a" * 700 + "\n" + "b" * 700
    assert list(split(lines)) == ["a" * 700, "a" * 150 + "\n" + "b" * 700]
    words = "a" * 700 + " " + "b" * 700
    assert list(split(words)) == ["a" * 700, "a" * 150 + " " + "b" * 700]
    early = "a" * 600 + "\n" + "b" * 700
    assert [len(piece) for piece in split(early)] == [1200, 251]
    solid = "é" * 2400
    assert [len(piece) for piece in split(solid)] == [1200, 1200, 300]


def test_blank_stretches_make_no_piece() -> None:
    text = "a" * 1100 + "\n" * 3000 + "b"
    pieces = list(split(text))
    assert (pieces[0], pieces[-1]) == ("a" * 1100, "b")
    assert all(piece and piece.strip(WHITESPACE) == piece for piece in pieces)


def test_joined_pieces_are_the_text() -> None:
    chance = random.Random(5)
    text = " ".join(f"word{chance.randrange(10**6)}" for _ in range(2000))
    assert join_pieces(list(split(text))) == text
    assert join_pieces([]) == ""
    assert join_pieces(["whole"]) == "whole"
    assert join_pieces(["alpha", "beta"]) == "alphabeta"
    assert join_pieces(["HEAD the brown fox", "the brown fox TAIL"]) == "HEAD the brown fox TAIL"


def test_joining_periodic_text_loses_nothing() -> None:
    unit = "abcabcabc " * 60
    assert len(join_pieces([unit, unit])) == 2 * len(unit) - 150


def test_chunks_carry_the_turn_and_count_every_block() -> None:
    blocks = (
        Block(block_type="thinking", text="hm"),
        Block(block_type="tool_use", text="{}", tool_name="ls", tool_use_id="t"),
        Block(block_type="text", text="x" * 1300),
    )
    chunks = list(chunks_of(turn(*blocks)))
    places = [(chunk.block_type, chunk.block_idx, chunk.split_idx) for chunk in chunks]
    assert places == [("thinking", 0, 0), ("tool_use", 1, 0), ("text", 2, 0), ("text", 2, 1)]
    last = chunks[-1]
    assert last.id == chunk_id("sess", "uuid", 2, 1)
    assert (last.seq, last.role, last.workdir, last.ts_us) == (7, "assistant", "-work-demo", None)


def test_what_is_stored_may_differ_from_the_compat_rows() -> None:
    blocks = (
        Block(block_type="text", text="nul\0"),
        Block(block_type="tool_result", text="a recall", own=True),
    )
    stored = (Block(block_type="text", text="nul\ufffd"), blocks[1])
    made = turn(*blocks, ext_blocks=stored, turn_uuid="sess-0", compat_uuid="")
    assert [(c.text, c.turn_uuid, c.block_idx) for c in chunks_of(made)] == [
        ("nul\ufffd", "sess-0", 0)
    ]
    compat = list(chunks_of(made, compat=True))
    assert [(c.text, c.turn_uuid) for c in compat] == [
        ("nul\0", ""),
        ("[tool_result] a recall", ""),
    ]
    assert compat[0].id == chunk_id("sess", "", 0, 0)


def test_thirty_megabytes_of_payload_are_one_short_chunk() -> None:
    text = "before data:image/png;base64," + "A" * 30_000_000 + " after"
    (chunk,) = chunks_of(turn(Block(block_type="text", text=text)))
    assert chunk.text == "before data:image/png;base64,[elided] after"
