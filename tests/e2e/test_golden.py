"""What agents and people read is a contract: the layouts, byte for byte.

Words only and without the age weight, so that nothing depends on the clock or the processor; the
digits of scores are blanked, since tuning the ranking is no change of the layout.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.cli import funes, recall

RECALLS = {
    "recall-two.txt": ["-k", "2", "three attempts with full jitter"],
    "recall-codex-tools.txt": [
        *("-k", "2", "--harness", "codex", "--type", "tool_result"),
        "heap-buffer-overflow in tile_writer",
    ],
    "recall-no-neighbors.txt": ["-k", "1", "--neighbors", "0", "chroma subsampling"],
    "recall-explain.txt": ["-k", "2", "--explain", "firing_id label cardinality"],
    "recall-japanese.txt": ["-k", "1", "鍵"],
    "recall-nothing.txt": ["zebrafish quokka"],
    "recall-weak.txt": ["-k", "1", "who pays for the license of the payroll software"],
    "recall-revisited.txt": ["-k", "2", "what retry policy would you use for the government api"],
}


@pytest.mark.parametrize("name", sorted(RECALLS))
def test_recall(name: str, samples: Path, golden: Callable[[str, str], None]) -> None:
    ran = funes("recall", "--half-life", "0", *RECALLS[name])
    assert ran.code == 0, ran.err
    golden(name, blanked(ran.out))


@pytest.mark.parametrize(
    ("name", "query", "note"),
    [
        (
            "time",
            "retry attempts and backoff in February 2026",
            "What was said of February 2026 comes first",
        ),
        ("agent", "reconnect backoff jitter in codex", "What was said in codex comes first"),
        ("session", "why 503 in 20260602_041244", "in session 20260602_041244_67d881 comes first"),
        ("file", "timeout in src/tidewater/http.py", ""),
    ],
)
def test_recall_of_what_a_question_names(
    name: str, query: str, note: str, samples: Path, golden: Callable[[str, str], None]
) -> None:
    ran = funes("recall", "--half-life", "0", "-k", "3", "--neighbors", "0", query)
    assert ran.code == 0, ran.err
    assert note in ran.err
    golden(f"recall-named-{name}.txt", blanked(ran.out))


def blanked(text: str) -> str:
    """Return hits with the numbers of their score and of the `--explain` line as `n`."""
    lines = [
        re.sub(r"\d+(?:\.\d+)?", "n", line) if line.startswith("  ? ") else blank_score(line)
        for line in text.splitlines(keepends=True)
    ]
    return "".join(lines)


def blank_score(line: str) -> str:
    return re.sub(r"score=\d\.\d{3}$", "score=n.nnn", line)


@pytest.mark.parametrize("layout", ["agent", "human"])
def test_get(
    layout: str,
    samples: Path,
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    hit = recall("the integral moves only while the output can follow", "--type", "tool_use")[0]
    options = ["--window", "2", "--format", layout]
    ran = funes("get", *options, hit["session_id"], hit["turn_uuid"])
    assert ran.code == 0, ran.err
    golden(f"get-{layout}.txt", ran.out)


def test_get_of_a_turn_that_is_not_there(samples: Path, golden: Callable[[str, str], None]) -> None:
    ran = funes("get", "agent-30a8d27a", "no-such-turn")
    assert ran.code == 0, ran.err
    golden("get-absent.txt", ran.out)


def test_sessions(samples: Path, golden: Callable[[str, str], None]) -> None:
    ran = funes("sessions", "--project", "kilnhouse")
    assert ran.code == 0, ran.err
    golden("sessions.txt", ran.out)


def test_help_of_every_command_opens_with_two_examples() -> None:
    for command in ("index", "recall", "get", "status", "sessions", "blame", "parse"):
        ran = funes(command, "-h")
        assert ran.code == 0, ran.err
        examples = ran.out.split("examples:\n")[1].split("\n\n")[0].splitlines()
        assert [line.strip().split()[:2] for line in examples] == [["funes", command]] * 2


def test_json_objects_keep_their_keys(samples: Path) -> None:
    answer = funes("recall", "--json", "jitter").json
    assert answer.keys() >= {"memory", "generation", "note", "legs", "hits", "timings_ms"}
    assert answer.keys() >= {"confidence", "weak"}
    promised = "rank score session_id turn_uuid seq ts harness workdir cwd repo role block_type"
    promised += " tool_name text embedded also_in neighbors get"
    assert answer["hits"][0].keys() >= set(promised.split())
    told = funes("status", "--json").json
    promised = "memory model generation sessions chunks turns projects words_only"
    assert told.keys() >= {*promised.split(), "pending_sources", "problems"}
    assert funes("sessions", "--json").json.keys() >= {"sessions", "total"}
