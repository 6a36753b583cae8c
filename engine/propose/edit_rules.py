"""Substitutions that an edit makes again and again, and the source text with them applied."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import LEXEME, is_word

MOST_RULES = 256
DENSE = 8  # lexemes that are looked at in the time that one place is looked up


@dataclass(eq=False)
class Rule:
    """Where the lexemes `pattern` stand, behind the lexeme `left` if one is named, `text` is written instead."""

    pattern: tuple[str, ...]
    text: str
    left: str | None = None
    seeded: bool = False  # read from the instruction, not seen in the output
    right: int = 0  # times the target wrote `text` where the rule said so
    wrong: int = 0  # times it kept the source
    kept: set[int] = field(default_factory=set)  # lexemes where it does not apply: the target had its own way there

    def fits(self, source: Source, at: int) -> bool:
        """The rule applies to the source lexemes from `at` on."""
        pattern = self.pattern
        if source.lexemes[at] != pattern[0] or at in self.kept:
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
    """The rules in force. `version` changes whenever any rewritten text may."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._by_first: dict[str, list[Rule]] = {}
        self.version = 0
        self.written: dict[str, list[str]] = {}  # text of a one-word rule -> the words that it replaces
        self.aligned = False  # runs of blanks behind a longer name shrink, so that columns stay

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
        self.version += 1

    def add_all(self, rules: Iterable[Rule]) -> None:
        """Put rules in force for patterns that have none, as long as there is room."""
        for rule in islice(rules, max(MOST_RULES - len(self), 0)):
            if rule.pattern[0] not in self._by_first:
                self._by_first[rule.pattern[0]] = [rule]
                if is_word(rule.text):
                    self.written.setdefault(rule.text, []).append(rule.pattern[0])
        self.version += 1

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
        self.version += 1

    def align(self) -> None:
        """Runs of blanks behind a longer name shrink from now on."""
        self.aligned = True
        self.version += 1

    def keep(self, rule: Rule, at: int, *, wrong: bool) -> None:
        """From now on `rule` leaves lexeme `at` alone. `wrong`: the target kept the source there, which counts
        against the rule: it goes when it is wrong more than half as often as right."""
        rule.kept.add(at)
        self.version += 1
        if wrong:
            rule.wrong += 1
            if 2 * rule.wrong > rule.right + (2 if rule.seeded else 0):
                self.remove(rule)

    def sites(self, first: int, last: int, extra: Rule | None = None) -> list[Site]:
        """Where among the source lexemes [first, last) a rule applies, and which: the longest pattern, and of two the
        one bound to its left. `extra` goes before all. In order, and none inside another."""
        found: list[Site] = []
        source, heads, at = self._source, self._by_first, first
        for index in self._places(first, last, extra):
            if index < at:
                continue
            if extra is not None and extra.fits(source, index):
                rule = extra
            else:
                for rule in heads.get(source.lexemes[index], ()):
                    if rule.fits(source, index):
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
