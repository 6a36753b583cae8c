"""Renames of one fixed form: s/A/B/, and those that name the new name first, or that go both ways: "use B over A",
"instead of A, use B", "B should replace A", "swap A and B"; "A should be B" and "call A B" where they can mean nothing
else. One name on each side; `pairs.py` reads the lists.
"""

import re
from collections.abc import Iterator

from specd.daemon.rewrite.pair_words import FILLER, NO_NAMES, NOUNS, PRONOUNS, is_code

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
    _form(r"(?:use|write|say|prefer|call it|name it) NEW(?:\s*,)? (?:and )?not OLD"),
    _form(r"substitut(?:e|ing) NEW for OLD"),
    _form(r"NEW (?:(?:should|must|shall|will)(?: now)? (?:replace|supersede)|(?:now )?(?:replaces|supersedes)) OLD"),
    _form(r"(?:let|have|make) NEW (?:replace|supersede) OLD"),
)

_REFUSED = _form(
    r"(?:don['’]?t|do not|never) (?:use|write|say|call it) OLD(?:\s*[,;]\s*(?:but )?| but )"
    r"(?:please |rather )?(?:use|write|say|call it) NEW"
)
_DOUBTFUL = (_form(r"OLD (?:should|must|shall|ought to)(?: now)? (?:be|read|say) NEW"), _form(r"call OLD NEW"))
_AROUND = re.compile(r"[\s.,;:!]|\b(?:and|please|everywhere|throughout|now)\b", re.IGNORECASE)
_LITERAL = re.compile(r"-?\d[\w.]*|true|false|null|none|nil|undefined", re.IGNORECASE)
_QUALITY = re.compile(  # "it should be private", "call close twice"
    r"\w+(?:ed|able|ible|ly|less|ful)|private|public|static|const|final|abstract|a?sync|optional|positive|negative|empty"
    r"|unique|(?:short|long|small|larg|bigg|fast|slow|clean|simpl|low|high|strict|saf)er|global|local|lazy|safe|correct"
    r"|right|wrong|good|done|gone|written|shown|kept|once|twice|again|first|last|here|there|later|before|after|directly"
    r"|internal|external|pure|total|visible|open|closed|in|up|with|on|from",
    re.IGNORECASE,
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
    yield from _doubtful(sentence)


def read_refused(sentence: str) -> Iterator[tuple[str, str]]:
    """(old, new) for each "don't use A, use B" in a sentence."""
    for found in _REFUSED.finditer(sentence):
        old, new = _read(found, "old"), _read(found, "new")
        if old and new:
            yield old, new


def _doubtful(sentence: str) -> Iterator[tuple[str, str]]:
    """Of forms that say other things too, where both names look like code or the sentence is nothing else."""
    for form in _DOUBTFUL:
        is_all = not _AROUND.sub("", form.sub("", sentence))
        for found in form.finditer(sentence):
            old, new = _read(found, "old"), _read(found, "new")
            if not old or not new or (_LITERAL.fullmatch(new) and not _LITERAL.fullmatch(old)):
                continue
            first = not sentence[: found.start()].strip()
            are_names = _looks(found, "old", first) and _looks(found, "new")
            if are_names or (is_all and not {old.lower(), new.lower()} & NOUNS and not _QUALITY.fullmatch(new)):
                yield old, new


def _looks(found: re.Match[str], group: str, first: bool = False) -> bool:
    """Whether a name looks like one of a program."""
    return found[f"{group}_quoted"] is not None or is_code(found[group].rstrip(".:?"), first)


def _read(found: re.Match[str], group: str) -> str:
    """The name in a group; "" for words that name nothing."""
    quoted: str | None = found[f"{group}_quoted"]
    if quoted is not None:
        return quoted.strip()
    word = found[group].rstrip(".:?")
    plain = word.lower()
    return "" if len(word) > 1 and plain in FILLER | NO_NAMES | PRONOUNS | _NOBODY else word
