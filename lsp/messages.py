"""What the user is told. One sentence each: what happened, and what to do where there is something to do."""

from collections.abc import Sequence

from specd.daemon.protocol import Summary

READ_ONLY = "the file is read-only; make it writable first."
NOT_OPEN = "this document is not open in the editor, or the editor does not tell specd of it; open it first."
NO_INSTRUCTION = "the instruction is empty; say what to change."
NO_APPLY = "this editor does not take edits from a server (workspace/applyEdit); use `specd edit` in a shell."
NOT_UTF8 = "the file is not UTF-8 (the editor shows U+FFFD for what it could not read); save it as UTF-8 first."
NO_NAME = "the buffer has no name, so the editor cannot find it again for an edit; give it one first (:file NAME)."
STALE = "the text has changed since the request was made; ask again."
LOST = "the editor told a change of this document that cannot be read; close it and open it again."
UNSYNCED = "the text that the editor told is not the one that it has; close the document and open it again."
RETURNS = (
    "the text has a carriage return (^M) inside a line, which ends it for the language server protocol, not for Neovim;"
    " take it out (:%s/\\r//g) and read the file anew (:w, then :e), or open it as what it is (:e ++ff=mac)."
)
CLOSED = "the document was closed"
TAKEN_BACK = "taken back"
NOWHERE = "it is not known where; ask for code actions there first, or name the document."
SETTLED = "this conflict has been settled already."
NO_ANSWER = "the editor did not answer the edit"
NOT_SHOWN = "the editor took the edit and did not show it"


def half(what: str, line: int) -> str:
    return f"{what} has half of a character in line {line} (a lone surrogate); delete it first."


def reading(lines: int) -> str:
    return f"reading {_count(lines, 'line')}"


def progress(hunks: int, fraction: float, speed: float) -> str:
    """E.g. `hunk 3 · 61 % · 412 tok/s`."""
    parts = [f"hunk {hunks}"] if hunks else []
    return " · ".join([*parts, f"{100 * fraction:.0f} %", *([f"{_rate(speed)} tok/s"] if speed else [])])


def done(hunks: int, seconds: float, summary: Summary, lines: int) -> str:
    """E.g. `5 hunks, 0.9 s (212 lines, 3.1k tok/s, 87 % drafted)`."""
    inner = [_count(lines, "line")] if lines else []
    if summary.tokens and summary.generate_seconds:
        inner.append(f"{_rate(summary.tokens / summary.generate_seconds)} tok/s")
        inner.append(f"{100 * summary.drafted_share:.0f} % drafted")
    told = f"{_count(hunks, 'hunk')}, {seconds:.1f} s"
    return f"{told} ({', '.join(inner)})" if inner else told


def conflicts(lost: Sequence[str], total: int, reason: str) -> str:
    """E.g. `the text changed under the rewrite: 2 of 7 hunks not applied (lines 40-44, 61)`."""
    which = f"{len(lost)} of {_count(total, 'hunk')} not applied ({_lines(lost)})"
    return f"{reason or 'the text changed under the rewrite'}: {which}"


def refused(reason: str | None) -> str:
    return f"the editor refused the edit: {reason}" if reason else "the editor refused the edit, and did not say why"


def kept(hunks: int) -> str:
    """What a job that did not come to its end leaves behind."""
    if not hunks:
        return "nothing was changed"
    stay, them = ("stays", "it") if hunks == 1 else ("stay", "them")
    return f"{_count(hunks, 'hunk')} applied so far {stay} (specd.revert takes {them} back)"


def cancelled(why: str, hunks: int) -> str:
    if why == TAKEN_BACK:  # what became of its hunks is told by who takes them back
        return f"cancelled ({why})"
    if why == CLOSED and hunks:  # it may have been thrown away, or have gone on under another name
        return f"cancelled ({why}, with {_count(hunks, 'hunk')} in it)"
    return f"cancelled{f' ({why})' if why else ''}; {kept(hunks)}"


def left(hunks: int) -> str:
    """What is said of hunks that the user did not take; empty if there are none."""
    return f"; you left {_count(hunks, 'hunk')} out" if hunks else ""


def left_all(hunks: int) -> str:
    return f"nothing was changed: you left {f'all {hunks} hunks' if hunks > 1 else 'the hunk'} out"


def reverted(count: int, lost: Sequence[str]) -> str:
    if not count and not lost:
        return "there is nothing to take back"
    told = f"took {_count(count, 'hunk')} back"
    return f"{told}; left {_lines(lost)}, which changed since" if lost else told


def _lines(named: Sequence[str]) -> str:
    """E.g. `line 61`, `lines 40-44, 61`."""
    named = list(dict.fromkeys(named))  # of lines that are gone the place is left, which may be one for many
    is_one = len(named) == 1 and "-" not in named[0]
    return f"line{'' if is_one else 's'} {', '.join(named[:8])}{', ...' if len(named) > 8 else ''}"


def edits(count: int, answered_ms: float, shown_ms: float) -> str:
    """E.g. `3 edits, 4 ms each, shown after 6 ms`."""
    return f"{_count(count, 'edit')}, {answered_ms:.0f} ms each, shown after {shown_ms:.0f} ms"


def not_put_in(reason: str) -> str:
    return f"specd's version was not applied: {reason}"


def lines_named(start: int, end: int) -> str:
    """0-based half-open lines as a user counts them: `61`, `40-44`."""
    return f"{start + 1}" if end - start <= 1 else f"{start + 1}-{end}"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _rate(rate: float) -> str:
    return f"{rate / 1000:.1f}k" if rate >= 1000 else f"{rate:.0f}"
