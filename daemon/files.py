"""The user's files: read them as text or refuse, and replace them so that nothing can be lost.

A file is written to a temporary neighbour first, synced, and put in place by a rename, through symbolic links and with
its mode, owner and extended attributes kept; and only if it still is what was read.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Final

from specd.daemon.errors import Conflict, InputRefused
from specd.daemon.record import Record

try:
    import fcntl
except ImportError:  # no POSIX locks here
    fcntl = None  # type: ignore[assignment]

_LARGEST: Final = 64 * 2**20  # bytes


class Source:
    """A file as it was read. `lock`: a descriptor that keeps other `specd edit` from the file, or None."""

    def __init__(self, path: Path, real: Path, raw: bytes, text: str, info: os.stat_result, lock: int | None) -> None:
        self.path = path
        self.real = real
        self.raw = raw
        self.text = text
        self.info = info
        self.lock = lock

    def close(self) -> None:
        """Let go of the lock."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


def decode(raw: bytes, name: str) -> str:
    """The text of a file's bytes; line ends and a byte order mark stay. Raises InputRefused for what is no text."""
    if b"\0" in raw:
        raise InputRefused(f"{name} is a binary file (it has a zero byte); specd rewrites text.")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputRefused(
            f"{name} is not UTF-8: byte 0x{raw[error.start]:02x} in line {line}.\n"
            f"Convert it first, e.g.: iconv -f LATIN1 -t UTF-8 {name}"
        ) from None
    if not text.strip("\ufeff \t\r\n\f\v"):
        raise InputRefused(f"{name} is empty; there is nothing to rewrite.")
    return text


def read(path: Path, *, to_write: bool) -> Source:
    """Read a file. to_write: it must be writable too, and no other `specd edit` may have it in hand.

    Raises InputRefused with what is wrong with it.
    """
    real = Path(os.path.realpath(path))
    fd = None
    try:
        if not stat.S_ISREG(os.stat(real).st_mode):
            kind = "a folder" if real.is_dir() else "not a regular file"
            raise InputRefused(f"{path} is {kind}; name a text file.")
        fd = os.open(real, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        info = os.fstat(fd)
        if info.st_size > _LARGEST:
            raise InputRefused(f"{path} has {info.st_size >> 20} MiB; the limit is {_LARGEST >> 20} MiB.")
        if to_write:
            _check_writable(path, real, info)
            _lock(fd, path)
        with open(os.dup(fd), "rb") as file:
            raw = file.read()
        source = Source(path, real, raw, decode(raw, str(path)), info, fd)
        fd = None
    except FileNotFoundError:
        raise InputRefused(f"{path}: no such file; check the name.") from None
    except OSError as error:
        raise InputRefused(f"cannot read {path}: {error.strerror}.") from None
    finally:
        if fd is not None:
            os.close(fd)
    if not to_write:
        source.close()
    return source


class Staged(Record):
    """A new text beside its file, on disk and synced, not in place yet."""

    source: Source
    temporary: Path

    def commit(self, *, keeps_old: bool = False) -> None:
        """Put it in place. Raises Conflict if the file changed since it was read, InputRefused if it cannot be done.

        keeps_old: `restore` can undo it, until `discard`.
        """
        source = self.source
        try:
            how = _difference(source)
            if how:
                raise Conflict(
                    f"{source.path} {how} on disk while specd worked on it; nothing was written. Run it again."
                )
            if keeps_old:
                with contextlib.suppress(OSError):  # a file system without links; its text is in memory too
                    os.link(source.real, self.old)
            os.replace(self.temporary, source.real)
        except OSError as error:
            self.old.unlink(missing_ok=True)
            raise _write_error(source.path, error) from None
        finally:
            self.temporary.unlink(missing_ok=True)
        _sync_folder(source.real.parent)

    @property
    def old(self) -> Path:
        """A second name of the old file, from `commit` to `discard`: to put it back needs no room on the disk."""
        return self.source.real.with_name(f".{self.source.real.name[:200]}.specd-old")

    def restore(self) -> None:
        """Put the old text back in place, whatever is there now. Raises InputRefused if it cannot be done."""
        source = self.source
        try:
            if not os.path.exists(self.old):
                self.old.write_bytes(source.raw)
            os.replace(self.old, source.real)
        except OSError as error:
            raise InputRefused(
                f"cannot put the old text of {source.path} back ({error.strerror}); it has the new one."
            ) from None
        _sync_folder(source.real.parent)

    def discard(self) -> None:
        """Remove what is not in place: the new text, or the old one after a commit."""
        self.temporary.unlink(missing_ok=True)
        self.old.unlink(missing_ok=True)


def stage(source: Source, text: str) -> Staged:
    """Write `text` beside the file. Raises InputRefused, with nothing left behind, if there is no room, say."""
    raw = text.encode()
    name = f".{source.real.name[:200]}.specd-new"  # one a file: the lock keeps a second writer away
    staged = Staged(source, source.real.with_name(name))
    try:
        staged.discard()  # what a killed process has left
        fd = os.open(staged.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(fd, "wb") as file:
            file.write(raw)
            file.flush()
            with contextlib.suppress(FileNotFoundError):  # it was removed: `commit` will tell
                _copy_attributes(source, fd)
            os.fsync(fd)
    except OSError as error:
        staged.discard()
        raise _write_error(source.path, error) from None
    except BaseException:
        staged.discard()
        raise
    return staged


def _difference(source: Source) -> str:
    """What became of the file since it was read, in a word; empty if nothing did."""
    try:
        info = os.stat(source.real)
    except FileNotFoundError:
        return "was removed"
    if (info.st_ino, info.st_dev) != (source.info.st_ino, source.info.st_dev):
        return "was replaced"
    return "" if source.real.read_bytes() == source.raw else "changed"


def _check_writable(path: Path, real: Path, info: os.stat_result) -> None:
    # the mode counts for root too: who takes all write bits away means it
    if not info.st_mode & 0o222 or not os.access(real, os.W_OK):
        raise InputRefused(f"{path} is read-only; make it writable (chmod u+w {path}), or see the change with --diff.")
    if not os.access(real.parent, os.W_OK):
        raise InputRefused(f"cannot replace {path}: its folder {real.parent} is read-only; see the change with --diff.")


def _lock(fd: int, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputRefused(f"another `specd edit` is working on {path}; try again when it is done.") from None
    except OSError:  # a file system without locks; the check before the rename remains
        return


def _copy_attributes(source: Source, fd: int) -> None:
    info = os.stat(source.real)  # as they are now: a mode that was changed meanwhile stays
    if os.name == "posix":
        mine = os.fstat(fd)
        if (mine.st_uid, mine.st_gid) != (info.st_uid, info.st_gid):
            with contextlib.suppress(PermissionError):
                os.fchown(fd, info.st_uid, info.st_gid)
        os.fchmod(fd, stat.S_IMODE(info.st_mode))
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):  # a file system without them
            for name in os.listxattr(source.real):
                os.setxattr(fd, name, os.getxattr(source.real, name))


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _write_error(path: Path, error: OSError) -> InputRefused:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputRefused(f"no room on the disk for {path}; it is as it was. Free some space and run it again.")
    return InputRefused(f"cannot write {path} ({error.strerror}); it is as it was. See the change with --diff.")
