"""What every test gets: a home of its own, the tiny model, no network; and the golden files."""

import errno
import os
import socket
import tempfile
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_model import tiny_model_dir

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"

#: Variables by which a harness, a hub or funes itself would lead a test out of its own home.
_LEADING_OUT = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "HERMES_HOME",
    "PI_CODING_AGENT_DIR",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HUGGINGFACE_TOKEN",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "FASTEMBED_CACHE_PATH",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "NO_COLOR",
    "COLUMNS",
)
#: Compiling the rules for secrets takes seconds: once per machine, not once per home.
RULES_CACHE = Path.home() / ".cache" / "funes-tests" / "rules"
#: Where requests of child processes end at once: the discard port of this machine.
_NOWHERE = "http://127.0.0.1:9"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/golden from what is rendered"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Fix what libraries read once at import: the hub's folder and the cache of real models."""
    cache = Path.home() / ".cache" / "funes-tests" / "models"
    os.environ.setdefault("FUNES_TEST_MODELS", str(cache))
    os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="funes-hf-home-")
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["FUNES_RULES_CACHE"] = str(RULES_CACHE)
    # Also what fixtures of modules and sessions do leaves no engine behind.
    os.environ["FUNES_ENGINE"] = "inline"


def pytest_unconfigure(config: pytest.Config) -> None:
    made = Path(os.environ.get("HF_HOME", ""))
    if made.name.startswith("funes-hf-home-") and made.is_dir() and not any(made.iterdir()):
        made.rmdir()


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    """Return the directory of the tiny model, made once per machine."""
    return tiny_model_dir()


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Path) -> Path:
    """Give the test an empty home directory and return it; `$FUNES_HOME` is in it."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [n for n in os.environ if n.startswith("FUNES_") and n != "FUNES_TEST_MODELS"]:
        if name != "FUNES_SHARED":
            monkeypatch.delenv(name)
    for name in _LEADING_OUT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("FUNES_HOME", str(home / ".funes"))
    monkeypatch.setenv("FUNES_MODEL", str(tiny_model))
    monkeypatch.setenv("FUNES_RULES_CACHE", str(RULES_CACHE))
    monkeypatch.setenv("TERM", "dumb")
    # Tests of the engine take this away; no other test leaves a process behind.
    monkeypatch.setenv("FUNES_ENGINE", "inline")
    return home


@pytest.fixture
def funes_home(own_home: Path) -> Path:
    """Return `$FUNES_HOME` of this test; it does not exist yet."""
    return own_home / ".funes"


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every address but loopback; tests marked `model` may let child processes out."""
    real_connect = socket.socket.connect
    real_lookup = socket.getaddrinfo

    def connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and not _is_loopback(address[0]):
            raise OSError(errno.ENETUNREACH, "tests have no network", str(address[0]))
        real_connect(self, address)

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host is not None and not _is_loopback(host):
            raise socket.gaierror(socket.EAI_NONAME, f"tests have no network ({host})")
        return real_lookup(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    if request.node.get_closest_marker("model") is None:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, _NOWHERE)
            monkeypatch.setenv(name.lower(), _NOWHERE)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "127.0.0.1,localhost,::1")


def _is_loopback(host: Any) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name in ("", "localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of public traces that lies beside the checkout, or skip."""
    folder = Path(os.environ.get("FUNES_SHARED") or ROOT.parent / "shared")
    if not (folder / "traces" / "FORMATS.md").is_file():
        pytest.skip("the public traces are not beside this checkout (set FUNES_SHARED)")
    return folder


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return `check(name, text)`: `text` must equal `tests/golden/<name>`."""
    update = request.config.getoption("--update-golden")

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        assert path.is_file(), f"no golden file {name}; make it with --update-golden"
        assert text == path.read_bytes().decode("utf-8")

    return check
