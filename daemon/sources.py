"""Texts to draft from beside the one that is edited: files that a client named as context, and what was edited lately.

A file is read when it changed on disk since the last time, and only files that were named are ever opened: the daemon
looks for none by itself. What was edited is remembered as it became, in memory only.
"""

import os
import stat
from collections import OrderedDict
from typing import Final

from specd.daemon.protocol import ContextFile

LARGEST: Final = 4 * 2**20  # bytes; a larger file is no source code
_KEPT: Final = 64
_RECENT: Final = 8  # edited texts that are remembered
_RECENT_CHARS: Final = 64 * 1024  # of each


class Sources:
    """The latest texts by path. Used on the engine's thread only."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, tuple[tuple[int, int, int], str]] = OrderedDict()
        self._recent: OrderedDict[str, tuple[str | None, str]] = OrderedDict()  # path -> language, text

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

    def remember(self, path: str | None, language: str | None, text: str) -> None:
        """The file has just become `text`. Without a path it is nobody's, and forgotten."""
        if path is None:
            return
        self._recent[path] = language, text[:_RECENT_CHARS]
        self._recent.move_to_end(path)
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    def recent(self, path: str | None, language: str | None) -> list[str]:
        """What other files of the language became when they were edited, the latest first."""
        return [
            text
            for other, (kind, text) in reversed(self._recent.items())
            if other != path and kind == language and text
        ]

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
