"""The user's files: what is read is what is there, and a write puts all of a text in place or nothing."""

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specd.daemon import files
from specd.daemon.errors import Conflict, InputRefused


def make(folder: Path, content: bytes = b"one\ntwo\n", name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@given(st.text(min_size=1).filter(lambda text: text.strip("\ufeff \t\r\n\f\v") and "\0" not in text))
def test_a_text_comes_back_as_its_own_bytes(text: str) -> None:
    assert files.decode(text.encode(), "name").encode() == text.encode()


@given(st.binary(max_size=50))
def test_no_bytes_raise_anything_but_a_refusal(raw: bytes) -> None:
    try:
        text = files.decode(raw, "name")
    except InputRefused:
        return
    assert text.encode() == raw


def test_a_write_replaces_the_text_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = make(tmp_path)
    source = files.read(path, to_write=True)
    files.stage(source, "three\r\n").commit()
    source.close()
    assert path.read_bytes() == b"three\r\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o2755, 0o4711])
def test_the_mode_is_kept(tmp_path: Path, mode: int) -> None:
    path = make(tmp_path)
    path.chmod(mode)
    files.stage(files.read(path, to_write=True), "x").commit()
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_the_owner_is_kept(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    path = make(tmp_path)
    os.chown(path, 12345, 23456)
    files.stage(files.read(path, to_write=True), "x").commit()
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    path = make(tmp_path)
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("no extended attributes on this file system")
    files.stage(files.read(path, to_write=True), "x").commit()
    assert os.getxattr(path, "user.note") == b"mine"


def test_a_chain_of_links_is_followed_and_stays(tmp_path: Path) -> None:
    path = make(tmp_path)
    (tmp_path / "far").mkdir()
    first, second = tmp_path / "far" / "first", tmp_path / "second"
    first.symlink_to(path)
    second.symlink_to(first)
    files.stage(files.read(second, to_write=True), "x").commit()
    assert (first.is_symlink(), second.is_symlink(), path.read_text()) == (True, True, "x")


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    path.symlink_to(path)
    with pytest.raises(InputRefused, match="loop"):
        files.read(path, to_write=True)


def change(path: Path) -> None:
    path.write_text("changed\n")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.replace(other, path)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(("event", "told"), [(change, "changed"), (replace, "was replaced"), (remove, "was removed")])
def test_what_happened_meanwhile_is_never_overwritten(tmp_path: Path, event: object, told: str) -> None:
    path = make(tmp_path)
    staged = files.stage(files.read(path, to_write=True), "x")
    event(path)  # type: ignore[operator]
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(Conflict, match=f"{told} on disk"):
        staged.commit()
    assert (path.read_bytes() if path.exists() else None) == before
    assert [other.name for other in tmp_path.iterdir()] == ([] if before is None else ["file.txt"])


def test_a_second_reader_for_writing_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    path = make(tmp_path)
    first = files.read(path, to_write=True)
    with pytest.raises(InputRefused, match="another"):
        files.read(path, to_write=True)
    files.read(path, to_write=False)  # who only looks may
    first.close()
    files.read(path, to_write=True).close()


def test_restoring_puts_the_old_bytes_back(tmp_path: Path) -> None:
    path = make(tmp_path, b"\xef\xbb\xbfone\r\ntwo")
    source = files.read(path, to_write=True)
    inode = path.stat().st_ino
    staged = files.stage(source, "new")
    staged.commit(keeps_old=True)
    assert path.read_text() == "new"
    staged.restore()
    staged.discard()
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\ntwo"
    assert path.stat().st_ino == inode  # the old file itself: that takes no room on a full disk
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_kept_to_restore_goes_with_the_commit_that_holds(tmp_path: Path) -> None:
    path = make(tmp_path)
    staged = files.stage(files.read(path, to_write=True), "new")
    staged.commit(keeps_old=True)
    staged.discard()
    assert (list(tmp_path.iterdir()), path.read_text()) == ([path], "new")


def test_old_bytes_that_cannot_be_put_back_are_told(tmp_path: Path) -> None:
    path = make(tmp_path)
    staged = files.stage(files.read(path, to_write=True), "new")
    staged.commit(keeps_old=True)
    staged.old.unlink()
    staged.old.mkdir()
    with pytest.raises(InputRefused, match="it has the new one"):
        staged.restore()
    staged.old.rmdir()


def test_a_mode_that_changes_meanwhile_stays(tmp_path: Path) -> None:
    path = make(tmp_path)
    source = files.read(path, to_write=True)
    path.chmod(0o400)
    files.stage(source, "x").commit()
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


def test_a_failing_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path)
    source = files.read(path, to_write=True)

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputRefused, match="Input/output error"):
        files.stage(source, "x")
    assert (list(tmp_path.iterdir()), path.read_bytes()) == ([path], b"one\ntwo\n")


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    path = make(tmp_path, name="n" * 251 + ".txt")
    files.stage(files.read(path, to_write=True), "x").commit()
    assert path.read_text() == "x"
