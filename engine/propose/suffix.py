"""Drafting by the longest match: what followed the longest suffix of the row that appeared in it before.

An online suffix automaton (Blumer et al. 1985) gives that suffix in amortised constant time a token, so a step costs
the same at any context length. The baseline of suffix decoding (Oliaro et al. 2024) without its cache of other
requests.
"""

import torch

from specd.engine.draft import Committed, Draft, Sequence


class SuffixAutomaton:
    """States as parallel lists: longest suffix length, suffix link, transitions, latest end position seen."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._length = [0]
        self._link = [-1]
        self._next: list[dict[int, int]] = [{}]
        self._end = [0]  # position behind an occurrence; kept recent along the links for a few states
        self._last = 0

    def append(self, token: int) -> None:
        """Extend the text by one token."""
        length, link, follow, end = self._length, self._link, self._next, self._end
        position = len(self.tokens)
        self.tokens.append(token)
        current = len(length)
        length.append(position + 1)
        link.append(0)
        follow.append({})
        end.append(position + 1)
        state = self._last
        while state >= 0 and token not in follow[state]:
            follow[state][token] = current
            state = link[state]
        if state >= 0:
            target = follow[state][token]
            if length[state] + 1 == length[target]:
                link[current] = target
            else:
                clone = len(length)
                length.append(length[state] + 1)
                link.append(link[target])
                follow.append(dict(follow[target]))
                end.append(end[target])
                while state >= 0 and follow[state].get(token) == target:
                    follow[state][token] = clone
                    state = link[state]
                link[target] = link[current] = clone
        self._last = current

    def longest_match(self) -> tuple[int, int]:
        """(length, position behind it) of the longest suffix with an earlier occurrence; (0, 0) if even the last
        token is new."""
        state = self._link[self._last]
        if state <= 0:
            return 0, 0
        found = self._length[state], self._end[state]
        steps = 0
        while state > 0 and steps < 64:  # the newest occurrence of every suffix of it now ends here
            self._end[state] = len(self.tokens)
            state = self._link[state]
            steps += 1
        return found


class SuffixProposer:
    """Drafts `factor` x match length tokens (at most k) from behind the longest match, as suffix decoding does."""

    name = "suffix"

    def __init__(self, k: int = 64, *, factor: float = 4.0) -> None:
        self.max_k = k
        self._factor = factor
        self._automaton = SuffixAutomaton()
        self._match = (0, 0)

    def propose(self, seq: Sequence, k: int) -> Draft:
        """At most min(k, max_k) tokens; none where even the newest token is new."""
        self._feed(seq)
        length, position = self._match
        if not length:
            return Draft(torch.empty(0, dtype=torch.int32))
        k = min(k, self.max_k, max(1, int(self._factor * length)))
        return Draft(torch.tensor(self._automaton.tokens[position : position + k], dtype=torch.int32))

    def observe(self, seq: Sequence, committed: Committed) -> None:
        """Take over the tokens that `seq` gained."""
        self._feed(seq)

    def truncate(self, length: int) -> None:
        """Forget the positions >= length. An automaton cannot shrink, so this builds it anew: O(length)."""
        kept = self._automaton.tokens[: max(length, 0)]
        if len(kept) < len(self._automaton.tokens):
            self._automaton = SuffixAutomaton()
            self._match = (0, 0)
            self._extend(kept)

    def _feed(self, seq: Sequence) -> None:
        fed = len(self._automaton.tokens)
        if fed > len(seq.tokens):
            self.truncate(len(seq.tokens))
        self._extend(seq.tokens[len(self._automaton.tokens) :])

    def _extend(self, tokens: list[int]) -> None:
        for token in tokens:
            self._automaton.append(token)
            self._match = self._automaton.longest_match()
