"""The commands of sed that are understood, held against the real sed where there is one."""

import shutil
import subprocess
import time

import pytest

from funes_ls.retrieval.sed import apply_sed

LINES = [
    "import os",
    'from "../../tui/a.js" import {b}',
    "x = foo(1) + foo(2)",
    "a|b|c /usr/local/bin",
    "",
    "    return self.x  # TODO",
    "last",
]
SCRIPTS = [
    ("s/foo/bar/", False),
    ("s/foo/bar/g", False),
    (r's|from "../../tui/|from "./components/|g', False),
    (r"s/\(foo\)(\([0-9]\))/\2:\1/g", False),
    (r"s/(foo)\(([0-9])\)/\2:\1/g", True),
    ("s/foo(1)/one/", False),
    ("s/a|b/X/g", False),
    ("s/a|b/X/g", True),
    ("s#/usr/local#/opt#", False),
    ("s/IMPORT/use/I", False),
    ("s/x/[&]/g", False),
    ("3d", False),
    ("2,4d", False),
    ("$d", False),
    ("/TODO/d", False),
    ("3s/foo/bar/g", False),
    ("2,3s/o/0/g", False),
    ("s/foo/bar/;s/bar/baz/", False),
    ("s/foo/bar/\ns/os/sys/", False),
    (r"s/[0-9][0-9]*/N/g", False),
    (r"s/^    //", False),
    (r"s/ *#.*$//", False),
    (r"s/import/import\n/", False),
    ("s/x\\.y/z/", False),
    ("s/[[:space:]]*#[[:space:]]*/ : /", False),
    ("s/[^[:alnum:] ]+/_/g", True),
    (r"s/[]x\]/_/", False),
    ("s/ret(urn)? (self|cls)[.]/\\2 /", True),
]


@pytest.mark.skipif(shutil.which("sed") is None, reason="no sed here to compare with")
@pytest.mark.parametrize(("script", "extended"), SCRIPTS)
def test_it_does_what_sed_does(script: str, extended: bool) -> None:
    version = subprocess.run(["sed", "--version"], capture_output=True, text=True, check=False)
    if "GNU" not in version.stdout:
        pytest.skip("another sed than GNU's")
    command = ["sed", *(["-E"] if extended else []), script]
    text = "".join(f"{line}\n" for line in LINES)
    run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=20)
    assert run.returncode == 0
    assert apply_sed(LINES, script, extended=extended) == run.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    "script",
    ["y/abc/xyz/", "s/a", "s/(/x/w", "s/[/x/", "{p}", "a\\", "s/a/b/e", "s/x/y/9999999999",
     r"s/o/\3/", "s/[[:nosuch:]]/x/"],
)  # fmt: skip
def test_what_is_not_understood_changes_nothing(script: str) -> None:
    assert apply_sed(LINES, script, extended=False) == LINES


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("s/(a+)+$/x/", "a" * 40 + "b"),
        ("s/(a|a)*$/x/", "a" * 40 + "b"),
        ("s/(a?){60}$/x/", "a" * 40 + "b"),
        ("s/" + "a?" * 30 + "a" * 30 + "/x/", "a" * 29),
        ("s/.*.*.*.*=x/y/", "a" * 3000),
        ("/(x+x+)+y/d", "x" * 60),
        ("s/" + "(" * 1500 + ")" * 1500 + "/x/", "a"),
    ],
)
def test_patterns_that_take_for_ever_are_left_alone(script: str, line: str) -> None:
    start = time.monotonic()
    assert apply_sed([line] * 20, script, extended=True) == [line] * 20
    assert time.monotonic() - start < 5
