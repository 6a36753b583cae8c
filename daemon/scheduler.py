"""The queue: one thread drives all jobs, one step of one job at a time. Knows nothing of models, text or sockets.

A job is a generator. Each `next()` does at most one step's work and yields True, or yields False if it has to wait for
something (a model that another thread loads). Closing the generator cancels the job; the scheduler does so before the
job's next step, so the engine is idle within one step.

Order: rewrites before prepares; among equals the client that was served longest ago, then its job served longest ago.
Up to `max_active` jobs take turns; the others wait in the same order and are told their position.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Generator
from enum import Enum
from typing import Final, ParamSpec

from specd.daemon.errors import Busy

_log = logging.getLogger(__name__)
_WAIT_SECONDS: Final = 0.01  # a job that has to wait is asked again after this time
P = ParamSpec("P")


class Priority(Enum):
    """FOREGROUND: somebody is waiting for it. BACKGROUND: runs only while no foreground job can."""

    FOREGROUND = 0
    BACKGROUND = 1


class End(Enum):
    """Why the scheduler ended a job that had not ended by itself."""

    CANCELLED = "cancelled"
    TIME_LIMIT = "time limit"
    SHUTDOWN = "shutdown"


Steps = Generator[bool, None, None]


class Job:
    """One job. `start` makes its generator when its first turn comes; `ended` hears why it was cut short.

    `ended` also gets an exception that the generator raised. Both, and `moved` (the new position in the queue,
    1 = next), are called on the scheduler's thread.
    """

    def __init__(
        self,
        start: Callable[[], Steps],
        *,
        ended: Callable[[End | BaseException], None],
        moved: Callable[[int], None] = lambda position: None,
        client: str = "",
        priority: Priority = Priority.FOREGROUND,
        time_limit: float | None = None,
    ) -> None:
        self.start = start
        self.ended = ended
        self.moved = moved
        self.client = client
        self.priority = priority
        self.time_limit = time_limit
        self.created = time.monotonic()
        self.finished = threading.Event()
        self.cancelled: float | None = None  # when, on the monotonic clock
        self._end: End | None = None
        self._steps: Steps | None = None
        self._deadline = float("inf")
        self._last_turn = -1
        self._wake = 0.0
        self._position = 0

    @property
    def is_active(self) -> bool:
        return self._steps is not None


class Scheduler:
    """Owns the thread `specd-engine`. All public methods may be called from any thread."""

    def __init__(self, *, max_active: int = 4, max_queue: int = 64) -> None:
        self.max_active = max_active
        self.max_queue = max_queue
        self.idle_since = time.monotonic()
        self._changed = threading.Condition()
        self._jobs: list[Job] = []
        self._client_turns: dict[str, int] = {}
        self._turns = itertools.count()
        self._is_draining = False
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="specd-engine", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job. Raises Busy if the queue is full or the scheduler is draining."""
        with self._changed:
            if self._is_draining:
                raise Busy("the daemon is shutting down; try again in a moment.")
            if len(self._jobs) >= self.max_active + self.max_queue:
                raise Busy(f"{len(self._jobs)} jobs are waiting already; try again later (setting max_queue).")
            self._jobs.append(job)
            self._changed.notify_all()

    def cancel(self, job: Job, why: End = End.CANCELLED) -> None:
        """End a job before its next step. Does nothing if it is over."""
        with self._changed:
            job._end = job._end or why
            job.cancelled = job.cancelled or time.monotonic()
            self._changed.notify_all()

    def counts(self) -> tuple[int, int]:
        """(active, waiting) jobs."""
        with self._changed:
            active = sum(job.is_active for job in self._jobs)
            return active, len(self._jobs) - active

    def drain(self) -> None:
        """Take no new jobs from now on."""
        with self._changed:
            self._is_draining = True
            self._changed.notify_all()

    @property
    def is_draining(self) -> bool:
        return self._is_draining

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Block until no job is left; False if `timeout` seconds pass first."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs, timeout)

    def stop(self, timeout: float | None = 10.0) -> None:
        """End all jobs before their next step and join the thread."""
        with self._changed:
            self._is_draining = self._is_stopped = True
            for job in self._jobs:
                job._end = job._end or End.SHUTDOWN
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._is_stopped)
                if not self._jobs:
                    return
                over = [job for job in self._jobs if job._end or time.monotonic() > job._deadline]
                moved = self._positions()
                job = None if over else self._next_job()
            for waiting, position in moved:
                _safely(waiting.moved, position)
            for ending in over:
                self._close(ending, ending._end or End.TIME_LIMIT)
            if job is not None:
                self._turn(job)
            elif not over:
                with self._changed:
                    self._changed.wait(_WAIT_SECONDS)

    def _next_job(self) -> Job | None:
        """The job whose turn it is; None if every job that could have a turn waits for something."""
        now = time.monotonic()
        active = sum(job.is_active for job in self._jobs)
        # background jobs hold no place that a foreground job could need
        held = sum(job.is_active and job.priority is Priority.FOREGROUND for job in self._jobs)
        for priority in Priority:
            is_full = (held if priority is Priority.FOREGROUND else active) >= self.max_active
            able = [job for job in self._jobs if job.priority is priority and (job.is_active or not is_full)]
            ready = [job for job in able if job._wake <= now]
            if ready:
                return min(ready, key=self._order)
        return None

    def _order(self, job: Job) -> tuple[int, int, float]:
        return self._client_turns.get(job.client, -1), job._last_turn, job.created

    def _turn(self, job: Job) -> None:
        job._last_turn = self._client_turns[job.client] = next(self._turns)
        try:
            if job._steps is None:
                job._steps = job.start()
                job._deadline = time.monotonic() + (job.time_limit or float("inf"))
            if not next(job._steps):
                job._wake = time.monotonic() + _WAIT_SECONDS
                job._deadline += _WAIT_SECONDS
        except StopIteration:
            self._remove(job)
        except BaseException as error:  # whatever a step raises ends its job alone
            self._remove(job, error)

    def _close(self, job: Job, why: End) -> None:
        error: End | BaseException = why
        try:
            if job._steps is not None:
                job._steps.close()
        except BaseException as raised:
            error = raised
        self._remove(job, error)

    def _remove(self, job: Job, why: End | BaseException | None = None) -> None:
        if why is not None:
            _safely(job.ended, why)
        job._steps = None
        job.finished.set()
        with self._changed:
            self._jobs.remove(job)
            if not any(other.client == job.client for other in self._jobs):
                self._client_turns.pop(job.client, None)
            if not self._jobs:
                self.idle_since = time.monotonic()
            self._changed.notify_all()

    def _positions(self) -> list[tuple[Job, int]]:
        waiting = [job for job in self._jobs if not job.is_active]
        if len(self._jobs) - len(waiting) < self.max_active:
            waiting = waiting[self.max_active - (len(self._jobs) - len(waiting)) :]
        changed = []
        for position, job in enumerate(sorted(waiting, key=lambda job: (job.priority.value, *self._order(job))), 1):
            if job._position != position:
                job._position = position
                changed.append((job, position))
        return changed


def _safely(callback: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call back a job's owner; an error of his must not end the thread that all jobs live on."""
    try:
        callback(*args, **kwargs)
    except Exception:
        _log.exception("a job's callback failed")
