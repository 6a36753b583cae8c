"""Events of a rewrite job, as the daemon sends them. Exactly one of them is an outcome, and it is the last one."""

import json
from typing import Any, Final

from specd.daemon import wire
from specd.daemon.errors import SpecdError, error_of
from specd.daemon.record import Record


class Queued(Record):
    """The job waits; `position` 1 is next."""

    position: int


class Loading(Record):
    """The model is being loaded. fraction in 0..1."""

    fraction: float
    message: str


class RegionChosen(Record):
    """Which lines are rewritten, and in words for the user."""

    job: str
    start_line: int
    end_line: int
    kind: str
    label: str


class Progress(Record):
    """How far the answer is. fraction: share of the region's lines passed, 0..1. Tokens a second of decoding alone."""

    tokens: int
    steps: int
    tokens_per_second: float
    fraction: float


class HunkReady(Record):
    """Lines start_line:end_line of the text as it was sent become new_lines (each with its line end)."""

    start_line: int
    end_line: int
    new_lines: tuple[str, ...]


class Summary(Record):
    """Counts and times (seconds) of a job. tokens: of the answer. accepted: of these, how many a draft had right."""

    job: str = ""
    model: str = ""
    hunks: int = 0
    lines: int = 0
    tokens: int = 0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    prefill_reused: int = 0
    prefill_new: int = 0
    queue_seconds: float = 0.0
    load_seconds: float = 0.0
    first_token_seconds: float | None = None
    first_hunk_seconds: float | None = None
    generate_seconds: float = 0.0
    total_seconds: float = 0.0

    @property
    def tokens_per_step(self) -> float:
        return self.tokens / self.steps if self.steps else 0.0

    @property
    def drafted_share(self) -> float:
        """Share of the answer's tokens that were accepted drafts, 0..1."""
        return min(1.0, self.accepted / self.tokens) if self.tokens else 0.0


class Done(Record):
    """All hunks are out. sha256: of the whole text after them, in UTF-8. notes: what the user should know. said: what
    the model wrote beside the code.
    """

    sha256: str
    summary: Summary
    notes: tuple[str, ...] = ()
    said: str = ""


class NoChange(Record):
    """The model gave the region back as it was. notes, said: as of Done."""

    summary: Summary
    notes: tuple[str, ...] = ()
    said: str = ""


class Declined(Record):
    """The model answered with words (a refusal, a question) instead of code. says_unchanged: the message says itself
    that nothing was changed.
    """

    message: str
    summary: Summary
    says_unchanged: bool = False


class Truncated(Record):
    """The answer hit a limit before its end; hunks sent so far are good, the rest of the region is as before."""

    message: str
    sha256: str
    summary: Summary


class Failed(Record):
    """The job ended by an error. code, message and says_unchanged as in errors.py."""

    code: str
    message: str
    summary: Summary = Summary()
    says_unchanged: bool = False

    def error(self) -> SpecdError:
        return error_of(self.code, self.message)


class Cancelled(Record):
    """The client or `specd stop` ended the job."""

    message: str = "cancelled"
    summary: Summary = Summary()


Outcome = Done | NoChange | Declined | Truncated | Failed | Cancelled
Event = Queued | Loading | RegionChosen | Progress | HunkReady | Outcome
OUTCOMES: Final = (Done, NoChange, Declined, Truncated, Failed, Cancelled)

_EVENTS: Final[dict[str, type[Any]]] = {
    "queued": Queued,
    "loading": Loading,
    "region": RegionChosen,
    "progress": Progress,
    "hunk": HunkReady,
    "done": Done,
    "no_change": NoChange,
    "declined": Declined,
    "truncated": Truncated,
    "error": Failed,
    "cancelled": Cancelled,
}
_NAMES: Final = {kind: name for name, kind in _EVENTS.items()}


def event_name(event: Event) -> str:
    """The name of an event on the wire, e.g. "hunk"."""
    return _NAMES[type(event)]


def encode_event(event: Event) -> bytes:
    """One server-sent event: `event: NAME`, `data: JSON`, empty line."""
    data = json.dumps(wire.to_json(event), ensure_ascii=False, separators=(",", ":"))
    return f"event: {event_name(event)}\ndata: {data}\n\n".encode()


def decode_event(name: str, data: str) -> Event | None:
    """The event that a server sent; None for a kind that this version does not know. Raises WireError if ill-formed."""
    kind = _EVENTS.get(name)
    if kind is None:
        return None
    event: Event = wire.from_json(kind, json.loads(data), ignore_unknown=True)
    return event
