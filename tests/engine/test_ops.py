"""Kernels against their torch twins, and the promise both make: a row's bits do not depend on the rows beside it."""

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from specd.engine.kernels import cpu
from specd.engine.kernels.cpu import CpuKernels
from specd.engine.ops import Ops, TorchOps, rope_tables
from specd.engine.verify import tree_layout

PAGE = 4


def native() -> CpuKernels:
    kernels = cpu.load()
    if kernels is None:
        pytest.skip("no C compiler on this machine: there are no native kernels to test")
    return kernels


@pytest.fixture(params=["torch", "native"])
def ops(request: pytest.FixtureRequest) -> Ops:
    return TorchOps() if request.param == "torch" else native()


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-6)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(1, 23), st.integers(1, 70), st.booleans(), st.booleans(), st.integers(0, 99))
def test_native_linear_equals_torch(rows: int, n: int, k: int, bf16: bool, biased: bool, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    x, weight = torch.randn(rows, k, generator=draw), torch.randn(n, k, generator=draw) / k**0.5
    weight = weight.bfloat16() if bf16 else weight
    bias = torch.randn(n, generator=draw) if biased else None
    expected = x.double() @ weight.double().T + (bias.double() if bias is not None else 0)
    close(native().linear(x, weight, bias).double(), expected)
    close(TorchOps().linear(x, weight, bias).double(), expected)


def test_bfloat16_weights_give_the_bits_of_their_float32_copy() -> None:
    weight, x = torch.randn(37, 48).bfloat16(), torch.randn(9, 48)
    assert torch.equal(native().linear(x, weight), native().linear(x, weight.float()))


@pytest.mark.parametrize("shape", [(48, 64), (101, 384), (384, 768)])
def test_rows_of_a_product_do_not_depend_on_their_number(ops: Ops, shape: tuple[int, int]) -> None:
    weight, x = torch.randn(shape).bfloat16(), torch.randn(130, shape[1])
    alone = torch.cat([ops.linear(row[None], weight) for row in x])
    for rows in (2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 64, 97, 130):
        assert torch.equal(ops.linear(x[:rows], weight), alone[:rows]), rows


def random_cache(total: int, groups: int, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    pages = -(-total // PAGE)
    table = torch.randperm(pages + 3)[:pages].to(torch.int32)
    caches = torch.randn(2, (pages + 3) * PAGE, groups, size)
    return caches[0], caches[1], table


def reference_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor, base: int, mask: torch.Tensor
) -> torch.Tensor:
    """Plain scaled dot-product attention in float64 over the gathered cache; mask [M, base + M]."""
    total = base + q.shape[0]
    slots = torch.tensor([int(table[p // PAGE]) * PAGE + p % PAGE for p in range(total)])
    group = q.shape[1] // k.shape[1]
    keys, values = (t[slots].double().repeat_interleave(group, dim=1) for t in (k, v))
    scores = torch.einsum("mhd,nhd->hmn", q.double(), keys) * q.shape[-1] ** -0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return torch.einsum("hmn,nhd->mhd", weights, values)


@pytest.mark.parametrize(("base", "rows"), [(0, 1), (0, 7), (5, 1), (63, 2), (64, 9), (130, 16)])
@pytest.mark.parametrize("heads", [(4, 4, 16), (6, 2, 16), (2, 1, 12)])
def test_attention_is_scaled_dot_product_attention(ops: Ops, base: int, rows: int, heads: tuple[int, int, int]) -> None:
    hq, groups, size = heads
    k, v, table = random_cache(base + rows, groups, size)
    q = torch.randn(rows, hq, size)
    causal = torch.ones(rows, base + rows, dtype=torch.bool)
    causal[:, base:] = causal[:, base:].tril()
    out = ops.attention(q, k, v, table, PAGE, base, None)
    close(out.double(), reference_attention(q, k, v, table, base, causal))


@pytest.mark.parametrize("base", [0, 9, 64, 70])
def test_tree_attention_sees_ancestors_only(ops: Ops, base: int) -> None:
    _, mask = tree_layout(torch.tensor([-1, -1, 0, 0, 1, 4, 2]))
    rows = mask.shape[0]
    k, v, table = random_cache(base + rows, 2, 16)
    q = torch.randn(rows, 4, 16)
    whole = torch.cat([torch.ones(rows, base, dtype=torch.bool), mask], dim=1)
    close(ops.attention(q, k, v, table, PAGE, base, mask).double(), reference_attention(q, k, v, table, base, whole))


@pytest.mark.parametrize("base", [0, 3, 60, 64, 127])
def test_a_row_of_a_verify_step_has_the_bits_of_a_decode_step(ops: Ops, base: int) -> None:
    rows = 11
    k, v, table = random_cache(base + rows, 2, 16)
    q = torch.randn(rows, 4, 16)
    together = ops.attention(q, k, v, table, PAGE, base, None)
    for row in range(rows):
        alone = ops.attention(q[row : row + 1], k, v, table, PAGE, base + row, None)
        assert torch.equal(together[row], alone[0]), row


@pytest.mark.parametrize("base", [0, 62, 100])
def test_a_path_of_a_tree_has_the_bits_of_a_chain(ops: Ops, base: int) -> None:
    parents = [-1, -1, 1, 0, 2, 4]
    _, mask = tree_layout(torch.tensor(parents))
    path, rows = [0, 2, 3, 5, 6], len(parents) + 1  # rows 2, 3, 5, 6 are drafts 1, 2, 4, 5
    k, v, table = random_cache(base + rows, 2, 16)
    q = torch.randn(rows, 4, 16)
    tree = ops.attention(q, k, v, table, PAGE, base, mask)
    slots = [int(table[p // PAGE]) * PAGE + p % PAGE for p in range(base, base + rows)]
    for cache in (k, v):
        cache[slots[: len(path)]] = cache[[slots[row] for row in path]]
    chain = ops.attention(q[path].contiguous(), k, v, table, PAGE, base, None)
    assert torch.equal(tree[path], chain)


def test_native_small_operations_equal_torch() -> None:
    x, delta, weight = torch.randn(5, 41), torch.randn(5, 41), torch.randn(41)
    ours, theirs = x.clone(), x.clone()
    close(native().add_rms_norm(ours, delta, weight, 1e-6), TorchOps().add_rms_norm(theirs, delta, weight, 1e-6))
    close(ours, theirs)
    wide = torch.randn(5, 26) * 4
    close(native().silu_mul(wide), TorchOps().silu_mul(wide))


@pytest.mark.parametrize("normed", [True, False])
def test_native_rope_and_store_equal_torch(normed: bool) -> None:
    qkv, positions = torch.randn(6, (4 + 2 * 2) * 16), torch.tensor([0, 1, 2, 500, 501, 7])
    rope = tuple(table[positions] for table in rope_tables(1e4, 16, 512, torch.device("cpu")))
    norms = (torch.randn(16), torch.randn(16)) if normed else None
    slots = torch.tensor([3, 1, 8, 9, 0, 5])
    results = []
    for one in (native(), TorchOps()):
        k, v = torch.zeros(10, 2, 16), torch.zeros(10, 2, 16)
        q = one.qk_norm_rope_store(qkv, norms, 1e-6, (rope[0], rope[1]), slots, k, v)
        results.append((q, k, v))
    for ours, theirs in zip(*results, strict=True):
        close(ours, theirs)


@pytest.mark.parametrize("spanned", [False, True])
@pytest.mark.parametrize("start", [0, 5, 70])
def test_span_attention_sees_each_rows_span_and_nothing_else(ops: Ops, start: int, spanned: bool) -> None:
    rows, stop = 7, 90
    k, v, table = random_cache(stop, 2, 20)
    q = torch.randn(rows, 4, 20)
    first, last = start + torch.arange(rows) * 2, stop - torch.arange(rows).flip(0)
    spans = torch.stack([first, last], dim=1)
    place = torch.arange(stop)
    mask = (place >= first[:, None]) & (place < last[:, None]) if spanned else (place >= start).expand(rows, stop)
    out = ops.span_attention(q, k, v, table, PAGE, start, stop, spans if spanned else None)
    slots = torch.tensor([int(table[p // PAGE]) * PAGE + p % PAGE for p in range(stop)])
    keys, values = (cache[slots].double().repeat_interleave(2, dim=1) for cache in (k, v))
    scores = torch.einsum("mhd,nhd->hmn", q.double(), keys) * 20**-0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    close(out.double(), torch.einsum("hmn,nhd->mhd", weights, values))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_what_attention_gives_can_be_viewed_as_rows(ops: Ops, groups: int) -> None:
    k, v, table = random_cache(40, groups, 20)
    q = torch.randn(7, 4, 20)
    for out in (ops.span_attention(q, k, v, table, PAGE, 3, 40, None), ops.attention(q, k, v, table, PAGE, 33, None)):
        assert out.view(7, 80).shape == (7, 80)
    turned = torch.randn(4, 7, 20).transpose(0, 1)
    turned_out = TorchOps().attention(turned, k, v, table, PAGE, 33, None)
    assert turned_out.is_contiguous()
    assert torch.equal(turned_out, TorchOps().attention(turned.contiguous(), k, v, table, PAGE, 33, None))


def test_a_cache_that_cannot_be_written_costs_a_build_and_no_folder_at_all_costs_speed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    native()
    (tmp_path / "file").touch()
    (tmp_path / "aside").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "aside"))
    kernels = cpu.load.__wrapped__()
    assert isinstance(kernels, CpuKernels)
    assert list((tmp_path / "aside").iterdir()) == []  # the loaded library needs its file no more
    close(kernels.linear(torch.ones(1, 8), torch.ones(3, 8)), torch.full((1, 3), 8.0))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    assert cpu.load.__wrapped__() is None
    assert "a third of the speed" in caplog.text
