"""From the model's text, as it arrives, to line hunks that are safe to apply while it is still arriving.

A hunk leaves when its lines are complete and the text is in step with the original again after it (`align.py`), so a
text that breaks off removes nothing but what it was already seen to go on after. A hunk that drops many lines waits for
the end, and those after it with it: the lines may come again further down, and a text cut off between would lose them.

Lines are compared by their keys: content and LF, composed (NFC), without blanks at the line's end unless `exact`. So a
line that the model did not change keeps its bytes, line end included, since no hunk touches it; a new line gets the
line end of the line it stands for, or its neighbour's. The original's last line keeps its line end or the lack of one,
a byte order mark stays first, and blank lines at both ends of the region stay as they are unless `exact`.

A new line that stands for lines left out (`omission.py`) keeps the original's up to where the text goes on, provided
that the line before it is in step and the place of the lines after it is sure. Otherwise nothing is changed from there
on (`halted`): the text does not say which lines to keep.
"""

import unicodedata
from collections.abc import Iterable, Sequence

from specd.daemon.rewrite.align import Aligner, Sync
from specd.daemon.rewrite.diff import changed_blocks
from specd.daemon.rewrite.hunk import Hunk, HunkMaker, apply_hunks
from specd.daemon.rewrite.indent import Reindenter
from specd.daemon.rewrite.lines import BOM, LineBuffer, content, core, is_blank, line_end, split_lines
from specd.daemon.rewrite.omission import is_omission

__all__ = ["HELD_FROM", "Hunk", "HunkStream", "apply_hunks"]

TAB_LANGUAGES = frozenset(["makefile", "go"])
"""Where a tab at a line's beginning means something, or is the one style: it never becomes spaces."""
HELD_FROM = 4
"""A hunk that drops so many lines more than it brings waits until the text is complete."""

# What no answer may bring into a text, by how it is told: U+FFFD stands where a model's bytes were no character.
_FOREIGN = {"\0": "a zero byte, which no text has", "\ufffd": "a broken character"}


class HunkStream:
    """The new text of a region in pieces in, hunks out.

    original: the region's text. indent: what was taken off its lines for the model (`indent.py` puts it back). eol: the
    line end for new lines where the region has none to go by. exact: blanks at line ends, and blank lines at both ends
    of the region, are text that may change. language: for `is_omission`.

    halted: why the text was not followed to its end, or None. kept_from: after `finish`, the first original line
    that was not accounted for, if there is one. unplaced: after `finish`, how many new lines were dropped. omissions:
    the lines found that stand for original ones.
    """

    def __init__(
        self, original: str, *, indent: str = "", eol: str = "\n", exact: bool = False, language: str | None = None
    ) -> None:
        self.omissions: list[str] = []
        self.halted: str | None = None
        self.kept_from: int | None = None
        self.unplaced = 0
        self._original, self._exact, self._language = original, exact, language
        lines = split_lines(original)
        contents = [content(line) for line in lines]
        contents[:1] = [text.lstrip(BOM) for text in contents[:1]]
        self._first, last = core(contents, exact=exact)
        self._open_end = last == len(lines) > 0 and not line_end(lines[-1])
        self._keys = [self._key(text) for text in contents[self._first : last]]
        self._said = {text.strip() for text in contents}
        if self._open_end:
            self._keys[-1] = self._keys[-1].removesuffix("\n")
        self._maker = HunkMaker(lines, eol)
        self._aligner = Aligner(self._keys)
        self._reindenter = Reindenter(contents, indent, keep_tabs=language in TAB_LANGUAGES)
        self._buffer = LineBuffer()
        self._queue: list[str] = []  # lines that may be the text's last, or blank ones behind it
        self._pending: list[str] = []  # contents of the aligner's pending lines
        self._has_line = False
        self._begun = False  # a line that takes part was seen
        self._skipping = False  # after an omission line, until in step again
        self._ready: list[Hunk] = []
        self._emitted: list[Hunk] = []

    @property
    def result(self) -> str:
        """The region's text with the hunks applied that were given out so far."""
        return apply_hunks(self._original, self._emitted)

    def push(self, text: str) -> list[Hunk]:
        """The next piece of the text; returns the hunks that are safe now."""
        self._read(self._buffer.push(text))
        held = next((at for at, hunk in enumerate(self._ready) if hunk.dropped >= HELD_FROM), len(self._ready))
        return self._give(held)

    def finish(self, *, complete: bool) -> list[Hunk]:
        """The end of the text. Not complete: what is not in step is dropped, and the original stays from there on."""
        if complete:
            self._read(self._buffer.finish())
            self._enqueue(self._reindenter.finish())
            self._end()
        if complete and not self.halted:
            return self._give(len(self._ready))
        kept_from = self._ready[0].start_line if self._ready else self._first + self._aligner.position
        self.kept_from = kept_from if kept_from < self._first + len(self._keys) else None
        self.unplaced = len(self._pending) + len(self._queue) + sum(len(hunk.new_lines) for hunk in self._ready)
        self._ready = []
        return []

    def _give(self, count: int) -> list[Hunk]:
        hunks, self._ready = self._ready[:count], self._ready[count:]
        self._emitted += hunks
        return hunks

    def _key(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text)  # as some tokenizers, Qwen's too, compose what they read
        return (text if self._exact else text.rstrip(" \t")) + "\n"

    def _read(self, lines: Iterable[str]) -> None:
        for line in lines:
            text = line if self._has_line else line.lstrip(BOM)  # the mark is the file's, never the model's
            self._has_line = True
            self._enqueue(self._reindenter.push(text))

    def _enqueue(self, lines: Iterable[str]) -> None:
        """A blank line waits for one that is not, as at both ends it does not take part; so does an open last one."""
        for line in lines:
            if self._exact or not is_blank(line):
                self._begun = True
                ready = len(self._queue) + (0 if self._open_end else 1)
                queue = [*self._queue, line]
                self._queue = queue[ready:]
                for text in queue[:ready]:
                    self._take(text, self._key(text))
            elif self._begun:
                self._queue.append(line)

    def _end(self) -> None:
        """Takes what waited, then settles what was never in step again."""
        while self._queue and not self._exact and is_blank(self._queue[-1]):
            self._queue.pop()
        for at, text in enumerate(self._queue):
            is_open = self._open_end and at == len(self._queue) - 1
            self._take(text, self._key(text).removesuffix("\n") if is_open else self._key(text))
        if self.halted:
            return
        if self._skipping:
            if not self._aligner.skip_to_end():
                self._halt()
            return
        if not self._begun and all(map(is_blank, self._keys)):
            return
        keys = self._aligner.pending
        if keys == ["\n"] and self._aligner.position == 0 and self._pending == [""]:
            keys = []  # one empty line is how an empty text looks in a fence
        self._change(self._aligner.position, len(self._keys), keys, self._pending)

    def _take(self, text: str, key: str) -> None:
        if self.halted:
            return
        if foreign := next((mark for mark in _FOREIGN if mark in text and mark not in self._original), None):
            self.halted = f"the model wrote {_FOREIGN[foreign]}"
        elif text.strip() not in self._said and is_omission(text, language=self._language):
            self._omit(text)
        elif self._skipping:
            self._skip(text, key)
        else:
            self._pending.append(text)
            self._resume(self._aligner.push(key))

    def _resume(self, sync: Sync | None) -> None:
        if sync:
            self._change(sync.start, sync.resumed, sync.replacing, self._pending)
            self._pending = []

    def _change(self, start: int, end: int, new_keys: Sequence[str], new: Sequence[str]) -> None:
        """Original lines [start, end) of those that take part became `new`: as few and small hunks as possible."""
        for a0, a1, b0, b1 in changed_blocks(self._keys[start:end], new_keys):
            open_end = b1 > b0 and not new_keys[b1 - 1].endswith("\n")
            at = self._first + start
            self._ready.append(self._maker.make(at + a0, at + a1, new[b0:b1], open_end=open_end))

    def _omit(self, text: str) -> None:
        """The text leaves original lines out here: they stay, provided that both ends of the gap can be told."""
        self.omissions.append(text.strip())
        if self._skipping:
            if self._aligner.pending:
                self._halt()
            return
        if self._pending:
            if all(map(is_blank, self._pending)):
                self._aligner.forget()
                self._pending = []
            else:
                self._resume(self._aligner.settle())
                if self._pending:
                    self._halt()
        self._skipping = True

    def _skip(self, text: str, key: str) -> None:
        if is_blank(text) and not self._aligner.pending:
            return  # the blank lines at the gap's end are in the original or nowhere
        found = self._aligner.skip_to(key)
        if found is False:
            self._halt()
        self._skipping = not isinstance(found, Sync)

    def _halt(self) -> None:
        self.halted = f'the model left lines out ("{self.omissions[-1]}") and it cannot be told which'
