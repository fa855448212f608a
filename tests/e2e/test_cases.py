"""The inputs of tests/cases behave as their EXPECT.md says: one test, or a few, for each."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cli import (
    follow,
    funes,
    funes_process,
    index,
    problems,
    recall,
    status,
    stored,
    texts,
)

CASES = Path(__file__).resolve().parents[1] / "cases"
ID = "00000000-0000-4000-8000-00000000"


def case(number: str) -> Path:
    (folder,) = CASES.glob(f"{number}-*")
    return folder


def lay(number: str, home: Path) -> None:
    """Put a case's files into the home directory of this test."""
    folder = case(number)
    if (folder / "gen.py").is_file():
        subprocess.run([sys.executable, folder / "gen.py", home.parent], check=True)
    else:
        shutil.copytree(folder / "home", home, dirs_exist_ok=True)


def with_text(hits: list[dict[str, Any]], part: str) -> list[dict[str, Any]]:
    return [hit for hit in hits if part in hit["text"]]


# 01 files that hold no conversation


def test_01_only_the_real_session_counts(own_home: Path) -> None:
    lay("01", own_home)
    quiet = funes("index", "--yes", "-q")
    assert (quiet.code, quiet.err) == (0, "")
    told = status()
    assert (told["sessions"], told["problems"], told["harnesses"]) == (1, 0, {"claude_code": 1})
    again = index()
    assert (again["sessions"], again["current"]) == (0, 4)


def test_01_the_answer_comes_first_and_no_summary_is_said(own_home: Path) -> None:
    lay("01", own_home)
    index()
    first = recall("why does the pager retry three times")[0]
    assert (first["session_id"], first["role"]) == (f"{ID}0104", "assistant")
    assert with_text(recall("lantern summary heading"), "lantern") == []


# 02 one line of 30 MB


def usage_of(argv: list[str]) -> tuple[int, float]:
    """Return (peak memory in MB, CPU seconds) of a run of the command in a process of its own."""
    program = (
        "import resource, sys\nfrom funes_ls.cli import main\ncode = main(sys.argv[1:])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_maxrss // 1024, used.ru_utime + used.ru_stime, file=sys.stderr)\n"
        "sys.exit(code)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, *argv], capture_output=True, text=True, timeout=100
    )
    assert run.returncode == 0, run.stderr
    peak_mb, cpu_s = run.stderr.splitlines()[-1].split()
    return int(peak_mb), float(cpu_s)


@pytest.mark.slow
def test_02_a_giant_line_takes_bounded_memory_and_time(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay("01", own_home)
    usual_mb, _ = usage_of(["index", "--yes"])
    shutil.rmtree(own_home / ".claude")
    lay("02", own_home)
    words = ["index", "--yes", "--words-only"]
    monkeypatch.setenv("FUNES_HOME", str(own_home / "words-only"))
    assert usage_of(words)[1] < 10
    monkeypatch.setenv("FUNES_HOME", str(own_home / "giant"))
    giant_mb, cpu_s = usage_of(["index", "--yes"])
    assert giant_mb - usual_mb < 400
    assert cpu_s < 60


@pytest.mark.slow
def test_02_nothing_but_the_image_is_left_out(own_home: Path, funes_home: Path) -> None:
    lay("02", own_home)
    index()
    rows = stored(funes_home)
    assert len(rows) < 12
    assert max(longest_base64(row.text) for row in rows) <= 200
    assert [row.text for row in rows if "before data:" in row.text and "[elided]" in row.text]
    asked = recall("what is wrong in this picture of the dial")
    assert with_text(asked, "what is wrong in this picture of the dial")[0]["turn_uuid"] == "u0002"
    found = with_text(recall("the needle sticks at forty"), "needle sticks at forty")
    assert {hit["harness"] for hit in found} == {"claude_code", "codex"}
    assert {row.text for row in rows} >= {
        "Look at the dial before we start.",
        "open the dial photo",
    }


def longest_base64(text: str) -> int:
    alphabet = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
    longest = run = 0
    for char in text:
        run = run + 1 if char in alphabet else 0
        longest = max(longest, run)
    return longest


# 03 CRLF, a byte-order mark, blank lines


def test_03_every_turn_of_a_windows_file(own_home: Path, funes_home: Path) -> None:
    lay("03", own_home)
    index()
    rows = stored(funes_home)
    assert len({row.turn_uuid for row in rows}) == status()["turns"] == 3
    assert [row.text for row in rows if row.text.endswith("\r")] == []
    (hit,) = with_text(recall("rotate the kiln logs"), "rotate the kiln logs")
    assert (hit["cwd"], hit["role"]) == ("C:\\Users\\dev\\my project", "user")
    answers = with_text(recall("kiln logs kept for nine days"), "nine days")
    assert [answer["role"] for answer in answers] == ["assistant"]
    assert "\r" not in follow(hit).out
    assert "\r" not in funes("recall", "note about the kiln").out


@pytest.mark.parametrize("project", ["my project", "C:\\Users\\dev\\my project"])
def test_03_the_project_is_found_by_name_and_by_windows_path(own_home: Path, project: str) -> None:
    lay("03", own_home)
    index()
    assert len(recall("kiln logs", "--project", project)) >= 2
    assert recall("kiln logs", "--project", "another project") == []


def test_03_saved_again_with_other_line_ends_adds_nothing(own_home: Path, funes_home: Path) -> None:
    lay("03", own_home)
    index()
    before = {row.id: row.text for row in stored(funes_home)}
    (trace,) = own_home.rglob("*.jsonl")
    text = trace.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    trace.write_text(text, encoding="utf-8", newline="\n")
    index()
    assert {row.id: row.text for row in stored(funes_home)} == before


# 04 two projects whose non-ASCII paths fold to one folder


@pytest.mark.parametrize(
    ("query", "session", "cwd"),
    [
        ("which port does the sorter use", "0401", "/work/外注"),
        ("which port does the mixer use", "0402", "/work/個人"),
        ("which port does the reader use", "0403", "/work/my notes/app"),
    ],
)
def test_04_each_hit_shows_its_own_folder(
    own_home: Path, query: str, session: str, cwd: str
) -> None:
    lay("04", own_home)
    index()
    first = recall(query)[0]
    assert (first["session_id"], first["cwd"]) == (ID + session, cwd)


def test_04_three_sessions_three_projects_and_filters_keep_them_apart(own_home: Path) -> None:
    lay("04", own_home)
    index()
    told = status()
    assert (told["sessions"], told["projects"]) == (3, 3)
    for cwd, session in (("/work/外注", "0401"), ("/work/個人", "0402"), ("外注", "0401")):
        for hits in (recall("port", "--project", cwd), recall(f"project:{cwd} port")):
            assert {hit["session_id"] for hit in hits} == {ID + session}


# 05 hyphens in paths, and a project that moved


def test_05_colliding_paths_stay_apart(own_home: Path) -> None:
    lay("05", own_home)
    index()
    hits = recall("timeout of the proxy")
    folders = {hit["session_id"]: hit["cwd"] for hit in hits}
    assert folders[f"{ID}0501"] == "/work/api-proxy"
    assert folders[f"{ID}0502"] == "/work/api/proxy"
    only = recall("timeout of the proxy", "--project", "/work/api/proxy")
    assert {hit["session_id"] for hit in only} == {f"{ID}0502"}
    known = {"/work/api-proxy", "/work/api/proxy", "/old/place/tool"}
    assert {hit["cwd"] for hit in hits} <= known


def test_05_a_moved_project_is_still_found(own_home: Path) -> None:
    lay("05", own_home)
    index()
    assert recall("how the tool parses dates")[0]["session_id"] == f"{ID}0503"
    by_name = recall("how the tool parses dates", "--project", "tool")
    assert {hit["session_id"] for hit in by_name} == {f"{ID}0503"}


def test_05_a_moved_project_is_found_from_its_new_place_by_its_remote(own_home: Path) -> None:
    """The old folder still existed when it was indexed, so its repository is known."""
    lay("05", own_home)
    old, new = own_home / "old" / "tool", own_home / "new" / "tool-2"
    remote = json.loads((case("05") / "git-remotes.json").read_text(encoding="utf-8"))
    for command in (["init", "-q"], ["remote", "add", "origin", remote["/new/place/tool"][0]]):
        old.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", *command], cwd=old, check=True)
    (trace,) = own_home.rglob("*0503.jsonl")
    trace.write_text(
        trace.read_text(encoding="utf-8").replace("/old/place/tool", str(old)), encoding="utf-8"
    )
    index()
    new.parent.mkdir()
    old.rename(new)
    hits = recall("how the tool parses dates", "--project", str(new))
    assert {hit["session_id"] for hit in hits} == {f"{ID}0503"}
    assert {hit["cwd"] for hit in hits} == {str(old)}


# 06 a fork that repeats its parent


def test_06_the_repeated_passage_is_one_hit(own_home: Path) -> None:
    lay("06", own_home)
    index()
    hits = recall("why did we drop the bloom filter", "-k", "8")
    assert len(set(texts(hits))) == len(hits)
    (passage,) = with_text(hits, "We dropped the bloom filter because")
    both = {passage["session_id"], *passage["also_in"]}
    assert both == {f"{ID}0601", f"{ID}0602"}
    shown = follow(passage)
    assert (shown.code, "false positives doubled" in shown.out) == (0, True)


def test_06_what_came_after_the_fork_is_the_forks(own_home: Path) -> None:
    lay("06", own_home)
    index()
    hits = with_text(recall("what replaced it after the fork"), "fter the fork")
    assert len(hits) == 2
    assert {(hit["session_id"], *hit["also_in"]) for hit in hits} == {(f"{ID}0602",)}
    told = status()
    assert (told["sessions"], told["turns"]) == (2, 6)


# 07 one reply under several ids


def test_07_a_repeated_reply_is_one_hit_at_its_first_place(own_home: Path) -> None:
    lay("07", own_home)
    index()
    (hit,) = with_text(recall("parser rewrites commas"), "parser rewrites commas")
    assert (hit["turn_uuid"][-4:], hit["seq"]) == ("0701", 1)


def test_07_a_streamed_reply_is_given_whole(own_home: Path) -> None:
    lay("07", own_home)
    index()
    found = with_text(recall("cache is warmed at noon"), "The cache is")
    assert texts(found) == ["The cache is warmed at noon by the nightly job."]


# 08 punctuation in questions

PUNCTUATION = [
    "#4821",
    "src/core/flux.py",
    "don't",
    "50%",
    "ops@example.invalid",
    "AND OR NOT",
    '"exact phrase here"',
    "foo:bar",
    "-DNDEBUG",
    "C++",
    "(unclosed",
    "a*b",
    "chat-send",
    "back\\slash",
    "~/.config/x",
    "why?!",
]


def test_08_every_literal_is_found_by_words(own_home: Path) -> None:
    lay("08", own_home)
    index()
    missed = {}
    for query in PUNCTUATION:
        ran = funes("recall", query, "--json")
        answer = ran.json if ran.code == 0 else {"hits": [], "legs": {"words": ran.err}}
        top = [hit for hit in answer["hits"][:3] if hit["session_id"] == f"{ID}0801"]
        by_words = [hit for hit in top if hit["explain"]["words"] is not None]
        if not by_words or answer["legs"]["words"] != "ran":
            missed[query] = (ran.code, answer["legs"], len(top))
    assert missed == {}


def test_08_the_same_by_words_alone(own_home: Path) -> None:
    lay("08", own_home)
    index("--yes", "--words-only")
    missed = [query for query in PUNCTUATION if not recall(query)]
    assert missed == []


@pytest.mark.parametrize("query", ["", "   "])
def test_08_an_empty_question_is_a_usage_error(own_home: Path, query: str) -> None:
    lay("08", own_home)
    index("--yes", "--words-only")
    ran = funes("recall", query)
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    assert ran.err.startswith("funes: ")


@pytest.mark.parametrize("query", ['""', "?!…", "-- * ( )", "flux " * 4000])
def test_08_odd_questions_get_a_message_or_an_answer(own_home: Path, query: str) -> None:
    lay("08", own_home)
    index("--yes", "--words-only")
    ran = funes("recall", query)
    assert ran.code in (0, 2)
    assert ran.out or ran.err
    assert "Traceback" not in ran.err
    assert "internal error" not in ran.err


# 09 half of an emoji


def test_09_every_turn_is_kept_and_encodable(own_home: Path, funes_home: Path) -> None:
    lay("09", own_home)
    index()
    assert status()["turns"] == 4
    kept = {row.text for row in stored(funes_home)}
    assert [text for text in kept if any("\ud800" <= char <= "\udfff" for char in text)] == []
    for query in ("kettle boiled over", "toaster jammed", "grinder reversed", "good emoji kept"):
        (hit,) = with_text(recall(query), query)
        assert follow(hit).code == 0
    assert "good emoji kept \N{ROCKET} here" in kept


def test_09_ids_are_the_same_in_every_run(
    own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay("09", own_home)
    index()
    monkeypatch.setenv("FUNES_HOME", str(own_home / "second"))
    index()
    first = {row.id: row.text for row in stored(funes_home)}
    assert first == {row.id: row.text for row in stored(own_home / "second")}


def test_09_a_real_process_prints_it(own_home: Path) -> None:
    lay("09", own_home)
    assert funes_process("index", "--yes").code == 0
    shown = funes_process("recall", "kettle boiled over")
    assert shown.code == 0
    assert "kettle boiled over" in shown.out


# 10 odd times


def test_10_turns_keep_the_order_of_the_file(own_home: Path, funes_home: Path) -> None:
    lay("10", own_home)
    index()
    rows = [row for row in stored(funes_home) if row.session_id == f"{ID}1001"]
    assert [row.text[18:19] for row in rows] == list("123456")
    hits = [hit for hit in recall("valve note", "-k", "20") if hit["session_id"] == f"{ID}1001"]
    assert {hit["text"][18:19] for hit in hits} == set("123456")
    (third,) = with_text(hits, "number 3 of six")
    shown = follow(third).out
    places = [shown.index(f"number {number} of six") for number in (2, 3, 4)]
    assert places == sorted(places)


def test_10_old_times_weigh_as_old_and_no_time_is_invented(own_home: Path) -> None:
    lay("10", own_home)
    index()
    hits = recall("valve note", "-k", "20")
    old = [hit for hit in hits if hit["harness"] == "pi"]
    assert {hit["ts"][:10] for hit in old} == {"2024-01-05"}
    first_old = min(hit["rank"] for hit in old)
    assert min(hit["rank"] for hit in hits if hit["harness"] != "pi") < first_old
    years = {hit["ts"][:4] for hit in hits if hit["ts"]}
    assert years <= {"2024", "2026", "2031"}
    shown = funes("recall", "valve note", "-k", "20").out
    assert ("1970-" in shown, "0001-" in shown) == (False, False)


def test_10_a_future_time_is_fresh_at_most_and_not_today(own_home: Path) -> None:
    lay("10", own_home)
    index()
    (last,) = with_text(recall("valve note", "-k", "20"), "number 6 of six")
    assert (last["age_s"], last["explain"]["age"]) == (0, 1.0)
    today = recall("valve note", "-k", "20", "--since", "today", "--until", "today")
    assert with_text(today, "number 6 of six") == []


def test_10_a_range_of_dates_puts_each_turn_on_its_side(own_home: Path) -> None:
    lay("10", own_home)
    index()
    during = recall("valve note", "-k", "20", "--since", "2026-03-02", "--until", "2026-03-02")
    assert {hit["text"][18:19] for hit in during} >= set("2345")
    assert with_text(during, "number 6 of six") == with_text(during, "pi valve") == []
    before = recall("valve note", "-k", "20", "--until", "2025-12-31")
    assert {hit["harness"] for hit in before} == {"pi"}


# 11 NUL bytes after a crash


def test_11_every_readable_record_and_one_warning(own_home: Path, funes_home: Path) -> None:
    lay("11", own_home)
    ran = funes("index", "--yes")
    assert ran.code == 0
    for query in ("first good crash turn", "record before the zeros", "turn after the broken line"):
        assert len(with_text(recall(query), query)) == 1
    assert [row.text for row in stored(funes_home) if "\0" in row.text] == []
    warnings = [line for line in (ran.err + ran.out).splitlines() if f"{ID}1101.jsonl" in line]
    assert len(warnings) == 1
    assert "line" in warnings[0]
    assert {Path(one["path"]).name for one in problems()} == {f"{ID}1101.jsonl"}


def test_11_what_is_appended_later_is_picked_up_alone(own_home: Path, funes_home: Path) -> None:
    lay("11", own_home)
    index()
    before = {row.id for row in stored(funes_home)}
    (trace,) = own_home.rglob("*.jsonl")
    good = json.loads(trace.read_bytes().split(b"\n")[0])
    good |= {"uuid": "u0009", "timestamp": "2026-03-02T10:09:00.000Z"}
    good["message"]["content"] = "written after the restart"
    with trace.open("ab") as file:
        file.write(json.dumps(good).encode() + b"\n")
    assert index()["chunks"] == 1
    rows = stored(funes_home)
    assert [row.text for row in rows if row.id not in before] == ["written after the restart"]
    assert {row.id for row in rows} > before


# 12 a torn tail that is finished later


def stage(number: int, home: Path) -> None:
    trace = home / ".claude" / "projects" / "-work-demo" / f"{ID}1201.jsonl"
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.write_bytes((case("12") / f"stage{number}.jsonl").read_bytes())


def test_12_a_half_line_is_taken_once_it_is_whole(own_home: Path) -> None:
    stage(1, own_home)
    first = funes("index", "--yes", "--quiet", "--json")
    assert (first.code, first.err, first.json["problems"]) == (0, "", 0)
    assert status()["turns"] == 2
    assert with_text(recall("third record finished later"), "third record") == []
    stage(2, own_home)
    assert index()["embedded"] == 2
    assert status()["turns"] == 4
    assert len(with_text(recall("third record finished later"), "third record")) == 1
    assert len(with_text(recall("fourth record"), "fourth record")) == 1


def test_12_growing_gives_what_reading_at_once_gives(
    own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage(1, own_home)
    index()
    stage(2, own_home)
    index()
    monkeypatch.setenv("FUNES_HOME", str(own_home / "at-once"))
    index()
    grown, at_once = vectors(funes_home), vectors(own_home / "at-once")
    assert len(grown) == 4
    assert grown == at_once


def vectors(home: Path) -> dict[str, tuple[str, list[float]]]:
    import lancedb

    table = lancedb.connect(home / "memory").open_table("chunks").to_arrow()
    return {row["id"]: (row["text"], row["vector"]) for row in table.to_pylist()}


# 13 symbolic links


def test_13_each_real_file_is_read_once(own_home: Path) -> None:
    lay("13", own_home)
    ran = funes("index", "--yes")
    assert ran.code == 0
    assert status()["sessions"] == 3
    for query in ("real project apple", "linked project banana", "linked file cherry"):
        assert len(with_text(recall(query), query)) == 1
    dangling = [one for one in problems() if "-work-dangling" in one["path"]]
    loop = [one for one in problems() if "-work-loop" in one["path"]]
    assert (len(dangling), len(loop) <= 1, len(problems()) <= 2) == (1, True, True)


def test_13_an_append_through_the_real_path_is_seen(own_home: Path) -> None:
    lay("13", own_home)
    index()
    (real,) = (own_home.parent / "shared" / "elsewhere").glob("*.jsonl")
    record = json.loads(real.read_text(encoding="utf-8"))
    record |= {"uuid": "u1399", "message": {"role": "user", "content": "appended date palm"}}
    with real.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    assert index()["chunks"] == 1
    assert len(with_text(recall("appended date palm"), "appended date palm")) == 1


# 14 two sessions with one file name


def test_14_each_passage_shows_its_own_project_and_get_tells_them_apart(own_home: Path) -> None:
    lay("14", own_home)
    index()
    assert status()["sessions"] == 3
    gets = set()
    for name, other in (("alpha", "beta"), ("beta", "alpha")):
        query = {"alpha": "alpha pool sizing", "beta": "beta cache eviction"}[name]
        first = recall(query)[0]
        assert (first["cwd"], query in first["text"]) == (f"/work/{name}", True)
        shown = follow(first)
        assert shown.code == 0
        assert (query in shown.out, other in shown.out) == (True, False)
        gets.add(first["get"])
    assert len(gets) == 2


def test_14_the_file_name_is_the_session_id_everywhere(own_home: Path) -> None:
    lay("14", own_home)
    index()
    (hit,) = with_text(recall("inner id differs here"), "inner id differs here")
    assert hit["session_id"] == f"{ID}1403"
    assert "inner id differs here" in follow(hit).out
    listed = {one["session_id"] for one in funes("sessions", "--json").json["sessions"]}
    assert f"{ID}1403" in listed


# 15 a sub-agent under its parent's id


def test_15_the_child_is_a_session_of_its_own(own_home: Path) -> None:
    lay("15", own_home)
    index()
    first = with_text(recall("websocket ping interval finding"), "25 seconds")[0]
    assert first["session_id"] == "agent-ab12cd"
    shown = funes("get", first["session_id"], first["turn_uuid"], "--window", "0").out
    assert ("25 seconds" in shown, "please research" in shown) == (True, False)
    sessions = {one["session_id"]: one for one in funes("sessions", "--json").json["sessions"]}
    assert sessions.keys() == {"agent-ab12cd", f"{ID}1501"}
    assert sessions["agent-ab12cd"]["parent_id"] == f"{ID}1501"


def test_15_replayed_turns_stay_the_parents(own_home: Path) -> None:
    lay("15", own_home)
    index()
    (hit,) = with_text(recall("please research the ping interval"), "please research")
    assert hit["session_id"] == f"{ID}1501"


def test_15_subagents_can_be_left_out(own_home: Path) -> None:
    lay("15", own_home)
    index()
    hits = recall("websocket ping interval finding", "--no-subagents")
    assert {hit["session_id"] for hit in hits} == {f"{ID}1501"}


def test_15_subagents_come_last(own_home: Path) -> None:
    lay("15", own_home)
    ran = funes("index", "--yes", "--limit", "1", "--json")
    assert (ran.code, ran.json["sessions"]) == (0, 1)
    listed = funes("sessions", "--json").json["sessions"]
    assert [one["session_id"] for one in listed] == [f"{ID}1501"]
