"""Which tile serves a product, and how many splits over K a weight has. Tiles were measured on an H200.

A weight's splits, and with them the order of every sum, depend on its shape alone; tiles change no bit of a result.
"""

from dataclasses import replace

import torch

from specd.engine.kernels import launch
from specd.engine.kernels.linear import Tile

_PROGRAMS = 132  # multiprocessors of the device that the tiles were measured on
_HEAD = 65536  # columns; weights of more are vocabularies


def splits_for(columns: int, depth: int) -> int:
    """Splits over K of a projection's weight [columns, depth]: enough programs for all multiprocessors."""
    wanted = max(1, round(160 / -(-columns // 64)))
    return max(1, min(wanted, depth // 512, 6))


def by_pointer(rows: int, columns: int, dtype: torch.dtype, gated: bool = False) -> Tile:
    """The tile of linear.py's kernel, for a weight of so many columns (gated: of two such)."""
    if dtype == torch.float32:
        return Tile(16 if rows <= 16 else 32, 32, 32, 2, 4)
    if rows > 128:
        return Tile(128, 64 if gated else 128, 64, 3, 8)
    bm = max(16, 1 << (rows - 1).bit_length())
    if gated:
        return Tile(bm, 64, 128, 3, 4) if bm <= 32 else Tile(bm, 64, 64, 4, 4) if bm <= 64 else Tile(bm, 128, 64, 4, 8)
    if bm <= 32:
        return Tile(bm, 64, 128, 4, 4)
    if columns > _HEAD:
        return Tile(bm, 128, 128, 4, 8) if bm <= 64 else Tile(bm, 128, 64, 6, 8)
    return Tile(bm, 64, 128, 3, 4) if bm <= 64 else Tile(bm, 128, 64, 4, 8)


def by_descriptor(rows: int, columns: int, splits: int = 1, gated: bool = False) -> Tile:
    """The tile of linear_tma.py's or linear_pair.py's kernel, for a weight of so many columns (gated: of two such).
    Up to 128 rows, its splits have programs of their own."""
    if rows <= 16:
        return Tile(16, 64, 128, 3 if gated or columns > _HEAD else 4, 4)
    if rows <= 32:
        return Tile(32, 64, 64, 4, 4) if gated else Tile(32, 64, 128, 4, 4)
    if rows > 128:
        return _of_many(rows, columns, gated)
    if _is_even(80, columns, splits):
        return Tile(64, 80, 128, 3 if gated else 4, 4) if rows <= 64 else Tile(128, 80, 128, 3 if gated else 4, 8)
    if not gated and _is_even(96, columns, splits):
        return Tile(64, 96, 128, 4, 4) if rows <= 64 else Tile(128, 96, 64, 6, 8)
    if rows <= 64:
        return (
            Tile(64, 64, 64, 4, 4) if gated else Tile(64, 128, 64, 3, 4) if columns > _HEAD else Tile(64, 64, 128, 3, 4)
        )
    if gated:
        return Tile(128, 128, 64, 4, 8)
    return Tile(128, 128, 64, 6, 8) if columns > _HEAD else Tile(128, 64, 64, 4, 4)


def fitting(tile: Tile, item: int, gated: bool = False) -> Tile:
    """The tile with fewer stages, and where that is not enough less of K at once, if the device has less shared memory
    than an H200. item: bytes of an element."""
    width = item * (tile.bm + tile.bn * (2 if gated else 1))
    for bk in (tile.bk, tile.bk // 2, tile.bk // 4):
        stages = min(tile.stages, launch.shared_memory() // (width * bk))
        if stages >= 2:
            return replace(tile, bk=bk, stages=stages)
    return replace(tile, bk=32, stages=1)


def _is_even(bn: int, columns: int, splits: int) -> bool:
    """Whether tiles of bn weight rows occupy nearly every multiprocessor, once."""
    return 0.9 * _PROGRAMS <= -(-columns // bn) * splits <= _PROGRAMS


def _of_many(rows: int, columns: int, gated: bool) -> Tile:
    """For more than 128 rows, whose splits one program adds up in order."""
    if gated:
        return Tile(128, 64, 64, 4, 4) if rows <= 512 else Tile(256, 64, 64, 4, 8)

    def programs(bm: int, bn: int) -> int:
        return -(-rows // bm) * -(-columns // bn)

    # One program a multiprocessor, or two that have half of its shared memory each.
    if columns % 160 == 0 and programs(64, 160) <= _PROGRAMS:
        return Tile(64, 160, 64, 6, 4)
    if programs(128, 128) <= _PROGRAMS:
        return Tile(128, 128, 64, 4, 8) if programs(128, 128) >= _PROGRAMS / 2 else Tile(64, 128, 64, 4, 4)
    if columns % 160 == 0 and programs(64, 160) <= 2 * _PROGRAMS:
        return Tile(64, 160, 64, 4, 4)
    return Tile(256, 128, 64, 3, 8) if programs(256, 128) <= _PROGRAMS else Tile(128, 128, 64, 4, 8)
