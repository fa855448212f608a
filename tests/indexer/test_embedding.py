"""Embedders: shapes, order, one run per text, and plain words for what is missing or damaged."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from funes_ls.indexer import embedding
from funes_ls.indexer.embedding import (
    BGE_REPO,
    BGE_REVISION,
    BGE_STAMP,
    MINILM_INT8_STAMP,
    MINILM_STAMP,
    Embedder,
    ModelCard,
    installed,
    load,
    resolve_auto,
)
from funes_ls.indexer.embedding_run import Runner
from funes_ls.indexer.errors import BackendError
from tests.tiny_model import STAMP, build_tiny_model

TEXTS = [
    "the retry test of the network module is flaky",
    "bake a chocolate cake with cherries",
    "a flaky network test: retry it",
    "日本語のテキスト 🙂",
    "",
]


@pytest.fixture
def embedder(tiny_model: Path, tmp_path: Path) -> Embedder:
    return load(str(tiny_model), tmp_path)


class CountingModel:
    """Stands where the graph does and counts what it is asked."""

    tokens = ""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def vector(self, text: str) -> Any:
        self.asked.append(text)
        return np.eye(4, dtype=np.float32)[len(text) % 4]


def counting(model: CountingModel, *, threads: int = 2) -> Any:
    card = ModelCard(name="c", stamp="c", dim=4, max_tokens=8, query_prefix="query: ")
    return Runner(model, card, threads=threads, nice=0)  # type: ignore[arg-type]  # a stand-in


def test_vectors_are_unit_float32_in_input_order(embedder: Embedder) -> None:
    vectors = embedder.encode(TEXTS)
    assert (embedder.stamp, embedder.dim, embedder.max_tokens) == (STAMP, 384, 512)
    assert vectors.shape == (5, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.array_equal(vector, embedder.encode_query(text))


def test_texts_that_share_words_are_closer(embedder: Embedder) -> None:
    retry, cake, flaky, *_ = embedder.encode(TEXTS)
    assert retry @ flaky > 0.5
    assert abs(retry @ cake) < 0.2


def test_a_vector_does_not_depend_on_its_neighbours(embedder: Embedder) -> None:
    alone = embedder.encode([TEXTS[0]])[0]
    assert np.array_equal(alone, embedder.encode([TEXTS[1] * 30, TEXTS[0], TEXTS[2]])[1])


def test_no_texts_give_an_empty_matrix(embedder: Embedder) -> None:
    assert embedder.encode([]).shape == (0, 384)


def test_a_text_longer_than_the_model_reads_is_cut(embedder: Embedder) -> None:
    words = [f"word{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}" for n in range(600)]
    assert np.array_equal(*embedder.encode([" ".join(words), " ".join([*words, "tail"])]))


def test_equal_texts_are_encoded_once() -> None:
    model = CountingModel()
    vectors = counting(model).encode(["ab", "c", "ab", "ab"])
    assert sorted(model.asked) == ["ab", "c"]
    assert vectors.argmax(axis=1).tolist() == [2, 1, 2, 2]


def test_closing_the_iterator_ends_the_work() -> None:
    model = CountingModel()
    running = counting(model).encode_iter([str(number) for number in range(1000)])
    next(running)
    running.close()
    assert len(model.asked) < 20


def test_only_queries_get_the_prefix() -> None:
    model = CountingModel()
    embedder = counting(model)
    embedder.encode_query("why")
    embedder.encode(["why"])
    assert model.asked == ["query: why", "why"]


def test_the_width_is_the_cards(tmp_path: Path) -> None:
    path = build_tiny_model(tmp_path / "narrow", dim=64, stamp="test/narrow")
    assert load(str(path), tmp_path).encode(["a"]).shape == (1, 64)


def test_a_model_answers_to_its_name_and_its_stamp(tmp_path: Path) -> None:
    build_tiny_model(tmp_path / "small", dim=32, stamp="test/small")
    for ref in ("small", "test/small", "auto"):
        assert load(ref, tmp_path).stamp == "test/small"


def test_a_short_name_means_a_known_model(tmp_path: Path) -> None:
    build_tiny_model(tmp_path / "m", dim=32, stamp=MINILM_INT8_STAMP)
    assert load("minilm", tmp_path).stamp == MINILM_INT8_STAMP


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("auto", "No model is installed. Run `funes model install`"),
        ("no/such", "The model no/such is not installed. Run `funes model install --from PATH`"),
        (
            "minilm",
            "The model sentence-transformers/all-MiniLM-L6-v2#int8 is not installed. "
            "Run `funes model install sentence-transformers/all-MiniLM-L6-v2#int8`",
        ),
        (
            "all-MiniLM-L6-v2-int8",
            "The model all-MiniLM-L6-v2-int8 is not installed. "
            "Run `funes model install all-MiniLM-L6-v2-int8`",
        ),
    ],
)
def test_a_missing_model_is_said_with_the_command(ref: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BackendError) as caught:
        load(ref, tmp_path)
    assert str(caught.value).startswith(said)
    assert caught.value.kind == "no_model"


def test_a_directory_without_a_card_is_said_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"has no funes-model\.json") as caught:
        load(str(tmp_path), tmp_path)
    assert caught.value.hint == f"Run `funes model install --from {tmp_path}`."


def _sealed_wrongly(path: Path) -> None:
    card = msgspec.json.decode((path / "funes-model.json").read_bytes())
    card["files"] = {"model.onnx": {"size_bytes": 5, "sha256": ""}}
    (path / "funes-model.json").write_bytes(msgspec.json.encode(card))


def _newer(path: Path) -> None:
    card = msgspec.json.decode((path / "funes-model.json").read_bytes())
    (path / "funes-model.json").write_bytes(msgspec.json.encode(card | {"format": 2}))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: (path / "model.onnx").write_bytes(b"not a graph"), "cannot be used"),
        (lambda path: (path / "tokenizer.json").unlink(), "cannot be used"),
        (lambda path: (path / "funes-model.json").write_text("{"), "not one this version reads"),
        (_newer, "not one this version reads"),
        (_sealed_wrongly, "model.onnx is damaged"),
    ],
)
def test_a_damaged_model_is_said_by_name(harm: Any, said: str, tmp_path: Path) -> None:
    path = build_tiny_model(tmp_path / "hurt", dim=8)
    harm(path)
    with pytest.raises(BackendError, match=said) as caught:
        load(str(path), tmp_path)
    assert caught.value.kind == "bad_model"
    assert "funes model install" in caught.value.hint


def test_auto_prefers_the_chosen_one_then_the_order(tmp_path: Path) -> None:
    assert resolve_auto(tmp_path) is None
    for name, stamp in (("z", "test/z"), ("full", MINILM_STAMP), ("quick", MINILM_INT8_STAMP)):
        build_tiny_model(tmp_path / name, dim=8, stamp=stamp)
    assert resolve_auto(tmp_path) == MINILM_INT8_STAMP
    (tmp_path / "default").write_text("test/z\n", encoding="utf-8")
    assert resolve_auto(tmp_path) == "test/z"


def test_a_default_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    build_tiny_model(tmp_path / "z", dim=8, stamp="test/z")
    (tmp_path / "default").write_text("test/gone\n", encoding="utf-8")
    assert resolve_auto(tmp_path) == "test/z"


def _snapshot(cache: Path, tiny_model: Path, *, repo: str = BGE_REPO) -> Path:
    folder = cache / f"models--{repo.replace('/', '--')}" / "snapshots" / BGE_REVISION
    folder.mkdir(parents=True)
    shutil.copy(tiny_model / "model.onnx", folder / "model_optimized.onnx")
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json"):
        shutil.copy(tiny_model / name, folder / name)
    return folder


def test_a_cached_bge_is_found_and_loads_through_fastembed(
    tmp_path: Path, tiny_model: Path
) -> None:
    folder = _snapshot(tmp_path / "hub", tiny_model)
    (found,) = installed(tmp_path)
    assert (found.stamp, found.path, found.origin) == (BGE_STAMP, folder, "cache")
    assert resolve_auto(tmp_path) == BGE_STAMP
    for ref in (BGE_STAMP, "bge-small-en-v1.5", "auto"):
        embedder = load(ref, tmp_path)
        assert (embedder.stamp, embedder.dim) == (BGE_STAMP, 384)
        assert embedder.encode(["a text"]).shape == (1, 384)


def test_other_programs_caches_are_looked_into(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "models"
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path / "fast"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    old = _snapshot(tmp_path / "fast", tiny_model, repo=BGE_REPO.lower())
    assert embedding.cached_bge(models) == old
    shutil.rmtree(tmp_path / "fast")
    assert embedding.cached_bge(models) is None
    assert embedding.cached_bge(models) != _snapshot(tmp_path / "hf" / "hub", tiny_model)
    assert embedding.cached_bge(models) is not None


def test_half_a_download_is_not_a_model(tmp_path: Path, tiny_model: Path) -> None:
    (_snapshot(tmp_path / "hub", tiny_model) / "model_optimized.onnx").unlink()
    assert installed(tmp_path) == []


def test_nothing_heavy_is_imported_to_say_that_there_is_no_model(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from funes_ls.indexer import embedding as e\n"
        f"assert e.resolve_auto(Path({str(tmp_path)!r})) is None\n"
        "heavy = {'numpy', 'fastembed', 'onnxruntime', 'huggingface_hub'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
