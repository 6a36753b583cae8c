"""Products in Triton's interpreter: right for ragged shapes, and the same bits for any number of rows."""

import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

linear = pytest.importorskip("specd.engine.kernels.linear", reason="triton is not installed", exc_type=ImportError)
linear_tma = pytest.importorskip(
    "specd.engine.kernels.linear_tma", reason="triton is not installed", exc_type=ImportError
)
tiles = pytest.importorskip("specd.engine.kernels.tiles", reason="triton is not installed", exc_type=ImportError)
cuda = pytest.importorskip("specd.engine.kernels.cuda", reason="triton is not installed", exc_type=ImportError)


def draw(rows: int, columns: int, depth: int, dtype: torch.dtype = torch.bfloat16) -> tuple[Tensor, Tensor, Tensor]:
    """x [M, K], weight [N, K], bias [N]."""
    draws = torch.Generator().manual_seed(rows * columns + depth)
    x, weight = torch.randn(rows, depth, generator=draws), torch.randn(columns, depth, generator=draws) / depth**0.5
    return x.to(dtype), weight.to(dtype), torch.randn(columns, generator=draws).to(dtype)


def error(out: Tensor, expected: Tensor) -> float:
    return float((out.double() - expected.double()).norm() / expected.double().norm())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize(("rows", "columns", "depth"), [(1, 96, 128), (5, 70, 104), (19, 64, 256)])
def test_linear_equals_torch(rows: int, columns: int, depth: int, dtype: torch.dtype) -> None:
    x, weight, bias = draw(rows, columns, depth, dtype)
    expected = x.double() @ weight.double().T
    limit = 1e-6 if dtype == torch.float32 else 4e-3
    ops = cuda.CudaOps()
    assert error(ops.linear(x, weight), expected) < limit
    assert error(ops.linear(x, weight, bias), expected + bias.double()) < limit


def test_a_gated_product_is_silu_of_the_gate_times_up() -> None:
    x, weight, _ = draw(5, 2 * 40, 128)
    gate, up = (x.double() @ weight.double().T).chunk(2, dim=-1)
    assert error(cuda.CudaOps().gated(x, weight), torch.nn.functional.silu(gate) * up) < 4e-3


@pytest.mark.parametrize("splits", [1, 2, 3])
def test_partial_sums_add_up_in_order_to_what_one_program_adds(splits: int) -> None:
    x, weight, bias = draw(5, 70, 640)
    tile = linear.Tile(16, 64, 64, 2, 4)
    parts = linear.launch(x, weight, bias, tile, splits=splits, partial=True)
    whole = linear.launch(x, weight, bias, tile, splits=splits, partial=True, in_order=True)
    assert parts.shape == (splits, 5, 70)
    assert whole.shape == (1, 5, 70)
    total = sum(parts, torch.zeros(()))
    assert torch.equal(total, whole[0])
    assert error(total, x.double() @ weight.double().T + bias.double()) < 1e-6


@pytest.mark.parametrize("rows", [20, 70, 150])
@pytest.mark.parametrize("splits", [1, 3])
def test_a_product_by_descriptors_has_the_bits_of_one_without(rows: int, splits: int) -> None:
    x, weight, bias = draw(rows, 150, 640)
    before, by_descriptor = linear.Tile(16, 64, 64, 2, 4), linear.Tile(64, 64, 64, 2, 4)
    for kinds in ({"partial": True}, {"partial": True, "in_order": True}):
        expected = linear.launch(x, weight, bias, before, splits=splits, **kinds)
        found = linear_tma.launch(x, weight, bias, by_descriptor, splits=splits, **kinds)
        assert torch.equal(found, expected)
    assert torch.equal(
        linear_tma.launch(x, weight, None, by_descriptor, gated=True),
        linear.launch(x, weight, None, before, gated=True),
    )


@pytest.mark.parametrize("bn", [80, 96, 160])
def test_a_tile_of_two_widths_has_the_bits_of_others(bn: int) -> None:
    x, weight, bias = draw(70, 330, 640)
    pair, other = linear.Tile(64, bn, 64, 2, 4), linear.Tile(16, 64, 64, 2, 4)
    for splits, kinds in ((3, {"partial": True, "in_order": True}), (3, {"partial": True}), (1, {})):
        expected = linear.launch(x, weight, bias, other, splits=splits, **kinds)
        assert torch.equal(linear_tma.launch(x, weight, bias, pair, splits=splits, **kinds), expected)
    expected = linear.launch(x, weight, None, other, gated=True)
    assert torch.equal(linear_tma.launch(x, weight, None, pair, gated=True), expected)


def test_what_descriptors_cannot_hold_goes_without() -> None:
    x, weight, _ = draw(20, 64, 256)
    assert linear_tma.takes(x, weight)
    assert not linear_tma.takes(x.float(), weight.float())
    assert not linear_tma.takes(*draw(20, 64, 100)[:2])  # rows that do not begin at a multiple of 16 bytes
    assert not linear_tma.takes(x.flatten()[1 : 1 + 19 * 256].view(19, 256), weight)


def test_tiles_fill_the_device_evenly() -> None:
    """Of 132 multiprocessors: 122 to 128 programs, or 256 that run two at a time."""
    shapes = {(512, 2048): 128, (1024, 2048): 128, (2048, 2048): 128, (512, 2560): 160, (1024, 2560): 160}
    assert {shape: tiles.by_descriptor(*shape).bn for shape in shapes} == shapes
    assert tiles.by_descriptor(2048, 2048).bm == 256
    assert [tiles.by_descriptor(rows, 9728, gated=True).bm for rows in (512, 1024)] == [128, 256]
    for rows in (64, 128):
        assert tiles.by_descriptor(rows, 2560, tiles.splits_for(2560, 9728)).bn == 80
        assert tiles.by_descriptor(rows, 6144, tiles.splits_for(6144, 2560)).bn == 96
        assert tiles.by_descriptor(rows, 9728, gated=True).bn == 80
        assert tiles.by_descriptor(rows, 3072, 1).bn in (64, 128)


def test_the_device_says_how_much_shared_memory_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    utils = SimpleNamespace(get_device_properties=lambda device: {"max_shared_mem": 1000 + device})
    monkeypatch.setattr(tiles.launch, "INTERPRETED", False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(tiles.launch.triton.runtime, "driver", SimpleNamespace(active=SimpleNamespace(utils=utils)))
    assert tiles.launch.shared_memory.__wrapped__() == 1003


def test_tiles_shrink_where_shared_memory_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = []
    for rows, columns in itertools.product((1, 32, 64, 128, 384, 1024), (2048, 2560, 9728, 151936)):
        for gated in (False, True):
            chosen.append((tiles.by_pointer(rows, columns, torch.bfloat16, gated), gated))
            chosen += [(tiles.by_descriptor(rows, columns, splits, gated), gated) for splits in (1, 4)]
    assert all(tiles.fitting(tile, 2, gated) == tile for tile, gated in chosen)
    monkeypatch.setattr(tiles.launch, "shared_memory", lambda: 101376)
    for tile, gated in chosen:
        small = tiles.fitting(tile, 2, gated)
        assert (small.bm, small.bn, small.warps) == (tile.bm, tile.bn, tile.warps)
        assert small.stages >= 2
        assert small.stages * small.bk * (small.bm + small.bn * (2 if gated else 1)) * 2 <= 101376


@pytest.mark.parametrize("kind", ["linear", "projection", "gated"])
def test_rows_of_a_product_do_not_depend_on_their_number(kind: str) -> None:
    ops = cuda.CudaOps()
    x, weight, _ = draw(130, 64, 1024)

    def product(rows: Tensor) -> Tensor:
        out: Tensor = getattr(ops, kind)(rows, weight)
        return sum(out, torch.zeros(())) if out.dim() == 3 else out

    alone = torch.cat([product(x[row : row + 1]) for row in range(3)])
    for rows in (2, 17, 65, 130):
        assert torch.equal(product(x[:rows])[:3], alone[:rows]), rows


def test_a_weights_splits_do_not_depend_on_the_rows() -> None:
    ops = cuda.CudaOps()
    assert {ops.projection(draw(rows, 64, 1024)[0], draw(1, 64, 1024)[1]).shape[0] for rows in (1, 7, 64, 128)} == {2}


def test_a_product_in_splits_is_partial_or_in_order() -> None:
    x, weight, _ = draw(2, 64, 256)
    with pytest.raises(ValueError, match="partial or in order"):
        linear.launch(x, weight, None, linear.Tile(16, 64, 64, 2, 4), splits=2)
