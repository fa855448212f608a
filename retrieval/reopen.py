"""How a session is gone on with: the command of its harness."""

import re

from funes_ls.indexer.catalog import Session

#: Words before the id, and whether the harness knows the session by the id inside the trace.
#: Claude Code looks for a file of that name, whatever id stands in it.
_COMMANDS: dict[str, tuple[tuple[str, ...], bool]] = {
    "claude_code": (("claude", "--resume"), False),
    "codex": (("codex", "resume"), True),
    "pi": (("pi", "--session"), True),
}
#: An id that no shell and no command could take for anything else.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{3,80}")


def reopen_command(session: Session) -> tuple[str, ...]:
    """Return the command that goes on with a session, () where there is none.

    Sub-agents were run by another session, and have nobody to talk to.
    """
    words, by_inner = _COMMANDS.get(session.harness, ((), False))
    name = (session.inner_id if by_inner else "") or session.session_id
    if not words or session.subagent or not _ID.fullmatch(name):
        return ()
    return (*words, name)
