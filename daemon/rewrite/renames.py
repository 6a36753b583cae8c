"""What a rewrite did to names and should not have: a name that was renamed and still stands, longer ones that changed
with it, and one that was given a value and is gone.

All of it may be meant, so it is told and nothing is refused. Only what an instruction plainly calls a rename or a
value is looked at, and only names of one word: what a name with dots stands for a text does not tell.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

from specd.daemon.rewrite.lines import shortened, split_lines

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[^\W\d]\w*")
_RENAME = re.compile(r"\brenam|->|→|\bs/", re.IGNORECASE)
_VALUE = re.compile(  # "set MOST to 3"
    r"""\b(?:set|bump|raise|lower|increase|decrease)\s+(?:the\s+)?(?:value\s+of\s+|constant\s+|variable\s+)?
    ["'`]?([^\W\d]\w*)["'`]?\s*(?:\bto\b|=|\bat\b|\bas\b)\s*(?:[-+]?\.?\d|["'`]|(?:true|false|none|nil|null)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_GIVEN = r"\s*(?::?=(?!=)|:)"  # what stands between a name and its value
_SHOWN = 3  # lines, and names, that a note spells out
_LONG = 60  # characters of a name


def remarks(
    instruction: str, pairs: Iterable[tuple[str, str]], before: str, after: str, *, first: int = 0
) -> list[str]:
    """What to tell of a region's text `before` and `after` a rewrite, a line each. first: its first line, from 0."""
    pairs = list(pairs)
    if not _RENAME.search(instruction):
        return []
    old_words, new_words = Counter(_WORD.findall(before)), Counter(_WORD.findall(after))
    made = {new for _, new in pairs}
    named = set(_WORD.findall(instruction))
    out: list[str] = []
    for old, new in pairs:
        if old in made or old not in old_words or not (_NAME.fullmatch(old) and _NAME.fullmatch(new)):
            continue
        if new_words[old]:
            out.append(f"{shortened(old, _LONG)} is still there: {_places(after, old, first)}")
        longer = [word for word in old_words if old in word and word != old and word not in named]
        too = [word for word in longer if _became(word, word.replace(old, new), old_words, new_words)]
        if too:
            changes = [(shortened(word, _LONG), shortened(word.replace(old, new), _LONG)) for word in too[:_SHOWN]]
            spelled = ", ".join(f"{word} is now {other}" for word, other in changes)
            out.append(f"renamed with {shortened(old, _LONG)}: {spelled}{_more(len(too))}")
    return out


def gone(instruction: str, before: str, after: str) -> list[str]:
    """Names that the instruction gives a value, and that do not stand before one any more, or not at all: a line
    each."""
    out: list[str] = []
    for name in dict.fromkeys(_VALUE.findall(instruction)):
        word = rf"\b{re.escape(name)}\b"
        stood, given = (len(re.findall(each, before)) for each in (word, word + _GIVEN))
        if stood and not re.search(word, after):
            out.append(f"{shortened(name, _LONG)} is gone")
        elif len(re.findall(word + _GIVEN, after)) < given:
            out.append(f"a place where {shortened(name, _LONG)} had its value is gone")
    return out[:_SHOWN]


def _became(word: str, other: str, before: "Counter[str]", after: "Counter[str]") -> bool:
    return after[word] < before[word] and after[other] > before[other]


def _places(text: str, name: str, first: int) -> str:
    starts = list(accumulate(map(len, split_lines(text)), initial=0))
    found = (match.start() for match in re.finditer(rf"\b{re.escape(name)}\b", text))
    lines = list(dict.fromkeys(first + bisect_right(starts, place) for place in found))
    numbers = ", ".join(map(str, lines[:_SHOWN]))
    return ("line " if len(lines) == 1 else "lines ") + numbers + _more(len(lines))


def _more(count: int) -> str:
    return f" and {count - _SHOWN} more" if count > _SHOWN else ""
