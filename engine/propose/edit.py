"""Edit-aware drafting: the old text is the draft, aligned with what the model has written, its substitutions applied
ahead.

An edit is a copy with exceptions. The proposer holds the text that the answer would be if nothing changed, follows
the copy, finds the place again after every exception, and learns renames, insertions, deletions and moved indentation
from the first case. See `edit_cursor.py` for how; the method is this project's own. Whatever it drafts, the target
decides; no input makes it raise.
"""

from bisect import bisect_right
from collections.abc import Iterable
from collections.abc import Sequence as Tokens
from copy import copy
from dataclasses import dataclass

import torch

from specd.engine.draft import EMPTY, Committed, Draft, Sequence
from specd.engine.propose.edit_cursor import Cursor
from specd.engine.propose.edit_guess import Guess, Words
from specd.engine.propose.edit_inside import Inside
from specd.engine.propose.edit_recall import Recall
from specd.engine.propose.edit_rules import MOST_RULES, Rule, RuleBook, as_pattern
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import TextTokenizer, TokenText, to_bytes
from specd.engine.propose.tree import Continuation

PROMPT_TEXT = 200_000  # bytes of the prompt whose words are read
LONGEST = (16, 32, 64, 128, 1 << 30)  # tokens that a guess of each class drafts
BRANCHES = 6  # guesses in a tree
LASTING = (6, 40, 128)  # tokens that a copy has held: evidence 1, 2, 3 from there on, 0 below
WORTH = (0.5, 1.5, 4.0, 12.0)  # tokens that a guess is expected to win: evidence 5, 6, ... from there on, 4 below


@dataclass(slots=True)
class _Following:
    """How far a row was followed, and what was learnt from it."""

    cursor: Cursor
    recall: Recall
    followed: int = -1  # tokens of the row that the cursor has seen; -1: not even the prompt
    guessed: tuple[int, int, tuple[Guess, ...]] = (-1, 0, ())  # (length of the row, width asked for, guesses)
    prompt: int = 0


class EditProposer:
    """Drafts the rest of `predicted` as the edit so far would have it.

    predicted: the whole answer if nothing changed (fence, region, fence). pairs: substitutions that the instruction
    names. end_ids: tokens that end the answer. known: tokens in which most of `predicted` may stand, such as the
    prompt: then it is not tokenized again, which is most of the time that this takes. Any tokenizer whose tokens are
    runs of bytes will do. Where nothing is predicted, it drafts what the prompt and the answer itself say again; how
    often that is right says nothing about edits, so it has another name then: `recall`.
    """

    name = "edit"

    def __init__(
        self,
        tokenizer: TextTokenizer,
        predicted: str,
        pairs: Iterable[tuple[str, str]] = (),
        *,
        max_k: int = 128,
        end_ids: Tokens[int] = (),
        known: Tokens[int] = (),
    ) -> None:
        if max_k < 1:
            raise ValueError(f"max_k must be 1 or more, not {max_k}")
        self.max_k = max_k
        if not predicted:
            self.name = "recall"
        self._texts = TokenText(tokenizer)
        self._source = Source(predicted, self._texts, known)
        self._pairs = [(as_pattern(to_bytes(old)), to_bytes(new)) for old, new in pairs if old and "\n" not in old][
            :MOST_RULES
        ]
        self._inside = Inside(self._source, self._pairs)
        self._end_ids = tuple(end_ids)
        self._start()

    def propose(self, seq: Sequence, k: int) -> Draft:
        """A chain of at most min(k, max_k) tokens; none where there is nothing to go by.

        Evidence 0 to 3: a copy goes on that has held for so long (LASTING); 4 to 8: a guess where it goes on (WORTH).
        """
        k = min(k, self.max_k)
        self._follow(seq)
        if k <= 0:
            return EMPTY
        cursor = self.state.cursor
        if self._is_guess(seq):
            self._guess(seq, 1)
        if cursor.trial is not None and not cursor.index:
            k = min(k, LONGEST[bisect_right(WORTH, cursor.trial.gain)])
        if cursor.plan is not None:
            if not cursor.plan.grow(cursor.index + k) and cursor.lost is None:
                cursor.plan.prepare(cursor.index + 2 * k)
            return Draft.chain(cursor.plan.tokens[cursor.index : cursor.index + k], self._evidence())
        if cursor.trial is not None and cursor.trial.tokens:
            return Draft.chain(cursor.trial.tokens[:k], self._evidence())
        return EMPTY

    def propose_tree(self, seq: Sequence, budget: int) -> Draft:
        """At most min(budget, max_k) tokens: the best guesses as branches where the copy was lost, the best one
        longest; a chain where it was not."""
        budget = min(budget, self.max_k)
        self._follow(seq)
        if not self._is_guess(seq) or budget < 2:
            return self.propose(seq, budget)
        guesses = self._guess(seq, BRANCHES)
        share = max(budget // (2 * max(len(guesses) - 1, 1)), 1)
        tree = _Tree(budget)
        tree.reserve(len(guesses) - 1, min(share, budget // 4))
        for number, guess in enumerate(guesses):
            tree.add(_tokens_of(guess, budget), main=number == 0)
        return tree.draft(self._evidence())

    def continuations(self, seq: Sequence, k: int) -> list[Continuation]:
        """The best guesses where the copy was lost, each with its own evidence; else the one that it goes on."""
        k = min(k, self.max_k)
        self._follow(seq)
        if k <= 0:
            return []
        if not self._is_guess(seq):
            draft = self.propose(seq, k)
            return [Continuation(draft.tokens.tolist(), draft.evidence)] if draft.size else []
        guesses = self._guess(seq, BRANCHES)
        return [Continuation(row, _worth(guess)) for guess in guesses if (row := _tokens_of(guess, k))]

    def observe(self, seq: Sequence, committed: Committed) -> None:
        """Take over a prompt. What a step adds can wait: see `meanwhile`."""
        if not committed.tokens:
            self._follow(seq)

    def meanwhile(self, seq: Sequence) -> None:
        """Follow what the row gained, whoever drafted it; the next draft does it where nobody calls this."""
        self._follow(seq)

    def conclude(self, seq: Sequence) -> None:
        """Nothing that it knows is for other jobs."""

    def truncate(self, length: int) -> None:
        """Forget positions >= length: what is left of the answer is followed anew at the next call."""
        if length < self.state.followed:
            self._start()

    def branch(self) -> object:
        """See Foresighted. A branch is for longer rows: of guesses for this one it keeps only what it follows."""
        state = self.state
        return _Following(state.cursor.branch(), copy(state.recall), state.followed, prompt=state.prompt)

    def foretell(self, seq: Sequence, k: int) -> list[list[int]]:
        """See Foresighted: the copy, or the best guess where it goes on."""
        cursor = self.state.cursor
        if self.state.followed != len(seq.tokens):
            return []
        if cursor.plan is None:
            return [cursor.trial.tokens[:k]] if cursor.trial is not None and cursor.trial.tokens else []
        cursor = cursor.branch()
        assert cursor.plan is not None
        cursor.plan.grow(cursor.index + k)
        return [cursor.plan.tokens[cursor.index : cursor.index + k].tolist()]

    def _start(self) -> None:
        rules = RuleBook(self._source)
        for pattern, text in self._pairs:
            rules.add(Rule(pattern, text, seeded=True))
        self.state = _Following(
            Cursor(self._source, rules, self._texts, Words(), self._end_ids, self._inside), Recall()
        )

    def _follow(self, seq: Sequence) -> None:
        row, state = seq.tokens, self.state
        if state.followed == len(row):
            return
        if state.followed > len(row):
            self._start()
            state = self.state
        if state.followed < 0:
            state.prompt = state.followed = min(seq.prompt_length, len(row))
            state.cursor.words = Words(self._texts.join(row[: state.prompt])[-PROMPT_TEXT:], self._source)
            self._source.index_lines()
            state.recall.read(row)
        if state.followed < len(row):
            state.cursor.advance(row, state.followed, state.prompt)
            state.followed = len(row)
            state.recall.read(row)

    def _evidence(self) -> int:
        """The class of the draft: see `propose`."""
        cursor = self.state.cursor
        if cursor.trial is not None:
            return _worth(cursor.trial)
        return bisect_right(LASTING, cursor.held)

    def _is_guess(self, seq: Sequence) -> bool:
        """The copy was lost, and what goes on it is to be guessed, or was guessed for this very row."""
        state = self.state
        return state.cursor.lost is not None and (state.cursor.plan is None or state.guessed[0] == len(seq.tokens))

    def _guess(self, seq: Sequence, width: int) -> tuple[Guess, ...]:
        """The best guesses, made once for a row: who asks twice is told the same."""
        row, state = seq.tokens, self.state
        length, known, guesses = state.guessed
        if length != len(row) or known < width:
            state.cursor.plan = None
            guesses = tuple(state.cursor.guess(row, state.prompt, state.recall.find(row), width))
            state.guessed = (len(row), width, guesses)
        return guesses[:width]


def _worth(guess: Guess) -> int:
    """The evidence for a guess."""
    return len(LASTING) + 1 + bisect_right(WORTH, guess.gain)


def _tokens_of(guess: Guess, count: int) -> list[int]:
    if guess.plan is None:
        return (guess.tokens or [])[:count]
    guess.plan.grow(count)
    return guess.plan.tokens[:count].tolist()


class _Tree:
    """Rows of tokens merged by their beginnings. Parents stand before children, as a Draft wants it."""

    def __init__(self, budget: int) -> None:
        self._free = budget
        self._reserved: list[int] = []
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._children: dict[tuple[int, int], int] = {}

    def reserve(self, branches: int, count: int) -> None:
        """Keep `count` tokens of the budget for each of so many later branches."""
        self._reserved = [count] * branches

    def add(self, row: list[int], *, main: bool) -> None:
        """A branch; the main one takes what is not reserved."""
        room = max(self._free - sum(self._reserved), 0) if main else min(self._reserved.pop(0), self._free)
        parent = -1
        for token in row:
            node = self._children.get((parent, token))
            if node is None:
                if room <= 0:
                    return
                room -= 1
                self._free -= 1
                node = self._children[parent, token] = len(self._tokens)
                self._tokens.append(token)
                self._parents.append(parent)
            parent = node

    def draft(self, evidence: int) -> Draft:
        if not self._tokens:
            return EMPTY
        return Draft(
            torch.tensor(self._tokens, dtype=torch.int32),
            torch.tensor(self._parents, dtype=torch.int32),
            evidence=evidence,
        )
