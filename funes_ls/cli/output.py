"""Notices for people: stderr only, silent when asked, never in the way of the answer."""

import os
import sys


def is_terminal() -> bool:
    """Return whether stdin and stderr belong to a person."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def use_color(stream_is_terminal: bool) -> bool:
    """Return whether escapes may be written: a terminal, and neither NO_COLOR nor TERM=dumb."""
    return (
        stream_is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def notice(text: str, *, quiet: bool = False) -> None:
    """Write one line to stderr."""
    if text and not quiet:
        try:
            sys.stderr.write(text.rstrip("\n") + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            return


def confirm(question: str, *, default: bool) -> bool:
    """Ask a yes/no question on the terminal; anything unclear and end of input mean no."""
    try:
        sys.stderr.write(f"{question} [{'Y/n' if default else 'y/N'}] ")
        sys.stderr.flush()
        line = sys.stdin.readline()
    except (OSError, ValueError):
        return False
    if not line:
        return False
    answer = line.strip().lower()
    return default if not answer else answer in ("y", "yes")
