"""What a job cost: one record a job, counts and times, never text. Kept as JSON Lines, rotated by size."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specd.daemon.events import Summary

KEPT = 2  # older trace files kept as trace.jsonl.1, .2
STEPS_KEPT = 256  # steps of a job that are kept one by one: 5 KB of a record at most


@dataclass
class ProposerCount:
    """What one proposer did in a job: steps it drafted, tokens drafted, accepted, and emitted in those steps."""

    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    emitted: int = 0


@dataclass
class JobTrace:
    """Filled while a job runs. Times are seconds since the job was queued, or durations where they say so."""

    job: str
    kind: str
    client: str = ""
    created: float = field(default_factory=time.monotonic)
    wall: float = field(default_factory=time.time)
    model: str = ""
    language: str | None = None
    text_chars: int = 0
    region_lines: int = 0
    queue: float = 0.0
    load: float = 0.0
    prompt: float = 0.0  # region, prompt and tokens of it: duration
    prefill: float = 0.0
    prefill_reused: int = 0
    prefill_new: int = 0
    prompt_tokens: int = 0
    first_token: float | None = None
    first_hunk: float | None = None
    generate: float = 0.0  # decoding: duration of all steps after the prefill
    total: float = 0.0
    idle: float | None = None  # from a cancel until the job was gone: duration
    tokens: int = 0
    steps: int = 0
    hunks: int = 0
    lines: int = 0
    outcome: str = ""
    code: str = ""
    notes: list[str] = field(default_factory=list)
    by_proposer: dict[str, ProposerCount] = field(default_factory=dict)
    each: list[tuple[float, str, int, int, int]] = field(default_factory=list)
    """Of the first STEPS_KEPT steps: (ms from the queue to its end, proposer, drafted, accepted, emitted)."""

    def since(self) -> float:
        """Seconds since the job was queued."""
        return time.monotonic() - self.created

    def step(self, proposer: str | None, drafted: int, accepted: int, emitted: int) -> None:
        """Count one verify step. proposer None: nobody drafted."""
        self.steps += 1
        self.tokens += emitted
        if len(self.each) < STEPS_KEPT:
            self.each.append((round(self.since() * 1000, 1), proposer or "none", drafted, accepted, emitted))
        count = self.by_proposer.setdefault(proposer or "none", ProposerCount())
        count.steps += 1
        count.drafted += drafted
        count.accepted += accepted
        count.emitted += emitted

    def summary(self) -> Summary:
        """The part that the client is told."""
        return Summary(
            job=self.job,
            model=self.model,
            hunks=self.hunks,
            lines=self.lines,
            tokens=self.tokens,
            steps=self.steps,
            drafted=sum(count.drafted for count in self.by_proposer.values()),
            accepted=sum(count.accepted for count in self.by_proposer.values()),
            prefill_reused=self.prefill_reused,
            prefill_new=self.prefill_new,
            queue_seconds=self.queue,
            load_seconds=self.load,
            first_token_seconds=self.first_token,
            first_hunk_seconds=self.first_hunk,
            generate_seconds=self.generate,
            total_seconds=self.since(),
        )

    def record(self) -> dict[str, Any]:
        """The record as it is kept. Times in milliseconds."""

        def ms(seconds: float | None) -> float | None:
            return None if seconds is None else round(seconds * 1000, 2)

        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self.wall))
        return {
            "job": self.job,
            "time": stamp,
            "kind": self.kind,
            "client": self.client,
            "outcome": self.outcome,
            "code": self.code,
            "model": self.model,
            "language": self.language,
            "text_chars": self.text_chars,
            "region_lines": self.region_lines,
            "prompt_tokens": self.prompt_tokens,
            "queue_ms": ms(self.queue),
            "load_ms": ms(self.load),
            "prompt_ms": ms(self.prompt),
            "prefill_ms": ms(self.prefill),
            "prefill_reused": self.prefill_reused,
            "prefill_new": self.prefill_new,
            "first_token_ms": ms(self.first_token),
            "first_hunk_ms": ms(self.first_hunk),
            "generate_ms": ms(self.generate),
            "total_ms": ms(self.total),
            "cancel_to_idle_ms": ms(self.idle),
            "tokens": self.tokens,
            "steps": self.steps,
            "tokens_per_step": round(self.tokens / self.steps, 2) if self.steps else 0.0,
            "hunks": self.hunks,
            "lines": self.lines,
            "by_proposer": {name: vars(count) for name, count in self.by_proposer.items()},
            "each_step": self.each,
        }


class TraceFile:
    """Appends records to `path`; starts anew at `limit` bytes. A full disk loses records, never a job."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        self.limit = limit

    def append(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, separators=(",", ":")) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and self.path.stat().st_size + len(line) > self.limit:
                _rotate(self.path)
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(fd, "ab") as file:
                file.write(line.encode())
        except OSError:
            return


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Records in `path` and its older files, oldest first; lines that are no records are skipped."""
    for name in [*(path.with_name(f"{path.name}.{age}") for age in range(KEPT, 0, -1)), path]:
        try:
            lines = name.read_text(errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and isinstance(record.get("job"), str):
                yield record


def describe(record: dict[str, Any]) -> str:
    """One record as a line for people."""
    if record["kind"] == "editor":
        applied = sum(span["name"] == "apply" for span in record["spans"])
        return (
            f"{record['time']}  {record['job']}  {'editor':8} {record['outcome']:10}"
            f" {record['hunks']} hunk{'s' * (record['hunks'] != 1)} in the buffer, {record['conflicts']} in conflict"
            f" · {applied} edit{'s' * (applied != 1)} · total {record['total_ms']:.0f} ms"
        )
    drafted = sum(count["accepted"] for count in record["by_proposer"].values())
    share = f" · {100 * drafted / record['tokens']:.0f} % drafted" if record["tokens"] else ""
    first = f" · first hunk {record['first_hunk_ms']:.0f} ms" if record["first_hunk_ms"] is not None else ""
    return (
        f"{record['time']}  {record['job']}  {record['kind']:8} {record['outcome']:10}"
        f" queue {record['queue_ms']:.0f} ms · prefill {record['prefill_new']} new + {record['prefill_reused']} kept,"
        f" {record['prefill_ms']:.0f} ms{first} · {record['tokens']} tokens in {record['steps']} steps"
        f" ({record['tokens_per_step']:.1f} a step){share} · total {record['total_ms']:.0f} ms"
    )


def describe_fields(record: dict[str, Any]) -> list[str]:
    """A record's single values, a line each."""
    return [f"{key:18}{value}" for key, value in record.items() if key not in ("spans", "each_step")]


def describe_spans(record: dict[str, Any]) -> list[str]:
    """The spans of an editor's record, a line each: when, how long, what."""
    lines = []
    for span in record["spans"]:
        rest = " · ".join(f"{key} {value}" for key, value in span.items() if key not in ("name", "start_ms", "ms"))
        lines.append(f"  {span['start_ms']:10.1f} ms  {span['ms']:8.1f} ms  {span['name']:22} {rest}".rstrip())
    return lines


def _rotate(path: Path) -> None:
    for age in range(KEPT, 0, -1):
        older = path if age == 1 else path.with_name(f"{path.name}.{age - 1}")
        if older.exists():
            os.replace(older, path.with_name(f"{path.name}.{age}"))
