"""The loopback Hub answers the real client as the Hub does, and fails on request."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, snapshot_download
from huggingface_hub import errors as hf

from tests.hub.fakehub import FakeHub, moved

#: The client uploads by a way that its HTTP library wants gone.
pytestmark = pytest.mark.filterwarnings("ignore:Use .content=:DeprecationWarning")

NAME = "acme/kb"


@pytest.fixture
def api(hub: FakeHub, owner: str, monkeypatch: pytest.MonkeyPatch) -> HfApi:
    # hf_xet would send big files elsewhere without asking this server.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    return HfApi(endpoint=hub.url, token=owner)


def commit(api: HfApi, operations: list[Any], **more: Any) -> str:
    found = api.create_commit(NAME, operations, commit_message="m", repo_type="dataset", **more)
    return str(found.oid)


def head(api: HfApi) -> str:
    return str(api.repo_info(NAME, repo_type="dataset").sha)


def status(exc: pytest.ExceptionInfo[hf.HfHubHTTPError]) -> int:
    return int(exc.value.response.status_code)


def test_what_is_committed_is_listed_and_comes_back(
    hub: FakeHub, api: HfApi, tmp_path: Path
) -> None:
    api.create_repo(NAME, repo_type="dataset", private=True)
    big = bytes(range(256)) * 2000
    files = {"README.md": b"# kb\n", "d/a.lance": big, "d/e/b.txt": b"x"}
    first = commit(api, [CommitOperationAdd(path, data) for path, data in files.items()])
    assert first == head(api) == hub.repo(NAME).head
    hub.page = 2
    listed = api.list_repo_tree(NAME, recursive=True, repo_type="dataset")
    assert {one.path for one in listed} == {*files, "d", "d/e", ".gitattributes"}
    cache = tmp_path / "cache"

    def fetch(revision: str) -> Path:
        return Path(
            snapshot_download(
                NAME,
                repo_type="dataset",
                revision=revision,
                endpoint=hub.url,
                token=api.token,
                cache_dir=cache,
            )
        )

    at = fetch(first)
    assert {path: (at / path).read_bytes() for path in files} == files
    second = commit(
        api,
        [CommitOperationAdd("d/c.lance", big[:99]), CommitOperationDelete("d/e/b.txt")],
        parent_commit=first,
    )
    fetched = hub.during(lambda: fetch(second))
    assert moved(fetched) < 10_000  # what is there already does not come again
    assert not (fetch(second) / "d/e/b.txt").exists()
    assert hub.during(lambda: fetch(second)) == []


def test_many_parts_make_one_file(tmp_path: Path) -> None:
    with FakeHub(tmp_path / "hub", multipart_over=100_000, part_size=64_000) as hub:
        api = HfApi(endpoint=hub.url, token=hub.token("acme"))
        api.create_repo(NAME, repo_type="dataset")
        big = bytes(range(256)) * 1000
        env = hub.env(tmp_path / "hf", str(api.token))
        code = (
            "from huggingface_hub import HfApi, CommitOperationAdd as Add\n"
            "HfApi().create_commit('acme/kb', [Add('a.lance', bytes(range(256)) * 1000)],"
            " commit_message='m', repo_type='dataset')"
        )
        subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=60)
        assert len(hub.asked("PUT", "/_lfs/part/")) == 4
        assert hub.disk.read(hub.repo(NAME).tree()["a.lance"]) == big


def test_who_may_do_what(hub: FakeHub, api: HfApi) -> None:
    api.create_repo(NAME, repo_type="dataset", private=True)
    with pytest.raises(hf.HfHubHTTPError) as exc:
        api.create_repo(NAME, repo_type="dataset")
    assert status(exc) == 409
    for token, code in ((False, 401), (hub.token("zed"), 404), ("nobody", 401)):
        with pytest.raises(hf.HfHubHTTPError) as exc:
            HfApi(endpoint=hub.url, token=token).repo_info(NAME, repo_type="dataset")
        assert status(exc) == code
    reader = HfApi(endpoint=hub.url, token=hub.token("acme", "read"))
    assert reader.repo_info(NAME, repo_type="dataset").private
    with pytest.raises(hf.HfHubHTTPError) as exc:
        commit(reader, [CommitOperationAdd("a.txt", b"a")])
    assert status(exc) == 403
    member = HfApi(endpoint=hub.url, token=hub.token("ann", orgs=("acme",)))
    assert commit(member, [CommitOperationAdd("a.txt", b"a")]) == head(api)


def test_a_stale_parent_is_refused_and_a_lost_answer_has_landed(hub: FakeHub, api: HfApi) -> None:
    api.create_repo(NAME, repo_type="dataset")
    before = head(api)
    hub.fail("POST", "/commit/", drop=True, done=True)
    with pytest.raises(Exception, match=r"disconnected|closed"):
        commit(api, [CommitOperationAdd("a.txt", b"a")], parent_commit=before)
    assert "a.txt" in hub.repo(NAME).tree()
    with pytest.raises(hf.HfHubHTTPError) as exc:
        commit(api, [CommitOperationAdd("b.txt", b"b")], parent_commit=before)
    assert status(exc) == 412


def test_squashing_forgets_older_commits(hub: FakeHub, api: HfApi) -> None:
    api.create_repo(NAME, repo_type="dataset")
    old = commit(api, [CommitOperationAdd("a.txt", b"a")])
    api.super_squash_history(NAME, repo_type="dataset")
    assert len(list(hub.repo(NAME).history())) == 1
    with pytest.raises(hf.RevisionNotFoundError):
        api.repo_info(NAME, repo_type="dataset", revision=old)


def test_all_that_came_is_kept(hub: FakeHub, api: HfApi) -> None:
    api.create_repo(NAME, repo_type="dataset")
    hub.fail("POST", "/commit/", status=500, times=99)
    with pytest.raises(hf.HfHubHTTPError):
        commit(api, [CommitOperationAdd("a.bin", b"a canary"), CommitOperationAdd("b", b"a wren")])
    assert hub.holding("a canary")
    assert hub.holding("a wren")
    assert not hub.holding("a robin")
