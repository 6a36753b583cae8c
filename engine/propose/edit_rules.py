"""Substitutions an edit makes again and again: learnt from the output, applied to the source ahead of it."""

from collections.abc import Sequence as Lexemes
from dataclasses import dataclass, field

from specd.engine.propose.edit_source import LEXEME, Source, is_word

MOST_RULES = 200
LONGEST = 16  # lexemes of a pattern


@dataclass(eq=False)
class Rule:
    """Where the lexemes `pattern` stand, `text` is written. `left`: the lexeme that must stand before, None = any."""

    pattern: tuple[str, ...]
    text: str
    left: str | None = None
    right: int = 0  # times the target wrote `text` where the rule said so
    wrong: int = 0  # times it did not
    seeded: bool = False  # read from the instruction, not seen in the output
    sites: set[int] = field(default_factory=set)  # lexemes where it was refused: the source stays there

    def fits(self, source: Source, at: int) -> bool:
        pattern = self.pattern
        if at in self.sites or (self.left is not None and (at == 0 or source.lexemes[at - 1] != self.left)):
            return False
        return len(pattern) == 1 or tuple(source.lexemes[at : at + len(pattern)]) == pattern


@dataclass(frozen=True)
class Piece:
    """One stretch of rewritten text: `text` stands for the source bytes [start, end). `rule` None: it is a copy of them."""

    text: str
    start: int
    end: int
    rule: Rule | None = None
    at: int = -1  # the lexeme where the rule applied


class RuleBook:
    """The active rules, by the first lexeme of their pattern. `version` changes whenever a rewritten text may."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._by_first: dict[str, list[Rule]] = {}
        self.version = 0
        self.written: dict[str, list[str]] = {}  # text of a word rule -> the words it replaces

    def __iter__(self):  # type: ignore[no-untyped-def]
        for rules in self._by_first.values():
            yield from rules

    def find(self, pattern: tuple[str, ...], left: str | None = None) -> Rule | None:
        for rule in self._by_first.get(pattern[0], ()):
            if rule.pattern == pattern and rule.left == left:
                return rule
        return None

    def add(self, rule: Rule) -> None:
        """Put a rule in force; it replaces one of the same pattern."""
        old = self.find(rule.pattern, rule.left)
        if old is not None:
            self.remove(old)
        rules = self._by_first.setdefault(rule.pattern[0], [])
        rules.append(rule)
        rules.sort(key=lambda r: (-len(r.pattern), r.left is None))
        if len(rule.pattern) == 1 and is_word(rule.text):
            self.written.setdefault(rule.text, []).append(rule.pattern[0])
        self.version += 1

    def remove(self, rule: Rule) -> None:
        rules = self._by_first.get(rule.pattern[0], [])
        if rule in rules:
            rules.remove(rule)
            if not rules:
                del self._by_first[rule.pattern[0]]
            words = self.written.get(rule.text, [])
            if rule.pattern[0] in words:
                words.remove(rule.pattern[0])
            self.version += 1

    def refuse(self, rule: Rule, at: int) -> None:
        """The target kept the source at lexeme `at`, where `rule` would have changed it."""
        rule.wrong += 1
        rule.sites.add(at)
        self.version += 1
        if rule.wrong * 2 > rule.right + (2 if rule.seeded else 0):
            self.remove(rule)

    def matching(self, at: int) -> Rule | None:
        for rule in self._by_first.get(self._source.lexemes[at], ()):
            if rule.fits(self._source, at):
                return rule
        return None

    def fires_in(self, first: int, last: int) -> bool:
        by_first = self._by_first
        if not by_first:
            return False
        lexemes = self._source.lexemes
        return any(lexemes[at] in by_first and self.matching(at) is not None for at in range(first, last))

    def rewrite(self, first: int, last: int, extra: Rule | None = None) -> list[Piece]:
        """The source lexemes [first, last) with the rules applied, `extra` before the others."""
        source = self._source
        lexemes, starts = source.lexemes, source.starts
        pieces: list[Piece] = []
        at = copied = first
        while at < last:
            rule: Rule | None = None
            if extra is not None and lexemes[at] == extra.pattern[0] and extra.fits(source, at):
                rule = extra
            elif lexemes[at] in self._by_first:
                rule = self.matching(at)
            if rule is None:
                at += 1
                continue
            if copied < at:
                pieces.append(Piece(source.text[starts[copied] : starts[at]], starts[copied], starts[at]))
            behind = min(at + len(rule.pattern), len(lexemes))
            pieces.append(Piece(rule.text, starts[at], starts[behind], rule, at))
            at = copied = behind
        if copied < last:
            pieces.append(Piece(source.text[starts[copied] : starts[last]], starts[copied], starts[last]))
        return pieces


def explain(source: Source, first: int, last: int, written: str) -> Rule | None:
    """The substitution that turns the source lexemes [first, last) into `written`; None where it is no rule worth keeping."""
    new: list[str] = LEXEME.findall(written)
    lexemes = source.lexemes
    while first < last and new and lexemes[first] == new[0]:
        first += 1
        del new[0]
    while first < last and new and lexemes[last - 1] == new[-1]:
        last -= 1
        del new[-1]
    old = tuple(lexemes[first:last])
    if "\n" in old or "\n" in new or len(old) > LONGEST or len(new) > 2 * LONGEST or not (old or new):
        return None
    if len(old) == 1 and is_word(old[0]) and len(new) == 1 and is_word(new[0]):
        return Rule(old, new[0])
    if not any(map(is_word, old)):  # an insertion, or only punctuation changed: it needs a word beside it to be told by
        begin = first
        while begin > 0 and first - begin < 4 and lexemes[begin - 1] != "\n":
            begin -= 1
            if is_word(lexemes[begin]):
                old, new = (*lexemes[begin:first], *old), [*lexemes[begin:first], *new]
                break
        else:
            return None
    return Rule(old, "".join(new))


def general(rule: Rule, source: Source, first: int) -> Rule:
    """`rule`, bound to the lexeme before its site where the word it replaces was passed unchanged before."""
    if len(rule.pattern) == 1:
        passed = [at for at in source.places.get(rule.pattern[0], ()) if at < first]
        if passed and first > 0:
            return Rule(rule.pattern, rule.text, source.lexemes[first - 1])
    return rule


def as_pattern(text: str) -> tuple[str, ...]:
    """Byte text -> the lexemes that a rule looks for."""
    return tuple(LEXEME.findall(text))


def lexemes_of(text: str) -> Lexemes[str]:
    return LEXEME.findall(text)
