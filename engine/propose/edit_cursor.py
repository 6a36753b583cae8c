"""Following an answer along the text it edits: the place of the copy, and what to do when it leaves it.

In sync, a plan holds the tokens of the rewritten rest and the cursor counts those that came. At a token that is not
the plan's the *text* decides: the same text in other tokens is no divergence. After one, each step tries the best
guess where the copy goes on; one that holds for about a word is confirmed, and what was written instead of the source
between is learnt from.
"""

from collections.abc import Sequence as Tokens
from copy import copy

from specd.engine.propose.edit_block import Rewriter, behind
from specd.engine.propose.edit_find import find_guesses
from specd.engine.propose.edit_guess import Guess, Lost, Words
from specd.engine.propose.edit_inside import Inside
from specd.engine.propose.edit_learn import Seen, learn
from specd.engine.propose.edit_leave import diverge
from specd.engine.propose.edit_plan import Plan
from specd.engine.propose.edit_recall import Recalled
from specd.engine.propose.edit_rules import Piece, Rule, RuleBook, as_pattern
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import TokenText, is_word

CONTEXT = 24  # tokens of the output that a plan is joined to
MOST_PLANS = 4  # guesses that are tokenized in one step
MOST_LEARNT = 400  # bytes written between leaving the source and coming back that a rule is sought in
FAR = 60  # lexemes: a jump over more remembers where it came from
ANCHORS = 3
SOON = 8  # tokens: a divergence so close behind another may show that this was settled wrongly


class Cursor:
    """`plan` and `index`: tokens to draft next are plan.tokens[index:]. `lost`: the divergence that is not settled
    yet."""

    def __init__(
        self,
        source: Source,
        rules: RuleBook,
        texts: TokenText,
        words: Words,
        end_ids: Tokens[int],
        inside: Inside,
    ) -> None:
        self.source, self.rules, self.words, self._inside = source, rules, words, inside
        self._texts, self._end_ids = texts, end_ids
        self._rewriter = Rewriter(source, rules, texts)
        self._rewriter.prepare()
        self._seen: Seen = set()
        self._anchors: list[int] = []
        self._settled: tuple[int, Rule | None] = (-1, None)  # the divergence settled last, and what it taught
        self.lost: Lost | None = None
        self.trial: Guess | None = None
        self.others: list[Guess] = []  # guesses drafted beside the trial, in a tree
        self.plan: Plan | None = Plan(self._rewriter, self._rewriter.rest(0, 0), 0, (), end_ids=end_ids)
        self.index = 0
        self.held = 0  # tokens copied since the last divergence

    def branch(self) -> "Cursor":
        """A second cursor at the same place, to follow what may come; of what both know, nothing that one learns
        reaches the other."""
        other = copy(self)
        other.rules, other._seen = self.rules.branch(), self._seen.copy()
        rewriter = other._rewriter = self._rewriter.branch(other.rules)
        if self.lost is not None:
            other.lost = self.lost.branch()
        branches = {id(plan): plan.branch(rewriter) for plan in self._plans()}
        other.plan = None if self.plan is None else branches[id(self.plan)]
        other.others = []
        for guess in [*([] if self.trial is None else [self.trial]), *self.others]:
            twin = copy(guess)
            twin.plan = None if guess.plan is None else branches[id(guess.plan)]
            if guess is self.trial:
                other.trial = twin
            else:
                other.others.append(twin)
        return other

    def _plans(self) -> list[Plan]:
        guesses = self.others if self.trial is None else [self.trial, *self.others]
        return [plan for plan in (self.plan, *(guess.plan for guess in guesses)) if plan is not None]

    def advance(self, row: list[int], start: int, prompt: int) -> None:
        """The row gained row[start:]; `prompt`: where the answer begins in it."""
        if self.others and start < len(row):
            self._choose(row, start)
        while start < len(row):
            plan = self.plan
            if plan is None:
                if self.lost is not None:
                    self.lost.write(self._texts.join(row[start:]))
                self.trial = None
                return
            plan.grow(self.index + len(row) - start)
            gained = row[start:]
            ahead = plan.tokens[self.index : self.index + len(gained)].tolist()
            same = len(gained)
            if ahead != gained:
                same -= 1  # most often it is the last one that differs
                if ahead[:same] != gained[:same]:
                    same = next((i for i, (a, b) in enumerate(zip(ahead, gained, strict=False)) if a != b), len(ahead))
            self.index += same
            start += same
            self.held += same
            if start < len(row):
                self._leave(row, start, prompt)
                start += 1
        if self.lost is not None and self.plan is not None and self._is_confirmed():
            version = self.rules.version
            self._confirm()
            if self.rules.version != version:
                self._renew(row[max(prompt, len(row) - CONTEXT) :])

    def guess(self, row: list[int], prompt: int, recalled: list[Recalled], width: int = 1) -> list[Guess]:
        """While lost: make the best guess the plan and return up to `width` guesses, best first."""
        lost = self.lost
        if lost is None or self.plan is not None:
            return []
        line = row[max(prompt, len(row) - CONTEXT) :]
        chosen: list[Guess] = []
        planned = 0
        for guess in find_guesses(self.source, self.rules, lost, self.words, row, recalled, self._texts, self._inside):
            if len(chosen) >= width and (guess.gain <= chosen[width - 1].gain or planned >= MOST_PLANS + width):
                break
            if guess.tokens is None:
                planned += 1
                guess.plan = self._plan_of(guess, line)
                if not guess.plan.agrees:
                    guess.disagree()
            chosen.append(guess)
            chosen.sort(key=lambda each: -each.gain)
        self.others = chosen[1:width]
        self.trial = chosen[0] if chosen else None
        if self.trial is not None and self.trial.plan is not None:
            self.plan, self.index = self.trial.plan, 0
        return chosen[:width]

    def _plan_of(self, guess: Guess, line: Tokens[int]) -> Plan:
        pieces = self._rewriter.rest(guess.offset, guess.shift, guess.extra)
        if guess.lead:
            pieces.insert(0, Piece(guess.lead, guess.offset, guess.offset))
        unit = self.source.unit_at(guess.offset)
        return Plan(self._rewriter, pieces, unit, line, shift=guess.shift, extra=guess.extra, end_ids=self._end_ids)

    def _choose(self, row: list[int], start: int) -> None:
        """Of the guesses that a tree drafted, follow the one that the target followed furthest."""

        def length(guess: Guess) -> int:
            tokens = guess.tokens or []
            if guess.plan is not None:
                guess.plan.grow(len(row) - start)
                tokens = guess.plan.tokens[: len(row) - start].tolist()
            return next(
                (i for i, (a, b) in enumerate(zip(tokens, row[start:], strict=False)) if a != b), len(row) - start
            )

        best = max([*([self.trial] if self.trial else []), *self.others], key=length)
        self.others = []
        if best is not self.trial:
            self.trial, self.plan, self.index = best, best.plan, 0

    def _leave(self, row: list[int], at: int, prompt: int) -> None:
        """The token row[at] is not the plan's next."""
        plan = self.plan
        assert plan is not None
        written = self._texts[row[at]]
        rest, unit = plan.ahead(self.index, len(written))
        ahead = "".join([piece.text for piece in rest])
        if written and ahead.startswith(written):  # the same text in other tokens
            line = row[max(prompt, at + 1 - CONTEXT) : at + 1]
            self._go_on(behind(rest, len(written)), unit, line, plan.shift, plan.extra)
            return
        if self.lost is not None:
            if not self._is_confirmed():
                if self.trial is not None:
                    key = self.trial.key
                    self.lost.refused[key] = self.lost.refused.get(key, 0) + 1
                self.lost.write(self._texts.join(plan.tokens[: self.index]) + written)
                self.plan = self.trial = None
                return
            self._confirm()
        plan.credit(self.index)
        self.held = 0
        before = self._texts.join(row[max(prompt, at - 2 * CONTEXT - 16) : at])
        self.lost = diverge(self.source, self.rules, rest, before, written, plan.shift, self._anchors)
        if self.index <= SOON:
            self.lost.undo = self._settled[0]
        self.plan = self.trial = None

    def _renew(self, line: Tokens[int]) -> None:
        """The rules have changed: plan what comes next anew."""
        plan = self.plan
        assert plan is not None
        rest = plan.ahead(self.index, 1)[0]
        if rest and rest[0].text == self.source.text[rest[0].start : rest[0].end]:
            plan.credit(self.index)
            offset = rest[0].start
            self._go_on(self._rewriter.rest(offset, plan.shift), self.source.unit_at(offset), line, plan.shift, None)

    def _go_on(self, rest: list[Piece], unit: int, line: Tokens[int], shift: int, extra: Rule | None) -> None:
        """Plan the copy from `rest` on, which ends with `unit`."""
        self.plan = Plan(self._rewriter, rest, unit, line, shift=shift, extra=extra, end_ids=self._end_ids)
        self.index = 0

    def _is_confirmed(self) -> bool:
        """The guess held for about a word of the source, or two behind the place that was left."""
        if self.plan is None or self.lost is None or self.trial is None:
            return True
        if not self.index:
            return False
        copied = self._texts.join(self.plan.tokens[: self.index])[len(self.trial.lead) :]
        if self.index >= 4 and copied and not self.trial.lead:
            return True
        return sum(map(is_word, as_pattern(copied))) >= (2 if self.trial.offset < self.lost.offset else 1)

    def _confirm(self) -> None:
        """The trial is where the copy goes on."""
        lost, trial, source = self.lost, self.trial, self.source
        self.lost = self.trial = None
        if lost is None or trial is None:
            return
        if trial.kind == "undo" and self._settled[1] is not None:
            self.rules.remove(self._settled[1])
        rule = None
        first, last = source.lexeme_at(lost.offset), source.lexeme_at(trial.offset)
        if trial.extra is not None:
            rule = trial.extra
            self.rules.add(rule)
        elif first <= last <= first + FAR and source.starts[last] == trial.offset and len(lost.since) < MOST_LEARNT:
            written = lost.since + trial.lead
            ahead = source.lexemes[last] if last < len(source) else ""
            if is_word(ahead) and (written[-1:].isalnum() or written[-1:] == "_"):
                written, last = written + ahead, last + 1  # a word that got a new beginning
            rule = learn(self.rules, source, first, last, written, self._seen)
        self._settled = (lost.offset, rule)
        self._anchors = [anchor for anchor in self._anchors if anchor != last]
        if not 0 <= last - first <= FAR:
            self._anchors = [*self._anchors, first][-ANCHORS:]
