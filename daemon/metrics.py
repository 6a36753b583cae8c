"""Counters of the daemon in the Prometheus text exposition format, version 0.0.4."""

import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from specd.daemon.trace import JobTrace

BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds

_HELP: Final = {
    "specd_jobs_total": ("counter", "Jobs that ended, by kind and outcome."),
    "specd_tokens_total": ("counter", "Tokens of answers."),
    "specd_steps_total": ("counter", "Verify steps of the model."),
    "specd_drafted_tokens_total": ("counter", "Tokens drafted, by proposer."),
    "specd_accepted_tokens_total": ("counter", "Drafted tokens accepted, by proposer."),
    "specd_prompt_tokens_total": ("counter", "Prompt tokens, by whether they were kept from before or computed."),
    "specd_job_seconds": ("histogram", "Time of a rewrite from request to outcome."),
    "specd_first_hunk_seconds": ("histogram", "Time of a rewrite from request to its first hunk."),
    "specd_jobs": ("gauge", "Jobs in the daemon now, by state."),
    "specd_model_loaded": ("gauge", "Whether the model of the settings is loaded."),
    "specd_resident_memory_bytes": ("gauge", "Resident memory of the daemon."),
    "specd_uptime_seconds": ("gauge", "Time since the daemon began."),
}

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._histograms: dict[str, list[float]] = {}

    def count(self, trace: JobTrace) -> None:
        """Add a job that ended."""
        with self._lock:
            self._counters["specd_jobs_total"][("kind", trace.kind), ("outcome", trace.outcome)] += 1
            self._counters["specd_tokens_total"][()] += trace.tokens
            self._counters["specd_steps_total"][()] += trace.steps
            for name, count in trace.by_proposer.items():
                self._counters["specd_drafted_tokens_total"][(("proposer", name),)] += count.drafted
                self._counters["specd_accepted_tokens_total"][(("proposer", name),)] += count.accepted
            self._counters["specd_prompt_tokens_total"][(("from", "kept"),)] += trace.prefill_reused
            self._counters["specd_prompt_tokens_total"][(("from", "computed"),)] += trace.prefill_new
            if trace.kind == "rewrite":
                self._observe("specd_job_seconds", trace.total)
                if trace.first_hunk is not None:
                    self._observe("specd_first_hunk_seconds", trace.first_hunk)

    def text(self, gauges: dict[str, dict[Labels, float]]) -> str:
        """The exposition: the counters and `gauges` (name -> labels -> value)."""
        with self._lock:
            lines: list[str] = []
            for name, values in [*self._counters.items(), *gauges.items()]:
                lines += _head(name)
                lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in sorted(values.items())]
            for name, counts in self._histograms.items():
                lines += _head(name)
                lines += _histogram(name, counts)
        return "\n".join(lines) + "\n"

    def _observe(self, name: str, seconds: float) -> None:
        # one count a bucket, then the count of all and their sum
        counts = self._histograms.setdefault(name, [0.0] * (len(BUCKETS) + 2))
        for index, bound in enumerate(BUCKETS):
            counts[index] += seconds <= bound
        counts[-2] += 1
        counts[-1] += seconds


def _head(name: str) -> list[str]:
    kind, text = _HELP[name]
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _histogram(name: str, counts: list[float]) -> Iterable[str]:
    for bound, count in zip(BUCKETS, counts, strict=False):
        yield f'{name}_bucket{{le="{bound}"}} {_number(count)}'
    yield f'{name}_bucket{{le="+Inf"}} {_number(counts[-2])}'
    yield f"{name}_sum {_number(counts[-1])}"
    yield f"{name}_count {_number(counts[-2])}"


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{key}="{value}"' for key, value in labels) + "}" if labels else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6g}"
