"""Files that people and agents name in what they say."""

import re
from collections.abc import Iterator

from funes_ls.indexer.calls.paths import settled

#: Endings that make a word a file's name; `e.g.` or `1.5` is none.
_ENDINGS = (
    "astro|bash|bat|c|cc|cfg|clj|cmake|conf|cpp|cs|css|csv|dart|ejs|erl|ex|exs|fs|go|gradle|graphql"
    "|h|hpp|hs|html|ini|ipynb|java|jl|js|json|jsonl|jsx|kt|kts|less|lock|lua|m|md|mdx|mjs|cjs|ml"
    "|mm|nim|nix|php|pl|plist|prisma|proto|ps1|py|pyi|r|rb|rs|rst|sass|scala|scss|sh|sol|sql|svelte"
    "|swift|tex|tf|toml|ts|tsx|txt|vim|vue|xml|yaml|yml|zig|zsh"
)
_NAMED = re.compile(
    r"(?<![\w/.@\\:-])(?:[A-Za-z]:[\\/]|~?/|\.{1,2}/)?(?:[\w.@+-]+[/\\])*[\w@+-][\w.@+-]*"
    rf"\.(?:{_ENDINGS})(?![\w/(\\-]|\.\w)"
)
_FILE = re.compile(rf"[^\0]*\.(?:{_ENDINGS})|(?:[^\0]*/)?(?:Makefile|Dockerfile|Justfile)")
_MOST_CHARS = 20_000
_MOST_FOUND = 20


def named_files(text: str, cwd: str) -> list[str]:
    """Return the files a text names, each once; a bare name stays one, for it may lie anywhere."""
    if "." not in text:
        return []
    return list(dict.fromkeys(_each(text[:_MOST_CHARS], cwd)))


def is_file_name(word: str) -> bool:
    """Tell whether a word of a command names a file."""
    return len(word) < 400 and _FILE.fullmatch(word) is not None


def _each(text: str, cwd: str) -> Iterator[str]:
    for count, found in enumerate(_NAMED.finditer(text)):
        if count >= _MOST_FOUND:
            return
        name = found[0]
        if path := settled(name, cwd if "/" in name or "\\" in name else ""):
            yield path
