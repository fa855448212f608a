"""`funes` alone: what there is, and what to run next."""

import os

from funes_ls import render
from funes_ls.indexer.home import home_dir


def welcome() -> int:
    """Say what to do next, from what is on disk; opens nothing."""
    home = home_dir(os.environ)
    if (home / "memory").is_dir():
        lines = [
            f"Your memory is at {home / 'memory'}.",
            "",
            '  funes recall "why did we drop the cache"   search what was said and done',
            "  funes sessions --since 7d                  list recent sessions",
            "  funes index                                read what is new",
            "  funes add claude                           let an agent recall from it",
            "  funes status                               see what the memory holds",
        ]
    else:
        lines = [
            f"No memory at {home} yet. Make one from the traces your coding agents left:",
            "",
            "  funes index                                read what your coding agents left",
            "  funes add claude                           the same, and let it recall",
            "  funes index PATH                           read one folder or file",
            "  funes parse PATH                           look at what would be indexed",
        ]
    lines += ["", "`funes -h` lists every command; `funes COMMAND -h` shows examples."]
    render.write("\n".join(lines))
    return 0
