"""What a divergence that found its way back teaches: the substitution that explains it."""

from bisect import bisect_left

from specd.engine.propose.edit_rules import Rule, RuleBook, as_pattern
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import is_word

LONGEST = 16  # lexemes of the source that one rule replaces
MOST_PASSED = 512  # places before the site, of the first lexeme of what was replaced, that are looked at
REACH = 6  # lexemes to the left among which an insertion or deletion finds the word it is told by

Seen = set[tuple[tuple[str, ...], str]]


def learn(rules: RuleBook, source: Source, first: int, last: int, written: str, seen: Seen) -> Rule | None:
    """Put the rule in force that turns the source lexemes [first, last) into `written`, and return it; None if there
    is none.

    A rule that the instruction named, or that was right more than once, is not replaced by a single other case.
    `seen` collects the substitutions of one row: the second time, they hold everywhere.
    """
    found = explain(source, first, last, written)
    if found is None:
        return None
    old, new, site = found
    if aligns(rules, source, site, old, new):
        rules.align()
        return None
    rule = bound(source, old, new, site, seen)
    if rule is None:
        return None
    present = rules.find(rule.pattern, rule.left)
    if present is not None and rules.is_proven(present):
        return None
    rules.add(rule)
    return rule


def explain(source: Source, first: int, last: int, written: str) -> tuple[tuple[str, ...], tuple[str, ...], int] | None:
    """(lexemes replaced, lexemes written, lexeme where they stand), common beginning and end taken off; None for
    several lines, long stretches and no change."""
    lexemes = source.lexemes
    new = as_pattern(written)
    while first < last and new and lexemes[first] == new[0]:
        first += 1
        new = new[1:]
    while first < last and new and lexemes[last - 1] == new[-1]:
        last -= 1
        new = new[:-1]
    if last - first > LONGEST or len(new) > 2 * LONGEST or not (new or first < last):
        return None
    old = tuple(lexemes[first:last])
    return None if "\n" in old or "\n" in new else (old, new, first)


def bound(source: Source, old: tuple[str, ...], new: tuple[str, ...], site: int, seen: Seen) -> Rule | None:
    """The rule, as general as one case warrants.

    A word or phrase that was never passed unchanged is replaced everywhere at once; one that was needs the lexeme
    before it. An insertion, and a deletion seen once, need the word to their left.
    """
    text = "".join(new)
    again = (old, text) in seen
    seen.add((old, text))
    if any(map(is_word, old)):
        if again:
            return Rule(old, text)
        places = source.places.get(old[0], [])
        before = places[max(bisect_left(places, site) - MOST_PASSED, 0) : bisect_left(places, site)]
        passed = any(tuple(source.lexemes[at : at + len(old)]) == old for at in before)
        if text and not passed:
            return Rule(old, text)
        if text and len(old) == 1 and site > 0:
            return Rule(old, text, source.lexemes[site - 1])
    begin = site
    while begin > 0 and site - begin < REACH and source.lexemes[begin - 1] != "\n":
        begin -= 1
        if is_word(source.lexemes[begin]):
            left = tuple(source.lexemes[begin:site])
            return Rule((*left, *old), "".join(left) + text)
    return None


def aligns(rules: RuleBook, source: Source, site: int, old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    """A run of blanks behind a replaced name gave way by as much as the name grew."""
    if len(old) != 1 or len(new) != 1 or not site or old[0].strip(" ") or new[0].strip(" "):
        return False
    for rule in rules:
        begin = site - len(rule.pattern)
        if begin >= 0 and rules.fits(rule, begin):
            return len(rule.text) - len("".join(rule.pattern)) == len(old[0]) - len(new[0])
    return False
