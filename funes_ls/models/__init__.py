"""Getting models onto this disk: known models, sources, installing, choosing one."""

from funes_ls.models.catalog import KNOWN, KnownModel, known_model
from funes_ls.models.choose import ListedModel, ModelStatus, acquire, list_models, status, use
from funes_ls.models.installer import install
from funes_ls.models.progress import Progress, silent

__all__ = [
    "KNOWN",
    "KnownModel",
    "ListedModel",
    "ModelStatus",
    "Progress",
    "acquire",
    "install",
    "known_model",
    "list_models",
    "silent",
    "status",
    "use",
]
