"""A line diff whose time is bounded: the fewest changed lines where they are few, anchors between them where many.

`changed_blocks` first trims what both sides share at their ends. What is left goes through the greedy algorithm of
Myers ("An O(ND) Difference Algorithm and Its Variations", Algorithmica 1986) as long as it needs at most `MAX_EDITS`
inserted and deleted lines. Beyond that the lines that occur once on both sides cut it in pieces, in their longest
common order (Bram Cohen's patience diff), and each piece goes the same way. In a piece with no such line, the nearest
equal lines within `LOOK_AHEAD` are taken. So n lines cost O(n log n + n * LOOK_AHEAD^2 + pieces * MAX_EDITS^2), where
at most n / MAX_EDITS pieces a level reach the limit.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

MAX_EDITS = 160
LOOK_AHEAD = 8

Block = tuple[int, int, int, int]
"""(a_start, a_end, b_start, b_end): a[a_start:a_end] was replaced by b[b_start:b_end]; one of both may be empty."""


def changed_blocks(a: Sequence[str], b: Sequence[str]) -> list[Block]:
    """The blocks in which `b` differs from `a`, in order; between two blocks at least one line is the same."""
    blocks: list[Block] = []
    pieces = [(0, len(a), 0, len(b))]
    while pieces:  # a stack, so the first piece is on top
        a0, a1, b0, b1 = pieces.pop()
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            a0, b0 = a0 + 1, b0 + 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1, b1 = a1 - 1, b1 - 1
        if a0 == a1 or b0 == b1:
            if a0 < a1 or b0 < b1:
                blocks.append((a0, a1, b0, b1))
            continue
        matches = _fewest_edits(a, b, (a0, a1, b0, b1))
        if matches is not None:
            blocks += _between(matches, (a0, a1, b0, b1))
            continue
        anchors = _anchors(a, b, (a0, a1, b0, b1))
        if not anchors:
            blocks += _between(_nearest(a, b, (a0, a1, b0, b1)), (a0, a1, b0, b1))
            continue
        cuts = [(a0, b0), *((i + 1, j + 1) for i, j in anchors)]
        ends = [*anchors, (a1, b1)]
        pieces += [(s[0], e[0], s[1], e[1]) for s, e in zip(reversed(cuts), reversed(ends), strict=True)]
    return blocks


def _fewest_edits(a: Sequence[str], b: Sequence[str], piece: Block) -> list[tuple[int, int]] | None:
    """The pairs of equal lines of a shortest edit script, or None if it needs more than MAX_EDITS lines."""
    a0, a1, b0, b1 = piece
    n, m = a1 - a0, b1 - b0
    if abs(n - m) > MAX_EDITS:
        return None
    limit = min(n + m, MAX_EDITS)
    furthest = [0] * (2 * limit + 3)  # by diagonal k = x - y, at [k + limit + 1]
    middle = limit + 1
    history: list[list[int]] = []
    for edits in range(limit + 1):
        history.append(furthest[middle - edits - 1 : middle + edits + 2])
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest[middle + k - 1] < furthest[middle + k + 1])
            x = furthest[middle + k + 1] if down else furthest[middle + k - 1] + 1
            y = x - k
            while x < n and y < m and a[a0 + x] == b[b0 + y]:
                x, y = x + 1, y + 1
            furthest[middle + k] = x
            if x >= n and y >= m:
                return _walk_back(history, n, m, a0, b0)
    return None


def _walk_back(history: list[list[int]], x: int, y: int, a0: int, b0: int) -> list[tuple[int, int]]:
    matches: list[tuple[int, int]] = []
    for edits in range(len(history) - 1, -1, -1):
        before = history[edits]  # diagonals -edits-1 .. edits+1
        k = x - y
        if edits:
            down = k == -edits or (k != edits and before[k - 1 + edits + 1] < before[k + 1 + edits + 1])
            previous_k = k + 1 if down else k - 1
            previous_x = before[previous_k + edits + 1]
            start_x = previous_x if down else previous_x + 1
        else:
            previous_k, previous_x, start_x = 0, 0, 0
        while x > start_x:
            x, y = x - 1, y - 1
            matches.append((a0 + x, b0 + y))
        x, y = previous_x, previous_x - previous_k
    matches.reverse()
    return matches


def _anchors(a: Sequence[str], b: Sequence[str], piece: Block) -> list[tuple[int, int]]:
    """Lines that occur once in both sides of the piece, in the longest order that both share."""
    a0, a1, b0, b1 = piece
    a_counts, b_counts = Counter(a[a0:a1]), Counter(b[b0:b1])
    b_at = {b[j]: j for j in range(b0, b1) if b_counts[b[j]] == 1}
    pairs = [(i, b_at[a[i]]) for i in range(a0, a1) if a_counts[a[i]] == 1 and a[i] in b_at]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    tops: list[int] = []  # the smallest second number that ends a chain of each length
    top_at: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        length = bisect_left(tops, j)
        before.append(top_at[length - 1] if length else -1)
        tops[length : length + 1] = [j]
        top_at[length : length + 1] = [at]
    chain: list[tuple[int, int]] = []
    at = top_at[-1] if top_at else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    chain.reverse()
    return chain


def _nearest(a: Sequence[str], b: Sequence[str], piece: Block) -> list[tuple[int, int]]:
    """Pairs of equal lines, each the nearest after the one before, in place first."""
    i, a1, j, b1 = piece
    matches: list[tuple[int, int]] = []
    while i < a1 and j < b1:
        if a[i] == b[j]:
            matches.append((i, j))
            i, j = i + 1, j + 1
            continue
        for down, right in _NEAR:
            if i + down < a1 and j + right < b1 and a[i + down] == b[j + right]:
                i, j = i + down, j + right
                break
        else:
            i, j = i + 1, j + 1
    return matches


_NEAR = sorted(
    ((d, r) for d in range(LOOK_AHEAD + 1) for r in range(LOOK_AHEAD + 1) if d or r),
    key=lambda s: (max(s), abs(s[0] - s[1])),
)
"""Steps ahead on both sides, the nearest first, in place before skewed."""


def _between(matches: list[tuple[int, int]], piece: Block) -> list[Block]:
    a0, a1, b0, b1 = piece
    blocks: list[Block] = []
    for i, j in [*matches, (a1, b1)]:
        if i > a0 or j > b0:
            blocks.append((a0, i, b0, j))
        a0, b0 = i + 1, j + 1
    return blocks
