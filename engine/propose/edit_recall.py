"""The whole row as lookup text for the edit proposer: where its newest tokens stood before, and what followed."""

from dataclasses import dataclass

DEEPEST = 32  # tokens of a match that count
SHALLOW = 6  # tokens of it that are compared one by one
MOST = 16  # earlier places that are looked at, latest first
ROW = 1 << 15  # newest tokens of the row that are looked through at least


@dataclass(frozen=True)
class Recalled:
    """`position` follows an earlier occurrence of the last `depth` tokens; of the `count` best places looked at,
    `share` go on with the same token."""

    position: int
    depth: int
    count: int
    share: float


class Recall:
    """The row as a text with a character for every token: looking for one in it backwards takes a few microseconds in
    ten thousand tokens, and nothing is to be indexed. What a step costs is bounded by ROW."""

    def __init__(self) -> None:
        self._row = ""
        self._begin = 0  # position of its first token

    def read(self, tokens: list[int]) -> None:
        """Take in what the row gained: all of it so far is `tokens`."""
        self._row += "".join(map(chr, tokens[self._begin + len(self._row) :]))
        if len(self._row) > 2 * ROW:
            self._begin += len(self._row) - ROW
            self._row = self._row[-ROW:]

    def find(self, tokens: list[int]) -> list[Recalled]:
        """The deepest match of the row's end (of equals the latest), and the most frequent other continuation if there
        is one."""
        self.read(tokens)
        row = self._row
        if len(row) < 2:
            return []
        places: list[int] = []
        newest, last = row[-2:], len(row) - 1
        place = row.rfind(newest, 0, last)
        while place >= 0 and len(places) < MOST:
            places.append(place + 2)
            place = row.rfind(newest, 0, place + 1)
        if not places:
            place = row.rfind(newest[1], 0, last)
            return [] if place < 0 else [Recalled(self._begin + place + 1, 1, 1, 1.0)]
        newest = row[: -DEEPEST - 1 : -1]
        ranked = sorted([(_depth(row, newest, position), position) for position in places], reverse=True)
        depth, position = ranked[0]
        near = [row[place] for deep, place in ranked if deep >= min(depth, 5) - 1]
        found = [Recalled(self._begin + position, depth, len(near), near.count(near[0]) / len(near))]
        for deep, place in ranked[1:]:
            if row[place] != row[position]:
                share = sum(row[other] == row[place] for _, other in ranked) / len(ranked)
                found.append(Recalled(self._begin + place, deep, len(ranked), share))
                break
        return found


def _depth(row: str, newest: str, position: int) -> int:
    """How many tokens before `position` are the newest ones, DEEPEST at most; two are. newest: latest first."""
    depth, most = 2, min(position, DEEPEST)
    while depth < most and row[position - 1 - depth] == newest[depth]:
        depth += 1
        if depth == SHALLOW:
            for step in (16, 8, 4, 2, 1):
                reach = depth + step
                if reach <= most and row.endswith(row[position - reach : position - depth], 0, -depth):
                    depth = reach
            break
    return depth


def follow(tokens: list[int], position: int, k: int) -> list[int]:
    """The k tokens from `position` on; where they run out the copy goes on with itself."""
    copied = tokens[position : position + k]
    period = len(tokens) - position
    while period > 0 and len(copied) < k:
        copied.extend(copied[-period:][: k - len(copied)])
    return copied
