"""Attention in tiles and blocks: wherever their edges fall, a row has the bits of a decode step."""

import pytest
import torch

from specd.engine.kernels import cpu
from specd.engine.kernels.cpu import CpuKernels
from specd.engine.ops import TorchOps

PAGE = 16


@pytest.fixture(scope="module")
def ops() -> CpuKernels:
    kernels = cpu.load()
    if kernels is None:
        pytest.skip("no C compiler on this machine: there are no native kernels to test")
    return kernels


def cache(total: int, groups: int, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    pages = -(-total // PAGE)
    keys, values = torch.randn(2, pages * PAGE, groups, size)
    return keys, values, torch.randperm(pages).to(torch.int32)


@pytest.mark.parametrize("base", [0, 1, 47, 48, 95, 200])
@pytest.mark.parametrize("heads", [(4, 4, 64), (8, 2, 16), (16, 1, 20), (6, 3, 128)])
def test_any_number_of_rows_has_the_bits_of_decode_steps(
    ops: CpuKernels, base: int, heads: tuple[int, int, int]
) -> None:
    hq, groups, size = heads
    most = 70
    k, v, table = cache(base + most, groups, size)
    q = torch.randn(most, hq, size)
    alone = torch.cat([ops.attention(q[m : m + 1], k, v, table, PAGE, base + m, None) for m in range(most)])
    for rows in (2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 70):
        assert torch.equal(ops.attention(q[:rows], k, v, table, PAGE, base, None), alone[:rows]), rows
        chain = torch.ones(rows, rows, dtype=torch.bool).tril()
        assert torch.equal(ops.attention(q[:rows], k, v, table, PAGE, base, chain), alone[:rows]), rows
        spans = torch.stack([torch.zeros(rows, dtype=torch.int64), base + 1 + torch.arange(rows)], dim=1)
        assert torch.equal(ops.span_attention(q[:rows], k, v, table, PAGE, 0, base + rows, spans), alone[:rows]), rows


@pytest.mark.parametrize("kind", ["native", "torch"])
def test_a_row_is_not_touched_by_what_it_does_not_see(kind: str, request: pytest.FixtureRequest) -> None:
    operations: CpuKernels | TorchOps = request.getfixturevalue("ops") if kind == "native" else TorchOps()
    k, v, table = cache(80, 2, 16)
    q = torch.randn(6, 4, 16)
    seen = operations.attention(q[:4], k, v, table, PAGE, 64, None)
    last = table[4].long() * PAGE
    k[last + 4 : last + PAGE] = v[last + 4 : last + PAGE] = torch.nan  # padding's, which nobody wrote
    assert torch.equal(operations.attention(q, k, v, table, PAGE, 64, None)[:4], seen)
