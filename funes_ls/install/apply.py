"""Carries a plan out, one at a time on this machine, and writes down what turns it back."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from funes_ls.indexer.home import make_private
from funes_ls.install import files, record
from funes_ls.install.plan import Change, Command, Plan, Setup, Wanted

_COMMAND_S = 90.0
#: What keeps agents' commands from calling anybody up while they change a file.
_SILENT = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "PI_OFFLINE": "1",
    "PI_SKIP_VERSION_CHECK": "1",
    "PI_TELEMETRY": "0",
}
_LOCK_S = 30.0
_REASON_CHARS = 300


def plan_add(setup: Setup, wanted: Wanted) -> Plan:
    """Return what adding would do; what cannot be written is a problem, not a step."""
    return _writable(setup.add(wanted))


def plan_remove(setup: Setup, wanted: Wanted) -> Plan:
    """Return what removing would do: files that nobody changed since become what they were."""
    noted = record.load(wanted.folder)
    rest = setup.remove(wanted._replace(created=noted.created))
    restored, done = _restoring(noted)
    steps = [step for step in rest.steps if not _covered(step, done)]
    return _writable(rest._replace(steps=(*steps, *restored)))


def _restoring(noted: record.Record) -> tuple[list[Change], set[Path]]:
    """Return what turns files back, and all that are or will be as they were before."""
    steps: list[Change] = []
    done: set[Path] = set()
    for path in map(Path, noted.files):
        with suppress(files.ConfigError):
            now = files.read(path)
            is_known, original = noted.original(path, now)
            if is_known:
                done.add(path)
            if is_known and now != original:
                steps.append(Change(path, lambda _now, original=original: original))  # type: ignore[misc]  # a default keeps the contents of this round
    return steps, done


def _covered(step: Change | Command, done: set[Path]) -> bool:
    if isinstance(step, Change):
        return step.path in done
    return bool(step.touches) and done.issuperset(step.touches)


def _writable(plan: Plan) -> Plan:
    """Return a plan whose files can be written; the others are problems."""
    problems: list[str] = []
    for step in plan.steps:
        paths = [step.path] if isinstance(step, Change) else step.touches
        for path in paths:
            try:
                files.refuse_if_fixed(path)
            except files.ConfigError as exc:
                problems.append(str(exc))
    if not problems:
        return plan
    return plan._replace(steps=(), notes=(), problems=(*plan.problems, *dict.fromkeys(problems)))


def add(setup: Setup, wanted: Wanted) -> Plan:
    """Add and return what was done; its problems say what was not.

    A step that fails does not stop the others: tools work without hooks, and hooks without tools.
    What was done is written down, so that it can be removed.

    Raises:
        ConfigError: nothing could be begun.
    """
    with _alone(wanted.funes_home):
        plan = plan_add(setup, wanted)
        if not plan.steps:
            return plan
        make_private(wanted.folder)
        earlier = record.load(wanted.folder)
        before = record.look(setup.tracked(wanted), setup.trees(wanted), earlier)
        created = setup.containers(wanted, before.files.get)
        failed: list[tuple[str, str]] = []
        try:
            for step in plan.steps:
                try:
                    perform(step, wanted)
                except files.ConfigError as exc:
                    failed.append((str(exc), _by_hand(step)))
        finally:
            paths = dict.fromkeys([*before.files, *setup.tracked(wanted)])
            record.save(wanted.folder, record.after(before, paths, earlier, created))
        left = setup.add(wanted._replace(force=False)).steps
    if not failed:
        failed = [(f"It did not take: {' '.join(describe(one))}", _by_hand(one)) for one in left]
    return plan._replace(
        problems=(*plan.problems, *(said for said, _ in failed)),
        by_hand=(*plan.by_hand, *(line for _, line in failed if line)),
    )


def _by_hand(step: Change | Command) -> str:
    """Return what a person runs who does a step himself."""
    return " ".join(describe(step)) if isinstance(step, Command) else ""


def remove(setup: Setup, wanted: Wanted) -> Plan:
    """Remove and return what was done; a step that fails does not stop the others."""
    with _alone(wanted.funes_home):
        plan = plan_remove(setup, wanted)
        problems = list(plan.problems)
        for step in plan.steps:
            try:
                perform(step, wanted)
            except files.ConfigError as exc:
                problems.append(str(exc))
        if not problems:
            noted = record.load(wanted.folder)
            for folder in (*setup.trees(wanted), wanted.folder):
                files.delete_tree(folder)
            record.drop_empty_folders(noted)
            with suppress(OSError):
                wanted.folder.parent.rmdir()
    return plan._replace(problems=tuple(problems))


def perform(step: Change | Command, wanted: Wanted) -> None:
    """Carry one step out.

    Raises:
        ConfigError: it failed.
    """
    if isinstance(step, Command):
        _run(step, wanted)
        return
    now = files.read(step.path)
    new = step.edit(now)
    if new == now:
        return
    if new is None:
        files.delete(step.path)
    else:
        files.write(step.path, new, mode=step.mode)


def _run(step: Command, wanted: Wanted) -> None:
    shown = " ".join(describe(step))
    try:
        ran = subprocess.run(
            step.argv,
            cwd=wanted.user_home if wanted.user_home.is_dir() else None,
            env={**wanted.env, **_SILENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_S,
        )
    except subprocess.TimeoutExpired as exc:
        raise files.ConfigError(f"`{shown}` did not end within {_COMMAND_S:g} s.") from exc
    except OSError as exc:
        raise files.ConfigError(f"`{shown}` cannot be run ({exc.strerror or exc}).") from exc
    if ran.returncode:
        said = (ran.stderr.strip() or ran.stdout.strip()).decode("utf-8", "replace")
        reason = " ".join(said.split())[-_REASON_CHARS:]
        raise files.ConfigError(
            f"`{shown}` failed (exit {ran.returncode}){f': {reason}' if reason else '.'}"
        )


def describe(step: Change | Command) -> list[str]:
    """Return a step as words of a command line."""
    import shlex

    if isinstance(step, Command):
        return [shlex.quote(Path(step.argv[0]).name), *map(shlex.quote, step.argv[1:])]
    return ["write", str(step.path)]


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Hold the lock of everything that changes agents for this home.

    Raises:
        ConfigError: another process has held it for long, or it cannot be made.
    """
    from filelock import FileLock, Timeout

    try:
        make_private(home / "run")
        lock = FileLock(home / "run" / "agents.lock", timeout=_LOCK_S)
        lock.acquire()
    except Timeout as exc:
        raise files.ConfigError(
            "Another `funes add` or `funes remove` is under way.", hint="Run this again after it."
        ) from exc
    except OSError as exc:
        raise files.ConfigError(f"Cannot write under {home} ({exc.strerror or exc}).") from exc
    try:
        yield
    finally:
        lock.release()
