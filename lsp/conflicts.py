"""Hunks that were not applied, shown where they belong: a hint diagnostic each, with what specd would have written, and
the two code actions that settle it. Pure.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from lsprotocol import types

from specd.daemon.rewrite.lines import content
from specd.lsp.documents import Document
from specd.lsp.entry import Entry
from specd.lsp.job import Job

SOURCE: Final = "specd"
COMMAND: Final = "specd.conflict"
USES: Final = {"specd": "Use specd's version", "mine": "Keep mine"}
_SHOWN: Final = 8  # lines of a version
_WIDTH: Final = 120  # characters of each


def codes(jobs: Iterable[Job]) -> set[str]:
    """What the diagnostics of the conflicts that are open are called."""
    return {_code(job, entry) for job in jobs for entry in job.conflicts}


def diagnostics(document: Document, jobs: Iterable[Job]) -> Iterator[types.Diagnostic]:
    """A hint for each conflict that is open, on the lines that stand for what was to change."""
    for job in jobs:
        for entry in job.conflicts:
            start, end = job.ledger.remains(entry)
            last = max(start, end - 1)
            width = len(content(document.lines[last])) if last < len(document.lines) else 0
            place = types.Range(document.position(start, 0), document.position(last, width if end > start else 0))
            yield types.Diagnostic(
                place,
                _told(entry),
                severity=types.DiagnosticSeverity.Hint,
                source=SOURCE,
                code=_code(job, entry),
            )


def argument_of(code: str) -> dict[str, Any]:
    """What the command takes for the diagnostic of this code, `use` aside."""
    job, _, hunk = code.rpartition("#")
    return {"job": job, "hunk": int(hunk)}


def _code(job: Job, entry: Entry) -> str:
    return f"{job.number}#{entry.number}"


def _told(entry: Entry) -> str:
    if not entry.new:
        return "specd would remove this; the change was not applied."
    lines = [content(line)[:_WIDTH] for line in entry.new[:_SHOWN]]
    more = ["..."] if len(entry.new) > _SHOWN else []
    return "\n".join(["specd's version of this was not applied:", *lines, *more])
