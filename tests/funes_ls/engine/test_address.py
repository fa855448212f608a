"""Where the engine is found, and that nobody else can stand in for it."""

import json
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from funes_ls.engine import address as place
from funes_ls.engine.address import Address, private_dir, read_address, socket_places
from funes_ls.engine.listening import listen
from funes_ls.engine.peers import is_ours, peer_uid
from funes_ls.indexer.errors import BackendError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes and owners of POSIX")
IS_ROOT = hasattr(os, "getuid") and os.getuid() == 0
SOMEBODY = 65534


@pytest.fixture(autouse=True)
def own_runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the runtime directory of this test, whose path is short."""
    with tempfile.TemporaryDirectory(prefix="fr-", dir="/tmp") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield Path(runtime)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def listened(home: Path) -> Address:
    home.mkdir(parents=True, exist_ok=True)
    sock, address = listen(home)
    sock.close()
    assert read_address(home) == address
    return address


def test_the_socket_is_in_the_home_and_for_its_user_alone(tmp_path: Path) -> None:
    home = Path(os.path.relpath(tmp_path / "h"))
    address = listened(tmp_path / "h")
    assert Path(address.path) == tmp_path / "h" / "run" / "engine.sock"
    assert mode(Path(address.path)) == 0o600
    assert mode(Path(address.path).parent) == 0o700
    assert mode(tmp_path / "h" / "run" / place.RECORD) == 0o600
    assert (address.token, address.port, address.pid) == ("", 0, os.getpid())
    assert read_address(home) == address


def test_a_wide_open_run_folder_is_closed(tmp_path: Path) -> None:
    run = tmp_path / "h" / "run"
    run.mkdir(parents=True)
    run.chmod(0o777)
    listened(tmp_path / "h")
    assert mode(run) == 0o700


def test_a_long_path_leads_to_the_runtime_directory(tmp_path: Path, own_runtime: Path) -> None:
    home = tmp_path / ("long" * 30)
    address = listened(home)
    found = Path(address.path)
    assert found.parent.parent == own_runtime
    assert (mode(found), mode(found.parent)) == (0o600, 0o700)
    other = listened(tmp_path / ("long" * 31))
    assert other.path != address.path


def test_every_place_is_short_enough_for_a_socket(tmp_path: Path) -> None:
    home = tmp_path / ("ü" * 90)
    home.mkdir()
    assert all(len(os.fsencode(one)) <= place.MAX_PATH_BYTES for one in socket_places(home))


def test_there_is_room_for_a_socket_whatever_the_temporary_place_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert socket_places(long / "home") != []


def test_a_disk_without_sockets_leads_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_runtime: Path
) -> None:
    home = tmp_path / "h"
    real = socket.socket.bind

    def bind(self: socket.socket, where: str) -> None:
        if str(where).startswith(str(home)):
            raise OSError(95, "Operation not supported")
        real(self, where)

    monkeypatch.setattr(socket.socket, "bind", bind)
    assert Path(listened(home).path).parent.parent == own_runtime


def test_no_place_at_all_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bind(self: socket.socket, where: str) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(socket.socket, "bind", bind)
    with pytest.raises(BackendError) as caught:
        listen(tmp_path / "h")
    assert caught.value.kind == "no_socket"
    assert caught.value.hint


def test_a_dead_socket_is_replaced_and_anything_else_is_not(tmp_path: Path) -> None:
    first = listened(tmp_path / "h")
    assert Path(first.path).exists()
    assert listened(tmp_path / "h").path == first.path
    Path(first.path).unlink()
    Path(first.path).write_text("not a socket", encoding="utf-8")
    second = listened(tmp_path / "h")
    assert second.path != first.path
    assert Path(first.path).read_text(encoding="utf-8") == "not a socket"


def test_a_link_in_place_of_a_private_folder_is_refused(tmp_path: Path, own_runtime: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "run").symlink_to(elsewhere)
    with pytest.raises(BackendError) as caught:
        private_dir(tmp_path / "run")
    assert caught.value.kind == "disk"
    home = tmp_path / "h"
    home.mkdir()
    (home / "run").symlink_to(elsewhere)
    with pytest.raises(BackendError):
        listen(home)


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "h" / "run"
    run.mkdir(parents=True)
    os.chown(run, SOMEBODY, SOMEBODY)
    with pytest.raises(BackendError, match="not a directory of yours"):
        listen(tmp_path / "h")


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
def test_a_record_of_somebody_else_is_not_believed(tmp_path: Path) -> None:
    listened(tmp_path / "h")
    os.chown(tmp_path / "h" / "run" / place.RECORD, SOMEBODY, SOMEBODY)
    assert read_address(tmp_path / "h") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"path": "x"}', "null", '{"path": 1, "port": "x"}']
)
def test_a_record_that_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    run = tmp_path / "h" / "run"
    run.mkdir(parents=True)
    (run / place.RECORD).write_text(text, encoding="utf-8")
    assert read_address(tmp_path / "h") is None


def test_over_tcp_there_is_a_token_in_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNES_ENGINE_TCP", "1")
    address = listened(tmp_path / "h")
    assert address.path == ""
    assert address.port > 0
    assert len(address.token) == 64
    assert address.token not in str(address)
    record = tmp_path / "h" / "run" / place.RECORD
    assert mode(record) == 0o600
    assert json.loads(record.read_text(encoding="utf-8"))["token"] == address.token


def test_only_its_own_record_is_taken_away(tmp_path: Path) -> None:
    address = listened(tmp_path / "h")
    place.forget_address(tmp_path / "h", address.pid + 1)
    assert read_address(tmp_path / "h") == address
    place.forget_address(tmp_path / "h", address.pid)
    assert read_address(tmp_path / "h") is None
    assert not Path(address.path).exists()


def test_the_other_end_is_known_by_its_user() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_uid(ours) in (os.getuid(), None)
        assert is_ours(ours)
