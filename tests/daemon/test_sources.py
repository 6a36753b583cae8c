"""Context files: read once, read again when they change, and never one that nobody named."""

import os
from pathlib import Path

import pytest
from daemon_home import GRID, RENAME, Home

from specd.daemon.protocol import ContextFile
from specd.daemon.sources import LARGEST, Sources


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("one")
    sources = Sources()
    file = (ContextFile(str(path)),)
    assert sources.texts(file) == (["one"], [])
    path.write_text("two!")
    assert sources.texts(file) == (["two!"], [])
    path.unlink()
    assert sources.texts(file) == ([], [str(path)])


def test_a_file_that_did_not_change_is_not_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("one")
    sources = Sources()
    info = path.stat()
    sources.texts((ContextFile(str(path)),))
    path.write_text("two")  # as long, and made to look as old: only a second reading could tell
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert sources.texts((ContextFile(str(path)),)) == (["one"], [])


def test_a_text_that_came_along_is_taken_and_the_path_is_not_opened(tmp_path: Path) -> None:
    assert Sources().texts((ContextFile(str(tmp_path / "none"), "here"),)) == (["here"], [])


def test_what_is_no_text_file_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LARGEST + 1)
    names = ["latin", "large", ".", "none"]
    files = tuple(ContextFile(str(tmp_path / name)) for name in names)
    assert Sources().texts(files) == ([], [file.path for file in files])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "near").write_text("x")
    assert Sources().texts((ContextFile("near"),)) == ([], ["near"])  # relative to whom?


def test_what_was_edited_is_remembered_by_language_the_latest_first_and_not_for_ever() -> None:
    sources = Sources()
    for number in range(20):
        sources.remember(f"{number}.py", "python", f"x = {number}\n")
    sources.remember("a.jl", "julia", "x = 1\n")
    sources.remember("18.py", "python", "y = 18\n")
    sources.remember(None, "python", "nobody's\n")
    sources.remember("0.py", "python", "x" * 10**6)
    recent = sources.recent("19.py", "python")
    assert recent[1] == "y = 18\n"
    assert len(recent[0]) < 10**5
    assert 3 < len(recent) < 10
    assert "x = 19\n" not in recent  # its own text is in the prompt
    assert sources.recent("a.jl", "julia") == []
    assert sources.recent("b.jl", "julia") == ["x = 1\n"]


def test_a_context_file_that_cannot_be_read_is_a_note_not_a_failure(warm: Home) -> None:
    path = warm.write("with_context.py", GRID)
    warm.write("other.py", "class Mesh: pass\n")
    done = warm.run("edit", path.name, "-i", RENAME, "--context", "other.py", "--context", "missing.py")
    assert done.returncode == 0, done.stderr
    assert "missing.py cannot be read" in done.stderr
    assert "other.py" not in done.stderr
