"""The daemon's side of one job: its events as they come, up to the one outcome; a daemon that died before it said
anything of use is started once more.
"""

import asyncio
from collections.abc import Callable

from specd.daemon.protocol import (
    OUTCOMES,
    Cancelled,
    Event,
    Failed,
    HunkReady,
    Loading,
    Outcome,
    Progress,
    Queued,
    RegionChosen,
    RewriteRequest,
)
from specd.lsp import messages
from specd.lsp.daemon_job import DaemonJob
from specd.lsp.progress import Progress as WorkDone
from specd.lsp.spans import Spans


class Following:
    """on_region is called once, on_hunk for each hunk. daemon_job: the daemon's name of the job, once it told it."""

    def __init__(
        self,
        request: RewriteRequest,
        progress: WorkDone,
        spans: Spans,
        on_region: Callable[[RegionChosen], None],
        on_hunk: Callable[[HunkReady], None],
    ) -> None:
        self.daemon_job = ""
        self.hunks = 0
        self.why: str | None = None  # it was cancelled
        self._request = request
        self._progress = progress
        self._spans = spans
        self._on_region = on_region
        self._on_hunk = on_hunk
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._daemon: DaemonJob | None = None

    def cancel(self, why: str) -> None:
        """Hang up; the outcome is `Cancelled`, whatever the daemon has sent by now."""
        self.why = why
        self.hang_up()
        self._events.put_nowait(None)

    def hang_up(self) -> None:
        """Close the connection: the daemon ends the job, if it still runs, before its next step."""
        if self._daemon is not None:
            self._daemon.cancel()

    async def outcome(self) -> Outcome:
        """The job's outcome, once it has one."""
        tries = 0
        while True:
            tries += 1
            self._spans.add("request", self._spans.now())
            self._daemon = DaemonJob(self._request, self._request.client, self._events.put_nowait)
            outcome = await self._until_outcome()
            is_lost = isinstance(outcome, Failed) and outcome.code == "unavailable"
            if not is_lost or self.hunks or tries > 1 or not self.daemon_job:
                return outcome

    async def _until_outcome(self) -> Outcome:
        while True:
            if self.why is not None:
                return Cancelled(self.why)
            event = await self._events.get()
            match event:
                case None:
                    pass
                case Queued(position):
                    self._progress.report(f"waiting, {position} in the queue")
                case Loading(fraction, message):
                    self._progress.report(f"the model is loading: {message}", fraction or None)
                case RegionChosen(job):
                    self._spans.add("region received", self._spans.now())
                    is_first, self.daemon_job = not self.daemon_job, job
                    if is_first:
                        self._on_region(event)
                case Progress(_, _, speed, fraction):
                    self._progress.report(messages.progress(self.hunks, fraction, speed), fraction)
                case HunkReady():
                    if not self.hunks:
                        self._spans.add("first hunk received", self._spans.now())
                    self.hunks += 1
                    self._on_hunk(event)
                case _ if isinstance(event, OUTCOMES):
                    return event
