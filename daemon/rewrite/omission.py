"""Lines by which a model says that it left code out ("... rest unchanged") instead of writing it.

Taken as text, such a line deletes what it stands for, so `hunks.py` keeps the original lines there. Only a line that
the original does not have is asked about. What is missed here is caught later by the guard; what is caught wrongly
costs an edit, never code. So a comment with dots is enough, while one without dots must speak of nothing else.
"""

import re

_LONGEST = 200  # characters; a longer line says more than that something was left out

_COMMENT = re.compile(
    r"^(?:/\*+|<!--|\{/\*|\(\*|\{-|#=|--\[\[|\"\"\"|'''|#+|//+!?|--+|;+|%+|\*+|!|'|rem\b)(?P<text>.*?)"
    r"(?:\*+/\}?|-->|\*\)|-\}|=#|\]\]|\"\"\"|'''|#+)?$",
    re.I,
)
_BARE_DOTS = re.compile(r"^[\[({<]?\s*(?:\.{3,}|…)\s*[\])}>]?[;,]?$")
_BRACKETED = re.compile(r"^[\[({<](?P<text>.*)[\])}>][;,]?$")
_BODY_IN_BRACES = re.compile(r"\{(?P<text>[^{}]*)\}[;,)]*$")
_BODY_IN_WORDS = re.compile(r"(?:\.{3}|\bpass)\s*(?:#|//|--)(?P<text>.+)$")
_DOTS_FIRST = re.compile(r"^[^\w.…]*(?:\.{3,}|…)")
_DOTS_LAST = re.compile(r"(?:\.{3,}|…)[^\w.…]*$")
_HINT = re.compile(
    r"\.{3}|…|unchanged|unmod|untouched|omitted|elided|intact|unaltered|snip|brevity|same|rest|remain|"
    r"existing|other|previous|prior|original|no change",
    re.I,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PARTS = _words("rest remainder remaining existing other others previous prior original")
_VERDICTS = _words("unchanged unmodified untouched omitted elided intact unaltered snip snipped brevity same")
_CODE = _words(
    "code codes line lines file function functions method methods class classes struct module implementation "
    "implementations body logic content contents import imports definition definitions declarations test tests script "
    "program functionality document text"
)
_SIGNS = _PARTS | _VERDICTS | _words("before more similar similarly skipped truncated keep kept continues etc")
_FILLERS = _words(
    "the a all any of your my this that is are was be remain remains stay stays here goes go follows in and for to as "
    "before it its they keep kept leave left exactly no not change changes changed needed below with unchanged"
)


def is_omission(line: str, *, language: str | None = None) -> bool:
    """Whether `line`, a whole line without its line end, stands for code that was left out.

    In Python a lone `...` is a statement, so there it takes a comment or words.
    """
    line = line.strip()
    if len(line) > _LONGEST or not _HINT.search(line):
        return False
    if _BARE_DOTS.match(line):
        return not (language == "python" and line == "...")
    comment = _COMMENT.match(line)
    if comment:
        return _says_so(comment["text"], dots_suffice=True)
    bracketed = _BRACKETED.match(line) or (re.match(r"(?:\.{3}|…)(?P<text>.*)", line) if " " in line else None)
    if bracketed and _DOTS_FIRST.search(line):
        return _says_so(line, dots_suffice=False)
    inside = _BODY_IN_BRACES.search(line) or _BODY_IN_WORDS.search(line)
    return bool(inside) and _says_so(inside["text"], dots_suffice=True) if inside else False


def _says_so(text: str, *, dots_suffice: bool) -> bool:
    first, last = bool(_DOTS_FIRST.search(text)), bool(_DOTS_LAST.search(text))
    words = [word.lower() for word in _WORD.findall(text)]
    if not words:
        return (first or last) and dots_suffice
    said = set(words)
    if first or last:
        return (first and last and dots_suffice) or bool(said & _SIGNS)
    foreign = [word for word in words if word not in _PARTS | _VERDICTS | _CODE | _FILLERS]
    if said & _VERDICTS - {"same"} or {"same", "before"} <= said or {"same", "original"} <= said:
        return not foreign or (len(foreign) <= 2 and bool(said & (_PARTS | _CODE)))
    if {"no", "changes"} <= said or {"no", "change"} <= said:
        return not foreign
    return bool(said & _PARTS and said & _CODE) and len(foreign) <= ("rest" in said or "remainder" in said)
