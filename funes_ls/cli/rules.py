"""Compiles the rules for secrets ahead of the first session, which need not wait for them then."""

from funes_ls.cli.output import notice
from funes_ls.indexer.errors import ScannerError
from funes_ls.indexer.progress import IndexEvent, Progress
from funes_ls.indexer.redaction.base import LocalRedaction
from funes_ls.indexer.settings import Settings


def prepare_rules(settings: Settings, progress: Progress, *, quiet: bool) -> None:
    """Compile the rules where that is still to be done; a failure is told and no more."""
    redaction = LocalRedaction(settings.rules_dir)
    if settings.redaction == "off" or redaction.is_prepared:
        return
    progress(IndexEvent(phase="rules"))
    try:
        redaction.load()
    except ScannerError as exc:
        notice(str(exc), quiet=quiet)
