"""The English that `pairs.py` reads renames by: which verbs rename, what may stand around a name, where a name ends."""

import re

ARROWS = r"-+>|=+>|→|⇒|⟶"
_CODE = re.compile(r"[_0-9$.:!#@*/<>\[\]=()]|[a-z][A-Z]|^[A-Z]{2,}")


def is_code(text: str, first: bool = False) -> bool:
    """No plain word of prose: it has a mark, a digit or a capital that prose has no use for. first: of its sentence."""
    return bool(_CODE.search(text)) or (text[:1].isupper() and not first)


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Renaming verbs, and the words that stand between the old and the new name behind them.
VERBS: dict[str, frozenset[str]] = {
    verb: _set(between)
    for verbs, between in (
        ("rename renaming correct fix spell shorten expand edit refactor", "to into as"),
        ("change changing convert transform migrate update switch", "to into"),
        ("replace replacing substitute", "by with"),
        ("make write refer", "as"),
        ("turn turning", "into"),
        ("swap exchange", "for with"),
        ("call name use prefer", ""),
    )
    for verb in verbs.split()
}
OTHER_VERBS = _set(
    "add remove drop delete set let export take keep pass return declare document check allow include implement"
    " move put get build split say mention do print show draw give skip wrap inline extract port tidy reject"
    " free raise ask"
)
# "A becomes B", "A should be called B", "A renamed to B", "A is replaced by B"
PASSIVE = re.compile(
    r"\b(?:(?:should|shall|must|will|can|is|are|was|gets?)\s+(?:now\s+|to\s+)?(?:be\s+)?(?:now\s+)?"
    r"(?:(?:renamed|named|called|changed|spelled|written)(?:\s+(?:to|into|as))?"
    r"|(?:turned|converted)\s+into|(?:replaced|superseded)\s+(?:by|with))"
    r"|(?:renamed|changed|converted)\s+(?:to|into|as)|becomes?|(?:should|shall|must|will)\s+(?:now\s+)?become)\b",
    re.IGNORECASE,
)
# "B instead of A": the new name comes first
INSTEAD = re.compile(
    r"\b(?:instead\s+of|in\s+place\s+of|rather\s+than|in\s+lieu\s+of)\b|(?<=,)\s*(?:and\s+)?not\b", re.IGNORECASE
)
FILLER = _set(
    "the a an its their our this that these those new old just simply all every both each private public exported"
    " lower-case lowercase upper-case uppercase shorter longer now please also then being from name names of uses"
    " following usages usage occurrences instances references everywhere any to be"
)
NOUNS = _set(
    "class classes function functions method methods variable variables identifier identifiers type types"
    " constant constants field fields parameter parameters param argument arguments helper helpers decorator"
    " struct enum interface trait macro flag flags attribute property member module package symbol word string"
    " literal key option loop import alias namespace label misspelling typo spelling term prefix suffix template"
    " column object test tests file callback local receiver component event getter setter"
)
ENDS = _set(  # a phrase with a name ends before one of these
    "in on at for so throughout across inside within because since where when if but while before after which"
    " wherever everywhere too only using via than or likewise respectively consistently here there as to into by"
    " with"
)
PRONOUNS = _set("it them this they")
NO_NAMES = _set(
    "something anything nothing better clearer more less what match reflect avoid one it them they is are no not have"
    " has"
)
ARTICLES = _set("the a an its this new old")

# "append X to the names of a and b", "prefix a and b with X"
AFFIX = re.compile(
    r"\b(?P<verb>append|prepend|add)\s+(?:the\s+)?(?:(?P<kind>prefix|suffix)\s+)?[`\"']?(?P<affix>[\w$]+)[`\"']?"
    r"(?:\s+(?P<kind2>prefix|suffix))?\s+to\s+(?P<rest>.+)",
    re.IGNORECASE,
)
AFFIX_WITH = re.compile(
    r"\b(?P<verb>prefix|suffix)\s+(?P<rest>.+?)\s+with\s+(?:an?\s+|the\s+)?[`\"']?(?P<affix>[\w$]+)[`\"']?",
    re.IGNORECASE,
)
# "give f a new first parameter p", "add a first argument p to f", "pass p as the first argument to f"
_A_FIRST = r"(?:an?\s+|the\s+)?(?:\w+\s+)?(?:first|leading)\s+(?:parameter|argument|param|arg)\s+"
_CALLED = r"(?:named\s+|called\s+)?[`\"']?"
_FUNCTION = r"(?:the\s+)?(?:function\s+|method\s+)?[`\"']?"
PARAMETER = (
    re.compile(
        rf"\bgive\s+{_FUNCTION}(?P<f>[\w.:]+[!?]?)(?:\(\))?[`\"']?\s+{_A_FIRST}{_CALLED}(?P<p>\w+)", re.IGNORECASE
    ),
    re.compile(rf"\badd\s+{_A_FIRST}{_CALLED}(?P<p>\w+)[`\"']?\s+to\s+{_FUNCTION}(?P<f>[\w.:]+[!?]?)", re.IGNORECASE),
    re.compile(
        rf"\bpass\s+[`\"']?(?P<p>\w+)[`\"']?\s+as\s+{_A_FIRST}(?:to|of)\s+{_FUNCTION}(?P<f>[\w.:]+[!?]?)", re.IGNORECASE
    ),
)
