"""The tiny model, loaded once."""

from pathlib import Path

import pytest

from funes_ls.indexer.embedding import Embedder, load


@pytest.fixture(scope="session")
def embedder(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    """Return the tiny model, ready to encode."""
    return load(str(tiny_model), tmp_path_factory.mktemp("models"), threads=1)
