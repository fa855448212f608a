"""Which files a text names."""

import pytest

from funes_ls.indexer.calls.mentions import named_files


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see `src/app/http.py` and http.py:12, please", ["/w/src/app/http.py", "http.py"]),
        ('File "/w/a.py", line 3, in f', ["/w/a.py"]),
        ("(./b.ts) ../c.md. And C:\\w\\d.rs!", ["/w/b.ts", "/c.md", "C:/w/d.rs"]),
        ("e.g. 1.5, i.e. node.js or a.b.c; foo.py() and x.python", ["node.js", "a.b.c"]),
        ("https://example.org/page.html, me@example.org", []),
        ("no names here", []),
        ("setup.py setup.py", ["setup.py"]),
    ],
)
def test_names(text: str, paths: list[str]) -> None:
    assert named_files(text, "/w") == paths


@pytest.mark.timeout(10)
def test_long_texts_take_no_long_time() -> None:
    for part in ("a.", "a/", "a", "/", "a.py/", "../"):
        named_files(part * 50_000, "/w")
