"""The editor's open documents as this server knows them, kept up to date change by change.

A document is a list of lines, each with its line end, so a keystroke costs the line it is in (a new line moves the
list's pointers behind it: 40 microseconds for 100,000 lines), and the text is put together only when somebody asks.
Line ends are LF, CRLF and CR, and nothing else ("Text Documents" of the LSP specification). The last line is the one
without a line end, so it may be empty: there are as many lines as the editor shows.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from lsprotocol import types

from specd.daemon.rewrite.lines import content, split_lines
from specd.lsp.positions import Encoding, index_of, units_of
from specd.lsp.splice import Splice

Observer = Callable[[Splice], None]

_RETURN: Final = re.compile(r"\r(?!\n)")
_DRIVE: Final = re.compile(r"^(file:///?)([A-Za-z])(:)")


class Document:
    """One open document. `uri` is as the client wrote it; `version` is that of its last notification, or one more than
    before if that had none (`is_versioned`). is_miscounted: the client counts its lines otherwise, so what it tells of
    changes, and what it is told, means other places.
    """

    def __init__(
        self,
        uri: str,
        language_id: str,
        version: int,
        text: str,
        encoding: Encoding = "utf-16",
        counts_returns: bool = True,
    ) -> None:
        """counts_returns: see Traits."""
        self.uri = uri
        self.language_id = language_id
        self.version = version
        self.is_versioned = True
        self.encoding: Encoding = encoding
        self._counts_returns = counts_returns
        self.lines = lines_of(text)
        self.is_miscounted = self._is_miscounted(text)
        self.is_lost = False  # a change could not be read, so the text is not the editor's any more
        self.sending = asyncio.Lock()  # held by who has an edit of it under way
        self.observers: list[Observer] = []  # each hears every change, after it is made
        self.after: list[Callable[[], None]] = []  # each is called once a notification, after all of its changes

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def change(self, version: int | None, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        """Take over one didChange notification. version: None if it had none, against the specification."""
        self.is_versioned = version is not None
        self.version = self.version + 1 if version is None else version
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                if not self._counts_returns and self.lines[0].endswith("\n") and _RETURN.search(change.text):
                    self.is_miscounted = True
                splice = self._splice(change.range, change.text)
            else:
                splice = self._whole(change.text)
                self.is_lost = False
                self.is_miscounted = self._is_miscounted(change.text)
            self.lines[splice.start : splice.end] = splice.new
            for observer in tuple(self.observers):
                observer(splice)
        for call in tuple(self.after):
            call()

    def place(self, position: types.Position) -> tuple[int, int]:
        """(line, index in it) of an LSP position; both clamped to what exists."""
        if position.line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        line = max(0, position.line)
        return line, index_of(self.lines[line], position.character, self.encoding)

    def position(self, line: int, index: int) -> types.Position:
        """The LSP position of an index in a line; a line behind the last is the document's end."""
        if line >= len(self.lines):
            line, index = len(self.lines) - 1, len(self.lines[-1])
        return types.Position(line, units_of(self.lines[line], index, self.encoding))

    def _is_miscounted(self, text: str) -> bool:
        return not self._counts_returns and "\n" in text and bool(_RETURN.search(text))

    def _whole(self, text: str) -> Splice:
        return Splice(0, tuple(self.lines), tuple(lines_of(text)))

    def _splice(self, change: types.Range, text: str) -> Splice:
        (first, start), (last, end) = sorted((self.place(change.start), self.place(change.end)))
        new = self.lines[first][:start] + text + self.lines[last][end:]
        if first > 0 and new.startswith("\n") and self.lines[first - 1].endswith("\r"):
            first -= 1  # an LF behind a CR: the two are one line end
            new = self.lines[first] + new
        lines = split_lines(new)
        if last == len(self.lines) - 1 and (not lines or content(lines[-1]) != lines[-1]):
            lines.append("")
        return Splice(first, tuple(self.lines[first : last + 1]), tuple(lines))


def lines_of(text: str) -> list[str]:
    """The lines of a whole text, the last one being what is behind the last line end."""
    lines = split_lines(text)
    if not lines or content(lines[-1]) != lines[-1]:
        lines.append("")
    return lines


class Documents:
    """The open documents by URI. Two spellings of one URI (`c%3A` and `C:`) are one document."""

    def __init__(self) -> None:
        self.encoding: Encoding = "utf-16"
        self.counts_returns = True
        self._open: dict[str, Document] = {}

    def open(self, item: types.TextDocumentItem) -> Document:
        document = Document(item.uri, item.language_id, item.version, item.text, self.encoding, self.counts_returns)
        self._open[_key(item.uri)] = document
        return document

    def get(self, uri: str) -> Document | None:
        return self._open.get(_key(uri))

    def close(self, uri: str) -> Document | None:
        return self._open.pop(_key(uri), None)

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._open.values()))


def _key(uri: str) -> str:
    decoded = unquote(uri)
    return _DRIVE.sub(lambda match: match[1] + match[2].lower() + match[3], decoded)
