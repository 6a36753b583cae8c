"""The whole row as lookup text for the edit proposer: where its newest tokens stood before, and what followed."""

from dataclasses import dataclass

DEEPEST = 32  # tokens of a match that count
MOST = 12  # earlier places that are looked at, latest first
_SHIFT = 21


@dataclass(frozen=True)
class Recalled:
    """`position` follows an earlier occurrence of the last `depth` tokens; of the `count` best places looked at,
    `share` go on with the same token."""

    position: int
    depth: int
    count: int
    share: float


class Recall:
    """Positions of every pair of tokens. Indexing is put off: `index` takes a bounded number of tokens at a time."""

    def __init__(self) -> None:
        self._pairs: dict[int, list[int]] = {}  # pair -> positions behind it
        self._single: dict[int, int] = {}  # token -> latest position behind it
        self._done = 1  # positions below it are in

    def index(self, tokens: list[int], most: int) -> None:
        """Take in up to `most` more positions; only those that a token stands at."""
        pairs, single = self._pairs, self._single
        stop = min(len(tokens), self._done + most)
        last = tokens[self._done - 1] if self._done <= len(tokens) else 0
        before = tokens[self._done - 2] if self._done >= 2 else last
        for position in range(self._done, stop):
            single[last] = position
            key = before << _SHIFT | last
            if key in pairs:
                pairs[key].append(position)
            else:
                pairs[key] = [position]
            before, last = last, tokens[position]
        self._done = max(stop, self._done)

    def find(self, tokens: list[int]) -> list[Recalled]:
        """The deepest match (of equals the latest), and the most frequent other continuation if there is one."""
        if len(tokens) < 2:
            return []
        places = self._pairs.get(tokens[-2] << _SHIFT | tokens[-1], [])[-MOST:]
        if not places:
            position = self._single.get(tokens[-1])
            return [] if position is None else [Recalled(position, 1, 1, 1.0)]
        newest = tokens[-DEEPEST:][::-1]
        ranked = []
        for position in places:
            depth = 2
            most = min(len(newest), position)
            while depth < most and tokens[position - 1 - depth] == newest[depth]:
                depth += 1
            ranked.append((depth, position))
        ranked.sort(reverse=True)
        depth, position = ranked[0]
        near = [place for deep, place in ranked if deep >= min(depth, 5) - 1]
        following = [tokens[place] for place in near]
        found = [Recalled(position, depth, len(near), following.count(following[0]) / len(near))]
        for deep, place in ranked[1:]:
            if tokens[place] != tokens[position]:
                every = [tokens[other] for _, other in ranked]
                found.append(Recalled(place, deep, len(every), every.count(tokens[place]) / len(every)))
                break
        return found


def follow(tokens: list[int], position: int, k: int) -> list[int]:
    """The k tokens from `position` on; where they run out the copy goes on with itself."""
    copied = tokens[position : position + k]
    period = len(tokens) - position
    while period > 0 and len(copied) < k:
        copied.extend(copied[-period:][: k - len(copied)])
    return copied
