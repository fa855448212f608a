"""fastembed is imported without what downloads, and whole where that fails."""

import subprocess
import sys

import pytest

IMPORT = """
import sys
from funes_ls.indexer import embedding_import
{before}
models = embedding_import.text_embedding()
names = [one["model"] for one in models.list_supported_models()]
print("BAAI/bge-small-en-v1.5" in names, "huggingface_hub" in sys.modules, "httpx" in sys.modules)
import huggingface_hub
print(callable(huggingface_hub.snapshot_download), "fastembed.sparse" in sys.modules)
"""
#: A version that needs something of what is left out.
BROKEN = """
def broken():
    from types import ModuleType
    sys.modules["fastembed"] = package = ModuleType("fastembed")
    package.__path__ = []
embedding_import._leave_other_models_out = broken
"""
#: Somebody has downloaded in this process before.
LOADED = "import huggingface_hub.utils"


@pytest.mark.parametrize(
    ("before", "printed"),
    [
        ("", ["True", "False", "False", "True", "False"]),
        (BROKEN, ["True", "True", "True", "True", "True"]),
        (LOADED, ["True", "True", "True", "True", "True"]),
    ],
)
def test_models_are_known_either_way(before: str, printed: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-c", IMPORT.format(before=before)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.stdout.split() == printed, run.stderr
