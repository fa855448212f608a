"""Imports lancedb in half the time."""

import importlib.util
import sys
from types import ModuleType
from typing import Any

#: A generated REST client for catalogs in the cloud. lancedb needs its models; its package also
#: loads every endpoint, which is half of the whole import.
_CLIENT = "lance_namespace_urllib3_client"


def lancedb() -> Any:
    """Return the lancedb module, imported without what only its cloud service needs.

    Source: 3.0 s to 1.5 s with lancedb 0.40, see docs/performance.md.
    """
    if "lancedb" not in sys.modules and _CLIENT not in sys.modules:
        _leave_endpoints_out()
    try:
        import lancedb
    except (ImportError, AttributeError):
        # Another version that needs more of the client: as it is meant to be, then.
        for name in [name for name in sys.modules if _is_related(name)]:
            del sys.modules[name]
        import lancedb
    return lancedb


def _is_related(name: str) -> bool:
    # The compiled part cannot be loaded twice in one process.
    return name.split(".")[0] in (_CLIENT, "lance_namespace", "lancedb") and "._" not in name


def _leave_endpoints_out() -> None:
    """Stand in for the client's package, so that its modules load singly when asked for."""
    spec = importlib.util.find_spec(_CLIENT)
    if spec is None or spec.submodule_search_locations is None:
        return
    package = ModuleType(_CLIENT)
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    sys.modules[_CLIENT] = package
