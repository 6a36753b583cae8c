"""How a job's end is told: its name for programs, one message for the user, and how grave it is. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specd.daemon.protocol import Cancelled, Declined, Done, Failed, NoChange, Outcome, Summary, Truncated
from specd.lsp import messages
from specd.lsp.requests import RewriteResult

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Facts:
    """What this side knows of the job.

    hunks: in the buffer. lost: the lines that stand for those that are not, as the user counts them. lines: of the
    region. cancelled: why, or None. reason: what the editor had against the hunks that are not in, or empty: then the
    user was faster. left: hunks that the user was asked about and did not take.
    """

    hunks: int
    lost: list[str]
    lines: int
    seconds: float
    cancelled: str | None
    reason: str
    left: int = 0


@dataclass(frozen=True)
class Said:
    """The outcome; `name` as in editors/PROTOCOL.md."""

    name: str
    message: str
    severity: Severity


@dataclass(frozen=True)
class Ended:
    """What a job came to. daemon_job: the daemon's name of it, for `specd trace`. lines: of the region."""

    result: RewriteResult
    daemon_job: str
    summary: Summary
    lines: int


def ended_of(number: str, daemon_job: str, outcome: Outcome, facts: Facts) -> Ended:
    """The end of job `number`, as the client and the traces are told it."""
    said = said_of(outcome, facts)
    summary = outcome.summary
    result = RewriteResult(
        job=number,
        outcome=said.name,
        severity=said.severity,
        message=said.message,
        hunks=facts.hunks,
        conflicts=facts.lost if said.name in ("conflict", "truncated") else [],
        summary={key: value for key, value in vars(summary).items() if key not in ("hunks", "lines")},
    )
    return Ended(result, daemon_job, summary, facts.lines)


def said_of(outcome: Outcome, facts: Facts) -> Said:
    """What is said of the daemon's outcome, given what became of its hunks here."""
    if facts.cancelled is not None:
        return Said("cancelled", messages.cancelled(facts.cancelled, facts.hunks), "info")
    match outcome:
        case Done(_, summary, notes):
            if facts.lost:
                text = messages.conflicts(facts.lost, facts.hunks + len(facts.lost), facts.reason)
                return Said("conflict", _with(text, notes), "warning")
            if not facts.hunks and not facts.left:
                return Said("no_change", _with("no change needed: the text says so by now", notes), "info")
            told = messages.left_all(facts.left)
            if facts.hunks:
                told = messages.done(facts.hunks, facts.seconds, summary, facts.lines) + messages.left(facts.left)
            return Said("done", _with(told, notes), "warning" if notes else "info")
        case NoChange(_, notes):
            return Said("no_change", _with("the model changed nothing", notes), "warning" if notes else "info")
        case Declined(message):
            told = _with_kept(message, facts.hunks, says_unchanged=outcome.says_unchanged)
            return Said("declined", told, "warning")
        case Truncated(message):
            lost = messages.conflicts(facts.lost, facts.hunks + len(facts.lost), facts.reason) if facts.lost else ""
            return Said("truncated", _with(_with_kept(message, facts.hunks), [lost]), "warning")
        case Cancelled(message):
            return Said("cancelled", messages.cancelled(message, facts.hunks), "warning")
        case Failed(code, message):
            name = "refused" if code in ("refused", "guard", "usage") else "error"
            told = _with_kept(_for_editors(message), facts.hunks, says_unchanged=outcome.says_unchanged)
            return Said(name, told, "error")


def _with(text: str, notes: Sequence[str]) -> str:
    return "; ".join([text, *filter(None, notes)])


def _with_kept(message: str, hunks: int, *, says_unchanged: bool = False) -> str:
    """The message, and what the job leaves behind, unless that is nothing and the message says so."""
    message = message.rstrip(".")
    return message if says_unchanged and not hunks else f"{message}; {messages.kept(hunks)}"


def _for_editors(message: str) -> str:
    """On one line, and with what to do in an editor in place of what to do in a shell."""
    lines = ["Select fewer lines." if "--range" in line else line for line in message.split("\n")]
    return " ".join(lines)
