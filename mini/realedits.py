"""Regions of the shared edit corpus, for evaluation only: the changed lines widened to whole top-level definitions.

The corpus' sources are held out of training (`corpus.HELD_OUT`).
"""

import difflib
import json
from collections.abc import Iterator
from pathlib import Path

from specd.mini.edits import Edit
from specd.mini.region import dedent


def real_items(path: Path) -> Iterator[tuple[Edit, str]]:
    """(edit, group): synthetic renames, those with an open new name (right: no change), and new first parameters."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if not row["synthetic"] or row["kind"] not in ("rename", "signature"):
            continue
        span = changed_definitions(row["before"], row["after"])
        if span is None:
            continue
        before, after = span
        kind = row["kind"]
        if (
            (kind == "rename" and "clashes" in row["instruction"])
            or "something clearer" in row["instruction"]
            or "a better name" in row["instruction"]
        ):
            kind, after = "rename that leaves the new name open (right: no change)", before
        yield Edit(kind, row["language"], before, row["instruction"], after, row["source"]), "real definitions"


def changed_span(before: str, after: str) -> tuple[int, int, int] | None:
    """(start, end, end in `after`), half-open lines: all changed lines, out to unindented lines that a blank line
    precedes or follows. The texts are taken without their last line end."""
    a, b = before.rstrip("\n").split("\n"), after.rstrip("\n").split("\n")
    changed = [op for op in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if op[0] != "equal"]
    if not changed:
        return None
    start, tail = changed[0][1], len(a) - changed[-1][2]
    while start > 0 and not (start < len(a) and a[start][:1].strip() and not a[start - 1].strip()):
        start -= 1
    while tail > 0 and not (tail < len(a) and a[len(a) - tail - 1][:1].strip() and not a[len(a) - tail].strip()):
        tail -= 1
    return start, len(a) - tail, len(b) - tail


def changed_definitions(before: str, after: str) -> tuple[str, str] | None:
    """(region, edited region): the lines of `changed_span`."""
    span = changed_span(before, after)
    if span is None:
        return None
    start, end, end_after = span
    return dedent("\n".join(before.split("\n")[start:end])), dedent("\n".join(after.split("\n")[start:end_after]))
