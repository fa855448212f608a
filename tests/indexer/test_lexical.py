"""What words find."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.indexer.errors import BackendError, MemoryStateError
from funes_ls.indexer.lexical import LexicalIndex, LexicalQuery, searchable_text
from funes_ls.indexer.model import Chunk
from tests.indexer.making import row

LONG_WORD = "antidisestablishmentarianism" * 3
HASH = "389333fbe9a1c0de77aa0123456789abcdef0123"
TEXTS = {
    "issue": 'Look at #4821 in src/core/flux.py, it says "exact phrase here" and foo:bar.',
    "mail": "I don't think 50% is right; mail ops@example.invalid. Build with -DNDEBUG in C++ "
    "(unclosed paren). AND OR NOT are plain words. a*b, chat-send, back\\slash, ~/.config/x "
    "— why?!",
    "scattered": "here is a phrase that is not exact, and C is a letter",
    "camel": "call maxRetryCount of the HTTPServer in numpy.linalg.norm",
    "stems": "the caches were invalidated by retries",
    "accents": "le résumé du garçon über Ängste",
    "japanese": "設定ファイルを読み込む",
    "thai": "การตั้งค่าระบบ",
    "korean": "서버를 다시 시작했다",
    "russian": "ещё один отчёт",
    "greek": "ο κώδικας",
    "long": f"token {LONG_WORD} ends",
    "hash": f"fixed by commit {HASH} yesterday",
    "short": "see 7aa0123 for the change",
    "emoji": "shipped 🎉",
    "decomposed": "re\u0301gression",
}


@pytest.fixture(scope="module")
def index() -> Iterator[LexicalIndex]:
    made = LexicalIndex.create(None, index_id="test")
    made.add(_named(name, text) for name, text in TEXTS.items())
    made.add([row(99, "filler about other things entirely") for _ in range(5)])
    made.commit()
    yield made
    made.close()


def _named(name: str, text: str) -> Chunk:
    return row(0, text, id=name, session=f"session-{name}")


def first(index: LexicalIndex, question: str) -> str:
    return index.search(LexicalQuery(text=question), 5)[0][0]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("#4821", "issue"),
        ("src/core/flux.py", "issue"),
        ("flux.py", "issue"),
        ("core/flux", "issue"),
        ("don't", "mail"),
        ("50%", "mail"),
        ("ops@example.invalid", "mail"),
        ("AND OR NOT", "mail"),
        ('"exact phrase here"', "issue"),
        ("foo:bar", "issue"),
        ("-DNDEBUG", "mail"),
        ("C++", "mail"),
        ("(unclosed", "mail"),
        ("a*b", "mail"),
        ("chat-send", "mail"),
        ("back\\slash", "mail"),
        ("~/.config/x", "mail"),
        ("why?!", "mail"),
        ("--unclosed", "mail"),
        ('"unclosed', "mail"),
        ("maxRetryCount", "camel"),
        ("max retry count", "camel"),
        ("http server", "camel"),
        ("linalg.norm", "camel"),
        ("invalidating cache", "stems"),
        ("resume garcon", "accents"),
        ("RÉSUMÉ", "accents"),
        ("uber angste", "accents"),
        ("ファイル", "japanese"),
        ("設", "japanese"),
        ("ตั้งค่า", "thai"),
        ("서버", "korean"),
        ("отчет", "russian"),
        ("κωδικας", "greek"),
        (LONG_WORD, "long"),
        (HASH, "hash"),
        ("389333f", "hash"),
        ("what did 389333fbe change", "hash"),
        ("7aa0123456789abc", "short"),
        ("🎉", "emoji"),
        ("régression", "decomposed"),
        ("ｍａｘＲｅｔｒｙＣｏｕｎｔ", "camel"),
    ],
)
def test_is_found(index: LexicalIndex, question: str, name: str) -> None:
    assert first(index, question) == name


@pytest.mark.parametrize("question", ["", '""', "?!", "   ", "***", "\x00"])
def test_a_question_without_words_finds_nothing(index: LexicalIndex, question: str) -> None:
    assert index.search(LexicalQuery(text=question), 5) == []


def test_a_phrase_that_stands_nowhere_falls_back_to_its_words(index: LexicalIndex) -> None:
    hits = index.search(LexicalQuery(text='"phrase exact"'), 5)
    assert {id_ for id_, _ in hits} == {"issue", "scattered"}
    assert [id_ for id_, _ in index.search(LexicalQuery(text='"exact phrase"'), 5)] == ["issue"]


def test_long_questions_are_answered(index: LexicalIndex) -> None:
    padded = " ".join(f"filler{n}" for n in range(5000)) + " ops@example.invalid"
    assert first(index, padded) == "mail"
    assert first(index, "please tell me again " * 10 + "why the caches were invalidated") == "stems"


def test_filters_apply_before_the_cut() -> None:
    index = LexicalIndex.create(None, index_id="test")
    index.add([row(n, "common common", id=f"c{n}", session="loud") for n in range(30)])
    index.add([row(0, "common word among many others here", id="one", session="quiet",
                   block_type="tool_use", tool_name="Bash", harness="codex",
                   ts="2024-01-05T00:00:00Z", ts_us=1_704_412_800_000_000)])  # fmt: skip
    index.add([row(1, "common", id="timeless", session="loud", ts="", ts_us=None)])
    index.commit()

    def found(**conditions: object) -> list[str]:
        query = LexicalQuery(text="common", **conditions)  # type: ignore[arg-type]  # by name
        return [id_ for id_, _ in index.search(query, 1)]

    assert found(session_ids=frozenset({"quiet"})) == ["one"]
    assert found(block_types=frozenset({"tool_use"})) == ["one"]
    assert found(tools=frozenset({"Bash"})) == ["one"]
    assert found(harnesses=frozenset({"codex"})) == ["one"]
    assert found(until_us=1_704_412_800_000_001) == ["one"]
    assert found(until_us=1_704_412_800_000_000) == []
    assert found(since_us=1_704_412_800_000_000, session_ids=frozenset({"quiet"})) == ["one"]
    assert found(session_ids=frozenset()) == []
    index.close()


def test_filters_do_not_change_scores() -> None:
    index = LexicalIndex.create(None, index_id="test")
    index.add([row(0, "lamp oil"), row(1, "other")])
    index.commit()
    free = index.search(LexicalQuery(text="lamp"), 5)
    held = index.search(LexicalQuery(text="lamp", session_ids=frozenset({"s1"})), 5)
    assert [id_ for id_, _ in free] == [id_ for id_, _ in held] == [row(0).id]
    assert free[0][1] == pytest.approx(held[0][1])
    index.close()


def test_replacing_and_deleting_show_after_commit() -> None:
    index = LexicalIndex.create(None, index_id="test")
    index.add([row(0, "before"), row(1, "stays"), row(2, "elsewhere", session="s2")])
    index.commit()
    index.add([row(0, "after")], replace=True)
    assert index.search(LexicalQuery(text="after"), 5) == []
    index.commit()
    assert [id_ for id_, _ in index.search(LexicalQuery(text="after"), 5)] == [row(0).id]
    assert index.search(LexicalQuery(text="before"), 5) == []
    index.delete_ids([row(0).id])
    index.delete_session("s2")
    index.commit()
    assert index.count() == 1
    index.close()


def test_another_process_reads_what_was_committed(tmp_path: Path) -> None:
    writer = LexicalIndex.create(tmp_path / "x", index_id="abc")
    reader = LexicalIndex.open(tmp_path / "x")
    writer.add([row(0, "late word")])
    writer.commit()
    reader.reload()
    assert reader.search(LexicalQuery(text="late"), 5)[0][0] == row(0).id
    assert reader.mark.index_id == "abc"
    writer.close()


def test_an_unusable_index_says_so(tmp_path: Path) -> None:
    with pytest.raises(MemoryStateError) as raised:
        LexicalIndex.open(tmp_path / "none")
    assert raised.value.kind == "missing"
    LexicalIndex.create(tmp_path / "x", index_id="a").close()
    (tmp_path / "x" / "meta.json").write_text("{", encoding="utf-8")
    with pytest.raises(MemoryStateError) as raised:
        LexicalIndex.open(tmp_path / "x")
    assert raised.value.kind == "damaged"


def test_a_lost_segment_is_damage(tmp_path: Path) -> None:
    index = LexicalIndex.create(tmp_path / "x", index_id="a")
    index.add([row(0)])
    index.commit()
    index.close()
    for file in (tmp_path / "x").glob("*.term"):
        file.unlink()  # not emptied in place: this process still has it mapped
        file.write_bytes(b"")
    with pytest.raises(MemoryStateError) as raised:
        LexicalIndex.open(tmp_path / "x")
    assert raised.value.kind == "damaged"


@pytest.mark.parametrize(
    ("text", "block_type", "words"),
    [
        (r'[tool_use Edit] {"a":"x\ny \"q\" C:\\new"}', "tool_use", 'x\ny "q" C:\\new'),
        (r"caf\u00e9 \ud83d", "tool_use", "café  "),
        (r"one\ntwo", "tool_result", "one\ntwo"),
        ("first line\n" + r"C:\new", "tool_result", r"C:\new"),
        (r"C:\new", "text", r"C:\new"),
    ],
)
def test_escapes_are_undone_where_the_text_is_json(text: str, block_type: str, words: str) -> None:
    assert words in searchable_text(text, block_type)


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
def test_an_index_whose_disk_was_full_can_be_written_again(tmp_path: Path) -> None:
    import resource
    import signal

    lexical = LexicalIndex.create(tmp_path / "words", index_id="x")
    many = [row(n, f"word{n} " * 50) for n in range(200)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
        with pytest.raises(BackendError) as caught:
            lexical.add(many)
            lexical.commit()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.kind == "disk"
    lexical.add(many)  # with the error still at hand, as a log keeps it
    lexical.commit()
    assert lexical.count() == 200
    lexical.close()
