"""Brings the ledger's hunks into the editor's buffer: one versioned edit under way a document, each believed only when
the editor's own change shows it, tried again on the new text where the user was faster.

A client that cannot take a stream, or stops answering, is given one edit at the end.
"""

import asyncio
import re
import time
from dataclasses import replace
from typing import Final

from lsprotocol import types

from specd.lsp.documents import Document
from specd.lsp.edits import text_edits, workspace_edit
from specd.lsp.entry import Entry
from specd.lsp.ledger import Ledger
from specd.lsp.spans import Spans
from specd.lsp.under_way import Apply, Reply, Settled, Timing, Wake, settle

_RETRIES: Final = (0.05, 0.15, 0.4)  # seconds before each
_PATIENCE: Final = 3  # times the usual time for the last edit, where an edit was left unanswered before
_LAST_RETRIES: Final = 12  # once no hunk follows, and the user is typing
_BY_USER: Final = re.compile(
    "cancell?ed|declined|rejected|did not take", re.IGNORECASE
)  # in what an editor says of a refusal
_NOTHING_TO_SEND: Final = Settled("applied")


class Delivery:
    """One job's edits to one document. `wake` it when the ledger has something new; `close` it when nothing follows."""

    def __init__(
        self,
        document: Document,
        ledger: Ledger,
        apply: Apply,
        spans: Spans,
        timing: Timing,
        *,
        streams: bool,
        versioned: bool,
        ignores_version_0: bool = False,
        reviewed: bool = False,
    ) -> None:
        self.reason = ""  # why the last hunks are not in
        self.latest: list[Entry] = []  # of the last edit
        self.left: list[Entry] = []  # hunks that the user, being asked, did not take
        self.streams = streams
        self._document = document
        self._ledger = ledger
        self._apply = apply
        self._spans = spans
        self._timing = timing
        self._versioned = versioned
        self._ignores_version_0 = ignores_version_0
        self._reviewed = reviewed
        self._wake = Wake()
        self._is_closed = self._is_stopped = False
        self._is_silent = False  # the editor left an edit unanswered
        self._sent_at = 0.0
        self._sent_version = -1
        self._failures = 0

    def wake(self) -> None:
        """Look again: hunks were added, or the buffer changed."""
        self._wake.ring()

    def close(self, *, again: bool = True) -> None:
        """No hunk follows. again: a conflict gets another chance, what was in the way may have been taken back."""
        self._is_closed = True
        for entry in self._ledger.entries:
            if again and entry.is_conflict and self._ledger.change_for(entry) is not None:
                entry.is_conflict = False
        self.wake()

    def stop(self) -> None:
        """Send nothing any more. `run` returns when the edit under way, if any, is in the buffer or will not be."""
        self._is_stopped = True
        self.wake()

    async def run(self) -> None:
        """Deliver until closed and done, or stopped."""
        while not self._is_stopped:
            self.streams = self.streams and self._document.is_versioned
            is_ready = self.streams or self._is_closed
            if is_ready and any(entry.is_pending for entry in self._ledger.entries):
                await self._deliver()
            elif self._is_closed:
                return
            else:
                await self._wake.wait(None)

    async def _deliver(self) -> None:
        await self._pause(self._sent_at + self._timing.coalesce - time.monotonic())
        is_last = self._is_closed and not self.streams
        settled = await self._send()
        self.reason = settled.reason or self.reason
        if settled.result == "applied":
            self._failures = 0
            return
        if settled.result == "unanswered":
            self._is_silent, self.streams = True, False
        if self._is_stopped:
            return
        self._failures += 1
        is_raced = self._document.version != self._sent_version
        most = _LAST_RETRIES if self._is_closed and (is_raced or is_last) else len(_RETRIES)
        if self._failures <= most and (not is_last or await self._is_worth_another(settled)):
            await self._pause(_RETRIES[min(self._failures, len(_RETRIES)) - 1])
        elif not self._is_closed:
            self.streams, self._failures = False, 0  # the rest in one edit at the end
        else:
            for entry in self._ledger.entries:
                entry.is_conflict = entry.is_conflict or entry.is_pending

    async def _is_worth_another(self, settled: Settled) -> bool:
        """Whether the edit at the end may be sent again: if it was refused, only once the editor tells of another text,
        since it may have asked its user.
        """
        shown = [entry for entry in self.latest if entry.is_in == entry.is_wanted]
        result = settled.result
        is_choice = result == "not shown" and bool(shown)
        if is_choice or (result == "refused" and _BY_USER.search(settled.reason)):
            self._leave([entry for entry in self.latest if entry not in shown])
            return False
        if result != "refused":
            return result != "unanswered"
        end = time.monotonic() + self._timing.unsaid
        while self._document.version == self._sent_version and not self._is_stopped:
            if (left := end - time.monotonic()) <= 0:
                return False
            await self._wake.wait(left)
        return True

    def _leave(self, entries: list[Entry]) -> None:
        """The user was asked and did not take these: that is no conflict, and nobody asks again."""
        self.left += entries
        for entry in entries:
            entry.is_wanted = entry.is_in

    async def _send(self) -> Settled:
        async with self._document.sending:
            if self._ignores_version_0 and self._document.version == 0:
                await self._leave_version_0()
            changes = [] if self._is_stopped else self._ledger.take()
            edits = text_edits(self._document, [splice for _, splice in changes])
            if not edits:
                return _NOTHING_TO_SEND
            self.latest = [entry for entry, _ in changes]
            wanted = [(entry, entry.is_wanted) for entry in self.latest]  # it may be wanted out again by the answer
            for entry in self.latest:
                entry.is_asked = True
            start = self._spans.now()
            self._sent_at = time.monotonic()
            is_versioned = self._versioned and self._document.is_versioned
            edit = workspace_edit(self._document, edits, versioned=is_versioned, reviewed=self._reviewed)
            reply = asyncio.ensure_future(self._apply(edit))
            reply.add_done_callback(self._hear)
            version = self._sent_version = self._document.version

            def is_shown() -> bool:
                return all(entry.is_in == is_wanted for entry, is_wanted in wanted)

            settled = await settle(reply, is_shown, self._document, self._timing_now(), self._wake)
            if settled.answered is None:
                self._is_silent = True
            reply_ms = None if settled.answered is None else round(1000 * settled.answered, 2)
            counts = {"hunks": len(changes), "first": self.latest[0].number, "version": version}
            self._spans.add("apply", start, **counts, result=settled.result, reply_ms=reply_ms)
            return settled

    async def _leave_version_0(self) -> None:
        """Insert nothing, and wait for the version that comes of it. After that the editor checks versions, so no
        edit can meet a text that the user has changed already.
        """
        start = types.Position(0, 0)
        nothing = types.TextEdit(types.Range(start, start), "")
        reply = asyncio.ensure_future(self._apply(workspace_edit(self._document, [nothing], versioned=True)))
        reply.add_done_callback(self._hear)
        end = time.monotonic() + self._timing.echo
        while self._document.version == 0 and not self._is_stopped and (left := end - time.monotonic()) > 0:
            await self._wake.wait(left)

    def _hear(self, reply: Reply) -> None:
        """An answer came, if late: the editor is not silent."""
        if not reply.cancelled() and reply.exception() is None:
            self._is_silent = False

    def _timing_now(self) -> Timing:
        """The last edit may wait for a user; not so with an editor that has not answered before."""
        if self._is_closed and not self.streams:
            reply = self._timing.reply * _PATIENCE if self._is_silent else self._timing.last_reply
            return replace(self._timing, reply=reply)
        return self._timing

    async def _pause(self, seconds: float) -> None:
        """A pause that a stop ends."""
        end = time.monotonic() + seconds
        while not self._is_stopped and (left := end - time.monotonic()) > 0:
            await self._wake.wait(left)
