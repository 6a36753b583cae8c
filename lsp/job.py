"""One rewrite from the trigger to its one outcome: the daemon's events in, edits and what the user sees out."""

import asyncio
import contextlib
import logging
import time
from typing import Any, Protocol

from lsprotocol import types

from specd.daemon.protocol import (
    Declined,
    Done,
    Failed,
    HunkReady,
    NoChange,
    Outcome,
    RegionChosen,
    RewriteRequest,
    Truncated,
)
from specd.lsp import messages, requests
from specd.lsp.delivery import Delivery
from specd.lsp.documents import Document
from specd.lsp.editor_traits import Traits
from specd.lsp.entry import Entry, Flip
from specd.lsp.following import Following
from specd.lsp.ledger import Ledger
from specd.lsp.outcomes import Ended, Facts, ended_of
from specd.lsp.progress import Progress
from specd.lsp.requests import HunkParams, RegionParams
from specd.lsp.spans import Spans
from specd.lsp.splice import Splice
from specd.lsp.target import Asked
from specd.lsp.under_way import Timing

_log = logging.getLogger(__name__)


class Editor(Protocol):
    """What a job needs of the connection."""

    async def apply(self, edit: types.WorkspaceEdit) -> types.ApplyWorkspaceEditResult: ...

    def notify(self, method: str, params: Any) -> None: ...


class Job:
    """Runs once. `cancel` may be called at any time; then no edit is sent any more. over: set once `run` is through."""

    def __init__(
        self,
        number: str,
        document: Document,
        asked: Asked,
        request: RewriteRequest,
        editor: Editor,
        traits: Traits,
        timing: Timing,
        progress: Progress,
    ) -> None:
        self.number = number
        self.document = document
        self.ledger = Ledger(document.lines)
        self.spans = Spans()
        self.over = asyncio.Event()
        self._asked = asked
        self._request = request
        self._editor = editor
        self._traits = traits
        self._timing = timing
        self._progress = progress
        self._following = Following(request, progress, self.spans, self._take_region, self._take_hunk)
        self._version = document.version
        self._lines = 0
        self._comment = asked.comment
        self._delivery = Delivery(
            document,
            self.ledger,
            editor.apply,
            self.spans,
            timing,
            streams=traits.streams,
            versioned=traits.versioned,
            ignores_version_0=traits.ignores_version_0,
            reviewed=traits.reviews,
        )
        document.observers.append(self._observe)
        document.after.append(self._delivery.wake)

    @property
    def is_over(self) -> bool:
        return self.over.is_set()

    def cancel(self, why: str = "") -> None:
        """End the job: hang up on the daemon, send no edit any more. Nothing happens if it is over."""
        if self._following.why is None and not self.is_over:
            self._following.cancel(why)
            self._delivery.stop()

    @property
    def conflicts(self) -> list[Entry]:
        """Hunks that were not applied and still could be, once the job is over; none of a job that was cancelled."""
        if not self.is_over or self._following.why is not None:
            return []
        return [entry for entry in self.ledger.entries if entry.is_conflict and entry.is_wanted and not entry.is_in]

    @property
    def has_hunks(self) -> bool:
        """Whether the buffer has hunks of this job."""
        return any(entry.is_in for entry in self.ledger.entries)

    @property
    def has_traces(self) -> bool:
        """Whether there is something in the buffer, or may come into it yet, that can be taken back or settled."""
        return self.has_hunks or bool(self.conflicts) or any(entry.is_asked for entry in self.ledger.entries)

    def release(self) -> None:
        """Follow the document no longer: the job's hunks can no more be taken back."""
        with contextlib.suppress(ValueError):
            self.document.observers.remove(self._observe)
            self.document.after.remove(self._delivery.wake)

    async def run(self) -> Ended:
        """Rewrite. Never raises; whatever happens, progress has ended when this returns."""
        lines = self._request.target.lines
        count = lines[1] - lines[0] if lines else len(self.document.lines)
        begin = asyncio.create_task(self._progress.begin(messages.reading(count)))
        deliver = asyncio.create_task(self._delivery.run())
        outcome: Outcome = Failed("failed", "an error inside specd ended the rewrite")
        try:
            outcome = await self._following.outcome()
            await self._finish(outcome, deliver)
        except Exception as error:
            _log.error("job %s: %s", self.number, type(error).__name__, exc_info=_log.isEnabledFor(logging.DEBUG))
            outcome = Failed("failed", f"an error inside specd ended the rewrite ({type(error).__name__})")
        finally:
            self._stop(deliver)
            ended = self._ended(outcome)
            self._progress.end(ended.result.message)
            begin.cancel()
        return ended

    def _take_region(self, event: RegionChosen) -> None:
        start, end = self._asked.lines(event.start_line, event.end_line)
        self._lines = end - start
        self._notify(
            requests.REGION, RegionParams(self.number, self.document.uri, self._version, start, end, event.label)
        )

    def _take_hunk(self, hunk: HunkReady) -> None:
        start, end = self._asked.lines(hunk.start_line, hunk.end_line)
        if self._comment is not None and end > self._comment:
            if start > self._comment:
                self.ledger.add(self._comment, self._comment + 1, ())
            self._comment = None
        self.ledger.add(start, end, hunk.new_lines)
        self._delivery.wake()

    async def _finish(self, outcome: Outcome, deliver: "asyncio.Task[None]") -> None:
        """Bring the rest into the buffer, or, where the guard refused it, take it all out again."""
        why = self._following.why
        if isinstance(outcome, Done | Truncated | Declined | NoChange):
            if isinstance(outcome, Done) and self._comment is not None and self._following.hunks:
                self.ledger.add(self._comment, self._comment + 1, ())
        elif isinstance(outcome, Failed) and outcome.code == "guard":
            for entry in self.ledger.entries:
                entry.is_wanted = False
        elif why is not None:
            if why != messages.CLOSED:  # what is under way is waited for: no edit may come after the answer
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(deliver, self._timing.reply + self._timing.echo)
            return
        else:
            self._delivery.stop()
        self._delivery.close()
        await deliver

    def _stop(self, deliver: "asyncio.Task[None]") -> None:
        self.over.set()
        self._delivery.stop()
        deliver.cancel()
        self._following.hang_up()

    def _observe(self, splice: Splice) -> None:
        """A change of the document: which hunks it shows, and whether the user took our last one back."""
        for flip in self.ledger.observe(splice):
            self._tell(flip)
            if flip.by_user and not flip.entry.is_in and flip.entry in self._delivery.latest:
                self.cancel("undone")

    def _tell(self, flip: Flip) -> None:
        entry = flip.entry
        at = self.ledger.place(entry) or 0
        size = len(entry.new if entry.is_in else entry.old)
        old = "".join(entry.old)
        place = (self.document.version, entry.number, at, at + size)
        self._notify(requests.HUNK, HunkParams(self.number, self.document.uri, *place, old, not entry.is_in))

    def _notify(self, method: str, params: Any) -> None:
        if self._traits.plugin:
            self._editor.notify(method, params)

    def _ended(self, outcome: Outcome) -> Ended:
        """What the job came to, with the one message that the user sees."""
        applied = [entry for entry in self.ledger.entries if entry.is_in]
        lost = [entry for entry in self.ledger.entries if not entry.is_in and entry.is_wanted]
        facts = Facts(
            hunks=len(applied),
            lost=[messages.lines_named(*self.ledger.remains(entry)) for entry in lost],
            lines=self._lines,
            seconds=time.monotonic() - self.spans.began,
            cancelled=self._following.why,
            left=len(self._delivery.left),
            reason="" if self.ledger.is_touched else self._delivery.reason,
        )
        return ended_of(self.number, self._following.daemon_job, outcome, facts)
