"""What became of a region that a model was asked to do the impossible to. Pure; a class is decided by texts alone."""

import difflib
import re
from collections import Counter

from specd.daemon.rewrite.guard import check
from specd.daemon.rewrite.lines import split_lines

SAFE = ("unchanged", "declined", "partial edit")
CLASSES = (
    *SAFE,
    "broke off",  # an answer without an end; nothing is written
    "broken syntax",  # parsed before, does not now
    "lost code",  # definitions gone or doubled that nobody named, or lines gone without others in their place
    "loop",  # a line or a word again and again
    "much changed",  # more than a partial edit would
)
MOST_LINES, MOST_SHARE = 6, 0.25  # what a partial edit may change: this many lines, or this part of the region
LOST_LINES, LOST_SHARE = 2, 0.1  # lines that may be gone
REPEATED_LINE, REPEATED_WORD = 3, 5
_REPEATED = re.compile(r"(?<!\w)(\w+)(?:\W+\1(?!\w)){" + str(REPEATED_WORD - 1) + r",}")


def is_small(changed: int, lines: int) -> bool:
    return changed <= max(MOST_LINES, MOST_SHARE * lines)


def loops(before: str, after: str) -> bool:
    """Whether some line, or some word in a row, is there far more often than before."""
    old, new = (Counter(x.strip() for x in split_lines(t) if len(x.strip()) > 3) for t in (before, after))
    if any(n - old[line] >= REPEATED_LINE for line, n in new.items()):
        return True
    return len(_REPEATED.findall(after)) > len(_REPEATED.findall(before))


def classify(language: str, before: str, after: str, lines: tuple[int, int], instruction: str) -> str:
    """The class of a finished rewrite of `lines` (0-based, half-open) of the file `before` into the file `after`."""
    if after == before:
        return "unchanged"
    report = check(language, before, after, instruction=instruction)
    if report.broke_syntax:
        return "broken syntax"
    old, new = split_lines(before), split_lines(after)
    region = old[slice(*lines)]
    if loops(before, after):
        return "loop"
    gone = len(old) - len(new)
    if report.lost or report.duplicated or gone > max(LOST_LINES, LOST_SHARE * len(region)):
        return "lost code"
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = sum(max(b - a, d - c) for tag, a, b, c, d in blocks if tag != "equal")
    return "partial edit" if is_small(changed, len(region)) else "much changed"
