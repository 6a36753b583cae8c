"""Daemons, servers and editors that die: nothing hangs, nothing is lost, and what is to be done is said."""

import os
import random
import signal
import time
from collections.abc import Callable

import pytest
from daemon_home import GRID, MESH, Home, wait_for
from scripted_editor import VSCODE, Editor, Habits

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


@pytest.mark.parametrize("seed", range(2))
def test_kills_at_random_points_leave_nothing_behind(own_replay: Home, editor_at: GetEditor, seed: int) -> None:
    """The daemon, the server or the editor's end of the pipe dies somewhere in a rewrite; the next one works."""
    draw = random.Random(seed)
    at = editor_at(own_replay)
    uri = at.open(GRID)
    at.rewrite(uri, "slowly")
    time.sleep(draw.random() * 0.9)
    victim = draw.choice(["daemon", "server", "pipe"])
    if victim == "daemon":
        os.kill(own_replay.daemon_pid(), signal.SIGKILL)
        at.wait_shown()
    elif victim == "server":
        at.kill()
    else:
        assert at.process.stdin is not None
        at.process.stdin.close()
        at.process.wait(3)
    for line in at.text(uri).splitlines():  # whole lines of the one or the other, nothing between
        assert line in GRID.splitlines() or line in MESH.splitlines()
    if victim != "daemon":
        wait_for(lambda: own_replay.client.status()["jobs"] == {"active": 0, "waiting": 0}, 5)
        at = editor_at(own_replay)
        uri = at.open(GRID)
    said = len(at.shown)
    at.rewrite(uri, "at once")
    at.wait_shown(said + 1)
    assert at.text(uri) == MESH


def test_several_editors_share_the_daemon_and_not_their_faults(replay: Home, editor_at: GetEditor) -> None:
    editors = [editor_at(replay, VSCODE) for _ in range(3)]
    uris = [at.open(GRID) for at in editors]
    for at, uri in zip(editors, uris, strict=True):
        at.rewrite(uri, "slowly")
    editors[0].kill()
    for at, uri in zip(editors[1:], uris[1:], strict=True):
        assert at.wait_shown().startswith("specd: 3 hunks")
        assert at.text(uri) == MESH
