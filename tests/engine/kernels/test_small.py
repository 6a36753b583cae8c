"""Norms, rotary positions, cache writes and SiLU in Triton's interpreter against their torch twins."""

import pytest
import torch

from specd.engine.ops import TorchOps, rope_tables

cuda = pytest.importorskip("specd.engine.kernels.cuda", reason="triton is not installed", exc_type=ImportError)
TWIN = TorchOps()


def near(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> bool:
    limit = 2e-6 if dtype == torch.float32 else 6e-3
    return float((a.double() - b.double()).norm()) <= limit * float(b.double().norm())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("parts", [0, 1, 3])
def test_add_rms_norm_equals_torch_and_rows_stand_alone(parts: int, dtype: torch.dtype) -> None:
    ops = cuda.CudaOps()
    x, weight = torch.randn(6, 96).to(dtype), torch.randn(96).to(dtype)
    delta = torch.randn(parts, 6, 96) if parts else None
    wide, kept = x.to(torch.float32, copy=True), x.clone()
    expected = TWIN.add_rms_norm(wide, None if delta is None else delta.sum(0), weight.float(), 1e-6)
    out = ops.add_rms_norm(kept, delta, weight, 1e-6)
    assert near(out, expected, dtype)
    assert near(kept, wide, dtype)
    for rows in (1, 4):
        few = x[:rows].clone()
        some = None if delta is None else delta[:, :rows].contiguous()
        assert torch.equal(ops.add_rms_norm(few, some, weight, 1e-6), out[:rows])
        assert torch.equal(few, kept[:rows])


def test_add_rms_norm_takes_a_delta_in_the_rows_type() -> None:
    x, delta, weight = (torch.randn(3, 40).bfloat16(), torch.randn(3, 40).bfloat16(), torch.ones(40).bfloat16())
    wide = x.float()
    expected = TWIN.add_rms_norm(wide, delta.float(), weight.float(), 1e-5)
    assert near(cuda.CudaOps().add_rms_norm(x, delta, weight, 1e-5), expected, torch.bfloat16)


@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize(("heads", "groups", "size"), [(4, 2, 32), (6, 6, 16), (7, 1, 64)])
@pytest.mark.parametrize("parts", [0, 2])
def test_qk_norm_rope_store_equals_torch(parts: int, heads: int, groups: int, size: int, normed: bool) -> None:
    ops, rows = cuda.CudaOps(), 5
    width = (heads + 2 * groups) * size
    qkv = torch.randn(max(parts, 1), rows, width)
    qkv = qkv if parts else qkv[0].bfloat16()
    summed = qkv.sum(0) if parts else qkv.float()
    norms = (torch.randn(size).bfloat16(), torch.randn(size).bfloat16()) if normed else None
    rope = tuple(table[7 : 7 + rows] for table in rope_tables(1e4, size, 20, torch.device("cpu")))
    slots = torch.tensor([9, 2, 11, 0, 5])
    caches = torch.randn(2, 12, groups, size).bfloat16()
    wide = caches.float()
    expected = TWIN.qk_norm_rope_store(
        summed, norms and (norms[0].float(), norms[1].float()), 1e-6, (rope[0], rope[1]), slots, wide[0], wide[1]
    )
    q = ops.qk_norm_rope_store(qkv, norms, 1e-6, (rope[0], rope[1]), slots, caches[0], caches[1])
    assert q.dtype == torch.bfloat16
    assert near(q, expected, torch.bfloat16)
    assert near(caches, wide, torch.bfloat16)
    assert torch.equal(caches[:, [1, 3, 4]].float(), wide[:, [1, 3, 4]])  # other cells are untouched


def test_many_rows_are_rotated_to_the_bits_of_one() -> None:
    ops, size = cuda.CudaOps(), 16
    qkv = torch.randn(1, 20, 3 * size)
    norms = (torch.randn(size).bfloat16(), torch.randn(size).bfloat16())
    cosine, sine = rope_tables(1e4, size, 20, torch.device("cpu"))
    caches = torch.zeros(4, 20, 1, size).bfloat16()
    every = ops.qk_norm_rope_store(qkv, norms, 1e-6, (cosine, sine), torch.arange(20), caches[0], caches[1])
    for row in (0, 17):
        one = slice(row, row + 1)
        q = ops.qk_norm_rope_store(
            qkv[:, one].contiguous(), norms, 1e-6, (cosine[one], sine[one]), torch.tensor([row]), caches[2], caches[3]
        )
        assert torch.equal(q[0], every[row])
        assert torch.equal(caches[2:, row], caches[:2, row])


def test_silu_mul_equals_torch() -> None:
    gate_up = torch.randn(3, 2 * 70).bfloat16()
    assert near(cuda.CudaOps().silu_mul(gate_up), TWIN.silu_mul(gate_up.float()), torch.bfloat16)
