"""Paged attention in Triton's interpreter: its torch twin's results, and a row's bits whatever computes it."""

import pytest
import torch
from torch import Tensor

from specd.engine.kernels.lanes import as_lanes
from specd.engine.ops import TorchOps
from specd.engine.verify import tree_layout

cuda = pytest.importorskip("specd.engine.kernels.cuda", reason="triton is not installed", exc_type=ImportError)
attention_tile = pytest.importorskip(
    "specd.engine.kernels.attention_tile", reason="triton is not installed", exc_type=ImportError
)
SIZE = 16


class Cache:
    """Random keys and values of `total` positions in shuffled pages; cells of no position hold no numbers."""

    def __init__(self, total: int, groups: int, page: int, dtype: torch.dtype = torch.bfloat16) -> None:
        pages = -(-total // page)
        self.page = page
        self.table = torch.randperm(pages + 2)[:pages].int()
        self.k, self.v = torch.full((2, (pages + 2) * page, groups, SIZE), torch.nan).to(dtype)
        self.k[self.slots(0, total)] = torch.randn(total, groups, SIZE).to(dtype)
        self.v[self.slots(0, total)] = torch.randn(total, groups, SIZE).to(dtype)

    def slots(self, start: int, stop: int) -> Tensor:
        position = torch.arange(start, stop)
        return self.table.long()[position // self.page] * self.page + position % self.page

    def attend(self, q: Tensor, base: int | Tensor, mask: Tensor | None = None) -> Tensor:
        out: Tensor = cuda.CudaOps().attention(q, self.k, self.v, self.table, self.page, base, mask)
        return out

    def twin(self, q: Tensor, base: int, mask: Tensor | None = None) -> Tensor:
        return TorchOps().attention(q.float(), self.k.float(), self.v.float(), self.table, self.page, base, mask)


def near(out: Tensor, expected: Tensor) -> bool:
    limit = 1e-6 if out.dtype == torch.float32 else 6e-3
    return float((out.double() - expected.double()).norm()) <= limit * float(expected.double().norm())


@pytest.mark.parametrize(
    ("heads", "groups", "page", "base", "dtype"),
    [
        (4, 2, 64, 0, torch.bfloat16),
        (2, 2, 4, 61, torch.float16),
        (3, 1, 64, 254, torch.bfloat16),
        (2, 1, 16, 300, torch.float32),
    ],
)
def test_attention_equals_torch(heads: int, groups: int, page: int, base: int, dtype: torch.dtype) -> None:
    rows = 5
    cache = Cache(base + rows, groups, page, dtype)
    q = torch.randn(rows, heads, SIZE).to(dtype)
    assert near(cache.attend(q, base), cache.twin(q, base))
    _, mask = tree_layout(torch.tensor([-1, 0, 0, 1]))
    assert near(cache.attend(q, base, mask), cache.twin(q, base, mask))


@pytest.mark.parametrize("base", [0, 59, 250])
def test_a_row_of_a_chain_has_the_same_bits_alone_and_after_a_longer_prefix(base: int) -> None:
    rows = 9
    cache = Cache(base + rows, 1, 64)
    q = torch.randn(rows, 2, SIZE).bfloat16()
    whole = cache.attend(q, torch.tensor([base], dtype=torch.int32))
    for first, count in ((0, 1), (3, 5), (8, 1)):
        assert torch.equal(cache.attend(q[first : first + count], base + first), whole[first : first + count])


def test_a_long_prefill_has_the_bits_of_single_rows() -> None:
    rows = 260  # more than partial_kernel takes
    cache = Cache(rows + 30, 1, 64)
    q = torch.randn(rows, 1, SIZE).bfloat16()
    whole = cache.attend(q, 30)
    for row in (0, 34, 226, 259):
        assert torch.equal(cache.attend(q[row : row + 1], 30 + row), whole[row : row + 1]), row


@pytest.mark.parametrize("base", [0, 62, 255])
def test_a_row_of_a_tree_has_the_bits_of_its_path_as_a_chain(base: int) -> None:
    parents = torch.tensor([-1, 0, -1, 1, 1, 4])
    _, mask = tree_layout(parents)
    rows = len(parents) + 1
    cache = Cache(base + rows, 1, 64)
    q = torch.randn(rows, 2, SIZE).bfloat16()
    tree = cache.attend(q, base, as_lanes(mask))
    where = cache.slots(base, base + rows)
    kept = cache.k.clone(), cache.v.clone()
    for row in range(rows):
        path = mask[row].nonzero()[:, 0]
        for tensor, source in zip((cache.k, cache.v), kept, strict=True):
            tensor.copy_(source)
            tensor[where[: len(path)]] = source[where[path]]
        assert torch.equal(cache.attend(q[row : row + 1], base + len(path) - 1)[0], tree[row]), row


def test_padding_rows_change_no_other_row() -> None:
    base, rows = 70, 3
    cache = Cache(base + 8, 1, 64)
    q = torch.randn(8, 2, SIZE).bfloat16()
    chain = cache.attend(q[:rows], base)
    _, mask = tree_layout(torch.tensor([-1, -1]))
    tree = cache.attend(q[:rows], base, mask)
    lanes = torch.full((8, 8), -1, dtype=torch.int32)
    lanes[:rows, :rows] = as_lanes(mask)
    q[rows:], cache.k[cache.slots(base + rows, base + 8)] = 1e3, -1e3
    assert torch.equal(cache.attend(q, base)[:rows], chain)
    padded = cache.attend(q, base, lanes)
    assert torch.equal(padded[:rows], tree)
    assert padded.isfinite().all()


@pytest.mark.parametrize("spanned", [False, True])
def test_span_attention_equals_torch(spanned: bool) -> None:
    cache = Cache(330, 1, 64)
    q = torch.randn(6, 2, SIZE).bfloat16()
    start, stop = 70, 327
    spans = torch.tensor([[70 + row, 200 + 20 * row] for row in range(6)]) if spanned else None
    expected = TorchOps().span_attention(
        q.float(), cache.k.float(), cache.v.float(), cache.table, cache.page, start, stop, spans
    )
    out = cuda.CudaOps().span_attention(q, cache.k, cache.v, cache.table, cache.page, start, stop, spans)
    assert near(out, expected)
    places = (torch.tensor([place], dtype=torch.int32) for place in (start, stop))
    assert torch.equal(cuda.CudaOps().span_attention(q, cache.k, cache.v, cache.table, cache.page, *places, spans), out)


def test_splits_cover_every_position_once() -> None:
    sizes = {1: 1, 256: 1, 257: 2, 4096: 16, 4097: 17, 4608: 17, 4609: 18, 32768: 72}
    assert {positions: attention_tile.splits_of(positions) for positions in sizes} == sizes


def test_stages_shrink_where_shared_memory_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [(4, 16, 128, 2), (3, 64, 128, 2), (3, 64, 64, 2), (2, 32, 128, 4)]  # of rows of so many bytes an element
    for tma in (False, True):
        assert [attention_tile.stages_for(*plan, tma) for plan in plans] == [4, 3, 3, 2]
    monkeypatch.setattr(attention_tile.launch, "shared_memory", lambda: 101376)
    assert [attention_tile.stages_for(*plan, False) for plan in plans] == [3, 3, 3, 2]
    assert [attention_tile.stages_for(*plan, True) for plan in plans[:3]] == [2, 2, 3]


def test_lanes_list_a_rows_visible_rows_in_order() -> None:
    _, mask = tree_layout(torch.tensor([-1, 0, -1, 1]))
    assert as_lanes(mask).tolist() == [
        [0, -1, -1, -1, -1], [0, 1, -1, -1, -1], [0, 1, 2, -1, -1], [0, 3, -1, -1, -1], [0, 1, 2, 4, -1],
    ]  # fmt: skip
