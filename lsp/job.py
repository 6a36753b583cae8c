"""One rewrite from the trigger to its one outcome: the daemon's events in, edits and what the user sees out."""

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass
from typing import Any, Final, Protocol

from lsprotocol import types

from specd.daemon.protocol import (
    OUTCOMES,
    Cancelled,
    Declined,
    Done,
    Event,
    Failed,
    HunkReady,
    Loading,
    NoChange,
    Outcome,
    Progress,
    Queued,
    RegionChosen,
    RewriteRequest,
    Summary,
    Truncated,
)
from specd.lsp import messages, requests
from specd.lsp.daemon_job import DaemonJob
from specd.lsp.delivery import Delivery, Timing
from specd.lsp.documents import Document
from specd.lsp.editor_traits import Traits
from specd.lsp.entry import Entry, Flip
from specd.lsp.ledger import Ledger
from specd.lsp.outcomes import Facts, Severity, said_of
from specd.lsp.progress import Progress as WorkDone
from specd.lsp.requests import HunkParams, RegionParams, RewriteResult
from specd.lsp.spans import Spans
from specd.lsp.splice import Splice
from specd.lsp.target import Asked

_log = logging.getLogger(__name__)
_SETTLE_SECONDS: Final = 0.3  # that an edit under way at a cancel has to show itself


class Editor(Protocol):
    """What a job needs of the connection."""

    async def apply(self, edit: types.WorkspaceEdit) -> types.ApplyWorkspaceEditResult: ...

    def notify(self, method: str, params: Any) -> None: ...


@dataclass(frozen=True)
class Ended:
    """What a job came to. daemon_job: the daemon's name of it, for `specd trace`. lines: of the region."""

    result: RewriteResult
    severity: Severity
    daemon_job: str
    summary: Summary
    lines: int


class Job:
    """Runs once. `cancel` may be called at any time; then no edit is sent any more."""

    def __init__(
        self,
        number: str,
        document: Document,
        asked: Asked,
        request: RewriteRequest,
        editor: Editor,
        traits: Traits,
        timing: Timing,
        progress: WorkDone,
    ) -> None:
        self.number = number
        self.document = document
        self.ledger = Ledger(document.lines)
        self.spans = Spans()
        self.is_over = False
        self._asked = asked
        self._request = request
        self._editor = editor
        self._traits = traits
        self._progress = progress
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._daemon: DaemonJob | None = None
        self._why: str | None = None  # it was cancelled
        self._daemon_job = ""
        self._hunks = 0
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

    def cancel(self, why: str = "") -> None:
        """End the job: hang up on the daemon, send no edit any more. Nothing happens if it is over."""
        if self._why is None and not self.is_over:
            self._why = why
            if self._daemon is not None:
                self._daemon.cancel()
            self._delivery.stop()
            self._events.put_nowait(None)

    @property
    def conflicts(self) -> list[Entry]:
        """Hunks that were not applied and still could be, once the job is over; none of a job that was cancelled."""
        if not self.is_over or self._why is not None:
            return []
        return [entry for entry in self.ledger.entries if entry.is_conflict and entry.is_wanted and not entry.is_in]

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
            outcome = await self._follow()
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

    async def _follow(self) -> Outcome:
        """The daemon's events up to its outcome. A daemon that died before its first hunk is started once more."""
        tries = 0
        while True:
            tries += 1
            self.spans.add("request", self.spans.now())
            self._daemon = DaemonJob(self._request, self._request.client, self._events.put_nowait)
            outcome = await self._until_outcome()
            lost = isinstance(outcome, Failed) and outcome.code == "unavailable"
            if not lost or self._hunks or tries > 1 or not self._daemon_job:
                return outcome

    async def _until_outcome(self) -> Outcome:
        while True:
            if self._why is not None:
                return Cancelled(self._why)
            event = await self._events.get()
            match event:
                case None:
                    pass
                case Queued(position):
                    self._progress.report(f"waiting, {position} in the queue")
                case Loading(fraction, message):
                    self._progress.report(f"the model is loading: {message}", fraction or None)
                case RegionChosen():
                    self._take_region(event)
                case Progress(_, _, speed, fraction):
                    self._progress.report(messages.progress(self._hunks, fraction, speed), fraction)
                case HunkReady():
                    self._take_hunk(event)
                case _ if isinstance(event, OUTCOMES):
                    return event

    def _take_region(self, event: RegionChosen) -> None:
        self._daemon_job = event.job
        self.spans.add("region received", self.spans.now())
        start, end = self._asked.lines(event.start_line, event.end_line)
        self._lines = end - start
        self._notify(
            requests.REGION,
            RegionParams(self.number, self.document.uri, self.document.version, start, end, event.label),
        )

    def _take_hunk(self, hunk: HunkReady) -> None:
        start, end = self._asked.lines(hunk.start_line, hunk.end_line)
        if self._comment is not None and end > self._comment:
            if start > self._comment:
                self.ledger.add(self._comment, self._comment + 1, ())
            self._comment = None
        if not self._hunks:
            self.spans.add("first hunk received", self.spans.now())
        self._hunks += 1
        self.ledger.add(start, end, hunk.new_lines)
        self._delivery.wake()

    async def _finish(self, outcome: Outcome, deliver: "asyncio.Task[None]") -> None:
        """Bring the rest into the buffer, or, where the guard refused it, take it all out again."""
        if isinstance(outcome, Done | Truncated | Declined | NoChange):
            if isinstance(outcome, Done) and self._comment is not None and self._hunks:
                self.ledger.add(self._comment, self._comment + 1, ())
        elif isinstance(outcome, Failed) and outcome.code == "guard":
            for entry in self.ledger.entries:
                entry.is_wanted = False
        elif self._why is not None:
            with contextlib.suppress(TimeoutError):  # what is under way still counts if it shows itself
                await asyncio.wait_for(deliver, _SETTLE_SECONDS)
            return
        else:
            self._delivery.stop()
        self._delivery.close()
        await deliver

    def _stop(self, deliver: "asyncio.Task[None]") -> None:
        self.is_over = True
        self._delivery.stop()
        deliver.cancel()
        if self._daemon is not None:
            self._daemon.cancel()

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
            lost=[messages.lines_named(entry.start, entry.end) for entry in lost],
            lines=self._lines,
            seconds=time.monotonic() - self.spans.began,
            cancelled=self._why,
            left=len(self._delivery.left),
            reason="" if self.ledger.is_touched else self._delivery.reason,
        )
        said = said_of(outcome, facts)
        summary = outcome.summary
        result = RewriteResult(
            job=self.number,
            outcome=said.name,
            message=said.message,
            hunks=len(applied),
            conflicts=facts.lost if said.name == "conflict" else [],
            summary={key: value for key, value in vars(summary).items() if key not in ("hunks", "lines")},
        )
        return Ended(result, said.severity, self._daemon_job, summary, self._lines)
