"""Writing other programs' files: in one step, through links, and not against their owner's will."""

import random
import sys
from pathlib import Path

import pytest

from funes_ls.install import delta, files

posix = pytest.mark.skipif(sys.platform == "win32", reason="links and modes of files")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@posix
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "settings.json"
    link.symlink_to(Path("dotfiles") / "settings.json")
    files.write(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640
    assert names(real.parent) == ["settings.json"]


@posix
def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.json"
    files.write(path, b"{}")
    assert path.stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.parametrize("what", ["file", "folder", "file behind a link"])
def test_what_is_read_only_stays(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    path = folder / "settings.json"
    path.write_text("old")
    asked = path
    if what == "file behind a link":
        asked = tmp_path / "link.json"
        asked.symlink_to(path)
    fixed = folder if what == "folder" else path
    fixed.chmod(0o555 if what == "folder" else 0o444)
    try:
        with pytest.raises(files.ConfigError, match="read-only"):
            files.write(asked, b"new")
        assert path.read_text() == "old"
        assert names(folder) == ["settings.json"]
    finally:
        folder.chmod(0o755)


@posix
def test_links_in_a_circle_and_folders_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(files.ConfigError):
        files.read(tmp_path / "a")
    with pytest.raises(files.ConfigError):
        files.write(tmp_path / "a", b"")
    with pytest.raises(files.ConfigError, match="not a file"):
        files.read(tmp_path)


@posix
def test_a_link_in_our_folder_is_not_followed(tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / "keep").write_text("kept")
    ours = tmp_path / "ours"
    (ours / "in").mkdir(parents=True)
    (ours / "in" / "link").symlink_to(others)
    linked = tmp_path / "linked"
    linked.symlink_to(others)
    files.delete_tree(ours)
    files.delete_tree(linked)
    files.delete_tree(tmp_path / "not there")
    assert names(tmp_path) == ["home", "others"]
    assert (others / "keep").read_text() == "kept"


@pytest.mark.parametrize("seed", range(20))
def test_a_change_can_be_turned_back(seed: int) -> None:
    pick = random.Random(seed)
    lines = [bytes(pick.choices(b"ab{}\n\r\xff,", k=pick.randrange(5))) for _ in range(40)]
    before = b"\n".join(lines)
    changed = list(lines)
    for _ in range(pick.randrange(1, 9)):
        at = pick.randrange(len(changed))
        changed[at : at + pick.randrange(3)] = [b"new"] * pick.randrange(3)
    after = b"\n".join(changed)
    assert delta.reversed_by(after, delta.reverse(before, after)) == before
    assert delta.reversed_by(before, delta.reverse(after, before)) == after


def test_only_what_was_replaced_is_kept_of_a_file() -> None:
    secret = b'  "token": "of somebody else"\n'
    before = b"{\n" + secret + b"}\n"
    after = b"{\n" + secret + b'  ,"ours": 1\n}\n'
    [splice] = delta.reverse(before, after)
    assert splice[2] == ""
    assert delta.reversed_by(after, [splice]) == before
