"""Errors that a user reads. Each message is one or two lines: what happened, and what to do next.

`code` names the kind for programs (it travels in `error` events and in HTTP bodies), `exit_code` is what the shell
command ends with.
"""

from typing import Final

DONE: Final = 0
NO_CHANGE: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
FAILED: Final = 4
INTERRUPTED: Final = 130


class SpecdError(Exception):
    """Base of every error that specd raises on purpose. str(error) is meant for the user. says_unchanged: it says that
    nothing was changed, so that nobody need add it.
    """

    code = "failed"
    exit_code = FAILED
    says_unchanged = False


class UsageError(SpecdError):
    """The command line or a request's fields contradict each other or make no sense."""

    code = "usage"
    exit_code = USAGE


class SettingsError(UsageError):
    """The settings file has an unknown key, a wrong type, or is not TOML. The message names key and line."""

    code = "settings"


class InputRefused(SpecdError):
    """The file or text cannot be rewritten as it is; nothing was changed."""

    code = "refused"
    exit_code = REFUSED


class EmptyText(InputRefused):
    """There is nothing to rewrite, and the message says so."""

    says_unchanged = True


class Conflict(InputRefused):
    """The file changed on disk while its rewrite was made; nothing was written."""

    code = "conflict"


class EngineFailed(SpecdError):
    """The model could not be loaded, or a step of it failed."""

    code = "engine"


class DaemonUnavailable(SpecdError):
    """No daemon answers, or it ended in the middle of a job."""

    code = "unavailable"


class NoDaemon(DaemonUnavailable):
    """None runs. problem: what would keep one from starting, or empty."""

    def __init__(self, message: str, problem: str = "") -> None:
        super().__init__(message)
        self.problem = problem


class Unanswered(DaemonUnavailable):
    """A daemon takes connections and does not answer in time: it is suspended, or stuck."""


class AlreadyRunning(SpecdError):
    """Another daemon holds the address."""

    code = "already_running"


class Busy(SpecdError):
    """The daemon takes no more jobs now: its queue is full, or it is shutting down."""

    code = "busy"


class VersionMismatch(SpecdError):
    """Client and daemon are of different versions. `daemon_version` is the daemon's."""

    code = "version_mismatch"

    def __init__(self, message: str, daemon_version: str) -> None:
        super().__init__(message)
        self.daemon_version = daemon_version


_BY_CODE: Final[dict[str, type[SpecdError]]] = {
    kind.code: kind
    for kind in (UsageError, SettingsError, InputRefused, Conflict, EngineFailed, DaemonUnavailable, Busy, SpecdError)
}


def error_of(code: str, message: str) -> SpecdError:
    """The error that `code` names (as it came over the wire), with `message`; an unknown code is a plain SpecdError."""
    return _BY_CODE.get(code, SpecdError)(message)
