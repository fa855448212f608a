"""What shell scripts do to files."""

import pytest

from funes_ls.indexer.calls.outcome import outcome_of
from funes_ls.indexer.calls.shell import script_events
from funes_ls.indexer.facts import FileEvent


def done(script: str, output: str = "", cwd: str = "/w") -> list[FileEvent]:
    return list(script_events(script, outcome_of(output), cwd))


def changes(script: str, output: str = "") -> list[tuple[str, str, str]]:
    seen = ("read", "search", "list", "mention")
    return [
        (one.kind, one.path, one.new or one.source)
        for one in done(script, output)
        if one.kind not in seen
    ]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("cat > a.py <<'EOF'\nx = $y\nEOF", [("write", "/w/a.py", "x = $y\n")]),
        ("cat <<EOF >> 'my notes.md'\none \\$two\nEOF",
         [("append", "/w/my notes.md", "one $two\n")]),
        ("cat <<-EOF > a\n\t\tindented\n\tEOF\n", [("write", "/w/a", "indented\n")]),
        ("mkdir -p src && cd src && cat > a <<E\nx\nE\ncat > b <<E\ny\nE",
         [("write", "/w/src/a", "x\n"), ("write", "/w/src/b", "y\n")]),
        ("cat <<'E' | tee a b > /dev/null\nx\nE",
         [("write", "/w/a", "x\n"), ("write", "/w/b", "x\n")]),
        ("tee -a log <<< nothing", []),
        ("echo 'one two' > a", [("write", "/w/a", "one two\n")]),
        ("echo -n one >> a", [("append", "/w/a", "one")]),
        ("echo -e 'a\\nb' > a", [("write", "/w/a", "a\nb\n")]),
        ("printf '%s\\n' one two > a", [("write", "/w/a", "one\ntwo\n")]),
        ("echo $HOME > a; echo `date` > b; echo hi > $F", []),
        ("sed -i 's/a/b/' x.py y.py", [("sed", "/w/x.py", "s/a/b/"), ("sed", "/w/y.py", "s/a/b/")]),
        ("sed -i '' -e 's|a|b|g' -e 3d x.py", [("sed", "/w/x.py", "s|a|b|g\n3d")]),
        ("cp a.py src/", [("copy", "/w/src/a.py", "/w/a.py")]),
        ("git mv -f a.py b.py", [("move", "/w/b.py", "/w/a.py")]),
        ("mv a b c/", [("move", "/w/c/a", "/w/a"), ("move", "/w/c/b", "/w/b")]),
        ("rm -rf build a.py", [("delete", "/w/build", ""), ("delete", "/w/a.py", "")]),
        ("rm *.py; mv $A b", []),
        ("cat a > b", [("copy", "/w/b", "/w/a")]),
        ("python3 - <<'E'\nprint(1)\nE", []),
        ("make 2> errors.txt", []),
        ("> a; : > b", [("write", "/w/a", ""), ("write", "/w/b", "")]),
        ("perl -0pi -e 's/a/b/g' x.py", [("sed", "/w/x.py", "s/a/b/g")]),
        ("bash -c \"echo x > a\"", [("write", "/w/a", "x\n")]),
        ("if true; then echo x > a; fi", [("write", "/w/a", "x\n")]),
        ("# echo x > a\necho '# no comment' > b", [("write", "/w/b", "# no comment\n")]),
        ("echo 'never closed > a", []),
        ("cat > a <<EOF\nnever closed", [("write", "/w/a", "never closed\n")]),
    ],
)  # fmt: skip
def test_what_scripts_change(script: str, expected: list[tuple[str, str, str]]) -> None:
    assert changes(script) == expected


def test_of_a_failed_script_the_last_statement_did_nothing() -> None:
    script = "cat > a <<'E'\nx\nE\npytest -q && echo y > b"
    assert changes(script, "Exit code 1\nfailed") == [("write", "/w/a", "x\n")]
    assert changes("echo y > b", "Exit code 1\nread-only") == []


@pytest.mark.parametrize(
    ("script", "output", "expected"),
    [
        ("cat a.py", "x\ny", ("x\ny", 1, True)),
        ("cd . && cat a.py", "x", ("x", 1, True)),
        ("cat -n a.py", "     1\tx\n     2\ty", ("x\ny", 1, True)),
        ("nl -ba a.py", "     1\tx", ("x", 1, True)),
        ("sed -n '10,20p' a.py", "x\ny", ("x\ny", 10, False)),
        ("head -n 5 a.py", "x", ("x", 1, False)),
        ("tail -5 a.py", "x", ("x", 0, False)),
        ("cat a.py; ls", "x\na.py", ("", 0, False)),
        ("cat a.py", "Exit code 1\ncat: a.py: No such file", None),
        ("cat a.py", "x\n... output truncated ...", ("x\n... output truncated ...", 1, False)),
    ],
)
def test_what_scripts_show(
    script: str, output: str, expected: tuple[str, int, bool] | None
) -> None:
    reads = [one for one in done(script, output) if one.kind == "read"]
    assert [(one.new, one.first_line, one.whole) for one in reads] == [expected][: bool(expected)]
    assert all(one.path == "/w/a.py" for one in reads)


def test_what_searches_find() -> None:
    given = done("rg -n level src", "src/a.py:3:level = 1\nsrc/b/c.ts:9:level()\nplain words here")
    found = [one for one in given if one.kind != "mention"]
    assert [(one.kind, one.path) for one in found] == [
        ("search", "/w/src/a.py"),
        ("search", "/w/src/b/c.ts"),
    ]


@pytest.mark.timeout(20)
def test_long_scripts_and_answers_take_no_long_time() -> None:
    assert done("echo '" + "a" * 500_000) == []
    done("x " * 100_000 + "> a")
    done("rg x", ("a" * 399 + ".") * 2_000)
    done("(" * 20_000 + "$(" * 20_000)


def test_what_commands_name() -> None:
    found = done("cd app && pytest -q tests/test_a.py && echo $X.py")
    assert [(one.kind, one.path) for one in found] == [("mention", "/w/app/tests/test_a.py")]


DIFF = """diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,3 @@ def level():
 one
-two
+three
 four
@@ -9,3 +9,3 @@
 nine

--- gone
+++ten
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+hello
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
"""


@pytest.mark.parametrize("command", ["git apply", "patch -p1", "git apply -p1 -"])
def test_diffs(command: str) -> None:
    given = done(f"{command} <<'EOF'\n{DIFF}EOF")
    assert [(one.kind, one.path, one.old, one.new) for one in given] == [
        ("edit", "/w/src/a.py", "one\ntwo\nfour", "one\nthree\nfour"),
        ("edit", "/w/src/a.py", "nine\n\n-- gone", "nine\n\n++ten"),
        ("write", "/w/new.txt", "", "hello\n"),
        ("delete", "/w/old.txt", "", ""),
    ]
    assert done(f"git apply --check <<'EOF'\n{DIFF}EOF") == []
    assert done(f"{command} <<'EOF'\n{DIFF}EOF", "Exit code 1\nerror: patch failed") == []
