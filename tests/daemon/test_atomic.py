"""`specd edit --atomic`: all files or none."""

from daemon_home import GRID, MESH, RENAME, Home, wait_for


def test_atomic_writes_all(warm: Home) -> None:
    first, second = warm.write("all1.py", GRID), warm.write("all2.py", GRID)
    done = warm.run("edit", "all1.py", "all2.py", "--atomic", "-i", RENAME)
    assert done.returncode == 0, done.stderr
    assert (first.read_text(), second.read_text()) == (MESH, MESH)


def test_atomic_wants_each_file_once(warm: Home) -> None:
    path = warm.write("once.py", GRID)
    (warm.work / "again.py").symlink_to(path)
    done = warm.run("edit", "once.py", "again.py", "--atomic", "-i", RENAME)
    assert done.returncode == 2
    assert "a file is named twice; with --atomic name each once" in done.stderr
    assert path.read_text() == GRID


def test_atomic_writes_none_where_one_fails(warm: Home) -> None:
    first = warm.write("none1.py", GRID)
    warm.write("none2.py", b"\0")
    done = warm.run("edit", "none1.py", "none2.py", "--atomic", "-i", RENAME)
    assert done.returncode == 3
    assert first.read_text() == GRID
    assert "not written" in done.stderr
    assert sorted(path.name for path in warm.work.iterdir() if path.name.startswith(".")) == []


def test_atomic_puts_back_what_it_wrote_where_a_later_file_changed_meanwhile(warm: Home) -> None:
    long = GRID * 6  # its job runs long enough to be seen
    first, second = warm.write("back1.py", GRID), warm.write("back2.py", long)
    editing = warm.start("edit", "back1.py", "back2.py", "--atomic", "-i", RENAME)
    wait_for(lambda: (warm.work / ".back1.py.specd-new").exists() and warm.is_busy())  # the second one was read
    second.write_text(long + "# mine\n")
    _, err = editing.communicate(timeout=60)
    assert editing.returncode == 3
    assert "back2.py changed on disk" in err
    assert (first.read_text(), second.read_text()) == (GRID, long + "# mine\n")
    assert sorted(path.name for path in warm.work.iterdir() if path.name.startswith(".")) == []
