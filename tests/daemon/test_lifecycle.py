"""One daemon a user: started by whoever needs it first, replaced, stopped, and healed after any death."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_home import GRID, Home, wait_for

from specd.daemon import lifecycle, paths
from specd.daemon.client import connect
from specd.daemon.errors import SpecdError
from specd.daemon.locks import FileLock
from specd.daemon.transport import Address, lock_path

SHORT = ("--max-tokens", 3)  # the random model's answer breaks off here, after one step
LONG = ("--max-tokens", 20000)


def is_over(process: "subprocess.Popen[str]") -> bool:
    return process.poll() is not None


def busy(home: Home) -> Callable[[], bool]:
    return home.is_busy


def test_many_clients_at_once_start_one_daemon(home: Home) -> None:
    names = [f"file{number}.py" for number in range(6)]
    for name in names:
        home.write(name, GRID)
    running = [home.start("edit", name, "-i", "x", *SHORT) for name in names]
    results = [process.communicate(timeout=120) for process in running]
    assert all("broke off" in err or "no change" in err or "declined" in err for _, err in results), results
    log = home.log.read_text()
    assert log.count(" listens at ") == 1
    assert log.count("INFO specd.daemon.service: job ") == 6


def test_stop_waits_for_the_job_in_hand_and_now_does_not(home: Home) -> None:
    path = home.write("long.py", GRID)
    editing = home.start("edit", path.name, "-i", "x", "--max-tokens", 400)
    wait_for(busy(home))
    assert home.run("stop").returncode == 0
    _, err = editing.communicate(timeout=60)
    assert "400 tokens" in home.log.read_text() or "broke off" in err or "declined" in err
    assert "daemon was stopped" not in err
    assert not home.socket.exists()
    editing = home.start("edit", path.name, "-i", "x", *LONG)
    wait_for(busy(home))
    began = time.monotonic()
    assert home.run("stop", "--now").returncode == 0
    assert time.monotonic() - began < 20
    _, err = editing.communicate(timeout=60)
    assert (editing.returncode, path.read_text()) == (4, GRID)
    assert "the daemon was stopped" in err


def test_stop_without_a_daemon_says_so(home: Home) -> None:
    done = home.run("stop")
    assert (done.returncode, done.stderr) == (0, "no daemon runs\n")
    assert home.run("status").returncode == 1


def test_sigterm_ends_the_daemon_cleanly(home: Home) -> None:
    path = home.write("term.py", GRID)
    editing = home.start("edit", path.name, "-i", "x", *LONG)
    wait_for(busy(home))
    os.kill(home.daemon_pid(), signal.SIGTERM)
    _, err = editing.communicate(timeout=60)
    assert "the daemon was stopped" in err
    wait_for(lambda: not home.socket.exists())
    wait_for(lambda: home.log.read_text().endswith("stopped\n"))
    assert "Traceback" not in home.log.read_text()


def test_a_daemon_of_another_version_is_replaced_when_its_jobs_are_done(home: Home) -> None:
    path = home.write("old.py", GRID)
    home.run("edit", path.name, "-i", "x", *SHORT)
    before = home.daemon_pid()
    working = home.start("edit", path.name, "-i", "x", "--max-tokens", 300)
    wait_for(busy(home))
    newer = home.folder / "newer" / "specd"
    newer.mkdir(parents=True)
    source = Path(__file__).parents[2]
    (newer / "daemon").mkdir()
    for entry in (source / "daemon").iterdir():
        if entry.name != "__init__.py" and entry.name != "__pycache__":
            (newer / "daemon" / entry.name).symlink_to(entry)
    (newer / "daemon" / "__init__.py").write_text('__version__ = "99.0.0"\n')
    for room in ("engine", "mini"):
        (newer / room).symlink_to(source / room)
    other = home.write("new.py", GRID)
    environ = {**home.environ, "PYTHONPATH": str(newer.parent)}
    done = home.run("edit", other.name, "-i", "x", *SHORT, env=environ)
    assert "broke off" in done.stderr or "declined" in done.stderr, done.stderr
    _, err = working.communicate(timeout=60)
    assert "daemon was stopped" not in err
    status = home.client.status()
    assert status["version"] == "99.0.0"
    assert status["pid"] != before


def test_an_idle_daemon_unloads_and_then_ends_by_itself(new_home: Callable[..., Home], slow_model: Path) -> None:
    home = new_home(f'model = "{slow_model}"\nidle_unload = 1\nidle_shutdown = 5\n')
    home.run("edit", home.write("idle.py", GRID).name, "-i", "x", *SHORT)
    wait_for(lambda: home.client.status()["models"] == [])
    home.run("edit", "idle.py", "-i", "x", *SHORT)  # loads it again
    assert home.client.status()["models"][0]["state"] == "ready"
    wait_for(lambda: not home.client.is_reachable())
    wait_for(lambda: home.log.read_text().endswith("stopped\n"))


def test_a_daemon_whose_socket_was_removed_makes_room_for_a_new_one(home: Home) -> None:
    path = home.write("gone.py", GRID)
    home.run("edit", path.name, "-i", "x", *SHORT)
    before = home.daemon_pid()
    home.socket.unlink()
    done = home.run("edit", path.name, "-i", "x", *SHORT)
    assert "daemon" not in done.stderr
    assert home.daemon_pid() != before


def test_a_second_daemon_at_the_same_address_refuses_to_start(noise: Home) -> None:
    done = noise.run("serve")
    assert done.returncode == 4
    assert "is running at" in done.stderr
    assert noise.client.is_reachable()


def test_an_address_that_is_given_is_never_started(home: Home) -> None:
    path = home.write("given.py", GRID)
    elsewhere = home.folder / "elsewhere.sock"
    done = home.run("edit", path.name, "-i", "x", env={**home.environ, "SPECD_DAEMON": f"unix:{elsewhere}"})
    assert done.returncode == 4
    assert "SPECD_DAEMON" in done.stderr
    assert not elsewhere.exists()
    far = home.run("edit", path.name, "-i", "x", env={**home.environ, "SPECD_DAEMON": "http://10.0.0.1:80"})
    assert far.returncode == 2
    assert "ssh -L" in far.stderr


def test_a_run_folder_of_somebody_else_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "real"
    target.mkdir()
    (tmp_path / "specd").symlink_to(target)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(SpecdError, match="not a folder of yours"):
        paths.run_folder()


def test_the_run_folder_and_the_socket_are_private(noise: Home) -> None:
    assert noise.socket.parent.stat().st_mode & 0o777 == 0o700
    assert noise.socket.stat().st_mode & 0o777 == 0o600
    assert noise.log.stat().st_mode & 0o077 == 0


def test_a_socket_path_that_is_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    with pytest.raises(SpecdError, match="XDG_RUNTIME_DIR"):
        paths.default_socket()


def test_a_lock_is_free_when_its_holder_is_killed(tmp_path: Path) -> None:
    code = "import sys, time; from pathlib import Path; from specd.daemon.locks import FileLock\n"
    code += "lock = FileLock(Path(sys.argv[1])); print(lock.try_acquire(), flush=True); time.sleep(60)"
    path = tmp_path / "lock"
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-c", code, str(path)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    assert FileLock(path).is_held()
    assert not FileLock(path).try_acquire()
    holder.kill()
    holder.wait()
    assert FileLock(path).acquire(1)


def test_waiting_for_the_end_of_a_daemon_that_never_was_returns_at_once(tmp_path: Path) -> None:
    address = Address(socket=tmp_path / "none.sock")
    assert lifecycle.wait_gone(address, 0)
    assert not lock_path(address).exists()


def test_connect_starts_a_daemon_and_finds_it_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SPECD_DAEMON", raising=False)
    told: list[str] = []
    first = connect(name="editor", say=told.append)
    assert told == ["starting the daemon"]
    assert connect(say=told.append).status()["pid"] == first.status()["pid"]
    assert told == ["starting the daemon"]
