"""What diffs, traces and files are understood to ask."""

import contextlib
import time

import pytest

from funes_ls.indexer.errors import UsageError
from funes_ls.retrieval.artefact import MOST_CHARS, Artefact, Inquiry, fitted, inquiry_of

PYTHON = """Traceback (most recent call last):
  File "/home/dev/tally/core.py", line 41, in load_usage
    return payload["usage"]["total_tokens"]
KeyError: 'usage'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/click/core.py", line 1157, in __call__
    return self.main(*args, **kwargs)
  File "/home/dev/tally/cli.py", line 12, in report_all
    report(load_usage(path))
tally.errors.UsageMissing: no usage in transcript
"""
NODE = """TypeError: Cannot read properties of undefined (reading 'sessionId')
    at resolveSession (/home/dev/app/src/server/session.ts:88:21)
    at async Promise.all (index 0)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)
    at Object.<anonymous> (/home/dev/app/node_modules/vitest/dist/run.js:1:2)
"""
TSC = "src/lib/size.ts(12,5): error TS2322: Type 'string' is not assignable to type 'Bytes'.\n"
RUSTC = """error[E0308]: mismatched types
  --> src/ledger/parse.rs:210:13
   |
210 |             &line_amounts,
   |             ^^^^^^^^^^^^^ expected `Vec<Amount>`, found `&Vec<Amount>`

error: aborting due to 1 previous error
"""
RUST = """thread 'tests::merges' panicked at src/merge.rs:41:9:
assertion `left == right` failed
stack backtrace:
   0: rust_begin_unwind
             at /rustc/abc/library/std/src/panicking.rs:652:5
   3: ledger::merge::merge_working_log
             at ./src/merge.rs:41:9
"""
GO = """panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x48f5a1]

goroutine 1 [running]:
main.(*Store).LoadAll(0xc000012345, {0x4b, 0x1})
\t/home/dev/proj/store.go:42 +0x1d
exit status 2
"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: pool exhausted
\tat com.acme.db.ConnectionPool.takeOne(ConnectionPool.java:88)
\tat java.base/java.lang.Thread.run(Thread.java:833)
Caused by: java.sql.SQLTransientException: Connection is not available after 30000ms.
\t... 12 more
"""
CPP = """src/net/socket.cpp:88:12: error: no matching function for call to 'Socket::bindTo(int)'
   88 |     sock.bindTo(1);
/usr/bin/ld: main.o: undefined reference to `frob_init(int)'
"""
ASAN = """==123==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010
    #0 0x4f5a in Buffer::grow(unsigned long) /src/net/buffer.cc:77:3
"""
PYTEST = """_____________________ test_rounding ______________________
    def test_rounding():
>       assert fee_of(10) == 3
E       assert 4 == 3
E        +  where 4 = fee_of(10)

tests/test_fees.py:12: AssertionError
FAILED tests/test_fees.py::test_rounding - assert 4 == 3
==================== 1 failed, 3 passed in 0.12s ====================
"""
RUBY = "lib/cart.rb:12:in `total_of': undefined method `cents' for nil (NoMethodError)\n"

DIFF = """diff --git a/src/http/retry.py b/src/http/retry.py
index 83db48f..bf2a2c1 100644
--- a/src/http/retry.py
+++ b/src/http/retry.py
@@ -10,7 +10,7 @@ def fetch_with_budget(url):
     session = open_session()
-    delay = backoff_seconds(attempt)
+    delay = full_jitter(attempt)
     sleep_for(delay)
     return session
"""


def trace(text: str) -> Inquiry:
    return inquiry_of(Artefact(kind="trace", text=text))


def diff(text: str) -> Inquiry:
    return inquiry_of(Artefact(kind="diff", text=text))


@pytest.mark.parametrize(
    ("text", "said", "file", "names"),
    [
        (PYTHON, "KeyError: 'usage'", "/home/dev/tally/core.py", ["load_usage", "UsageMissing"]),
        (NODE, "TypeError: Cannot read", "src/server/session.ts", ["resolveSession", "sessionId"]),
        (TSC, "error TS2322: Type 'string'", "src/lib/size.ts", ["TS2322", "Bytes"]),
        (RUSTC, "error[E0308]: mismatched types", "src/ledger/parse.rs", ["E0308", "Amount"]),
        (RUST, "panicked", "src/merge.rs", ["merge_working_log"]),
        (GO, "panic: runtime error: invalid memory", "/home/dev/proj/store.go", ["LoadAll"]),
        (JAVA, "IllegalStateException: pool exhausted", "ConnectionPool.java", ["takeOne"]),
        (CPP, "no matching function for call", "src/net/socket.cpp", ["bindTo", "frob_init"]),
        (ASAN, "heap-use-after-free", "/src/net/buffer.cc", ["Buffer", "grow"]),
        (PYTEST, "assert 4 == 3", "tests/test_fees.py", ["test_rounding", "fee_of"]),
        ("  what():  pool_size too small\n", "pool_size too small", "", ["pool_size"]),
        ("bash: frobnicate: Command not found\n", "frobnicate", "", ["frobnicate"]),
        ("./main.go:12:5: undefined: fooBar\n", "undefined: fooBar", "main.go", ["fooBar"]),
        (RUBY, "undefined method `cents' for nil", "lib/cart.rb", ["total_of", "cents"]),
    ],
)
def test_traces_of_every_language_give_error_file_and_names(
    text: str, said: str, file: str, names: list[str]
) -> None:
    found = trace(text)
    assert said in found.text
    assert any(one.endswith(file) for one in found.files or [""])
    assert found.asked.said
    assert set(names) <= {name for name, _ in found.names}


def test_the_cause_is_what_a_trace_says() -> None:
    assert trace(PYTHON).asked.said == "KeyError: 'usage'"
    assert trace(RUSTC).asked.said == "error[E0308]: mismatched types"


def test_libraries_and_runtimes_are_no_files_of_the_asker() -> None:
    named = [*trace(PYTHON).files, *trace(NODE).files, *trace(RUST).files, *trace(JAVA).files]
    assert len(named) == 5
    weights = dict(trace(PYTHON).names)
    assert weights["tally/core.py"] > 2 * weights["click/core.py"]


def test_what_differs_from_run_to_run_is_left_out() -> None:
    first = trace("2026-03-01T10:00:00Z [41] ERROR job 8c1de1a2 failed to lease pool-a after 31 ms")
    second = trace("2026-04-09T23:59:59Z [7] ERROR job 8c1de1a2 failed to lease pool-a after 9 ms")
    assert first == second
    assert trace(GO) == trace(GO.replace("0xc000012345", "0xdead").replace(":42", ":57"))


def test_colours_of_a_terminal_are_no_words() -> None:
    plain = RUSTC.splitlines()
    coloured = "\n".join(f"\x1b[1m\x1b[38;5;9m{line}\x1b[0m" for line in plain)
    assert trace(coloured).asked == trace(RUSTC).asked


def test_the_message_weighs_most_and_what_it_quotes_still_more() -> None:
    weights = dict(trace(NODE).names)
    assert weights["sessionId"] > weights["properties"] > weights["resolveSession"]


def test_text_without_an_error_is_asked_as_it_stands() -> None:
    found = trace("the poller hangs after the second reconnect")
    assert "poller hangs" in found.text
    assert {"poller", "reconnect"} <= {name for name, _ in found.names}


def test_changed_names_weigh_more_than_kept_ones_and_those_more_than_context() -> None:
    weights = dict(diff(DIFF).names)
    assert weights["full_jitter"] == weights["backoff_seconds"] == 1.0
    assert weights["full_jitter"] > weights["attempt"] > weights["open_session"]
    assert weights["full_jitter"] > weights["fetch_with_budget"] > weights["open_session"]
    assert "def" not in weights


def test_a_commits_message_is_part_of_what_a_diff_says() -> None:
    head = "commit 1a2b\nAuthor: Ada <ada@example.org>\nDate: now\n\n    Full jitter, as agreed\n\n"
    mail = "From: Ada\nSubject: [PATCH 1/2] Full jitter, as agreed\n---\n 1 file changed\n\n"
    for before in (head, mail):
        assert diff(before + DIFF).asked.said == "Full jitter, as agreed"
        assert "Ada" not in diff(before + DIFF).text
    assert diff(DIFF).asked.said == ""


def test_files_of_a_diff_are_those_of_either_side() -> None:
    made = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+hello_there()\n"
    renamed = "diff --git a/old.py b/now.py\nrename from old.py\nrename to now.py\n"
    binary = "diff --git a/logo.png b/logo.png\nBinary files a/logo.png and b/logo.png differ\n"
    assert diff(made).files == ("new.py",)
    assert set(diff(renamed).files) == {"old.py", "now.py"}
    assert diff(binary).files == ("logo.png",)
    assert diff(binary).asked.names == ()


def test_a_removed_line_that_looks_like_a_header_is_a_line() -> None:
    text = "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1 @@\n--- drop_everything\n keep_this\n"
    assert diff(text).files == ("q.sql",)
    assert dict(diff(text).names)["drop_everything"] == 1.0


@pytest.mark.parametrize("count", ["1", "99", "0"])
def test_a_patch_that_would_not_apply_is_read_all_the_same(count: str) -> None:
    text = DIFF.replace("-10,7 +10,7", f"-10,{count} +10,{count}").replace("\n", "\r\n")
    assert {"full_jitter", "backoff_seconds"} <= {name for name, _ in diff(text).names}


def test_generated_files_are_named_but_their_lines_do_not_ask() -> None:
    lock = "--- a/Cargo.lock\n+++ b/Cargo.lock\n@@ -1 +1 @@\n-serde_json_old\n+serde_json_new\n"
    found = diff(lock + DIFF)
    assert found.files == ("Cargo.lock", "src/http/retry.py")
    assert not any(name.startswith("serde") for name, _ in found.names)


def test_a_file_asks_by_what_it_defines() -> None:
    text = (
        '"""Keeps leases of workers."""\n\nimport heapq\n\nclass LeaseTable:\n'
        "    def renew_lease(self):\n        return heapq.heapify(self.waiting_rows)\n"
    )
    found = inquiry_of(Artefact(kind="file", text=text, path="/w/jobs/lease.py"))
    weights = dict(found.names)
    assert found.asked.said.startswith("Keeps leases of workers")
    assert weights["jobs/lease.py"] > weights["LeaseTable"] > weights["waiting_rows"]
    assert found.files == ("/w/jobs/lease.py",)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("diff", "not a diff at all"),
        ("diff", ""),
        ("diff", "@@ -1 +1 @@\n-+\n+-\n"),
        ("trace", "\x00\x01\x02"),
        ("trace", "---- ====\n"),
        ("trace", "\ud800"),
        ("file", "  \n"),
        ("poem", "roses"),
    ],
)
def test_what_asks_nothing_is_refused(kind: str, text: str) -> None:
    with pytest.raises(UsageError):
        inquiry_of(Artefact(kind=kind, text=text))


def test_a_large_diff_gives_a_share_of_every_file() -> None:
    small = DIFF
    huge = DIFF.replace("src/http/retry.py", "big.py") + "+filler_name_here = 1\n" * 400_000
    last = DIFF.replace("src/http/retry.py", "zuletzt.py").replace("full_jitter", "letzte_zeile")
    found = diff(small + huge + last)
    assert found.files == ("src/http/retry.py", "big.py", "zuletzt.py")
    assert "letzte_zeile" in dict(found.names)
    assert len(fitted(small + huge + last, "diff")) <= MOST_CHARS["diff"]


def test_the_end_of_a_long_log_counts() -> None:
    log = "INFO all is well here\n" * 500_000 + "ValueError: budget_of_tide is negative\n"
    assert trace(log).asked.said == "ValueError: budget_of_tide is negative"


@pytest.mark.parametrize(
    "text",
    [
        "a.b." * 2_500_000,
        "'" * 10_000_000,
        "(" * 10_000_000 + "Error: x",
        "at a.b/" * 1_500_000 + "\nError: word",
        "Error " * 2_000_000,
        "#1 in x (" * 1_000_000 + "\nError: word",
        "\n".join(f'  File "/a/f{n}.py", line 3, in g{n}' for n in range(200_000)),
        "+" + "aB3_" * 2_500_000,
        "1 " * 5_000_000,
    ],
    ids=range(9),
)
@pytest.mark.parametrize("kind", ["trace", "diff", "file"])
def test_ten_megabytes_of_anything_take_no_long(kind: str, text: str) -> None:
    began = time.process_time()
    head = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n" if kind == "diff" else ""
    with contextlib.suppress(UsageError):
        inquiry_of(Artefact(kind=kind, text=head + text))
    assert time.process_time() - began < 3.0
