"""The whole row as lookup text for the edit proposer: where its newest tokens stood before, and what followed."""

import sys
from array import array
from dataclasses import dataclass

DEEPEST = 32  # tokens of a match that count
SHALLOW = 6  # tokens of it that are compared one by one
MOST = 16  # earlier places that are looked at, latest first
LONGEST = 1 << 16  # tokens of the row that are looked through, or a few more
CODING = f"utf-32-{sys.byteorder[0]}e"
TAIL = 1024  # tokens behind which text is not appended to any more
KEPT = 64  # of those


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
    ten thousand tokens, and nothing is to be indexed. What a step costs is bounded by LONGEST."""

    def __init__(self) -> None:
        self._head = self._tail = ""  # the tail is short, and begins with the head's last token
        self._begin = 0  # position of the head's first token
        self._size = 0

    def read(self, tokens: list[int]) -> None:
        """Take in what the row gained: all of it so far is `tokens`."""
        self._tail += array("I", tokens[self._size :]).tobytes().decode(CODING, "surrogatepass")
        self._size = len(tokens)
        if len(self._tail) > TAIL:
            head = self._head + self._tail[bool(self._head) : -KEPT]
            self._tail = self._tail[-KEPT - 1 :]
            self._begin += max(len(head) - LONGEST, 0)
            self._head = head[-LONGEST:]

    def find(self, tokens: list[int]) -> list[Recalled]:
        """The deepest match of the row's end (of equals the latest), and the most frequent other continuation if there
        is one. tokens: what was read last."""
        if self._size < 2:
            return []
        places = self._places(self._tail[-2:], MOST)
        if not places:
            return [Recalled(place, 1, 1, 1.0) for place in self._places(self._tail[-1], 1)]
        newest = tokens[: -DEEPEST - 1 : -1]
        ranked = sorted([(_depth(tokens, newest, position), position) for position in places], reverse=True)
        depth, position = ranked[0]
        near = [tokens[other] for deep, other in ranked if deep >= min(depth, 5) - 1]
        found = [Recalled(position, depth, len(near), near.count(near[0]) / len(near))]
        for deep, place in ranked[1:]:
            if tokens[place] != tokens[position]:
                every = [tokens[other] for _, other in ranked]
                found.append(Recalled(place, deep, len(every), every.count(tokens[place]) / len(every)))
                break
        return found

    def _places(self, text: str, most: int) -> list[int]:
        """The latest positions behind `text`, `most` at most; only those that a token stands at."""
        found: list[int] = []
        border = self._begin + max(len(self._head) - 1, 0)
        for part, begin, end in ((self._tail, border, len(self._tail) - 1), (self._head, self._begin, len(self._head))):
            place = part.rfind(text, 0, end)
            while place >= 0:
                if len(found) == most:
                    return found
                found.append(begin + place + len(text))
                place = part.rfind(text, 0, place + len(text) - 1)
        return found


def _depth(tokens: list[int], newest: list[int], position: int) -> int:
    """How many tokens before `position` are the newest ones, DEEPEST at most; two are. newest: latest first."""
    depth, most = 2, min(position, len(newest))
    while depth < most and tokens[position - 1 - depth] == newest[depth]:
        depth += 1
        if depth == SHALLOW:
            for step in (16, 8, 4):
                reach = depth + step
                if reach <= most and tokens[position - reach : position - depth] == tokens[-reach:-depth]:
                    depth = reach
    return depth


def follow(tokens: list[int], position: int, k: int) -> list[int]:
    """The k tokens from `position` on; where they run out the copy goes on with itself."""
    copied = tokens[position : position + k]
    period = len(tokens) - position
    while period > 0 and len(copied) < k:
        copied.extend(copied[-period:][: k - len(copied)])
    return copied
