"""Daemons, servers and editors that die: nothing hangs, nothing is lost, and what is to be done is said."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable

import psutil
import pytest
from daemon_home import GRID, MESH, Home, wait_for
from scripted_editor import VSCODE, Editor, Habits

from specd.daemon.errors import SpecdError

GetEditor = Callable[..., Editor]
PLUGIN = Habits(plugin=True)


def test_a_daemon_that_dies_in_mid_job_is_said_and_the_next_one_works(own_replay: Home, editor_at: GetEditor) -> None:
    at = editor_at(own_replay)
    uri = at.open(GRID)
    at.rewrite(uri, "hang")
    wait_for(lambda: at.edits > 0)
    os.kill(own_replay.daemon_pid(), signal.SIGKILL)
    message = at.wait_shown()
    assert "the daemon ended in the middle of the job" in message
    assert "applied so far stay" in message
    assert len(at.progress("end")) == len(at.progress("begin")) == 1
    at.request("specd/revert", {"uri": uri})
    assert at.text(uri) == GRID
    at.rewrite(uri, "at once")  # starts a daemon
    assert at.wait_shown(2).startswith("specd: 3 hunks")
    assert at.text(uri) == MESH


def test_a_daemon_that_dies_before_the_first_hunk_is_started_again(own_replay: Home, editor_at: GetEditor) -> None:
    at = editor_at(own_replay, PLUGIN)
    uri = at.open(GRID)
    holder = at.open(GRID.replace("Grid", "Other"))
    at.rewrite(holder, "hang")
    wait_for(lambda: len(at.of("specd/region")) == 1)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "slowly"})
    wait_for(lambda: len(at.of("specd/region")) == 2)
    os.kill(own_replay.daemon_pid(), signal.SIGKILL)
    assert at.answer(number, 30)["result"]["outcome"] == "done"
    assert at.text(uri) == MESH
    assert sum(region["uri"] == uri for region in at.of("specd/region")) == 1


def test_no_daemon_and_none_can_be_started_is_an_outcome(own_replay: Home, editor_at: GetEditor) -> None:
    own_replay.run("stop", "--now")
    own_replay.settings.write_text("modle = 5\n")
    at = editor_at(own_replay)
    uri = at.open(GRID)
    at.rewrite(uri, "at once")
    message = at.wait_shown()
    assert "unknown key 'modle'" in message
    assert "nothing was changed" in message
    own_replay.settings.write_text("")


def test_an_editor_at_a_daemon_of_another_machine_says_when_it_is_gone(own_replay: Home, editor_at: GetEditor) -> None:
    own_replay.environ["SPECD_DAEMON"] = f"unix:{own_replay.folder}/nothing.sock"
    at = editor_at(own_replay)
    at.rewrite(at.open(GRID), "at once")
    assert "SPECD_DAEMON" in at.wait_shown()
    del own_replay.environ["SPECD_DAEMON"]


def test_a_stopped_daemon_ends_its_jobs_with_a_word(own_replay: Home, editor_at: GetEditor) -> None:
    at = editor_at(own_replay)
    uri = at.open(GRID)
    at.rewrite(uri, "hang")
    wait_for(lambda: at.edits > 0)
    own_replay.run("stop", "--now")
    assert "cancelled (the daemon was stopped)" in at.wait_shown()


@pytest.mark.parametrize("seed", range(6))
def test_kills_at_random_points_leave_nothing_behind(own_replay: Home, editor_at: GetEditor, seed: int) -> None:
    """The daemon, the server or the editor's end of the pipe dies somewhere in a rewrite while the user types; no byte
    is lost, no process stays, and the next rewrite works.
    """
    draw = random.Random(seed)
    at = editor_at(own_replay, Habits(name="Neovim", stale="drop", echo="before") if seed % 2 else VSCODE)
    uri = at.open("".join(f"# {number}\n" for number in range(8)) + GRID)
    at.rewrite(uri, "slowly")
    for number in range(8):
        time.sleep(draw.random() * 0.1)
        at.type(uri, f"# {number}\n", f"# {number} typed\n")
    victim = ["daemon", "server", "pipe"][seed % 3]
    if victim == "daemon":
        with contextlib.suppress(SpecdError):  # it may be idle already
            os.kill(own_replay.daemon_pid(), signal.SIGKILL)
        at.wait_shown()
    elif victim == "server":
        at.kill()
    else:
        assert at.process.stdin is not None
        at.process.stdin.close()
        at.process.wait(3)
    expected = "".join(f"# {number} typed\n" for number in range(8))
    assert at.text(uri).startswith(expected)
    for line, old, new in zip(
        at.text(uri)[len(expected) :].split("\n"), GRID.split("\n"), MESH.split("\n"), strict=True
    ):
        assert line in (old, new)  # whole lines of the one or the other, in their places
    if victim != "daemon":
        wait_for(lambda: own_replay.client.status()["jobs"] == {"active": 0, "waiting": 0}, 5)
        at = editor_at(own_replay)
    uri = at.open(GRID)
    said = len(at.shown)
    at.rewrite(uri, "at once")
    at.wait_shown(said + 1)
    assert at.text(uri) == MESH
    assert at.close() == 0
    own_replay.run("stop", "--now")
    wait_for(lambda: not alive(own_replay), 10)


def test_a_daemon_that_the_server_started_leaves_no_zombie(own_replay: Home, editor_at: GetEditor) -> None:
    own_replay.run("stop", "--now")
    at = editor_at(own_replay)
    uri = at.open(GRID)
    for said in (1, 2):  # the second daemon is started by the server that saw the first one die
        at.rewrite(uri, "nothing")
        assert "the model changed nothing" in at.wait_shown(said)
        os.kill(own_replay.daemon_pid(), signal.SIGKILL)
        wait_for(lambda: not own_replay.client.is_reachable())
    server = psutil.Process(at.process.pid)
    wait_for(lambda: [child for child in server.children() if child.status() == psutil.STATUS_ZOMBIE] == [], 10)


def alive(home: Home) -> list[int]:
    """Processes that run, or wait to be reaped, at this home; the test's own children aside."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("XDG_RUNTIME_DIR") == str(home.folder / "run"):
                found.append(process.pid)
    return found


def test_several_editors_share_the_daemon_and_not_their_faults(replay: Home, editor_at: GetEditor) -> None:
    editors = [editor_at(replay, VSCODE) for _ in range(3)]
    uris = [at.open(GRID) for at in editors]
    for at, uri in zip(editors, uris, strict=True):
        at.rewrite(uri, "slowly")
    editors[0].kill()
    for at, uri in zip(editors[1:], uris[1:], strict=True):
        assert at.wait_shown().startswith("specd: 3 hunks")
        assert at.text(uri) == MESH
