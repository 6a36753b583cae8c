"""Recalling what followed: the text search finds what looking at every place of the row would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specd.engine.propose import edit_recall
from specd.engine.propose.edit_recall import DEEPEST, MOST, Recall, Recalled

SPECIAL = [0, 0xFEFF, 0xD800, 0x10FFFF]  # a byte order mark, half a pair, the last character

rows = st.lists(st.lists(st.integers(0, 3), max_size=12), max_size=12)


def expected(row: list[int]) -> list[Recalled]:
    """By looking at every place."""

    def depth(position: int) -> int:
        most = min(position, DEEPEST)
        return next((n for n in range(most) if row[position - 1 - n] != row[-1 - n]), most)

    behind = [position for position in range(1, len(row)) if depth(position)]
    places = [position for position in reversed(behind) if depth(position) > 1][:MOST]
    if not places:
        return [Recalled(behind[-1], 1, 1, 1.0)] if behind else []
    ranked = sorted(places, key=lambda position: (-depth(position), -position))
    best = ranked[0]
    near = [row[place] for place in ranked if depth(place) >= min(depth(best), 5) - 1]
    found = [Recalled(best, depth(best), len(near), near.count(row[best]) / len(near))]
    other = next((place for place in ranked if row[place] != row[best]), None)
    if other is not None:
        share = sum(row[place] == row[other] for place in ranked) / len(ranked)
        found.append(Recalled(other, depth(other), len(ranked), share))
    return found


@given(gains=rows, tail=st.sampled_from([5, 10, 1024]))
def test_it_finds_what_looking_everywhere_finds(gains: list[list[int]], tail: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edit_recall, "TAIL", tail)
        patch.setattr(edit_recall, "KEPT", tail // 3 + 1)
        recall, row = Recall(), []
        for gain in gains:
            row += [SPECIAL[number] for number in gain]
            recall.read(row)
            assert recall.find(row) == expected(row)


def test_of_a_very_long_row_the_end_is_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_recall, "LONGEST", 100)
    recall, row = Recall(), [7, 8, 9]
    for number in range(3000):
        row += [1000 + number]
        recall.read(row)
    row += [7, 8]
    recall.read(row)
    assert recall.find(row) == []
    row += [3990]
    recall.read(row)
    assert recall.find(row) == [Recalled(row.index(3990) + 1, 1, 1, 1.0)]
