"""Getting models onto this disk: known models, sources, installing, choosing one."""

from funes_ls.models.catalog import KNOWN, KnownModel, known_model
from funes_ls.models.choose import ListedModel, ModelStatus, acquire, list_models, status, use
from funes_ls.models.cross_encoder import InstalledReranker, installed_rerankers
from funes_ls.models.installer import install
from funes_ls.models.progress import Progress, silent
from funes_ls.models.reranker_install import install_reranker, names_reranker

__all__ = [
    "KNOWN",
    "InstalledReranker",
    "KnownModel",
    "ListedModel",
    "ModelStatus",
    "Progress",
    "acquire",
    "install",
    "install_reranker",
    "installed_rerankers",
    "known_model",
    "list_models",
    "names_reranker",
    "silent",
    "status",
    "use",
]
