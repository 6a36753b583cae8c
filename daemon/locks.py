"""A lock between processes, on a file. The kernel lets go of it when its holder dies, so none is ever stale."""

import os
import time
from pathlib import Path
from types import TracebackType

try:
    import fcntl
except ImportError:  # no POSIX locks here
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """An exclusive lock on `path` (created with mode 0600; never removed, since removing it would split the lock)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if nobody holds it."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            _lock(fd)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def acquire(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the lock."""
        end = time.monotonic() + timeout
        while not self.try_acquire():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def is_held(self) -> bool:
        """Whether some process (this one too) holds the lock."""
        if self._fd is not None:
            return True
        if self.try_acquire():
            self.release()
            return False
        return True

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> "FileLock":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def _lock(fd: int) -> None:
    """Lock without waiting; raises OSError if another process holds it."""
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    import msvcrt

    msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
