""":SpecdInfo and :checkhealth where there is no word of the daemon: each says which trouble it is, and what to do."""

import os
import signal
from collections.abc import Callable

import pytest
from daemon_home import Home, wait_for
from real_nvim import Nvim

StartNvim = Callable[..., Nvim]


def stop_it(home: Home, pid: int) -> None:
    home.run("stop")


def break_settings(home: Home, pid: int) -> None:
    home.run("stop")
    home.settings.write_text("modle = 1\n")


def suspend_it(home: Home, pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


@pytest.mark.parametrize(
    ("trouble", "info", "health"),
    [
        (
            stop_it,
            "daemon   no daemon runs at unix:{home.socket}; the next rewrite starts one.\n",
            "none runs; the next rewrite starts one\n",
        ),
        (
            break_settings,
            "daemon   no daemon runs at unix:{home.socket}, and none can be started: {home.settings}, line 1: ",
            "ERROR none runs, and none can be started: {home.settings}, line 1: ",
        ),
        (
            suspend_it,
            "daemon   the daemon (pid {pid}) takes connections and does not answer: it is suspended, or stuck.\n"
            "         `kill -CONT {pid}` wakes it; if that does not help, `kill -KILL {pid}` ends it, and the next "
            "rewrite starts one.\n",
            "ERROR the daemon (pid {pid}) takes connections and does not answer: it is suspended, or stuck.\n",
        ),
    ],
    ids=["none", "settings", "suspended"],
)
def test_no_word_of_the_daemon_is_told_as_what_it_is(
    own_replay: Home, start: StartNvim, trouble: Callable[[Home, int], None], info: str, health: str
) -> None:
    at = start(own_replay)
    wait_for(own_replay.client.is_reachable)
    pid = own_replay.daemon_pid()
    trouble(own_replay, pid)
    try:
        at.api.command("SpecdInfo")
        wait_for(lambda: "daemon   " in at.text)
        assert info.format(home=own_replay, pid=pid) in at.text
        at.api.command("checkhealth specd")
        assert health.format(home=own_replay, pid=pid) in at.text
    finally:
        if trouble is suspend_it:
            os.kill(pid, signal.SIGCONT)
