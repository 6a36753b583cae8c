"""An editor and the server's account of its buffer, with messages under way between them, in any order that two queues
allow. The editor knows each line by name, so it can tell what an edit did, whatever the text is.
"""

import random
from collections import deque
from dataclasses import dataclass, field

from specd.lsp.entry import Entry
from specd.lsp.ledger import Ledger
from specd.lsp.splice import Splice

Name = tuple[str, int, int]
Line = tuple[Name, str]


@dataclass
class Editor:
    """The buffer as it is, and what is under way to the server."""

    lines: list[Line]
    version: int = 1
    applied: set[int] = field(default_factory=set)
    to_server: deque[tuple[str, int, list[Splice]]] = field(default_factory=deque)

    def change(self, splices: list[tuple[int, int, list[Line]]], *, merged: bool = False) -> None:
        """Replace lines [start, end) each, bottom first, and tell it: change by change, or as one."""
        before = [text for _, text in self.lines]
        told = []
        for start, end, new in splices:
            texts = tuple(text for _, text in self.lines)
            told.append(Splice(start, texts[start:end], tuple(text for _, text in new)))
            self.lines[start:end] = new
        if merged:
            told = [Splice(0, tuple(before), tuple(text for _, text in self.lines))]
        self.version += 1
        self.to_server.append(("change", self.version, told))

    def names(self) -> list[Name]:
        return [name for name, _ in self.lines]

    def span(self, start: int, end: int) -> int | None:
        """Where the original lines [start, end) stand, whole and untouched."""
        wanted = [("o", at, 0) for at in range(start, end)]
        names = self.names()
        at = names.index(wanted[0]) if wanted and wanted[0] in names else None
        return at if at is not None and names[at : at + len(wanted)] == wanted else None

    def apply(self, version: int, changes: list[tuple[Entry, Splice]], *, merged: bool) -> bool:
        """A versioned edit of the server's: refused if it is stale; otherwise it must be at the very place."""
        if version != self.version:
            return False
        splices = []
        for entry, splice in reversed(changes):
            assert [text for _, text in self.lines[splice.start : splice.end]] == list(splice.old)
            if entry.old:
                assert self.span(entry.start, entry.end) == splice.start
            names = self.names()
            for name in names[: splice.start]:  # nothing of the original comes out of its order
                assert name[0] != "o" or name[1] < entry.end or entry.start == entry.end == name[1] + 1
            for name in names[splice.start + len(splice.old) :]:
                assert name[0] != "o" or name[1] >= entry.start
            new = [(("h", entry.number, at), text) for at, text in enumerate(splice.new)]
            splices.append((splice.start, splice.start + len(splice.old), new))
            self.applied.add(entry.number)
        self.change(splices, merged=merged)
        return True


class Race:
    """One job: hunks of `ledger` against a user who types at random."""

    def __init__(self, draw: random.Random, texts: list[str], hunks: list[tuple[int, int, list[str]]]) -> None:
        self.draw = draw
        self.editor = Editor([(("o", at, 0), text) for at, text in enumerate(texts)])
        self.ledger = Ledger(texts)
        self.version = 1
        self.coming = deque(hunks)
        self.sent: tuple[int, list[tuple[Entry, Splice]]] | None = None
        self.reply: bool | None = None
        self.typed = 0
        self.undone: set[int] = set()

    def step(self) -> None:
        """One thing happens."""
        what = self.draw.choice(["hunk", "send", "editor", "server", "server", "type"])
        if what == "hunk" and self.coming:
            self.ledger.add(*self.coming.popleft())
        elif what == "send":
            self.send()
        elif what == "editor":
            self.editor_reads()
        elif what == "server":
            self.server_reads()
        elif what == "type":
            self.type()

    def send(self, *, again: bool = False) -> None:
        if self.sent is None and (changes := self.ledger.take(again=again)):
            for entry, _ in changes:
                entry.is_asked = True
            self.sent = self.version, changes

    def editor_reads(self) -> None:
        if self.sent is not None and self.reply is None:
            version, changes = self.sent
            self.reply = self.editor.apply(version, changes, merged=self.draw.random() < 0.3)
            self.editor.to_server.append(("reply", 0, []))

    def server_reads(self) -> None:
        if not self.editor.to_server:
            return
        kind, version, splices = self.editor.to_server.popleft()
        if kind == "reply":
            self.sent = self.reply = None
            return
        self.version = version
        for splice in splices:
            for flip in self.ledger.observe(splice):
                if flip.by_user and not flip.entry.is_in:
                    self.undone.add(flip.entry.number)

    def type(self) -> None:
        """The user changes, adds, splits or deletes a line, or undoes a hunk that is whole."""
        lines = self.editor.lines
        at = self.draw.randrange(len(lines))
        self.typed += 1
        mine = [(("u", self.typed, part), f"user {self.typed}.{part}\n") for part in range(2)]
        what = self.draw.choice(["change", "add", "split", "delete"])
        if what == "delete" and len(lines) > 1 and lines[at][0][0] != "o":
            self.editor.change([(at, at + 1, [])])
        elif what == "add":
            self.editor.change([(at, at, mine[:1])])
        elif what == "split":
            self.editor.change([(at, at + 1, mine)])
        elif what == "change":
            self.editor.change([(at, at + 1, mine[:1])])

    def finish(self) -> None:
        """All messages arrive, all hunks are sent, nobody types."""
        while self.coming:
            self.ledger.add(*self.coming.popleft())
        for _ in range(4):
            self.editor_reads()
            while self.editor.to_server:
                self.server_reads()
            self.send(again=True)
        assert self.sent is None
