"""The proposers that a replay can run, by name: the package's own and the rivals they are measured against."""

from collections.abc import Callable

import torch
from replay_cases import Case

from specd.daemon.rewrite.pairs import read_pairs
from specd.engine.draft import Committed, Draft, Proposer, Sequence
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.ngram import NgramProposer
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.suffix import SuffixProposer
from specd.engine.propose.tree import TreeProposer
from specd.engine.tokenizer import Tokenizer

WINDOW = 400  # source tokens ahead of the pointer in which `predicted` looks for its place again


class PredictedProposer:
    """Predicted output as vendors describe it: a pointer into the old text, moved behind the nearest place that holds
    the last two emitted tokens once it is lost. None publishes its rule; this is the plain one."""

    name = "predicted"

    def __init__(self, predicted: list[int], k: int) -> None:
        self.max_k = k
        self._source = predicted
        self._pointer = 0
        self._lost = False
        self._seen: int | None = None

    def propose(self, seq: Sequence, k: int) -> Draft:
        drafted = [] if self._lost else self._source[self._pointer : self._pointer + min(k, self.max_k)]
        return Draft(torch.tensor(drafted, dtype=torch.int32))

    def observe(self, seq: Sequence, committed: Committed) -> None:
        if self._seen is None:
            self._seen = seq.prompt_length
        for end in range(self._seen + 1, len(seq.tokens) + 1):
            token = seq.tokens[end - 1]
            if not self._lost and self._pointer < len(self._source) and self._source[self._pointer] == token:
                self._pointer += 1
                continue
            self._lost = True
            pair = seq.tokens[max(end - 2, seq.prompt_length) : end]
            for at in range(self._pointer, min(self._pointer + WINDOW, len(self._source) - 1)):
                if self._source[at : at + 2] == pair:
                    self._pointer, self._lost = at + 2, False
                    break
        self._seen = len(seq.tokens)

    def truncate(self, length: int) -> None:
        raise NotImplementedError("a replay never takes tokens back")


def _edit(case: Case, tokenizer: Tokenizer, k: int) -> Proposer:
    pairs, ends = read_pairs(case.instruction), (case.end_token,)
    return EditProposer(tokenizer, case.predicted, pairs, max_k=k, end_ids=ends, known=case.prompt)


def _edit_without_pairs(case: Case, tokenizer: Tokenizer, k: int) -> Proposer:
    return EditProposer(tokenizer, case.predicted, max_k=k, end_ids=(case.end_token,), known=case.prompt)


PROPOSERS: dict[str, Callable[[Case, Tokenizer, int], Proposer | None]] = {
    "plain": lambda case, tokenizer, k: None,
    "ngram": lambda case, tokenizer, k: NgramProposer(k),
    "ngram8": lambda case, tokenizer, k: NgramProposer(k, max_n=8),  # the longest match of up to 8 tokens
    "suffix": lambda case, tokenizer, k: SuffixProposer(k),
    "predicted": lambda case, tokenizer, k: PredictedProposer([*tokenizer.encode(case.predicted), case.end_token], k),
    "ngram-tree": lambda case, tokenizer, k: TreeProposer([NgramBranches(k)], k),
    "edit": _edit,
    "edit-tree": lambda case, tokenizer, k: TreeProposer([_edit(case, tokenizer, k)], k),
    "edit+ngram-tree": lambda case, tokenizer, k: TreeProposer([_edit(case, tokenizer, k), NgramBranches(k)], k),
    "edit-nopairs": _edit_without_pairs,
}
