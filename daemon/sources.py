"""Texts of other files that a client named as context. Read when they changed on disk since the last time, and only
these files are ever opened: the daemon looks for none by itself.
"""

import os
import stat
from collections import OrderedDict
from typing import Final

from specd.daemon.protocol import ContextFile

LARGEST: Final = 4 * 2**20  # bytes; a larger file is no source code
_KEPT: Final = 64


class Sources:
    """The latest texts by path. Used on the engine's thread only."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, tuple[tuple[int, int, int], str]] = OrderedDict()

    def texts(self, files: tuple[ContextFile, ...]) -> tuple[list[str], list[str]]:
        """(texts, paths that could not be read as text). A text that came with the request is taken as it is."""
        found, missing = [], []
        for file in files:
            text = file.text if file.text is not None else self._read(file.path)
            if text is None:
                missing.append(file.path)
            else:
                found.append(text)
        return found, missing

    def _read(self, path: str) -> str | None:
        try:
            info = os.stat(path)
            if not os.path.isabs(path) or not stat.S_ISREG(info.st_mode) or info.st_size > LARGEST:
                return None
            stamp = (info.st_mtime_ns, info.st_size, info.st_ino)
            known = self._texts.get(path)
            if known is not None and known[0] == stamp:
                self._texts.move_to_end(path)
                return known[1]
            with open(path, "rb") as file:
                text = file.read(LARGEST).decode()
        except (OSError, ValueError):  # gone, not ours to read, not UTF-8
            self._texts.pop(path, None)
            return None
        self._texts[path] = (stamp, text)
        while len(self._texts) > _KEPT:
            self._texts.popitem(last=False)
        return text
