"""The scanner of secrets, loaded once; its rules are compiled once per machine."""

import os
from pathlib import Path

import pytest

from funes_ls.indexer.redaction.redactor import Redactor


@pytest.fixture(scope="session")
def redactor() -> Redactor:
    """Return the scanner with the rules of this checkout."""
    return Redactor.load(Path(os.environ["FUNES_RULES_CACHE"]))
