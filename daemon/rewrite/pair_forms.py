"""Renames of one fixed form: s/A/B/, and those that name the new name first, or that go both ways: "use B over A",
"instead of A, use B", "B should replace A", "swap A and B". One name on each side; `pairs.py` reads the lists.
"""

import re
from collections.abc import Iterator

from specd.daemon.rewrite.pair_words import FILLER, NO_NAMES, NOUNS, PRONOUNS

_SIDE = r"(?:\\.|(?!\1)[^\\\n])"  # one character of it, or an escaped one
_SED = re.compile(rf"(?<![\w/])s([/|#,])({_SIDE}{{1,200}}?)\1({_SIDE}{{0,200}}?)\1[gi]*(?![\w/])")
_NOUN = "|".join(sorted(NOUNS))
_LEAD = rf"(?:(?:the|all|every|each)\s+)?(?:(?:old|new|uses?\s+of|calls?\s+to)\s+)?(?:(?:{_NOUN})\s+)?"
_NOBODY = frozenset("we you i he she who that everything nothing other others code user users and or not only".split())


def _name(group: str) -> str:
    """A quoted text, or a word of a program's alphabet, with an article and a noun around it if there are."""
    quoted = rf"[`\"'“‘«‹](?P<{group}_quoted>[^`\"'”’»›\n]{{1,80}})[`\"'”’»›]"
    return (
        rf"{_LEAD}(?:{quoted}|(?P<{group}>[\w$@#][\w$.:#@<>\[\]-]{{0,79}}(?:\(\))?[!?]?))(?:\s+(?:{_NOUN}))?(?![\w(])"
    )


def _form(text: str) -> re.Pattern[str]:
    """A pattern from words; OLD and NEW stand for names, and what follows the last one must end its phrase."""
    end = (
        r"(?=\s*(?:[.,;:!?)]|$|(?:everywhere|throughout|in|on|at|for|so|and|then|as|when|where|which|consistently)\b))"
    )
    text = text.replace(" ", r"\s+").replace("OLD", _name("old")).replace("NEW", _name("new"))
    return re.compile(rf"(?<![\w`]){text}{end}", re.IGNORECASE)


_BOTH_WAYS = _form(
    r"(?:swap|exchange|switch|interchange) (?:(?:the )?(?:names|order|places|positions) of )?OLD and NEW"
)
_ONE_WAY = (
    _form(r"instead of OLD(?:\s*,\s*|\s+)(?:please )?(?:use|write|say|prefer|call it|name it|it should be) NEW"),
    _form(r"(?:prefer|use|favou?r|choose) NEW over OLD"),
    _form(r"substitut(?:e|ing) NEW for OLD"),
    _form(r"NEW (?:(?:should|must|shall|will)(?: now)? (?:replace|supersede)|(?:now )?(?:replaces|supersedes)) OLD"),
    _form(r"(?:let|have|make) NEW (?:replace|supersede) OLD"),
)


def read_sed(text: str) -> tuple[list[tuple[str, str]], str]:
    """(old, new) for each s/old/new/, and the text without them."""
    sides = [(_unescaped(found[2]), _unescaped(found[3])) for found in _SED.finditer(text)]
    return [(old, new) for old, new in sides if old is not None and new is not None], _SED.sub(" ; ", text)


def _unescaped(text: str) -> str | None:
    """One side of s/old/new/ as the text that it stands for; None for what stands for many texts or for a group."""
    text = re.sub(r"\\[b<>]", "", text)  # word borders
    return None if re.search(r"\\\w", text) else re.sub(r"\\(.)", r"\1", text)


def read_forms(sentence: str) -> Iterator[tuple[str, str]]:
    """(old, new) for each of the forms in a sentence."""
    for found in _BOTH_WAYS.finditer(sentence):
        old, new = _read(found, "old"), _read(found, "new")
        if old and new:
            yield old, new
            yield new, old
    for form in _ONE_WAY:
        for found in form.finditer(sentence):
            old, new = _read(found, "old"), _read(found, "new")
            if old and new:
                yield old, new


def _read(found: re.Match[str], group: str) -> str:
    """The name in a group; "" for words that name nothing."""
    quoted: str | None = found[f"{group}_quoted"]
    if quoted is not None:
        return quoted.strip()
    word = found[group].rstrip(".:?")
    plain = word.lower()
    return "" if len(word) > 1 and plain in FILLER | NO_NAMES | PRONOUNS | _NOBODY else word
