"""Prompt lookup: what followed the last n tokens when they last occurred follows again (n = 3, then 2, then 1).

The method is prompt lookup decoding as llama.cpp and vLLM know it; here an index of every n-gram's latest end is kept as
tokens arrive, so a step costs the same whatever the context's length. Seeds are texts that may be quoted without being
in the prompt, such as the open file; an occurrence in the sequence itself wins over one in a seed.
"""

from collections.abc import Iterable

from specd.engine.draft import EMPTY, Committed, Draft, Sequence

_ORDERS = (3, 2, 1)


class NgramProposer:
    """Drafts up to k tokens that followed the latest earlier occurrence of the newest 3, 2 or 1 tokens."""

    name = "ngram"

    def __init__(self, k: int = 15, seeds: Iterable[list[int]] = ()) -> None:
        self.max_k = k
        self._seed: list[int] = []
        self._seed_ends: dict[tuple[int, ...], int] = {}
        for tokens in seeds:
            start = len(self._seed)
            self._seed.extend(tokens)
            for end in range(start + 1, len(self._seed)):
                for n in _ORDERS:
                    if end - n >= start:
                        self._seed_ends[tuple(self._seed[end - n : end])] = end
            self._seed.append(-1)  # no draft runs from one text into the next
        self._ends: dict[tuple[int, ...], int] = {}
        self._indexed = 0  # n-grams that end at or before this index of the sequence are in the index

    def propose(self, seq: Sequence, k: int) -> Draft:
        k = min(k, self.max_k)
        self._index(seq.tokens)
        for n in _ORDERS:
            if k <= 0 or n > len(seq.tokens):
                continue
            key = tuple(seq.tokens[-n:])
            if (end := self._ends.get(key)) is not None:
                return Draft.chain(seq.tokens[end : end + k])
            if (end := self._seed_ends.get(key)) is not None:
                found = self._seed[end : end + k]
                return Draft.chain(found[: found.index(-1)] if -1 in found else found)
        return EMPTY

    def observe(self, seq: Sequence, committed: Committed) -> None:
        self._index(seq.tokens)

    def truncate(self, length: int) -> None:
        if length < self._indexed + 1:
            self._ends.clear()
            self._indexed = 0

    def _index(self, tokens: list[int]) -> None:
        """Enters every n-gram that some token follows."""
        for end in range(self._indexed + 1, len(tokens)):
            for n in _ORDERS:
                if end >= n:
                    self._ends[tuple(tokens[end - n : end])] = end
        self._indexed = max(self._indexed, len(tokens) - 1)
