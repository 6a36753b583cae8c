"""The sentences of an instruction, as `pairs.py` reads them: the items of a list one by one, each with the verb that
introduces them all, and without what an instruction says not to do. Pure; never raises; the time grows with the text.
"""

import re
from collections.abc import Iterator

from specd.daemon.rewrite.pair_words import ARROWS, OTHER_VERBS, VERBS

_NO_NAME = rf"(?!{ARROWS}|(?:to|into|with|by|as|becomes?|should)\b)"  # "* -> +" renames an operator
_MARK = re.compile(rf"[ \t]*(?:(?:[-*+•‣◦–—]|\(?(?:\d{{1,3}}|[a-zA-Z])[.)]|\[[ xX]?\])[ \t]+{_NO_NAME}){{1,2}}")
_NUMBER = re.compile(rf"(?:^|(?<=[\s:;,]))\(?(\d{{1,2}})([.)])[ \t]+{_NO_NAME}", re.MULTILINE)
_STARTS = re.compile(rf"\s*(?:[-*•\d]|(?:`[^`\n]+`|\"[^\"\n]+\"|[^\s`\"]{{1,80}}?)[ \t]*(?:{ARROWS}))")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])")
_LEADING = re.compile(  # a verb, or a noun of it, that a list can follow
    r"\b(?:(?P<rename>renam(?:e|es|ed|ing|ings))|(?P<replace>replac(?:e|ed|ing|ements?)|substitut(?:e|ions?))"
    r"|(?P<change>chang(?:e|es|ed|ing))|(?P<swap>swaps?)|(?P<convert>convert)|(?P<turn>turn)|(?P<correct>correct|fix))\b",
    re.IGNORECASE,
)

_QUOTED = re.compile(r"`[^`\n]+`|\"[^\"\n]+\"|“[^”\n]+”|‘[^’\n]+’|(?<!\w)'[^'\n]+'(?!\w)|[«‹][^«»‹›\n]+[»›]")
_NOT = (
    r"\b(?:\w{2,6}n['’]t|dont|cannot|(?:do|does|did|should|shall|must|need|will|can|could|would|is|are)\s+not|never"
    r"|not\s+to|no\s+need\s+to|without|avoid|rather\s+than|instead\s+of)\s+(?:(?:be|ever|also|even|yet|just)\s+){0,2}"
)
_WANT = r"(?:(?:want|need|like|have|wish|try)\s+(?:(?!(?:and|but)\b)[^\s,;]+\s+){0,3}?)?"
_DONE = (
    r"renam(?:e|ing)|chang(?:e|ing)|replac(?:e|ing)|substitut(?:e|ing)|(?:convert|transform|turn|switch)(?:ing)?"
    r"|swap(?:ping)?|call|use|name|correct|fix|spell|shorten|expand|migrate|update|edit|refactor|write|make|prefer"
    r"|choose|favou?r|exchange|interchange|append|prepend|prefix|suffix|add|give|pass|let|refer|supersede"
)
_SUFFERED = r"renamed|changed|replaced|superseded|converted|transformed|turned|swapped|switched|substituted|becomes?"
_NEGATED = re.compile(rf"{_NOT}{_WANT}(?:(?:{_DONE})\b|(?P<suffered>{_SUFFERED})\b)", re.IGNORECASE)
_ELLIPSIS = re.compile(  # "..., but not baz to qux"
    rf"(?:^\s*|[,(]\s*(?:but\s+|and\s+)?|\b(?:but|and)\s+)not\s+[^\s,;]+(?:\s+[^\s,;]+){{0,2}}?"
    rf"\s+(?P<between>to|into|with|by|as|{ARROWS})\s",
    re.IGNORECASE,
)
_ANY_VERB = "|".join(sorted({*VERBS, *OTHER_VERBS, "append", "prepend", "prefix", "suffix"}))
_BORDER = re.compile(
    rf"[;)]|,?\s*\bbut\b|\binstead\b(?!\s+of\b)|(?:,|\band\b)\s*(?:(?:and|then|just|only|please|simply|rather)\s+){{0,2}}"
    rf"(?:{_ANY_VERB})\b|(?P<comma>,)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(rf"\s(?:to|into|with|by|as|for|over)\s|{ARROWS}", re.IGNORECASE)
_BEFORE = re.compile(r"[;,(]|\b(?:but|and|so|that|then)\b", re.IGNORECASE)


def phrases(text: str) -> Iterator[str]:
    """The sentences and list items of a text, without their bullets and numbers; an item that has no verb of its own
    gets that of the line over the list."""
    verb: str | None = None  # of the line over the list; "" where that says not to do it
    for is_item, part in _parts(_numbered(text)):
        item = part[mark.end() :] if (mark := _MARK.match(part)) else part
        if not is_item:
            verb = None
        elif verb is not None and (own := re.match(r"\W*(\w+)", item)) and own[1].lower() not in {*VERBS, *OTHER_VERBS}:
            if not verb:
                continue
            item = f"{verb} {item}"
        yield from filter(None, _SENTENCE.split(item))
        if item.rstrip().endswith(":"):
            last = _SENTENCE.split(item)[-1]
            found = _LEADING.search(affirmed(last))
            verb = found.lastgroup if found else "" if _LEADING.search(last) else None


def _numbered(text: str) -> str:
    """With each item of "1) a -> b, 2) c -> d" on a line of its own."""
    numbers = [found[1] for found in _NUMBER.finditer(text)]
    if len(numbers) < 2 or numbers != [str(1 + index) for index in range(len(numbers))]:
        return text
    return _NUMBER.sub(r"\n\1. ", text)


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """(is an item of a list, its lines): behind a line that ends in a colon every line is one, marked or not."""
    part: list[str] = []
    is_item = listed = False
    for line in text.split("\n"):
        marked = _MARK.match(line) is not None
        over = bool(part) and part[-1].rstrip().endswith(":")
        listed = not marked and bool(line.strip()) and (listed or over)
        if part and (marked or listed or not line.strip() or _STARTS.match(line)):
            yield is_item, "\n".join(part)
            part = []
        if line.strip():
            is_item = is_item if part else marked or listed or _STARTS.match(line) is not None
            part.append(line)
    if part:
        yield is_item, "\n".join(part)


def affirmed(sentence: str) -> str:
    """A sentence without the clauses that say what not to rename; what is quoted is no clause."""
    masked = _QUOTED.sub(lambda found: "q" * len(found[0]), sentence)
    gone: list[tuple[int, int]] = []
    for found in _NEGATED.finditer(masked):
        start = found.start()
        if found["suffered"]:  # "foo must not be renamed to bar": its subject too
            start = max((border.end() for border in _BEFORE.finditer(masked, 0, start)), default=0)
        gone.append((start, _clause_end(masked, found.end())))
    for found in _ELLIPSIS.finditer(masked):
        between = found["between"].lower()
        if not between.isalpha() or re.search(rf"\s{between}\s", masked[: found.start()], re.IGNORECASE):
            gone.append((found.start(), _clause_end(masked, found.end())))
    out, done = "", 0
    for start, end in sorted(gone):
        if end > done:
            out += sentence[done : max(start, done)] + " ; "
            done = end
    return out + sentence[done:]


def _clause_end(masked: str, start: int) -> int:
    """Where a negated clause ends: a comma ends it only where no new name is behind it in the clause."""
    for border in _BORDER.finditer(masked, start):
        if border["comma"] is None or not _BETWEEN.search(masked, start, border.start()):
            return border.start()
    return len(masked)
