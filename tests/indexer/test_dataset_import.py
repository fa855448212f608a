"""lancedb is imported without its cloud client's endpoints, and whole where that fails."""

import subprocess
import sys
from pathlib import Path

import pytest

WRITE_AND_READ = """
import sys
from pathlib import Path
from funes_ls.indexer import dataset, dataset_import
{before}
made = dataset.create(Path(sys.argv[1]), stamp="test/model", dim=8)
print(made.count(), "{client}.api" in sys.modules)
"""
BROKEN = """
def broken():
    from types import ModuleType
    sys.modules["{client}"] = package = ModuleType("{client}")
    package.__path__ = []
dataset_import._leave_endpoints_out = broken
"""
CLIENT = "lance_namespace_urllib3_client"


@pytest.mark.parametrize(("before", "whole"), [("", False), (BROKEN, True)])
def test_a_dataset_works_either_way(tmp_path: Path, before: str, whole: bool) -> None:
    program = WRITE_AND_READ.format(before=before.format(client=CLIENT), client=CLIENT)
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert run.stdout.split() == ["0", str(whole)], run.stderr
