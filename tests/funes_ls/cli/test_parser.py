"""The command line: help that shows examples, questions that may look like options."""

import re
from pathlib import Path

import pytest

from funes_ls.cli.parser import build_parser, split_question
from funes_ls.indexer.errors import UsageError

COMMANDS = [
    *("index", "recall", "ask", "get", "status", "sessions", "related", "memories"),
    *("blame", "forget", "parse", "model", "engine", "serve"),
    *("add", "remove", "hook", "mcp", "scan", "scrub"),
    *("push", "pull", "unpublish", "curate"),
]


def words(*argv: str) -> tuple[list[str], dict[str, object]]:
    """Return the question and the options of a `recall` command line."""
    parser = build_parser()
    args = vars(parser.parse_args(split_question(parser, ["recall", *argv])))
    return args.pop("words"), args


@pytest.mark.parametrize("command", COMMANDS)
def test_help_opens_with_two_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args([command, "-h"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("examples:")
    assert all(line.startswith(f"  funes {command}") for line in lines[start + 1 : start + 3])


@pytest.mark.parametrize(
    ("argv", "question"),
    [
        (["why", "is", "it", "slow"], "why is it slow"),
        (["--no-verify commit hook"], "--no-verify commit hook"),
        (["--no-verify", "commit", "hook"], "--no-verify commit hook"),
        (["-DNDEBUG"], "-DNDEBUG"),
        (["-x"], "-x"),
        (["#4821"], "#4821"),
        (['"exact phrase here"'], '"exact phrase here"'),
        (["--", "--since", "7d"], "--since 7d"),
        (["--", "-k", "3"], "-k 3"),
        (["what", "does", "--limit", "do"], "what does --limit do"),
        (["--since yesterday what changed"], "--since yesterday what changed"),
        (["a=b", "--x=y"], "a=b --x=y"),
        (["-"], "-"),
        (["¿por", "qué?"], "¿por qué?"),
        (["なぜ遅いのか"], "なぜ遅いのか"),
    ],
)
def test_a_question_as_people_type_it(argv: list[str], question: str) -> None:
    found, args = words(*argv)
    assert " ".join(found) == question
    assert args["since"] is None


def test_options_stand_anywhere_around_a_question() -> None:
    assert words("why", "-k=3")[1]["k"] == 3
    found, args = words("why", "-k", "3", "slow", "--json", "--since=7d", "--type", "text", "-k5")
    assert found == ["why", "slow"]
    assert (args["k"], args["json"], args["since"], args["type"]) == (5, True, "7d", "text")


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        (["--sicne", "3d"], "--since"),
        (["--harnes=codex"], "--harness"),
        (["--neighbours", "2"], "--neighbors"),
        (["--sesion", "1"], "--session"),
        (["--half", "3"], "--half-life"),
        (["--jsno"], "--json"),
    ],
)
def test_a_slip_in_an_option_is_told_rather_than_asked_for(slip: list[str], meant: str) -> None:
    with pytest.raises(UsageError, match=f"; {meant} is") as told:
        words("why", *slip)
    assert "put `--` before" in str(told.value)
    assert words("--", "why", *slip)[0] == ["why", *slip]
    assert words(f"why {' '.join(slip)}")[0] == [f"why {' '.join(slip)}"]


def test_an_option_without_its_value_is_refused() -> None:
    with pytest.raises(UsageError, match="expected one argument"):
        words("why", "--since")


@pytest.mark.parametrize(
    "argv",
    [
        ["recall", "x", "-k", "0"],
        ["recall", "x", "-k", "many"],
        ["get", "s"],
        ["index", "--limit", "-1"],
        ["fly"],
        ["sessions", "--limit", "x"],
    ],
)
def test_bad_arguments_are_usage_errors(argv: list[str]) -> None:
    with pytest.raises(UsageError) as refused:
        build_parser().parse_args(argv)
    assert refused.value.exit_code == 2
    assert "funes" in refused.value.hint


def test_every_command_that_a_message_names_exists() -> None:
    root = Path(__file__).resolve().parents[3]
    sources = [
        path for top in ("funes_ls", "indexer", "retrieval") for path in (root / top).rglob("*.py")
    ]
    named = {
        name
        for path in sources
        for name in re.findall(r"`funes ([a-z]+)", path.read_text(encoding="utf-8"))
    }
    assert named >= {"index", "model", "status"}
    assert named - set(COMMANDS) == set()
