"""Substitutions that an edit makes again and again, and the source text with them applied."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import LEXEME, is_word

MOST_RULES = 256
DENSE = 8  # lexemes that are looked at in the time that one place is looked up
MOST_CHANGES = 16  # of the rules, that are looked through for one that matters


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
        self._changes: list[tuple[str, int]] = []  # of each version: (lexeme, -1), ("", lexeme index) or ("", -1): all
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
        self._change(rule.pattern[0])

    def add_all(self, rules: Iterable[Rule]) -> None:
        """Put rules in force for patterns that have none, as long as there is room."""
        for rule in islice(rules, max(MOST_RULES - len(self), 0)):
            if rule.pattern[0] not in self._by_first:
                self._by_first[rule.pattern[0]] = [rule]
                if is_word(rule.text):
                    self.written.setdefault(rule.text, []).append(rule.pattern[0])
        self._change()

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
        self._change(rule.pattern[0])

    def align(self) -> None:
        """Runs of blanks behind a longer name shrink from now on."""
        self.aligned = True
        self._change()

    def keep(self, rule: Rule, at: int, *, wrong: bool) -> None:
        """From now on `rule` leaves lexeme `at` alone. `wrong`: the target kept the source there, which counts
        against the rule: it goes when it is wrong more than half as often as right."""
        rule.kept.add(at)
        self._change(at=at)
        if wrong:
            rule.wrong += 1
            if 2 * rule.wrong > rule.right + (2 if rule.seeded else 0):
                self.remove(rule)

    def _change(self, lexeme: str = "", at: int = -1) -> None:
        self._changes.append((lexeme, at))
        self.version += 1

    def changed(self, since: int, first: int, last: int) -> bool:
        """What `rewrite` says of the lexemes [first, last) may have changed since that version."""
        if self.version - since > MOST_CHANGES:
            return True
        places = self._source.places
        for lexeme, at in self._changes[since:]:
            if not lexeme:
                if at < 0 or first <= at < last:
                    return True
                continue
            stands = places.get(lexeme, ())
            found = bisect_left(stands, first)
            if found < len(stands) and stands[found] < last:
                return True
        return False

    def matching(self, at: int) -> Rule | None:
        """The rule that applies at a lexeme: the longest pattern, and of two the one bound to its left."""
        for rule in self._by_first.get(self._source.lexemes[at], ()):
            if rule.fits(self._source, at):
                return rule
        return None

    def _sites(self, first: int, last: int, extra: Rule | None) -> list[int]:
        """The lexemes among [first, last) at which a rule might apply, in order."""
        heads = self._by_first
        if extra is not None:
            heads = {**heads, extra.pattern[0]: []}
        if DENSE * len(heads) > last - first:
            return [at for at, lexeme in enumerate(self._source.lexemes[first:last], first) if lexeme in heads]
        found: list[int] = []
        for lexeme in heads:
            places = self._source.places.get(lexeme)
            if places is not None:
                begin = bisect_left(places, first)
                found += places[begin : bisect_left(places, last, begin)]
        found.sort()
        return found

    def rewrite(self, first: int, last: int, extra: Rule | None = None) -> list[Piece]:
        """The source lexemes [first, last) under the rules; `extra` goes before them."""
        source = self._source
        lexemes, starts = source.lexemes, source.starts
        pieces: list[Piece] = []
        at = copied = first
        for index in self._sites(first, last, extra):
            if index < at:
                continue
            rule = extra if extra is not None and extra.fits(source, index) else self.matching(index)
            if rule is None:
                continue
            if copied < index:
                pieces.append(Piece(source.text[starts[copied] : starts[index]], starts[copied], starts[index]))
            at = copied = min(index + len(rule.pattern), len(lexemes))
            pieces.append(Piece(rule.text, starts[index], starts[at], rule, index))
            if self.aligned and at < last and lexemes[at][:2] == "  ":
                grown = len(rule.text) - (starts[at] - starts[index])
                blanks = " " * max(len(lexemes[at]) - grown, 1)
                pieces.append(Piece(blanks, starts[at], starts[at + 1]))
                at = copied = at + 1
        if copied < last:
            pieces.append(Piece(source.text[starts[copied] : starts[last]], starts[copied], starts[last]))
        return pieces


def as_pattern(text: str) -> tuple[str, ...]:
    """Byte text -> the lexemes that a rule looks for."""
    return tuple(LEXEME.findall(text))
