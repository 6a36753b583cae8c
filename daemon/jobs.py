"""Requests as jobs for the scheduler: wait for the model, run the session, and make sure of exactly one outcome."""

import logging
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from specd.daemon import session
from specd.daemon.errors import Busy, EngineFailed, SpecdError
from specd.daemon.events import OUTCOMES, Cancelled, Event, Failed, Loading, Outcome, Queued, event_name
from specd.daemon.generation import Prefilled, Served
from specd.daemon.models import Load, ModelKey, ModelPool
from specd.daemon.protocol import PrepareReply, PrepareRequest, RewriteRequest
from specd.daemon.scheduler import End, Job, Priority, Steps
from specd.daemon.settings import Settings
from specd.daemon.sources import Sources
from specd.daemon.trace import JobTrace

_log = logging.getLogger(__name__)
_LOADING_SECONDS: Final = 0.1  # between two loading events

Emit = Callable[[Event], None]


@dataclass(frozen=True)
class Context:
    """What a job needs of the daemon. `record` takes the trace of a job that has ended."""

    pool: ModelPool[Served]
    settings: Settings
    sources: Sources
    record: Callable[[JobTrace], None]


def rewrite_job(context: Context, request: RewriteRequest, key: ModelKey, trace: JobTrace, emit: Emit) -> Job:
    """A job that rewrites. `emit` gets its events on the scheduler's thread; exactly one outcome, last."""
    is_over = False

    def tell(event: Event) -> None:
        nonlocal is_over
        if is_over:
            return
        if isinstance(event, OUTCOMES):
            is_over = True
            trace.outcome = event_name(event)
            trace.code = event.code if isinstance(event, Failed) else ""
            _record(context, trace)
        emit(event)

    def start() -> Steps:
        trace.queue = trace.since()
        load = context.pool.request(key)
        yield from _await_load(load, trace, tell)
        model = context.pool.acquire(load)
        try:
            yield from session.rewrite(request, model, context.settings, context.sources, tell, trace)
        finally:
            context.pool.release(load)

    def ended(why: End | BaseException) -> None:
        if job.cancelled is not None:
            trace.idle = time.monotonic() - job.cancelled
        tell(_outcome_of(why, trace, context.settings))

    job = Job(
        start,
        ended=ended,
        moved=lambda position: tell(Queued(position)),
        client=request.client,
        time_limit=context.settings.job_time_limit,
    )
    return job


def prepare_job(
    context: Context, request: PrepareRequest, key: ModelKey, trace: JobTrace
) -> tuple[Job, "Future[PrepareReply]"]:
    """A job that prefills, and the reply to come. A cancelled one replies `replaced`; the future raises errors."""
    future: Future[PrepareReply] = Future()
    future.set_running_or_notify_cancel()  # a client that leaves cannot cancel it: its job is ended, and tells
    filled: list[Prefilled] = []

    def start() -> Steps:
        trace.queue = trace.since()
        load = context.pool.request(key)
        yield from _await_load(load, trace, lambda event: None)
        model = context.pool.acquire(load)
        try:
            yield from session.prepare(request.target, model, context.settings, trace, filled.append)
        finally:
            context.pool.release(load)
        trace.outcome = "done"
        _record(context, trace)
        last = filled[-1] if filled else Prefilled(0, 0, 0.0)
        future.set_result(PrepareReply(last.reused, last.new, last.seconds))

    def ended(why: End | BaseException) -> None:
        if job.cancelled is not None:
            trace.idle = time.monotonic() - job.cancelled
        error = None if why is End.CANCELLED else _error_of(why, trace, context.settings)
        trace.outcome = "cancelled" if isinstance(why, End) else "error"
        trace.code = error.code if error else ""
        _record(context, trace)
        if error is None:
            future.set_result(PrepareReply(0, 0, trace.since(), replaced=True))
        else:
            future.set_exception(error)

    job = Job(
        start,
        ended=ended,
        client=request.client,
        priority=Priority.BACKGROUND,
        time_limit=context.settings.job_time_limit,
    )
    return job, future


def _await_load(load: Load[Served], trace: JobTrace, tell: Emit) -> Steps:
    began = told = trace.since()
    if not load.ended.is_set():
        tell(Loading(load.fraction, load.message))
    while not load.ended.is_set():
        yield False
        if trace.since() - told > _LOADING_SECONDS:
            told = trace.since()
            tell(Loading(load.fraction, load.message))
    trace.load = trace.since() - began


def _outcome_of(why: End | BaseException, trace: JobTrace, settings: Settings) -> Outcome:
    if why is End.CANCELLED:
        return Cancelled(summary=trace.summary())
    if why is End.SHUTDOWN:
        return Cancelled("the daemon was stopped", trace.summary())
    error = _error_of(why, trace, settings)
    return Failed(error.code, str(error), trace.summary(), error.says_unchanged)


def _error_of(why: End | BaseException, trace: JobTrace, settings: Settings) -> SpecdError:
    if isinstance(why, SpecdError):
        return why
    if why is End.TIME_LIMIT:
        limit = settings.job_time_limit
        return EngineFailed(
            f"the job ran longer than {limit:g} s and was ended; rewrite a smaller range, or raise job_time_limit."
        )
    if isinstance(why, End):
        return Busy("the daemon was stopped; try again.")
    # where it happened, without the error's own text: that may quote the user's
    frames = "".join(traceback.format_tb(why.__traceback__))
    _log.error("job %s: %s\n%s", trace.job, type(why).__name__, frames)
    _log.log(logging.DEBUG - 5, "job %s: %s", trace.job, why)
    return EngineFailed(f"an error inside specd ended job {trace.job} ({type(why).__name__}); the log tells where.")


def _record(context: Context, trace: JobTrace) -> None:
    trace.total = trace.since()
    context.record(trace)
