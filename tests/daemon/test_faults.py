"""Deaths and disasters: whoever is killed and whatever vanishes, no byte of the user's is lost and nothing hangs."""

import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from daemon_home import GRID, MESH, RENAME, Home, wait_for

from specd.daemon.client import Client
from specd.daemon.errors import SpecdError
from specd.daemon.protocol import RewriteRequest, Target

LONG = ("-i", "x", "--max-tokens", 20000)


def idle(home: Home) -> bool:
    return bool(home.client.status()["jobs"] == {"active": 0, "waiting": 0})


def test_a_client_that_is_killed_leaves_the_engine_idle_and_the_file_whole(noise: Home) -> None:
    path = noise.write("orphan.py", GRID)
    for _ in range(5):
        editing = noise.start("edit", path.name, *LONG)
        wait_for(lambda: noise.client.status()["jobs"]["active"] == 1)
        editing.kill()
        editing.communicate()
        wait_for(lambda: idle(noise))
    assert path.read_text() == GRID
    assert noise.run("edit", path.name, "-i", "x", "--max-tokens", 3).returncode in (1, 4)  # its lock is free again


def test_kills_at_random_points_never_leave_half_a_file(warm: Home) -> None:
    chance = random.Random(11)
    path = warm.write("random.py", GRID)
    seen = set()
    for _ in range(25):
        path.write_text(GRID)
        editing = warm.start("edit", path.name, "-i", RENAME)
        time.sleep(chance.uniform(0.02, 0.8))
        editing.kill()
        editing.communicate()
        seen.add(path.read_text())
        assert path.read_text() in (GRID, MESH)
    wait_for(lambda: idle(warm))
    assert GRID in seen
    done = warm.edit(warm.write("random.py", GRID))
    assert (done.returncode, path.read_text()) == (0, MESH)


def test_what_a_killed_client_left_beside_the_file_goes_with_the_next_edit(warm: Home) -> None:
    path = warm.write("left.py", GRID)
    left = warm.write(".left.py.specd-new", "half a te")
    assert warm.edit(path).returncode == 0
    assert path.read_text() == MESH
    assert not left.exists()


def test_a_daemon_killed_again_and_again_is_there_again_and_again(home: Home) -> None:
    path = home.write("phoenix.py", GRID)
    for _ in range(3):
        editing = home.start("edit", path.name, *LONG)
        wait_for(home.is_busy)
        pid = home.daemon_pid()
        os.kill(pid, signal.SIGKILL)
        _, err = editing.communicate(timeout=60)
        assert editing.returncode == 4
        assert "Try again" in err
        assert path.read_text() == GRID
        # until it is gone for good its socket may still take a connection, and drop it
        wait_for(lambda pid=pid: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_a_crash_in_native_code_leaves_a_word_in_the_log(home: Home) -> None:
    home.run("edit", home.write("crash.py", GRID).name, "-i", "x", "--max-tokens", 2)
    pid = home.daemon_pid()
    os.kill(pid, signal.SIGSEGV)
    wait_for(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    assert "Segmentation fault" in home.log.read_text()
    assert home.log.stat().st_mode & 0o777 == 0o600
    assert "broke off" in home.run("edit", "crash.py", "-i", "x", "--max-tokens", 2).stderr


def test_a_model_folder_that_vanishes_harms_no_loaded_model(home: Home, slow_model: Path) -> None:
    model = Path(shutil.copytree(slow_model, home.folder / "model"))
    home.settings.write_text(f'model = "{model}"\nidle_unload = 2\n')
    path = home.write("vanish.py", GRID)
    home.run("edit", path.name, "-i", "x", "--max-tokens", 3)
    shutil.rmtree(model)
    time.sleep(0.3)
    assert "broke off" in home.run("edit", path.name, "-i", "x", "--max-tokens", 3).stderr
    wait_for(lambda: home.client.status()["models"] == [])
    gone = home.run("edit", path.name, "-i", "x")
    assert gone.returncode == 4
    assert "no such model folder" in gone.stderr
    shutil.copytree(slow_model, model)
    assert "broke off" in home.run("edit", path.name, "-i", "x", "--max-tokens", 3).stderr


def test_weights_that_are_cut_short_or_written_over_in_place_harm_no_loaded_model(
    new_home: Callable[..., Home], edit_model: Path
) -> None:
    home = new_home("watch = false\n")
    model = Path(shutil.copytree(edit_model, home.folder / "model"))
    home.settings.write_text(f'model = "{model}"\nwatch = false\n')
    assert home.edit(home.write("grid.py", GRID)).returncode == 0
    pid = home.daemon_pid()
    for weights in model.rglob("*.safetensors"):
        size = weights.stat().st_size
        for content in (b"\xff" * size, b""):
            with weights.open("r+b") as file:  # the same file, not another of its name
                file.write(content)
                file.truncate(len(content))
            path = home.write("grid.py", GRID)
            done = home.edit(path)
            assert (done.returncode, path.read_text()) == (0, MESH), done.stderr
    assert home.daemon_pid() == pid


def test_a_line_of_a_million_characters_is_refused_in_words_or_left_alone(warm: Home) -> None:
    text = f'x = "{"a b" * 333_333}"\n{GRID}'
    path = warm.write("wide.py", text)
    whole = warm.edit(path)
    assert whole.returncode == 3
    assert "tokens" in whole.stderr
    part = warm.edit(path, "--range", "2:18")
    assert part.returncode == 0, part.stderr
    assert path.read_text() == text.replace("Grid", "Mesh")


def test_a_full_disk_under_the_log_and_the_traces_stops_no_job(new_home: Callable[..., Home], slow_model: Path) -> None:
    home = new_home(f'model = "{slow_model}"\n')
    state = home.folder / "state"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(state)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small disk here")
    try:
        (state / "filler").write_bytes(b"\0" * 4096)
        path = home.write("full.py", GRID)
        for _ in range(3):
            assert "broke off" in home.run("edit", path.name, "-i", "x", "--max-tokens", 3).stderr
        assert home.client.status()["state"] == "ready"
        home.run("stop", "--now")
    finally:
        subprocess.run(["umount", "-l", str(state)], check=True)


def test_the_time_limit_ends_a_job_in_words(new_home: Callable[..., Home], slow_model: Path) -> None:
    home = new_home(f'model = "{slow_model}"\njob_time_limit = 1\n')
    path = home.write("slow.py", GRID)
    done = home.run("edit", path.name, *LONG)
    assert done.returncode == 4
    assert "longer than 1 s" in done.stderr
    assert path.read_text() == GRID


def test_memory_and_threads_are_back_at_their_level_after_many_jobs_and_cancels(noise: Home) -> None:
    process = psutil.Process(noise.daemon_pid())
    chance = random.Random(5)

    def one(number: int) -> None:
        client = Client(noise.client.address, name=f"soak-{number}")
        request = RewriteRequest(Target(GRID * 4 + f"# {number}\n"), "x", max_tokens=chance.choice([5, 30, 5000]))
        try:
            stream = client.rewrite(request)
            threading.Timer(chance.uniform(0, 0.3), stream.cancel).start()
            for _ in stream:
                pass
        except SpecdError:
            return

    def wave(first: int) -> tuple[int, int, int]:
        threads = [threading.Thread(target=one, args=(number,)) for number in range(first, first + 30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        wait_for(lambda: idle(noise))
        return process.memory_info().rss, process.num_threads(), process.num_fds()

    wave(0)
    memory, threads, files = wave(30)
    for first in (60, 90, 120):
        later, threads_now, files_now = wave(first)
    assert later < memory + 64 * 2**20
    assert threads_now <= threads + 2
    assert files_now <= files + 2
