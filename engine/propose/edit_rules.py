"""Substitutions that an edit makes again and again, and the source text with them applied."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import LEXEME, is_word

MOST_RULES = 256
DENSE = 8  # lexemes that are looked at in the time that one place is looked up


@dataclass(eq=False, frozen=True)
class Rule:
    """Where the lexemes `pattern` stand, behind the lexeme `left` if one is named, `text` is written instead."""

    pattern: tuple[str, ...]
    text: str
    left: str | None = None
    seeded: bool = False  # read from the instruction, not seen in the output

    def matches(self, source: Source, at: int) -> bool:
        """The source lexemes from `at` on are those that it replaces."""
        pattern = self.pattern
        if source.lexemes[at] != pattern[0]:
            return False
        if self.left is not None and (at == 0 or source.lexemes[at - 1] != self.left):
            return False
        return len(pattern) == 1 or tuple(source.lexemes[at : at + len(pattern)]) == pattern


Site = tuple[int, Rule]  # the lexeme where it applies


class Piece(NamedTuple):
    """`text` stands for the source bytes [start, end). `rule` None: it is a copy of them, but for indentation.

    `at`: the lexeme where the rule applied.
    """

    text: str
    start: int
    end: int
    rule: Rule | None = None
    at: int = -1

    def behind(self, count: int) -> "Piece":
        """The piece without its first `count` bytes."""
        start = self.start if self.rule else max(self.end - (len(self.text) - count), self.start)
        return Piece(self.text[count:], start, self.end, self.rule, self.at)


class RuleBook:
    """The rules in force, and how they did. `version` changes whenever any rewritten text may, and is never the same
    again, in no branch either."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._by_first: dict[str, list[Rule]] = {}
        self._right: dict[Rule, int] = {}  # times the target wrote its text where the rule said so
        self._wrong: dict[Rule, int] = {}  # times it kept the source
        self._kept: dict[Rule, frozenset[int]] = {}  # lexemes where it does not apply: the target had its way there
        self._versions = count(1)  # shared with all branches
        self.version = 0
        self.written: dict[str, list[str]] = {}  # text of a one-word rule -> the words that it replaces
        self.aligned = False  # runs of blanks behind a longer name shrink, so that columns stay

    def branch(self) -> "RuleBook":
        """A second book that begins with the same rules and counts."""
        other = copy(self)
        other._by_first = {lexeme: rules[:] for lexeme, rules in self._by_first.items()}
        other.written = {text: words[:] for text, words in self.written.items()}
        other._right, other._wrong, other._kept = self._right.copy(), self._wrong.copy(), self._kept.copy()
        return other

    def __len__(self) -> int:
        return sum(map(len, self._by_first.values()))

    def __iter__(self) -> Iterator[Rule]:
        for rules in self._by_first.values():
            yield from rules

    def find(self, pattern: tuple[str, ...], left: str | None = None) -> Rule | None:
        """The rule in force for exactly this pattern, or None."""
        for rule in self._by_first.get(pattern[0], ()):
            if rule.pattern == pattern and rule.left == left:
                return rule
        return None

    def fits(self, rule: Rule, at: int) -> bool:
        """The rule applies to the source lexemes from `at` on."""
        return rule.matches(self._source, at) and at not in self._kept.get(rule, ())

    def credit(self, rule: Rule) -> None:
        """The target wrote its text where it said so."""
        self._right[rule] = self._right.get(rule, 0) + 1

    def is_proven(self, rule: Rule) -> bool:
        """Named by the instruction, or right more than once, and hardly ever wrong."""
        return (rule.seeded or self._right.get(rule, 0) > 1) and self._wrong.get(rule, 0) < 2

    def has(self, lexeme: str) -> bool:
        """Some rule begins with this lexeme."""
        return lexeme in self._by_first

    def add(self, rule: Rule) -> None:
        """Put a rule in force, in place of one for the same pattern."""
        old = self.find(rule.pattern, rule.left)
        if old is not None:
            self.remove(old)
        elif len(self) >= MOST_RULES:
            return
        rules = self._by_first.setdefault(rule.pattern[0], [])
        rules.append(rule)
        rules.sort(key=lambda each: (-len(each.pattern), each.left is None))
        if len(rule.pattern) == 1 and is_word(rule.text):
            self.written.setdefault(rule.text, []).append(rule.pattern[0])
        self.version = next(self._versions)

    def add_all(self, rules: Iterable[Rule]) -> None:
        """Put rules in force for patterns that have none, as long as there is room."""
        for rule in islice(rules, max(MOST_RULES - len(self), 0)):
            if rule.pattern[0] not in self._by_first:
                self._by_first[rule.pattern[0]] = [rule]
                if is_word(rule.text):
                    self.written.setdefault(rule.text, []).append(rule.pattern[0])
        self.version = next(self._versions)

    def remove(self, rule: Rule) -> None:
        """Drop a rule; nothing happens if it is not in force."""
        rules = self._by_first.get(rule.pattern[0], [])
        if rule not in rules:
            return
        rules.remove(rule)
        if not rules:
            del self._by_first[rule.pattern[0]]
        words = self.written.get(rule.text, [])
        if rule.pattern[0] in words:
            words.remove(rule.pattern[0])
        self.version = next(self._versions)

    def align(self) -> None:
        """Runs of blanks behind a longer name shrink from now on."""
        self.aligned = True
        self.version = next(self._versions)

    def keep(self, rule: Rule, at: int, *, wrong: bool) -> None:
        """From now on `rule` leaves lexeme `at` alone. `wrong`: the target kept the source there, which counts
        against the rule: it goes when it is wrong more than half as often as right."""
        self._kept[rule] = self._kept.get(rule, frozenset()) | {at}
        self.version = next(self._versions)
        if wrong:
            times = self._wrong[rule] = self._wrong.get(rule, 0) + 1
            if 2 * times > self._right.get(rule, 0) + (2 if rule.seeded else 0):
                self.remove(rule)

    def sites(self, first: int, last: int, extra: Rule | None = None) -> list[Site]:
        """Where among the source lexemes [first, last) a rule applies, and which: the longest pattern, and of two the
        one bound to its left. `extra` goes before all. In order, and none inside another."""
        found: list[Site] = []
        source, heads, at = self._source, self._by_first, first
        for index in self._places(first, last, extra):
            if index < at:
                continue
            if extra is not None and self.fits(extra, index):
                rule = extra
            else:
                for rule in heads.get(source.lexemes[index], ()):
                    if self.fits(rule, index):
                        break
                else:
                    continue
            found.append((index, rule))
            at = index + len(rule.pattern)
        return found

    def _places(self, first: int, last: int, extra: Rule | None) -> list[int]:
        """The lexemes among [first, last) that a rule begins with, in order."""
        heads: Collection[str] = self._by_first
        if extra is not None:
            heads = {*heads, extra.pattern[0]}
        if not heads:
            return []
        if DENSE * len(heads) > last - first:
            return [at for at, lexeme in enumerate(self._source.lexemes[first:last], first) if lexeme in heads]
        found: list[int] = []
        for lexeme in heads:
            places = self._source.places.get(lexeme)
            if places is not None:
                begin = bisect_left(places, first)
                if begin < len(places) and places[begin] < last:
                    found += places[begin : bisect_left(places, last, begin)]
        found.sort()
        return found

    def rewrite(self, first: int, last: int, extra: Rule | None = None) -> list[Piece]:
        """The source lexemes [first, last) under the rules; `extra` goes before them."""
        return spell(self._source, first, last, self.sites(first, last, extra), self.aligned)


def spell(source: Source, first: int, last: int, sites: list[Site], aligned: bool) -> list[Piece]:
    """The source lexemes [first, last) with the rules applied at `sites`. aligned: as the rule book had it then."""
    text, lexemes, starts = source.text, source.lexemes, source.starts
    pieces: list[Piece] = []
    copied = first
    for index, rule in sites:
        if index < copied:
            continue
        if copied < index:
            pieces.append(Piece(text[starts[copied] : starts[index]], starts[copied], starts[index]))
        copied = min(index + len(rule.pattern), len(lexemes))
        pieces.append(Piece(rule.text, starts[index], starts[copied], rule, index))
        if aligned and copied < last and lexemes[copied][:2] == "  ":
            grown = len(rule.text) - (starts[copied] - starts[index])
            blanks = " " * max(len(lexemes[copied]) - grown, 1)
            pieces.append(Piece(blanks, starts[copied], starts[copied + 1]))
            copied += 1
    if copied < last:
        pieces.append(Piece(text[starts[copied] : starts[last]], starts[copied], starts[last]))
    return pieces


def as_pattern(text: str) -> tuple[str, ...]:
    """Byte text -> the lexemes that a rule looks for."""
    return tuple(LEXEME.findall(text))
