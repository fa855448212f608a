"""Whether a call succeeded, as its answer tells."""

import re
from typing import Any

import msgspec
from msgspec import Struct

#: How answers begin of calls that did nothing, whatever the tool.
_REFUSED = re.compile(
    r"\s*(?:<tool_use_error>|<error>|Error\b|error:|\[Request interrupted|ENOENT|EACCES|EISDIR"
    r"|The user doesn't want|The user rejected|User rejected|Permission (?:to|for|denied)"
    r"|Claude requested permissions|This command requires approval|Operation aborted"
    r"|(?:Tool )?(?:call|execution|use) (?:was )?(?:failed|aborted|cancelled|rejected|denied)"
    r"|Tool \S+ not found|No such tool|Unknown tool|InputValidationError|Validation failed"
    r"|exec_command failed|failed to parse|patch rejected|execution error|unsupported call"
    r"|aborted by user|rejected by user|Command (?:blocked|aborted|cancelled|timed out)"
    r"|(?:\S+ operation )?blocked by hook|PreToolUse:\S+ hook|MCP error"
    r"|apply_patch verification failed|Traceback \(most recent)",
    re.IGNORECASE,
)
#: How answers of file tools go that changed nothing.
_UNCHANGED = re.compile(
    r"String (?:to replace )?not found|has not been read|modified since|been unexpectedly modified"
    r"|Could not find (?:the )?(?:exact )?(?:text|old|string|match)|No changes (?:to make|made)"
    r"|No match(?:es)? found|old_(?:string|str) (?:not found|was not found|and new)|did not appear"
    r"|verification failed|Found \d+ (?:matches|occurrences)|must be unique|not unique"
    r"|No replacement was performed|(?:Failed|Unable|Could not) to|Invalid (?:Context|patch)"
    r"|(?:No such|does not exist|not exist|is a directory|Permission denied|Access denied)"
    r"|produced no changes?|would produce identical",
    re.IGNORECASE,
)
#: How answers begin of file tools that did what they say.
_DONE = re.compile(
    r"\s*(?:The file .{1,1000} has been (?:updated|edited|written|created|saved)|File created"
    r"|All occurrences|Applied \d+ edit|Success|Updated|Wrote|Created|Edited|Replaced|Saved)",
    re.IGNORECASE,
)
#: What the objects are made of that harnesses put around answers.
_WRAPPING = frozenset(
    (
        "output", "content", "stdout", "stderr", "metadata", "exit_code", "exitCode", "returncode",
        "success", "error", "bytes_written", "dirs_created", "verified", "lint", "lsp_diagnostics",
        "warning", "total_lines", "file_size", "truncated", "truncated_lines", "hint", "is_binary",
        "is_image", "similar_files", "diff", "files_modified", "files_created", "files_deleted",
        "no_change", "note", "_warning", "_hint", "status", "message", "resolved_path", "duration",
    )
)  # fmt: skip
#: Where answers tell a status: in the lines before what was printed, or after all of it.
_STATUS = re.compile(
    r"\A\s*(?:[A-Z][\w ]{0,30}: [^\n]{0,200}\n){0,5}"
    r"(?:Error: )?(?:Process exited with code|Exit code:?|Command exited with code) (-?\d{1,5})\b"
)
_LAST_STATUS = re.compile(r"(?:\A|\n)Command exited with code (-?\d{1,5})\s*\Z")
#: What programs say themselves that run others.
_SAID = re.compile(r"\nexit status (\d{1,5})\b")
_CODEX_BODY = re.compile(r"(?:^|\n)Output:\n", re.IGNORECASE)
_ERROR = re.compile(r"\s*error\b", re.IGNORECASE)
_HEAD_CHARS = 600
_LAST_CHARS = 300
_LONGEST_REFUSAL = 1_500


class Outcome(Struct, frozen=True, kw_only=True):
    """What an answer tells.

    Attributes:
        ok: The call did what it says.
        text: What it printed, without what the harness put around it.
        exit_status: Of a command, None where nothing tells it.
        refused: It was not run at all.
    """

    ok: bool
    text: str
    exit_status: int | None = None
    refused: bool = False


def outcome_of(output: str, *, is_file: bool = False) -> Outcome:
    """Return what an answer tells.

    Args:
        output: The answer.
        is_file: It may be a file's text, which is no word on how the call went.
    """
    wrapped = _unwrapped(output)
    if wrapped is not None:
        return wrapped
    is_refusal = _REFUSED.match(output) and not (is_file and len(output) > _LONGEST_REFUSAL)
    status, text = (None, output) if is_file else _plain(output)
    if is_refusal and status is None:
        is_said = not is_file and _ERROR.match(output)  # a program may have said so
        return Outcome(ok=False, text=output, refused=not is_said)
    return Outcome(ok=not status, text=text, exit_status=status)


def changed_nothing(outcome: Outcome) -> bool:
    """Tell whether a file tool's answer says that nothing was changed."""
    if not outcome.ok or _DONE.match(outcome.text):
        return not outcome.ok
    return _UNCHANGED.search(outcome.text[:_HEAD_CHARS]) is not None


def _plain(output: str) -> tuple[int | None, str]:
    """Return exit status and text of an answer that may name the status in its first lines."""
    head = output[: 2 * _HEAD_CHARS]
    found = _STATUS.match(head) or _LAST_STATUS.search(output[-_LAST_CHARS:]) or _SAID.search(head)
    if found is None:
        return None, output
    body = _CODEX_BODY.search(output[: _HEAD_CHARS * 2])
    return int(found[1]), output[body.end() :] if body else output


def _unwrapped(output: str) -> Outcome | None:
    """Return what an answer in JSON tells, None when it is none that is known."""
    if not output.lstrip().startswith(("{", "[")):
        return None
    try:
        value = msgspec.json.decode(output.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    if isinstance(value, list):
        return _of_parts(value)
    return _of_object(value) if isinstance(value, dict) else None


def _of_parts(value: list[Any]) -> Outcome | None:
    texts = [part.get("text") for part in value if isinstance(part, dict)]
    plain = [text for text in texts if isinstance(text, str)]
    return outcome_of("\n".join(plain)) if plain and len(plain) == len(value) else None


def _of_object(value: dict[str, Any]) -> Outcome | None:
    if not value.keys() <= _WRAPPING or value.get("is_binary") is True:
        return None
    metadata = value.get("metadata")
    about = {**value, **metadata} if isinstance(metadata, dict) else value
    status = next(
        (about[key] for key in ("exit_code", "exitCode", "returncode") if key in about), None
    )
    status = status if isinstance(status, int) and not isinstance(status, bool) else None
    text = next(
        (value[key] for key in ("output", "content", "stdout") if isinstance(value.get(key), str)),
        None,
    )
    said = value.get("success")
    error = value.get("error")
    if text is None and status is None and said is None and not error:
        return None if "bytes_written" not in value else Outcome(ok=True, text="")
    failed = bool(status) or said is False or (bool(error) and said is not True)
    failed = failed or value.get("no_change") is True
    is_plain = text is not None and status is None and said is None and "total_lines" not in value
    inner = outcome_of(text) if is_plain and text is not None else None
    if inner is not None and not failed:
        return inner
    shown = text if text is not None else str(error or "")
    refused = status is None and (failed or _REFUSED.match(shown) is not None)
    return Outcome(ok=not failed and not refused, text=shown, exit_status=status, refused=refused)
