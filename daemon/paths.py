"""Where specd keeps its socket, settings, log and traces. Folder rules of the XDG base directory specification.

The run folder is private: mode 0700 and owned by the user, else it is refused, because whoever can write in it can
pose as the daemon.
"""

import os
import stat
import sys
from pathlib import Path

from specd.daemon.errors import SpecdError

_SOCKET_PATH_LIMIT = 103 if sys.platform == "darwin" else 107  # bytes of sockaddr_un.sun_path, less its final zero


def settings_path() -> Path:
    """The settings file, whether it exists or not: $XDG_CONFIG_HOME/specd/config.toml."""
    return _base("XDG_CONFIG_HOME", ".config") / "specd" / "config.toml"


def state_folder() -> Path:
    """Folder of the log and the traces: $XDG_STATE_HOME/specd. Not created here."""
    return _base("XDG_STATE_HOME", ".local/state") / "specd"


def log_path() -> Path:
    """The daemon's log (rotated copies have .1, .2 after it)."""
    return state_folder() / "daemon.log"


def trace_path() -> Path:
    """The JSON Lines file with one record a job."""
    return state_folder() / "trace.jsonl"


def run_folder() -> Path:
    """The private folder of the socket, created with mode 0700 where it is missing.

    $XDG_RUNTIME_DIR/specd, or specd-UID under the temporary folder. Raises SpecdError if it is not ours alone.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime) and os.path.isdir(runtime):
        folder = Path(runtime) / "specd"
    else:
        temporary = os.environ.get("TMPDIR") or os.environ.get("TEMP") or "/tmp"
        folder = Path(temporary) / f"specd-{_uid()}"
    return private_folder(folder)


def private_folder(folder: Path) -> Path:
    """Create `folder` with mode 0700, or check that it is a folder of ours that nobody else can enter."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        info = folder.lstat()
    except OSError as error:
        raise SpecdError(
            f"cannot use {folder} for the daemon's socket: {error.strerror}\n"
            "Set XDG_RUNTIME_DIR to a folder of your own, or remove what is in the way."
        ) from None
    if os.name != "posix":
        return folder
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise SpecdError(
            f"{folder} is not a folder of yours, so specd does not trust a socket in it.\n"
            "Remove it, or set XDG_RUNTIME_DIR to a folder of your own."
        )
    if info.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def default_socket() -> Path:
    """The daemon's socket in the run folder. Raises SpecdError if its path is longer than a unix socket's may be."""
    path = run_folder() / "daemon.sock"
    check_socket_path(path)
    return path


def check_socket_path(path: Path) -> None:
    """Raises SpecdError if `path` is too long for a unix socket."""
    if len(os.fsencode(path)) > _SOCKET_PATH_LIMIT:
        raise SpecdError(
            f"the socket path {path} is longer than the {_SOCKET_PATH_LIMIT} bytes that a unix socket can have.\n"
            "Set XDG_RUNTIME_DIR to a folder with a shorter name."
        )


def _base(variable: str, below_home: str) -> Path:
    value = os.environ.get(variable)
    return Path(value) if value and os.path.isabs(value) else Path.home() / below_home


def _uid() -> str:
    return str(os.getuid()) if os.name == "posix" else os.environ.get("USERNAME", "user")
