"""A tree's accepted rows move to the front of its block, in every layer, and nothing else moves."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(deadline=None, max_examples=20)
@given(data=st.data(), width=st.sampled_from([4, 8, 16]), start=st.integers(0, 30))
def test_the_accepted_rows_move_to_the_front(data: st.DataObject, width: int, start: int) -> None:
    compact = pytest.importorskip("specd.engine.kernels.compact")
    rows = data.draw(st.lists(st.integers(1, width - 1), unique=True).map(sorted))
    draw = torch.Generator().manual_seed(start)
    k, v = (torch.randn(3, 9, 8, 2, 24, generator=draw) for _ in range(2))
    pages = data.draw(st.permutations(range(9)))
    slots = torch.tensor([pages[place // 8] * 8 + place % 8 for place in range(start, start + width)])
    garbage = [10**6] * (width - len(rows))  # what the record says behind them means nothing
    record = torch.tensor([len(rows), 1, *[7] * width, *rows, *garbage], dtype=torch.int32)
    expected = []
    for part in (k, v):
        copy = part.clone()
        flat = copy.view(3, 72, 2, 24)
        flat[:, slots[1 : len(rows) + 1]] = flat[:, slots[rows]]
        expected.append(copy)
    compact.keep_path(k, v, slots, record)
    assert torch.equal(k, expected[0])
    assert torch.equal(v, expected[1])
