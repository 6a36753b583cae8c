"""Where the time of one job went in this process: spans, told to the editor's trace and kept beside the daemon's own
record of the job. Counts and times; no text.
"""

import time
from dataclasses import dataclass, field
from typing import Any

from specd.daemon.protocol import Summary
from specd.lsp import messages


@dataclass
class Spans:
    """Times are milliseconds since the job began."""

    began: float = field(default_factory=time.monotonic)
    spans: list[dict[str, Any]] = field(default_factory=list)

    def now(self) -> float:
        return round((time.monotonic() - self.began) * 1000, 2)

    def add(self, name: str, start: float, **more: Any) -> dict[str, Any]:
        """A span from `start` until now; an event if that is now."""
        span = {"name": name, "start_ms": start, "ms": round(self.now() - start, 2), **more}
        self.spans.append(span)
        return span

    def of_daemon(self, summary: Summary) -> list[dict[str, Any]]:
        """What the daemon told of its part, laid beside ours so that we heard of nothing before it told it."""
        waited = summary.queue_seconds + summary.load_seconds
        starts = {span["name"]: span["start_ms"] for span in self.spans}  # the latest of each name
        told = {"region received": waited, "first hunk received": summary.first_hunk_seconds}
        latest = [starts[name] - 1000 * at for name, at in told.items() if name in starts and at is not None]
        sent = max(starts.get("request", 0.0), min(latest, default=0.0))

        def at(seconds: float | None) -> float | None:
            return None if seconds is None else round(sent + seconds * 1000, 2)

        found = [
            {"name": "queue", "start_ms": at(0), "ms": round(summary.queue_seconds * 1000, 2)},
            {"name": "load", "start_ms": at(summary.queue_seconds), "ms": round(summary.load_seconds * 1000, 2)},
        ]
        if summary.first_token_seconds is not None:
            prefill = round((summary.first_token_seconds - waited) * 1000, 2)
            counts = {"reused": summary.prefill_reused, "new": summary.prefill_new}
            found.append({"name": "prefill", "start_ms": at(waited), "ms": prefill, **counts})
            steps = {"tokens": summary.tokens, "steps": summary.steps, "accepted": summary.accepted}
            decode = round(summary.generate_seconds * 1000, 2)
            found.append({"name": "decode", "start_ms": at(summary.first_token_seconds), "ms": decode, **steps})
        if summary.first_hunk_seconds is not None:
            found.append({"name": "first hunk", "start_ms": at(summary.first_hunk_seconds), "ms": 0.0})
        return found

    def record(self, *, job: str, client: str, outcome: str, hunks: int, conflicts: int) -> dict[str, Any]:
        """For the trace file, under the daemon's name of the job."""
        return {
            "job": job,
            "time": time.strftime("%Y-%m-%dT%H:%M:%S"),
            "kind": "editor",
            "client": client,
            "outcome": outcome,
            "hunks": hunks,
            "conflicts": conflicts,
            "total_ms": self.now(),
            "spans": self.spans,
        }

    def applies(self) -> str:
        """E.g. `3 edits, 4 ms each, shown after 6 ms`; empty without edits."""
        edits = [span for span in self.spans if span["name"] == "apply" and span["result"] == "applied"]
        if not edits:
            return ""
        each = sum(span.get("reply_ms") or span["ms"] for span in edits) / len(edits)
        shown = sum(span["ms"] for span in edits) / len(edits)
        return messages.edits(len(edits), each, shown)


def line_of(span: dict[str, Any], job: str) -> tuple[str, str]:
    """A span as `$/logTrace` has it: the message, and the rest for the verbose level."""
    rest = {key: value for key, value in span.items() if key not in ("name", "start_ms", "ms")}
    message = f"specd {job}: {span['name']} at {span['start_ms']:.0f} ms, {span['ms']:.1f} ms"
    return message, ", ".join(f"{key} {value}" for key, value in rest.items())
