"""Prompt lookup: what followed the last n tokens when they last occurred follows again (n = 3, then 2, then 1).

The method is prompt lookup decoding as llama.cpp and vLLM know it; here an index of every n-gram's latest end grows
with the committed tokens only, so a step costs the same whatever the context's length. Seeds are texts that may be
quoted without being in the prompt, such as the open file; an occurrence in the sequence itself wins over one in a
seed.
"""

from collections.abc import Iterable
from collections.abc import Sequence as Tokens

from specd.engine.draft import EMPTY, Committed, Draft, Sequence

SHIFT = 21  # bits of a token id in the key of an n-gram: no vocabulary has two million entries
BREAK = -1  # behind each seed: no n-gram and no draft runs across it


class NgramIndex:
    """Every n-gram (n = 1 .. max_n) of a growing row of tokens -> the latest position behind it, and the ones before
    that.

    Only n-grams that some token follows are in it. `extend` costs O(max_n) a token, `truncate` what it takes away.
    Where either is interrupted, the row is as it was or as it was to be, or shortened in part, and all else is made
    anew from it when next needed.
    """

    def __init__(self, max_n: int) -> None:
        self.max_n = max_n
        self.tokens: list[int] = []
        self._latest: list[dict[int, int]] = [{} for _ in range(max_n)]
        self._previous: list[list[int]] = [[] for _ in range(max_n)]  # [n - 1][p]: what p replaced; 0 = nothing
        self._is_whole = True  # both follow from `tokens`; not so inside `extend` and `truncate`

    def __len__(self) -> int:
        return len(self.tokens)

    def extend(self, tokens: Tokens[int]) -> None:
        """Append tokens."""
        self._mend()
        history, begin = self.tokens, len(self.tokens)
        self._is_whole = False
        history.extend(tokens)
        end, reach = len(history), self.max_n
        if begin < reach or BREAK in history[begin - reach :]:  # where n-grams are cut short: position by position
            slow = end if BREAK in tokens else min(begin + reach, end)
            for position in range(begin, slow):
                self._append(position)
            begin = slow
        keys = [0] * (end - begin)
        for order in range(reach):
            shift = SHIFT * order
            behind = history[begin - order - 1 : end - order - 1]
            keys = [key | token << shift for key, token in zip(keys, behind, strict=True)] if order else behind
            latest, add = self._latest[order], self._previous[order].append
            get = latest.get
            for position, key in enumerate(keys, start=begin):
                add(get(key, 0))
                latest[key] = position
        self._is_whole = True

    def _mend(self) -> None:
        """Makes the index anew where an interrupt left it half done."""
        if self._is_whole:
            return
        fresh = NgramIndex(self.max_n)
        fresh.extend(self.tokens)
        self._latest, self._previous = fresh._latest, fresh._previous
        self._is_whole = True

    def _append(self, position: int) -> None:
        """The n-grams that end before `position`, as far as nothing breaks them."""
        key, shift = 0, 0
        for n, (latest, previous) in enumerate(zip(self._latest, self._previous, strict=True), start=1):
            token = self.tokens[position - n] if n <= position else BREAK
            if token == BREAK or key < 0:
                key = -1
                previous.append(0)
                continue
            key |= token << shift
            shift += SHIFT
            previous.append(latest.get(key, 0))
            latest[key] = position

    def truncate(self, length: int) -> None:
        """Forget the tokens at positions >= length."""
        self._mend()
        history = self.tokens
        self._is_whole = False
        for position in range(len(history) - 1, max(length, 0) - 1, -1):
            key, shift = 0, 0
            for n in range(1, self.max_n + 1):
                before = self._previous[n - 1].pop()
                token = history[position - n] if n <= position else BREAK
                if token == BREAK or key < 0:
                    key = -1
                    continue
                key |= token << shift
                shift += SHIFT
                if before:
                    self._latest[n - 1][key] = before
                else:
                    del self._latest[n - 1][key]
            history.pop()
        self._is_whole = True

    def find(self, n: int) -> int | None:
        """The latest position behind an earlier occurrence of the last n tokens, or None."""
        self._mend()
        history = self.tokens
        if not 0 < n <= min(self.max_n, len(history)):
            return None
        key = 0
        for token in history[-n:]:
            if token == BREAK:
                return None
            key = key << SHIFT | token
        return self._latest[n - 1].get(key)

    def earlier(self, n: int, position: int) -> int | None:
        """The occurrence before `position`, which `find` or `earlier` gave for the same n."""
        return self._previous[n - 1][position] or None

    def follow(self, position: int, k: int) -> list[int]:
        """The k tokens from `position` on. Where they run out the copy goes on with itself: a pattern repeats."""
        history = self.tokens
        copied = history[position : position + k]
        if BREAK in copied:
            return copied[: copied.index(BREAK)]
        period = len(history) - position
        while period > 0 and len(copied) < k:
            copied.extend(copied[-period:][: k - len(copied)])
        return copied


class NgramProposer:
    """Drafts up to k tokens that followed the latest earlier occurrence of the newest max_n, ..., 2 or 1 tokens."""

    name = "ngram"

    def __init__(self, k: int = 15, seeds: Iterable[list[int]] = (), *, max_n: int = 3) -> None:
        if k < 1 or max_n < 1:
            raise ValueError(f"k and max_n must be 1 or more, not {k} and {max_n}")
        self.max_k = k
        self._index = NgramIndex(max_n)
        for seed in seeds:
            self._index.extend([*seed, BREAK])
        self._base = len(self._index)

    def propose(self, seq: Sequence, k: int) -> Draft:
        """At most min(k, max_k) tokens; none where even the newest token is new. Evidence: the length of the match."""
        self._feed(seq)
        k = min(k, self.max_k)
        if k <= 0:
            return EMPTY
        for n in range(self._index.max_n, 0, -1):
            position = self._index.find(n)
            if position is not None:
                return Draft.chain(self._index.follow(position, k), evidence=n)
        return EMPTY

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

    def _feed(self, seq: Sequence) -> None:
        fed = len(self._index) - self._base
        if fed > len(seq.tokens):
            self.truncate(len(seq.tokens))
        elif fed < len(seq.tokens):
            self._index.extend(seq.tokens[fed:])
