"""What a proposer is: something that guesses the next tokens of a sequence, right or wrong, for the target to verify.

A Draft is a chain or a tree of tokens after the newest committed one. Nothing here decides which tokens are accepted:
see verify.py.
"""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@dataclass
class Sequence:
    """All committed tokens, the prompt's first. The newest is not yet in the target's cache: a step begins with it."""

    tokens: list[int]
    prompt_length: int

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def output(self) -> list[int]:
        return self.tokens[self.prompt_length :]


@dataclass(frozen=True)
class Draft:
    """k guessed tokens; the empty draft is valid and means a plain decode step."""

    tokens: Tensor  # [k] int32, parents before children
    parents: Tensor | None = None  # [k] int32 index into tokens, -1 = the newest committed token; None means a chain
    probs: Tensor | None = None  # [k, V] float32, the law each token was sampled from; None = a point mass
    evidence: int = 0  # the proposer's own class of this draft; drafts of one class are about equally often right
    chances: tuple[float, ...] | None = None  # [k] falling, that each token is accepted, where the proposer knows
    words: npt.NDArray[np.int32] | None = field(default=None, compare=False, repr=False)  # tokens, where on the host

    @property
    def size(self) -> int:
        return self.tokens.numel()

    @property
    def depth(self) -> int:
        """The most tokens that could be accepted: the longest path."""
        if self.parents is None:
            return self.size
        depths: list[int] = []
        for parent in self.parents.tolist():
            depths.append(1 + (depths[parent] if parent >= 0 else 0))
        return max(depths, default=0)

    def cut(self, k: int) -> "Draft":
        """The first k tokens; of a tree too, since parents stand before their children."""
        if k >= self.size:
            return self
        parents = None if self.parents is None else self.parents[:k]
        probs = None if self.probs is None else self.probs[:k]
        chances = None if self.chances is None else self.chances[:k]
        words = None if self.words is None else self.words[:k]
        return Draft(self.tokens[:k], parents, probs, self.evidence, chances, words)

    def on_host(self) -> npt.NDArray[np.int32]:
        """[k] the tokens. Waits for the device where they are there."""
        words: npt.NDArray[np.int32] = self.tokens.cpu().numpy() if self.words is None else self.words
        return words

    @staticmethod
    def chain(tokens: "list[int] | array[int]", evidence: int = 0) -> "Draft":
        """An array of 32-bit words is not copied, so it must stay as it is; torch reads a list number by number."""
        if not tokens:
            return Draft(torch.empty(0, dtype=torch.int32), evidence=evidence)
        words = np.frombuffer(array("i", tokens) if isinstance(tokens, list) else tokens, dtype=np.int32)
        return Draft(torch.from_numpy(words), evidence=evidence, words=words)


EMPTY = Draft(torch.empty(0, dtype=torch.int32))


@dataclass(frozen=True)
class Committed:
    """What one step appended to the sequence.

    taps: [n, T, H] outputs of the target's tapped layers at the n positions that entered its cache since the last
    Committed (the prompt's at first, then the accepted rows'); None where nobody asked for taps. taps_start: the
    absolute position of the first of them.
    """

    tokens: list[int]
    proposer: str | None = None  # who drafted; None = nobody
    drafted: int = 0
    accepted: int = 0
    taps: Tensor | None = field(default=None, compare=False)
    taps_start: int = 0


@runtime_checkable
class Proposer(Protocol):
    """Drafts tokens. Every proposer observes every step, whoever drafted it, so that any of them can draft the next.

    Nothing waits for what a proposer does while the device works. One that has a method `meanwhile(seq)` is called
    then, before what follows seq is known: for work that its next draft would do otherwise. Not every loop calls it.
    After the last step `conclude(seq)` is called in its place, where there is one: no draft follows, and what is learnt
    is for other jobs.
    """

    name: str
    max_k: int

    def propose(self, seq: Sequence, k: int) -> Draft:
        """A draft of at most k tokens after seq's newest; it may be shorter or empty."""

    def observe(self, seq: Sequence, committed: Committed) -> None:
        """seq has grown by committed.tokens. While the prompt is prefilled seq is the prompt and
        nothing is committed, though taps may be; the first draft is asked for before any token is committed."""

    def truncate(self, length: int) -> None:
        """Forgets what it knows of positions >= length. Absolute and idempotent."""


class Foresighted(Protocol):
    """A proposer that can draft for a row that may never come, and be then as if it had not.

    state: all that it knows of the row; the one that is read is put back later, or a branch's. It changes with the
    proposer, so of one that is put aside a branch is used meanwhile.
    """

    state: Any

    def branch(self) -> Any:
        """A second state that begins like the present one: nothing that is done with it reaches that."""

    def foretell(self, seq: Sequence, k: int) -> list[list[int]]:
        """Rows of up to k tokens that it drafted after seq, or would have with more room, the likeliest first. It has
        observed seq; nothing of its state changes."""


def is_foresighted(owner: object) -> bool:
    """Whether a proposer, and all sources of a tree, are."""
    return hasattr(owner, "branch") and all(map(is_foresighted, getattr(owner, "sources", ())))


def unhurried(workers: Iterable[object]) -> list[Callable[[Sequence], None]]:
    """The `meanwhile` of those that have one: see Proposer."""
    found = [getattr(worker, "meanwhile", None) for worker in workers]
    return [work for work in found if work is not None]


def concluding(workers: Iterable[object]) -> list[Callable[[Sequence], None]]:
    """The `conclude` of those that have one, else their `meanwhile`: see Proposer."""
    found = [getattr(worker, "conclude", getattr(worker, "meanwhile", None)) for worker in workers]
    return [work for work in found if work is not None]


def common_taps(proposers: Iterable[object]) -> tuple[int, ...]:
    """The target's layers that the proposers tap. Raises ValueError if they differ: a step has one set of taps."""
    taps = {tuple(getattr(proposer, "tap_layers", ())) for proposer in proposers} - {()}
    if len(taps) > 1:
        raise ValueError("the proposers tap different layers of the target; use one of them")
    return taps.pop() if taps else ()
