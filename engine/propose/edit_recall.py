"""The whole row as lookup text for the edit proposer: where its newest tokens stood before, and what followed."""

from dataclasses import dataclass
from itertools import repeat

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
    """The latest place of every token and pair of tokens, and the one before each. Indexing is put off: `index` takes
    a bounded number of tokens at a time."""

    def __init__(self) -> None:
        self._pairs: dict[int, int] = {}  # pair -> latest position behind it
        self._earlier: list[int] = [0, 0]  # [p]: the position behind the same pair before p; 0 = none
        self._single: dict[int, int] = {}  # token -> latest position behind it

    def index(self, tokens: list[int], most: int) -> None:
        """Take in up to `most` more positions; only those that a token stands at."""
        pairs, earlier = self._pairs, self._earlier
        begin = len(earlier)
        stop = min(len(tokens), begin + most)
        if begin >= stop:
            return
        if begin == 2:
            self._single[tokens[0]] = 1
        newest = tokens[begin - 1 : stop - 1]
        self._single.update(zip(newest, range(begin, stop), strict=True))
        keys = [a << _SHIFT | b for a, b in zip(tokens[begin - 2 : stop - 2], newest, strict=True)]
        if len(set(keys)) == len(keys):
            earlier.extend(map(pairs.get, keys, repeat(0)))
            pairs.update(zip(keys, range(begin, stop), strict=True))
            return
        for position, pair in enumerate(keys, begin):
            earlier.append(pairs.get(pair, 0))
            pairs[pair] = position

    def find(self, tokens: list[int]) -> list[Recalled]:
        """The deepest match (of equals the latest), and the most frequent other continuation if there is one."""
        if len(tokens) < 2:
            return []
        place = self._pairs.get(tokens[-2] << _SHIFT | tokens[-1], 0)
        places: list[int] = []
        while place and len(places) < MOST:
            places.append(place)
            place = self._earlier[place]
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
