"""The daemon without its socket: takes requests, runs them as jobs, keeps traces and counts. The server puts HTTP
around it; `specd edit --no-daemon` uses it in process.
"""

import itertools
import logging
import os
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from specd.daemon import __version__, logs, paths
from specd.daemon.generation import Served
from specd.daemon.jobs import Context, Emit, prepare_job, rewrite_job
from specd.daemon.metrics import Labels, Metrics
from specd.daemon.model_folder import bundled_folder
from specd.daemon.models import Load, ModelKey, ModelPool
from specd.daemon.protocol import PrepareReply, PrepareRequest, RewriteRequest, Sampling, Speculation
from specd.daemon.replay import is_replay, load_replay
from specd.daemon.scheduler import Job, Scheduler
from specd.daemon.settings import AT_START, Settings, changed_keys
from specd.daemon.sources import Sources
from specd.daemon.trace import JobTrace, TraceFile
from specd.daemon.worker import load_model

T = TypeVar("T")

_FAILURE_SECONDS: Final = 300.0  # how long the status tells of a try that failed; of the settings' model always

_log = logging.getLogger(__name__)


class Service:
    """Owns the engine thread, the models and the trace file. Public methods may be called from any thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.began = time.time()
        self.scheduler = Scheduler(max_active=settings.max_active_jobs, max_queue=settings.max_queue)
        self.pool: ModelPool[Served] = ModelPool(self._load)
        self._traces = TraceFile(paths.trace_path(), settings.log_size * 1024)
        self._sources = Sources()
        self._numbers = itertools.count(1)
        self._prefix = secrets.token_hex(2)
        self._prepares: dict[tuple[str, str], Job] = {}
        self._default = _default_key(settings)
        self._started = settings
        self.problem = ""  # what is wrong with the settings file or the model since they changed

    def preload(self) -> None:
        """Begin to load the model of the settings."""
        self.pool.request(self._default)

    def apply(self, settings: Settings) -> None:
        """Run with changed settings from the next job on. Another model is loaded beside the present one and takes its
        place when it is there; if it cannot be loaded the present one stays, and `problem` says so.
        """
        late = self._wait_for_start(settings)
        for name in changed_keys(self.settings, settings):
            _log.info("setting %s changed%s", name, ": takes effect when the daemon starts again" * (name in late))
        self.settings, self.problem = settings, ""
        self.scheduler.max_active, self.scheduler.max_queue = settings.max_active_jobs, settings.max_queue
        logging.getLogger("specd").setLevel(logs.level(settings))
        key = _default_key(settings)
        if key == self._default:
            return

        def swap(load: Load[Served]) -> None:
            if load.error is not None:
                self.problem = str(load.error)
            else:
                self._default = key
                self.pool.unload_unused(keep=key)

        if self.pool.request(key, swap).state == "ready":
            self._default = key

    def _wait_for_start(self, settings: Settings) -> list[str]:
        """The keys of `settings` whose values hold only when the daemon starts again."""
        return [name for name in changed_keys(self._started, settings) if name in AT_START]

    def rewrite(self, request: RewriteRequest, emit: Emit) -> Job:
        """Queue a rewrite. `emit` gets its events on the engine's thread, the outcome last. Raises Busy."""
        request = with_defaults(request, self.settings)
        trace = JobTrace(self._job_id(), "rewrite", request.client)
        key = self.key(request.model, request.speculation)
        job = rewrite_job(self._context(), request, key, trace, emit)
        self.scheduler.submit(job)
        return job

    def prepare(self, request: PrepareRequest) -> tuple[Job, "Future[PrepareReply]"]:
        """Queue a prepare. One of the same client for the same path that has not ended is replaced. Raises Busy."""
        trace = JobTrace(self._job_id(), "prepare", request.client)
        job, future = prepare_job(self._context(), request, self.key(request.model), trace)
        self.scheduler.submit(job)
        self._prepares = {slot: old for slot, old in self._prepares.items() if not old.finished.is_set()}
        slot = (request.client, request.target.path or "")
        if slot in self._prepares:
            self.scheduler.cancel(self._prepares[slot])
        self._prepares[slot] = job
        return job, future

    def cancel(self, job: Job) -> None:
        """End `job` before its next step. Nothing happens if it is over."""
        self.scheduler.cancel(job)

    def key(self, model: str | None = None, speculation: Speculation | None = None) -> ModelKey:
        """What a request's model is loaded from; None takes the setting."""
        speculation = speculation or Speculation()
        usual = self._default
        path = usual.path if model is None else _folder(model) or str(bundled_folder())
        # drafters of the settings are made for the model of the settings
        usual = usual if path == usual.path else replace(usual, path=path, draft="", dflash=_drafter("auto", path))
        return replace(
            usual,
            draft=usual.draft if speculation.draft is None else _folder(speculation.draft),
            dflash=usual.dflash if speculation.dflash is None else _drafter(speculation.dflash, path),
        )

    def status(self) -> dict[str, Any]:
        """What `GET /v1/status` answers; docs/http.md explains the fields."""
        active, waiting = self.scheduler.counts()
        return {
            "version": __version__,
            "pid": os.getpid(),
            "state": "draining" if self.scheduler.is_draining else "ready",
            "uptime_seconds": round(time.time() - self.began, 3),
            "memory_bytes": resident_memory(),
            "jobs": {"active": active, "waiting": waiting},
            "models": [
                {
                    "path": load.key.path,
                    "draft": load.key.draft,
                    "dflash": load.key.dflash,
                    "state": load.state,
                    "progress": 1.0 if load.state == "ready" else round(load.fraction, 3),
                    "message": str(load.error) if load.error else load.message,
                    "load_seconds": round(load.seconds, 3),
                    **(load.model.status() if load.model else {}),
                }
                for load in self.pool.loads()
                if load.state != "failed" or load.key == self._default or load.age < _FAILURE_SECONDS
            ],
            "problem": self.problem,
            "restart": self._wait_for_start(self.settings),
            "presets": dict(self.settings.presets),
            "settings": str(paths.settings_path()),
            "log": str(paths.log_path()),
        }

    def metrics_text(self) -> str:
        """What `GET /metrics` answers."""
        active, waiting = self.scheduler.counts()
        is_loaded = any(load.key == self.key() and load.state == "ready" for load in self.pool.loads())
        gauges: dict[str, dict[Labels, float]] = {
            "specd_jobs": {(("state", "active"),): active, (("state", "waiting"),): waiting},
            "specd_model_loaded": {(): is_loaded},
            "specd_resident_memory_bytes": {(): resident_memory()},
            "specd_uptime_seconds": {(): time.time() - self.began},
        }
        return self.metrics.text(gauges)

    def stop(self) -> None:
        """Cancel all jobs, end the engine's thread and free the models."""
        self.scheduler.stop()
        self.pool.unload_unused()

    def _load(self, key: ModelKey, progress: Callable[[float, str], None]) -> Served:
        return load_replay(key.path) if is_replay(key.path) else load_model(key, self.settings, progress)

    def _context(self) -> Context:
        return Context(self.pool, self.settings, self._sources, self._record)

    def _job_id(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"

    def _record(self, trace: JobTrace) -> None:
        self.metrics.count(trace)
        if self.settings.trace:
            self._traces.append(trace.record())
        _log.info(
            "job %s: %s %s%s, %d tokens in %d steps, %.0f ms",
            trace.job,
            trace.kind,
            trace.outcome,
            f" ({trace.code})" if trace.code else "",
            trace.tokens,
            trace.steps,
            trace.total * 1000,
        )


def with_defaults(request: RewriteRequest, settings: Settings) -> RewriteRequest:
    """The request with the settings in place of what it leaves open."""
    sampling, speculation = request.sampling, request.speculation
    sampling = Sampling(
        temperature=_first(sampling.temperature, settings.temperature),
        top_k=_first(sampling.top_k, settings.top_k),
        top_p=_first(sampling.top_p, settings.top_p),
        min_p=sampling.min_p,
        seed=sampling.seed,
    )
    k = speculation.k if speculation.k is not None else (None if settings.speculate < 0 else settings.speculate)
    speculation = speculation.replace(k=k, proposer=speculation.proposer or settings.proposer)
    return request.replace(sampling=sampling, speculation=speculation)


def resident_memory() -> int:
    """Bytes of this process in memory."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def _default_key(settings: Settings) -> ModelKey:
    path = _folder(settings.model) or str(bundled_folder())
    return ModelKey(
        path=path,
        draft=_folder(settings.draft_model),
        dflash=_drafter(settings.dflash, path),
        device=settings.device,
        dtype=settings.dtype,
    )


def _drafter(name: str, model: str) -> str:
    """A DFlash drafter's folder; "auto" is the folder `dflash` in the model's, where it has one."""
    own = Path(model) / "dflash"
    return _folder(name) if name != "auto" else str(own) if (own / "config.json").is_file() else ""


def _first(given: T | None, setting: T) -> T:
    return setting if given is None else given


def _folder(name: str) -> str:
    return str(Path(name).expanduser()) if name else ""
