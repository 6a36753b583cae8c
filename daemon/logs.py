"""The daemon's log: one rotating file. The user's text is written at the level `verbose` only."""

import contextlib
import faulthandler
import logging
import logging.handlers
import os
import sys
from typing import Final

from specd.daemon import paths
from specd.daemon.settings import Settings

VERBOSE: Final = logging.DEBUG - 5
_LEVELS: Final = {
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "verbose": VERBOSE,
}
_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """Only the user may read the log. A full disk loses lines, it does not end jobs."""

    def _open(self):  # type: ignore[no-untyped-def]  # the base class's own signature
        return open(os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def start(settings: Settings, *, to_terminal: bool) -> None:
    """Send specd's log to its file and, where asked, to stderr; the libraries' from warnings up."""
    logging.addLevelName(VERBOSE, "VERBOSE")
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    for handler in list(root.handlers):
        root.removeHandler(handler)
    with contextlib.suppress(OSError):
        paths.state_folder().mkdir(parents=True, exist_ok=True)
        file = _PrivateFile(paths.log_path(), maxBytes=settings.log_size * 1024, backupCount=2, delay=True)
        root.addHandler(file)
        # a crash in native code writes where it happened, functions and lines only; to this file, rotated or not
        faulthandler.enable(os.open(file.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    if to_terminal:
        root.addHandler(logging.StreamHandler(sys.stderr))
    for handler in root.handlers:
        handler.setFormatter(logging.Formatter(_FORMAT))
    logging.getLogger("specd").setLevel(level(settings))


def level(settings: Settings) -> int:
    """The numeric level of `log_level`."""
    return _LEVELS[settings.log_level]
