"""Why there is no word of the daemon: none runs, none can be started, one does not answer, one is not there yet."""

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from daemon_home import Home, wait_for

from specd.daemon import lifecycle
from specd.daemon.client import Client, connect, running_status
from specd.daemon.errors import DaemonUnavailable, NoDaemon, Unanswered
from specd.daemon.events import OUTCOMES
from specd.daemon.locks import FileLock
from specd.daemon.protocol import RewriteRequest, Target
from specd.daemon.transport import Address, lock_path


@pytest.fixture
def suspended(home: Home) -> Iterator[tuple[Home, int]]:
    """A home whose daemon is suspended, as by Ctrl-Z, and its process."""
    home.start("serve")
    wait_for(home.client.is_reachable)
    pid = home.daemon_pid()
    os.kill(pid, signal.SIGSTOP)
    yield home, pid
    with contextlib.suppress(ProcessLookupError):  # the test has ended it
        os.kill(pid, signal.SIGCONT)


def inhabit(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, home.environ[name])
    monkeypatch.delenv("SPECD_DAEMON", raising=False)


def test_a_suspended_daemon_is_named_with_what_wakes_it_and_what_ends_it(
    suspended: tuple[Home, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, pid = suspended
    words = (
        f"the daemon (pid {pid}) takes connections and does not answer: it is suspended, or stuck.\n"
        f"`kill -CONT {pid}` wakes it; if that does not help, `kill -KILL {pid}` ends it, and the next rewrite starts "
        "one."
    )
    for options in ((), ("--json",)):
        done = home.run("status", *options)
        assert (done.returncode, done.stdout, done.stderr) == (4, "", f"specd: {words}\n")
    inhabit(home, monkeypatch)
    with pytest.raises(Unanswered, match=str(pid)):
        lifecycle.running_status(timeout=0.2)
    os.kill(pid, signal.SIGCONT)
    assert running_status()["pid"] == pid


def test_who_needs_a_daemon_that_is_suspended_or_is_to_stop_it_is_told_so_too(
    suspended: tuple[Home, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, pid = suspended
    inhabit(home, monkeypatch)
    began = time.monotonic()
    done = home.run("stop")
    assert done.returncode == 4
    assert f"`kill -KILL {pid}` ends it" in done.stderr
    with pytest.raises(Unanswered):
        connect()
    assert time.monotonic() - began < 40  # each waits for ten seconds, once
    os.kill(pid, signal.SIGKILL)
    assert connect().status()["pid"] != pid


def test_a_rewrite_waits_for_a_silent_daemon_to_accept_it_but_not_for_ever(suspended: tuple[Home, int]) -> None:
    home, pid = suspended
    client, asked = Client(Address(socket=home.socket), accept_timeout=0.3), RewriteRequest(Target("x = 1\n"), "y")
    with pytest.raises(Unanswered, match=f"kill -CONT {pid}"):
        client.rewrite(asked)
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: bool(home.client.status()))
    with Client(Address(socket=home.socket), accept_timeout=2.0).rewrite(asked) as events:
        os.kill(pid, signal.SIGSTOP)  # a job may take as long as it does
        resumed = threading.Timer(3.0, os.kill, (pid, signal.SIGCONT))
        resumed.start()
        last = list(events)[-1]
        resumed.join()
    assert isinstance(last, OUTCOMES)


def test_a_daemon_of_another_machine_that_does_not_answer_has_no_process_here(
    suspended: tuple[Home, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = suspended
    forwarded = home.folder / "there.sock"
    forwarded.symlink_to(home.socket)  # the lock is not beside it, as of one that ssh forwards
    monkeypatch.setenv("SPECD_DAEMON", str(forwarded))
    with pytest.raises(Unanswered) as caught:
        lifecycle.running_status(timeout=0.2)
    assert str(caught.value) == (
        f"the daemon at unix:{forwarded} takes connections and does not answer: it is suspended, or stuck.\n"
        "End its process where it runs, and start another there."
    )


def test_that_none_runs_and_how_one_starts(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    inhabit(home, monkeypatch)
    with pytest.raises(NoDaemon) as caught:
        running_status()
    assert str(caught.value) == f"no daemon runs at unix:{home.socket}; the next rewrite starts one."
    assert caught.value.problem == ""
    done = home.run("status")
    assert (done.returncode, done.stdout) == (1, f"{caught.value}\n")
    assert json.loads(home.run("status", "--json").stdout) == {"state": "stopped", "problem": ""}


def test_settings_that_keep_one_from_starting_are_said(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    inhabit(home, monkeypatch)
    home.settings.write_text("modle = 1\n")
    problem = f"{home.settings}, line 1: "
    with pytest.raises(NoDaemon) as caught:
        running_status()
    assert caught.value.problem.startswith(problem)
    assert "'model'" in caught.value.problem
    done = home.run("status")
    assert done.returncode == 1
    assert done.stdout.startswith(f"no daemon runs at unix:{home.socket}, and none can be started: {problem}")
    assert json.loads(home.run("status", "--json").stdout)["problem"] == caught.value.problem
    monkeypatch.setenv("SPECD_DAEMON", str(home.folder / "elsewhere.sock"))  # these settings are not its
    with pytest.raises(NoDaemon, match="start it there, or unset SPECD_DAEMON"):
        running_status()


def test_one_that_holds_its_place_and_does_not_listen_is_starting_or_ending(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    inhabit(home, monkeypatch)
    home.socket.parent.mkdir(mode=0o700)
    with FileLock(lock_path(Address(socket=home.socket))) as lock:
        assert lock.try_acquire()
        with pytest.raises(
            DaemonUnavailable, match=r"is starting, or ending\.\nAsk again in a moment; .* see "
        ) as caught:
            running_status()
        assert not isinstance(caught.value, NoDaemon)
    with pytest.raises(NoDaemon):
        running_status()


def test_the_doctor_says_the_same(suspended: tuple[Home, int], new_home: Callable[..., Home]) -> None:
    home, pid = suspended
    assert f"warn daemon    the daemon (pid {pid}) takes connections and does not answer" in home.run("doctor").stdout
    assert "ok   daemon    none runs; the next rewrite starts one\n" in new_home().run("doctor").stdout
