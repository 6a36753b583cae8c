"""Prompt lookup with several answers: what followed each of the earlier occurrences of the newest tokens.

The longest match comes first (up to `longest` tokens back), of equal ones the latest; see ngram.py for the index. It
drafts nothing itself: tree.py merges the continuations.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from specd.engine.draft import Committed, Sequence
from specd.engine.propose.ngram import BREAK, NgramIndex
from specd.engine.propose.tree import Continuation

_EXAMINED = 48  # latest occurrences of each n-gram that are looked at
LONGEST = 16  # tokens of a match that are counted: in an edit the longer one is the likelier
LONGEST_FREE = 6  # ... in free text; of matches as long as that the latest is
CLASSES = (2, 3, 4, 6, 9, 16)  # lengths of match from which evidence 1, 2, ... begins; 0 below
AHEAD = (4, 6, 8, 12, 16, 24, 1 << 30, 8)  # tokens of a second guess by evidence: behind them hardly any is right
FIRST = 7  # evidence where the answer has not begun: what matches may be the chat template's


class NgramBranches:
    """Up to `width` different continuations of the newest max_n, ..., 2 or 1 tokens."""

    name = "ngram"

    def __init__(
        self,
        k: int = 31,
        seeds: Iterable[list[int]] = (),
        *,
        width: int = 8,
        max_n: int = 3,
        longest: int = LONGEST,
    ) -> None:
        """longest: tokens of a match that are counted. Raises ValueError."""
        if k < 1 or width < 1 or max_n < 1:
            raise ValueError(f"k, width and max_n must be 1 or more, not {k}, {width} and {max_n}")
        if longest < max_n:
            raise ValueError(f"longest must be {max_n} (max_n) or more, not {longest}")
        self.max_k = k
        self._width = width
        self._longest = longest
        self._index = NgramIndex(max_n)
        for seed in seeds:
            self._index.extend([*seed, BREAK])
        self._base = len(self._index)

    def continuations(self, seq: Sequence, k: int) -> list[Continuation]:
        """At most k tokens each; none where even the newest token is new."""
        self._feed(seq)
        max_n, has_begun = self._index.max_n, len(seq) > seq.prompt_length
        out: list[Continuation] = []
        rows: list[list[int]] = []
        seen: set[int] = set()  # positions that more tokens led to
        for n in range(max_n, 0, -1):
            if n == max_n:
                found = ((self._match_length(position, n), position) for position in self._occurrences(n))
                places: Iterable[tuple[int, int]] = sorted(found, reverse=True)
            else:  # in order already, and few of them are looked at
                places = ((n, position) for position in self._occurrences(n) if position not in seen)
            for length, position in places:
                seen.add(position)
                evidence = bisect_right(CLASSES, length) if has_begun else FIRST
                tokens = self._index.follow(position, min(k, AHEAD[evidence]) if out else k)
                if tokens and tokens not in rows:
                    rows.append(tokens)
                    out.append(Continuation(tokens, evidence))
                    if len(out) == self._width:
                        return out
        return out

    def observe(self, seq: Sequence, committed: Committed) -> None:
        """Take over a prompt. What a step adds can wait: see `meanwhile`."""
        if not committed.tokens:
            self._feed(seq)

    def meanwhile(self, seq: Sequence) -> None:
        """Take over what the sequence gained; the next draft does it where nobody calls this."""
        self._feed(seq)

    def conclude(self, seq: Sequence) -> None:
        """Nothing that it knows is for other jobs."""

    def truncate(self, length: int) -> None:
        """Forget the sequence's tokens at positions >= length; seeds stay."""
        self._index.truncate(self._base + max(length, 0))

    @property
    def state(self) -> int:
        """See Foresighted: tokens of the sequence that were taken over. Less may be put back than it is."""
        return len(self._index) - self._base

    @state.setter
    def state(self, fed: int) -> None:
        self.truncate(fed)

    def branch(self) -> int:
        """See Foresighted."""
        return self.state

    def foretell(self, seq: Sequence, k: int) -> list[list[int]]:
        """See Foresighted."""
        return [guess.tokens for guess in self.continuations(seq, k)]

    def _occurrences(self, n: int) -> Iterator[int]:
        """Positions behind the latest earlier occurrences of the last n tokens, the latest first."""
        position, left = self._index.find(n), _EXAMINED
        while position is not None and left:
            yield position
            position, left = self._index.earlier(n, position), left - 1

    def _match_length(self, position: int, known: int) -> int:
        """How many tokens before `position` are the newest ones, `known` of which are."""
        row, length = self._index.tokens, known
        while length < min(self._longest, position) and row[position - 1 - length] == row[-1 - length] != BREAK:
            length += 1
        return length

    def _feed(self, seq: Sequence) -> None:
        fed = len(self._index) - self._base
        if fed > len(seq.tokens):
            self.truncate(len(seq.tokens))
        self._index.extend(seq.tokens[min(fed, len(seq.tokens)) :])
