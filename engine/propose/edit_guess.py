"""A guess where the copy goes on, and how much it is worth: the shared vocabulary of the modules that make guesses."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from math import exp, log1p
from operator import attrgetter, mul

from specd.engine.propose.edit_plan import Plan
from specd.engine.propose.edit_rules import Rule
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import LEXEME, TokenText, is_word
from specd.engine.propose.edit_weights import CAP, WEIGHTS

WINDOW = 200  # bytes of output that guesses are made from
MOST_SINCE = 4096  # bytes kept of what was written since a divergence
MOST_OUT = 80  # lexemes of the output's end that are kept
ALIKE = 3  # bytes: guesses that go on with the same ones back each other
PHRASES = 12  # places of a lexeme in the prompt that are looked at, latest first
PHRASE = 6  # lexemes that are taken from one
ANSWER_FENCE = 40  # the fence that opens the answer stands so close to the prompt's end


@dataclass
class Lost:
    """A divergence: the copy stopped before the source byte `offset`, and `since` was written instead."""

    offset: int
    before: str  # the output's end before that, WINDOW bytes at least if there were so many
    since: str
    shift: int = 0  # blanks that the copy's indentation was moved by
    rule: Rule | None = None  # the rule whose text was refused here
    rest: str = ""  # what a rule whose text was begun would still have written
    anchors: list[int] = field(default_factory=list)  # lexemes where the copy stopped before it jumped elsewhere
    refused: dict[tuple[int, str], int] = field(default_factory=dict)  # guess -> times it was wrong
    steps: int = 0
    undo: int = -1  # source byte of the divergence just before, if it may have been settled wrongly
    _out: list[str] | None = field(default=None, init=False)
    _new: list[str] = field(default_factory=list, init=False)  # lexemes of `since`, or of the end of it
    _count: int = field(default=0, init=False)

    @property
    def out(self) -> list[str]:
        """Lexemes of the output's end."""
        if self._out is None:
            self._out = LEXEME.findall((self.before + self.since)[-WINDOW:])
            self._new = LEXEME.findall(self.since)
            self._count = len(self._new)
        return self._out

    @property
    def count(self) -> int:
        """How many lexemes `since` has."""
        return self._count if self.out else 0

    def branch(self) -> "Lost":
        """A second one that begins like it."""
        other = copy(self)
        other.refused = self.refused.copy()
        return other

    def write(self, text: str) -> None:
        """One more step wrote `text`, none of it a copy from where a guess had said."""
        self.steps += 1
        if not text:
            return
        self.since = (self.since + text)[-MOST_SINCE:]
        if self._out is not None:  # the last lexeme may go on
            self._out = self._out[-MOST_OUT:-1] + LEXEME.findall("".join(self._out[-1:]) + text)
            last = self._new[-1:]
            self._new = LEXEME.findall("".join(last) + text)
            self._count += len(self._new) - len(last)


class Guess:
    """Go on at source byte `offset`, behind the text `lead`; or with `tokens`, for what is not in the source (offset
    -1).

    `gain`: tokens, up to CAP, that it is expected to win.
    """

    __slots__ = (
        "backing",
        "extra",
        "features",
        "gain",
        "kind",
        "lead",
        "next",
        "offset",
        "plan",
        "score",
        "shift",
        "tokens",
    )

    def __init__(
        self,
        kind: str,
        offset: int,
        features: tuple[float, ...],
        *,
        shift: int = 0,
        lead: str = "",
        extra: Rule | None = None,
        tokens: list[int] | None = None,
    ) -> None:
        self.kind, self.offset, self.features = kind, offset, features
        self.shift, self.lead, self.extra, self.tokens = shift, lead, extra, tokens
        weights = WEIGHTS[kind]
        if len(features) != len(weights.features):
            raise ValueError(f"a guess of kind {kind} has {len(weights.features)} features, not {len(features)}")
        self.score = weights.bias + sum(map(mul, weights.features, features))
        self.gain = CAP / (1.0 + exp(-self.score))
        self.plan: Plan | None = None
        self.next = ""
        self.backing = 0.0  # log1p of the gain of the best guess of another kind that goes on alike

    @property
    def key(self) -> tuple[int, str]:
        """Guesses with one key say the same."""
        return self.offset, self.lead

    def shift_score(self, by: float) -> None:
        """Evidence that every kind of guess has."""
        self.score += by
        self.gain = CAP / (1.0 + exp(-self.score))

    def disagree(self) -> None:
        """The tokens written so far are not those that would lead to it."""
        self.shift_score(WEIGHTS[self.kind].disagrees)


_GAIN = attrgetter("gain")


class Words:
    """The prompt as lexemes: its words, those of its instruction, and what follows what in it."""

    def __init__(self, prompt: str = "", source: Source | None = None) -> None:
        places = {} if source is None else source.places
        self.lexemes: list[str] = LEXEME.findall(prompt)
        self._places: dict[str, list[int]] = {}
        for index, lexeme in enumerate(self.lexemes):
            if lexeme in self._places:
                self._places[lexeme].append(index)
            else:
                self._places[lexeme] = [index]
        self.known = self._places.keys()
        tail = prompt[-3000:]
        fence = tail.rfind("```")
        if fence >= 0 and len(tail) - fence < ANSWER_FENCE:
            tail = tail[:fence]
            fence = tail.rfind("```")
        tail = tail[fence + 3 :] if fence >= 0 else tail[-800:]
        said = [word for word in LEXEME.findall(tail) if is_word(word) and len(word) > 2]
        self.said = {word for word in said if len(places.get(word, ())) <= 20}
        self.new = [word for word in dict.fromkeys(reversed(said)) if word not in places]

    def follow(self, out: list[str]) -> tuple[str, int, int, float] | None:
        """What most often follows the last lexemes of the output: (text, lexemes matched, places, share of them)."""
        places = self._places.get(out[-1], ())[-PHRASES:] if out else ()
        if not places:
            return None
        lexemes, depth = self.lexemes, 1
        while depth < min(3, len(out)):
            deeper = [place for place in places if place >= depth and lexemes[place - depth] == out[-1 - depth]]
            if not deeper:
                break
            places, depth = deeper, depth + 1
        latest: dict[str, int] = {}
        counts: dict[str, int] = {}
        for place in places:
            lexeme = lexemes[place + 1] if place + 1 < len(lexemes) else ""
            latest[lexeme] = place
            counts[lexeme] = counts.get(lexeme, 0) + 1
        best = max(counts, key=lambda lexeme: (counts[lexeme], latest[lexeme]))
        place = latest[best]
        text = "".join(lexemes[place + 1 : place + 1 + PHRASE])
        return text, depth, len(places), counts[best] / len(places)

    def mentions(self, lexemes: Iterable[str]) -> float:
        """1.0 if the instruction holds one of the lexemes, else 0.0."""
        return 0.0 if self.said.isdisjoint(lexemes) else 1.0


def rank(guesses: list[Guess], lost: Lost, source: Source, texts: TokenText) -> list[Guess]:
    """Best first, after guesses that go on alike have backed each other."""
    groups: dict[str, list[Guess]] = {}
    text = source.text
    for guess in guesses:
        if guess.tokens is None:
            offset = guess.offset
            guess.next = (guess.lead or text[offset : offset + ALIKE])[:ALIKE]
        if guess.next in groups:
            groups[guess.next].append(guess)
        else:
            groups[guess.next] = [guess]
    for following, group in groups.items():
        if len(group) < 2 or not following:
            continue
        first = max(group, key=_GAIN)
        others = [guess.gain for guess in group if guess.kind != first.kind]
        second, best = log1p(max(others, default=0.0)), log1p(first.gain)
        for guess in group:
            guess.backing = second if guess.kind == first.kind else best
            guess.shift_score(WEIGHTS[guess.kind].votes * guess.backing)
    if lost.refused:
        for guess in guesses:
            times = lost.refused.get(guess.key)
            if times:
                guess.shift_score(WEIGHTS[guess.kind].refused * log1p(times))
    return sorted(guesses, key=_GAIN, reverse=True)
