"""Sessions of the harnesses that came later, through the command line and with secrets in them."""

from pathlib import Path

import pytest

from tests.credentials import Source, github, pieces
from tests.e2e.cli import funes, index
from tests.indexer.traces import samples_more
from tests.indexer.traces.test_kin import old_opencode


def test_no_secret_of_any_harness_is_stored(
    own_home: Path, funes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, secrets = Source(6), []
    for name in ("PROMPT", "THOUGHT", "ANSWER", "CODE"):
        secrets.append(github(made))
        plain = getattr(samples_more, name)
        monkeypatch.setattr(samples_more, name, f'{plain}# TOKEN = "{secrets[-1]}"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own_home / ".config"))
    for sample in samples_more.SAMPLES.values():
        sample(own_home)
    report = index("--yes")
    assert (report["sessions"], report["problems"]) == (len(samples_more.SAMPLES), 0)
    assert sum(report["redacted"].values()) >= 4 * len(samples_more.SAMPLES)
    held = [path.read_bytes() for path in funes_home.rglob("*") if path.is_file()]
    found = [
        piece for secret in secrets for piece in pieces(secret) for data in held
        if piece.encode() in data
    ]  # fmt: skip
    assert found == []
    for harness in samples_more.SAMPLES:
        ran = funes("recall", "kiln module", "--harness", harness)
        assert "<redacted>" in ran.out, harness


def test_an_old_opencode_is_found_and_is_one_session_when_it_is_renewed(own_home: Path) -> None:
    old_opencode(own_home)
    assert index("--yes")["chunks"] == 5
    assert "kiln" in funes("recall", "kiln module", "--harness", "opencode").out
    samples_more.opencode(own_home)
    report = index("--yes")
    assert (report["chunks"], report["problems"]) == (0, 0)
    found = funes("sessions", "--json").json
    assert [one["session_id"] for one in found["sessions"]] == ["ses_1"]
