"""A job's timeline out of its trace records: the daemon's, and the editor's where an editor asked. Pure.

The two count from different moments. They are laid on one line so that the editor heard of the region and of the first
hunk when the daemon told of them, or after. Only the fields named here are read: nothing else that a record may hold
comes out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["wait", "read", "write", "edit", "mark"]

_MOST = 1e12  # of any figure
_LONG_WAIT = 0.5  # a wait of more than this share of the total is not drawn to scale


@dataclass(frozen=True)
class Span:
    """`start` and `ms` are milliseconds of the job; a mark is a moment."""

    name: str
    start: float
    ms: float
    kind: Kind
    note: str = ""

    @property
    def end(self) -> float:
        return self.start + self.ms


@dataclass(frozen=True)
class Step:
    """One verify step of the model: from the end of the one before to its own, other jobs' turns included."""

    start: float
    ms: float
    proposer: str
    drafted: int
    accepted: int
    emitted: int


@dataclass(frozen=True)
class Proposer:
    """What one proposer did in the job."""

    name: str
    steps: int
    drafted: int
    accepted: int
    emitted: int


@dataclass(frozen=True)
class Timeline:
    """origin: where the drawing begins; what lies before it is told in figures alone. steps_left_out: of the steps at
    the end, which were not kept one by one.
    """

    job: str
    facts: list[tuple[str, str]]
    figures: list[tuple[str, str]]
    spans: list[Span]
    steps: list[Step]
    proposers: list[Proposer]
    origin: float
    total: float
    steps_left_out: int = 0


def timeline_of(job: str, records: Sequence[dict[str, Any]]) -> Timeline:
    """The timeline of `job` out of its records, the latest of each kind counting. What they lack is left out."""
    daemon: dict[str, Any] = next((one for one in reversed(records) if one.get("kind") != "editor"), {})
    editor: dict[str, Any] = next((one for one in reversed(records) if one.get("kind") == "editor"), {})
    parts = _Parts(daemon, editor)
    parts.read_daemon()
    parts.read_editor()
    ends = [span.end for span in parts.spans] + [step.start + step.ms for step in parts.steps]
    total = max([_number(editor, "total_ms") or parts.zero + _number(daemon, "total_ms"), *ends, 0.01])
    begin = parts.prompt_start
    spans = sorted(parts.spans, key=lambda span: (span.start, span.end))
    proposers = _proposers(daemon)
    return Timeline(
        job=job,
        facts=_facts(daemon, editor),
        figures=_figures(daemon, editor, total),
        spans=spans,
        steps=parts.steps,
        proposers=proposers,
        origin=begin if begin > _LONG_WAIT * total else 0.0,
        total=total,
        steps_left_out=max(0, sum(one.steps for one in proposers) - len(parts.steps)),
    )


@dataclass
class _Parts:
    daemon: dict[str, Any]
    editor: dict[str, Any]
    zero: float = 0.0  # when the daemon queued the job
    prompt_start: float = 0.0
    spans: list[Span] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def read_daemon(self) -> None:
        record = self.daemon
        if not record:
            return
        queue, load = _number(record, "queue_ms"), _number(record, "load_ms")
        self.zero = self._zero(queue + load)
        self.prompt_start = self.zero + queue + load
        decode = self.prompt_start + _number(record, "prompt_ms") + _number(record, "prefill_ms")
        chars, lines = _count(record, "text_chars"), _count(record, "region_lines")
        read = f"{_count(record, 'prefill_new'):,} tokens new, {_count(record, 'prefill_reused'):,} reused"
        self._add("queue", self.zero, queue, "wait", "waiting for a turn")
        if load:
            self._add("load", self.zero + queue, load, "wait", "the model is loaded")
        prompt = _number(record, "prompt_ms")
        self._add(
            "tokenise", self.prompt_start, prompt, "read", f"region and prompt: {lines:,} lines of {chars:,} chars"
        )
        self._add("prefill", self.prompt_start + prompt, _number(record, "prefill_ms"), "read", read)
        for name in ("first token", "first hunk"):
            if (key := f"{name.replace(' ', '_')}_ms") in record and record[key] is not None:
                self._add(name, self.zero + _number(record, key), 0, "mark")
        if record.get("cancel_to_idle_ms") is not None:
            idle = _number(record, "cancel_to_idle_ms")
            cancel = self.zero + _number(record, "total_ms") - idle
            self._add("cancelled", cancel, idle, "wait", "from the cancel until nothing of the job ran")
        self._read_steps(decode)
        tokens, steps = _count(record, "tokens"), _count(record, "steps")
        last = self.steps[-1].start + self.steps[-1].ms - decode if self.steps else 0.0
        if steps:
            ms = max(_number(record, "generate_ms"), last)
            self._add("decode", decode, ms, "write", f"{tokens:,} tokens in {steps:,} steps")

    def read_editor(self) -> None:
        for span in self._told():
            name, start, ms = str(span.get("name")), _number(span, "start_ms"), _number(span, "ms")
            if name == "apply":
                self._read_apply(span, start, ms)
            elif name == "request" and self.zero > start:
                self._add("reach the daemon", start, self.zero - start, "wait", "asked, until the daemon queued it")
            elif name == "first hunk received":
                self._add("first hunk received", start, 0, "mark")

    def _read_apply(self, span: dict[str, Any], start: float, ms: float) -> None:
        hunks, result = _count(span, "hunks"), str(span.get("result", ""))
        first = span.get("first")
        which = f"hunk {first + 1}" if isinstance(first, int) and hunks == 1 else f"{hunks} hunks"
        if isinstance(first, int) and hunks > 1:
            which = f"hunks {first + 1}-{first + hunks}"
        reply = span.get("reply_ms")
        if isinstance(reply, int | float):
            shown = f"answered after {reply:.1f} ms" + (f", shown after {ms:.1f} ms" if result == "applied" else "")
        else:
            shown = "not answered" if result == "unanswered" else ""
        note = ", ".join(part for part in (shown, "" if result == "applied" else result) if part)
        self._add(f"apply {which}", start, ms, "edit", note)
        if result == "applied" and all(one.name != "first hunk in the buffer" for one in self.spans):
            self._add("first hunk in the buffer", start + ms, 0, "mark")

    def _read_steps(self, begin: float) -> None:
        for kept in _list(self.daemon, "each_step"):
            if not isinstance(kept, list) or len(kept) != 5:
                continue
            fields = dict(zip(("at", "proposer", "drafted", "accepted", "emitted"), kept, strict=True))
            end = self.zero + _number(fields, "at")
            counts = (_count(fields, key) for key in ("drafted", "accepted", "emitted"))
            self.steps.append(Step(begin, max(0.0, end - begin), str(fields["proposer"]), *counts))
            begin = max(begin, end)

    def _zero(self, waited: float) -> float:
        """When, in the editor's time, the daemon's began."""
        starts = {span.get("name"): _number(span, "start_ms") for span in self._told()}  # the latest of each name
        told = {"region received": waited, "first hunk received": _number(self.daemon, "first_hunk_ms")}
        latest = [starts[name] - at for name, at in told.items() if name in starts]
        return max(starts.get("request", 0.0), min(latest, default=0.0))

    def _told(self) -> list[dict[str, Any]]:
        return [span for span in _list(self.editor, "spans") if isinstance(span, dict)]

    def _add(self, name: str, start: float, ms: float, kind: Kind, note: str = "") -> None:
        self.spans.append(Span(name, max(0.0, start), max(0.0, ms), kind, note))


def _facts(daemon: dict[str, Any], editor: dict[str, Any]) -> list[tuple[str, str]]:
    both = {**editor, **daemon}
    found = [(name, str(both.get(name) or "")) for name in ("time", "client", "model", "language", "outcome", "code")]
    return [(name, value) for name, value in found if value]


def _figures(daemon: dict[str, Any], editor: dict[str, Any], total: float) -> list[tuple[str, str]]:
    """What is told in large type: value and what it is."""
    found = [(_ms(total), "total")]
    if first := _number(daemon, "first_hunk_ms"):
        found.append((_ms(first), "first hunk, after it was queued"))
    if steps := _count(daemon, "steps"):
        tokens = _count(daemon, "tokens")
        found.append((f"{tokens / steps:.1f}", f"tokens a step ({tokens:,} in {steps:,})"))
        if seconds := _number(daemon, "generate_ms") / 1000:
            found.append((f"{tokens / seconds:,.0f}", "tokens a second"))
        accepted = sum(one.accepted for one in _proposers(daemon))
        found.append((f"{100 * min(1.0, accepted / max(1, tokens)):.0f} %", "of them drafted"))
    hunks, conflicts = _count(editor or daemon, "hunks"), _count(editor, "conflicts")
    found.append((f"{hunks:,}", "hunks in the buffer" if editor else "hunks"))
    return [*found, (f"{conflicts:,}", "in conflict")] if conflicts else found


def _proposers(daemon: dict[str, Any]) -> list[Proposer]:
    by_name = daemon.get("by_proposer")
    if not isinstance(by_name, dict):
        return []
    fields = ("steps", "drafted", "accepted", "emitted")
    return [Proposer(str(name), *(_count(one, key) for key in fields)) for name, one in by_name.items()]


def _number(record: dict[str, Any], key: str) -> float:
    """A figure of a record, 0 where there is none that makes sense."""
    value = record.get(key)
    return float(value) if isinstance(value, int | float) and abs(value) < _MOST else 0.0


def _count(record: dict[str, Any], key: str) -> int:
    return int(_number(record, key))


def _ms(value: float) -> str:
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.2f} s"


def _list(record: dict[str, Any], key: str) -> list[Any]:
    value = record.get(key)
    return value if isinstance(value, list) else []
