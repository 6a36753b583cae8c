"""The client's side of the daemon's life: reach it, start it on demand, replace one of another version, stop it.

Whoever needs the daemon first starts it, under a lock, so that ten clients at once start one. A daemon at an address
given by SPECD_DAEMON is somebody else's to start.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from specd.daemon import __version__, paths, transport
from specd.daemon.client import Client
from specd.daemon.errors import (
    Busy,
    DaemonUnavailable,
    NoDaemon,
    SettingsError,
    SpecdError,
    Unanswered,
    UsageError,
    VersionMismatch,
    error_of,
)
from specd.daemon.locks import FileLock
from specd.daemon.transport import Address

if TYPE_CHECKING:
    import subprocess

T = TypeVar("T")
Say = Callable[[str], None]

_POLL: Final = 0.01  # seconds between looks while a daemon starts or ends
_START_SECONDS: Final = 60.0  # a daemon listens within a second; a machine may be busy
_STATUS_SECONDS: Final = 5.0  # a daemon answers within milliseconds; a machine may be busy
_DRAIN_SECONDS: Final = 600.0  # how long the jobs of a daemon of another version may take to end


def with_daemon(call: Callable[[Client], T], *, name: str | None = None, say: Say = lambda text: None) -> T:
    """`call` with a client of a running daemon of this version, started or replaced where needed; `call` may be tried
    again. say: told what is waited for. Raises DaemonUnavailable if there is none and none can be started, or one that
    does not answer.
    """
    given = transport.given_address()
    for _ in range(4):
        address = given or transport.default_address()
        client = Client(address, name=name)
        try:
            return call(client)
        except VersionMismatch as error:
            if given:
                raise UsageError(
                    f"the daemon at {given} is specd {error.daemon_version}, this is {__version__}; "
                    "install the same on both sides."
                ) from None
            say(f"the daemon is specd {error.daemon_version}; waiting for its jobs to end")
            wait_gone(address, _DRAIN_SECONDS)
        except Unanswered:
            raise
        except DaemonUnavailable:
            if given:
                raise DaemonUnavailable(
                    f"no daemon answers at {given} (SPECD_DAEMON); start it there, or unset SPECD_DAEMON."
                ) from None
        except Busy:
            if given or not _is_draining(client):
                raise
            say("the daemon is stopping; waiting for its jobs to end")
            wait_gone(address, _DRAIN_SECONDS)
        say("starting the daemon")
        start(address)
    raise DaemonUnavailable(f"the daemon does not stay up; see {paths.log_path()}.")


def how_to_start() -> str:
    """What a user whose daemon does not run has to know."""
    if transport.given_address():
        return f"start it there, or unset {transport.ADDRESS_VARIABLE}"
    return "the next rewrite starts one"


def running_status(timeout: float = _STATUS_SECONDS) -> dict[str, Any]:
    """What the running daemon says of itself within `timeout` seconds. Raises as `client.running_status` does."""
    given = transport.given_address()
    address = given or transport.default_address()
    try:
        return Client(address).status(timeout=timeout)
    except Unanswered:
        raise
    except DaemonUnavailable:
        if is_alive(address):
            raise DaemonUnavailable(
                f"a daemon holds {address} and takes no connection: it is starting, or ending.\n"
                f"Ask again in a moment; if it stays so, see {paths.log_path()}."
            ) from None
    problem = "" if given else _settings_problem()
    what_next = f", and none can be started: {problem}" if problem else f"; {how_to_start()}."
    raise NoDaemon(f"no daemon runs at {address}{what_next}", problem)


def _settings_problem() -> str:
    """What is wrong with the settings file, empty if nothing is."""
    from specd.daemon import settings

    try:
        settings.load()
    except SettingsError as error:
        return str(error)
    return ""


def start(address: Address) -> None:
    """Start a daemon at `address` and wait until it listens. Does nothing if one does. Raises what kept it from it."""
    starting = FileLock(transport.lock_path(address).with_suffix(".start"))
    if not starting.acquire(_START_SECONDS):
        raise DaemonUnavailable(f"another client has been starting the daemon for {_START_SECONDS:.0f} s; try again.")
    with starting:
        end = time.monotonic() + _START_SECONDS
        while is_alive(address):  # one that starts, or one that is about to be gone
            if Client(address).is_reachable():
                return
            if time.monotonic() > end:
                raise DaemonUnavailable(f"a daemon holds {address} but does not listen; see {paths.log_path()}.")
            time.sleep(_POLL)
        report = transport.lock_path(address).with_suffix(".report")
        process = _spawn(report)
        while time.monotonic() < end:
            if Client(transport.given_address() or transport.default_address()).is_reachable():
                _reap(process)
                return
            code = process.poll()
            if code is not None:
                raise _start_error(code, report)
            time.sleep(_POLL)
        process.terminate()
        _reap(process)
        raise DaemonUnavailable(f"the daemon did not listen within {_START_SECONDS:.0f} s; see {paths.log_path()}.")


def stop(address: Address, *, drain: bool, timeout: float = _DRAIN_SECONDS) -> bool:
    """Stop the daemon and wait until it is gone; False if there was none. Raises DaemonUnavailable if it stays, or does
    not answer.
    """
    try:
        Client(address).shutdown(drain=drain)
    except Unanswered:
        raise
    except DaemonUnavailable:
        if not is_alive(address):
            return False
    if not wait_gone(address, timeout):
        raise DaemonUnavailable(f"the daemon at {address} has not ended after {timeout:.0f} s; try `specd stop --now`.")
    return True


def wait_gone(address: Address, timeout: float) -> bool:
    """Wait until no daemon holds the lock of `address`; False if that takes longer than `timeout` seconds."""
    end = time.monotonic() + timeout
    while is_alive(address):
        if time.monotonic() > end:
            return False
        time.sleep(_POLL)
    return True


def is_alive(address: Address) -> bool:
    """Whether a daemon process holds the lock of `address` (it may not listen yet, or not any more)."""
    path = transport.lock_path(address)
    return path.exists() and FileLock(path).is_held()


def _spawn(report: Path) -> "subprocess.Popen[bytes]":
    import subprocess  # slow to import, and seldom needed

    report.unlink(missing_ok=True)
    fd = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    # -P: the folder where the user stands must not shadow modules of the daemon
    command = [sys.executable, "-P", "-m", "specd.daemon", "serve", "--detached"]
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=fd, stderr=fd, start_new_session=True, cwd=os.path.abspath(os.sep)
        )
    except OSError as error:
        raise DaemonUnavailable(f"cannot start the daemon ({command[0]}: {error.strerror}).") from None
    finally:
        os.close(fd)


def _reap(process: "subprocess.Popen[bytes]") -> None:
    """Wait for the daemon's end on a thread: a client that lives longer, an editor's server, is to keep no zombie."""
    import threading

    threading.Thread(target=process.wait, name="specd-reap", daemon=True).start()


def _start_error(exit_code: int, report: Path) -> SpecdError:
    """What the daemon said before it ended, as the error it was."""
    text = ""
    with contextlib.suppress(OSError):
        text = report.read_text(errors="replace").strip().removeprefix("specd: ")
    if exit_code == UsageError.exit_code and text:
        return error_of("settings", text)
    last = "\n".join(text.splitlines()[-2:])
    return DaemonUnavailable(f"the daemon could not start: {last or f'exit status {exit_code}'}")


def _is_draining(client: Client) -> bool:
    try:
        return bool(client.status()["state"] == "draining")
    except (SpecdError, KeyError):
        return True  # it ended meanwhile
