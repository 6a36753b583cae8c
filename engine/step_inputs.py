"""What a step of fixed shape is told: one buffer that the host fills and that goes to the device in one copy.

The buffer is the only thing that differs between two replays of a captured step. Words of 64 bits, in this order:
rows and base, the sampling parameters, the page table, tokens, positions and slots of 1024 rows, and for trees the
parents of 128 rows and the lanes, W x W for a step of width W.
"""

import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from specd.engine.choice import PARAMS, packed
from specd.engine.kv_cache import LONGEST_READ, LONGEST_STEP, KVCache
from specd.engine.sampling import SamplingParams

Words = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
_HEAD = 8  # words: base and rows, int32, and nothing behind them
_WORDS = [row.to_bytes(4, sys.byteorder) for row in range(LONGEST_STEP)]  # int32 each


class StepInputs:
    """The buffer on both sides. The device's parts, by name, keep their addresses for good."""

    def __init__(self, table: int, page_size: int, dummy: int, device: torch.device) -> None:
        """table: entries of a cache's page table. dummy: first slot of the page where padding is written."""
        self._page_size = page_size
        rows, wide = LONGEST_STEP, LONGEST_READ
        sizes = [_HEAD, PARAMS, 2 * -(-table // 4), 3 * wide, rows // 2, rows * rows // 2]
        ends = np.cumsum(sizes).tolist()
        self._chain_words, self._tree_words = ends[2], ends[4]
        self._host = torch.zeros(ends[-1], dtype=torch.int64, pin_memory=device.type == "cuda")
        self._device = torch.zeros_like(self._host, device=device)
        head, self.params, pages, self._rows, parents, lanes = torch.split(self._device, sizes)
        self.base, self.rows = torch.split(head.view(torch.int32)[:2], 1)  # [1] int32 each
        self.table, self._parents, self._lanes = (part.view(torch.int32) for part in (pages, parents, lanes))
        words = np.split(self._host.numpy(), ends[:-1])
        self._w_params, self._w_rows = words[1], words[3]
        self._w_head, self._w_table, self._w_parents, self._w_lanes = (words[n].view(np.int32) for n in (0, 2, 4, 5))
        self._iota = np.arange(wide, dtype=np.int64)
        self._dummies = dummy + self._iota % page_size
        self._chains: dict[int, tuple[Words, Words, Words]] = {}
        self._sampling: SamplingParams | None = None

    def chain(self, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """tokens, positions and slots on the device, [width] int64 each."""
        tokens, positions, slots = self._rows[: 3 * width].view(3, width)
        return tokens, positions, slots

    def tree(self, width: int) -> tuple[Tensor, Tensor]:
        """parents [width] and lanes [width, width] on the device, int32."""
        return self._parents[:width], self._lanes[: width * width].view(width, width)

    def copy(self, width: int, is_tree: bool) -> None:
        """Host to device, as far as a step of that width reads."""
        words = self._tree_words + width * width // 2 if is_tree else self._chain_words + 3 * width
        self._device[:words].copy_(self._host[:words], non_blocking=True)

    def blank(self, width: int) -> None:
        """A step of that width of nothing but padding, after nothing."""
        tokens, positions, slots = self._chain_of(width)
        self._w_head[:2] = 0, 1
        tokens[:], positions[:], slots[:] = 0, self._iota[:width], self._dummies[:width]
        self._w_lanes[: width * width] = 0

    def write(
        self,
        cache: KVCache,
        tokens: Sequence[int],
        width: int,
        sampling: SamplingParams | None = None,
        drafted: Sequence[int] | Numbers = (),
    ) -> None:
        """A chain of tokens, the newest first, and of those drafted behind them, after the cache, which holds pages for
        all; padded to `width`."""
        start, known = cache.length, len(tokens)
        rows = known + len(drafted)
        self._w_head[0], self._w_head[1] = start, rows
        w_tokens, w_positions, w_slots = self._chain_of(width)
        if known == 1:
            w_tokens[0] = tokens[0]  # quicker than a slice
        else:
            w_tokens[:known] = tokens
        w_tokens[known:rows] = drafted
        np.add(self._iota[:width], start, out=w_positions)
        self._write_pages(cache)
        self._write_slots(w_slots[:rows], cache, start)
        if rows < width:
            w_tokens[rows:] = 0
            w_slots[rows:] = self._dummies[rows:width]
        if sampling is not None:
            self._write_sampling(sampling)

    def write_tree(self, parents: Sequence[int], width: int) -> None:
        """After `write`: the drafts' parents, as in Draft. Raises ValueError for a child before its parent."""
        paths = [_WORDS[0]]  # of each row its lanes as bytes: the rows from the root down to itself
        for row, parent in enumerate(parents, start=1):
            if not -1 <= parent < row - 1:
                raise ValueError(f"draft {row - 1} has parent {parent}: parents stand before their children")
            paths.append(paths[parent + 1] + _WORDS[row])
        rows, line = len(paths), 4 * width
        lanes = [path.ljust(line, b"\xff") for path in paths]  # -1 behind them
        lanes.extend([lanes[0]] * (width - rows))  # all rows see the root; padding sees nothing else
        self._w_lanes[: width * width] = np.frombuffer(b"".join(lanes), dtype=np.int32)
        depths = np.fromiter(map(len, paths), dtype=np.int64, count=rows) // 4 - 1
        np.add(depths, self._w_head[0], out=self._w_rows[width : width + rows])
        if rows > 1:
            self._w_parents[1:rows] = parents
            self._w_parents[1:rows] += 1

    def _chain_of(self, width: int) -> tuple[Words, Words, Words]:
        """tokens, positions and slots of a step of that width, on the host."""
        if width not in self._chains:
            tokens, positions, slots = self._w_rows[: 3 * width].reshape(3, width)
            self._chains[width] = tokens, positions, slots
        return self._chains[width]

    def _write_sampling(self, sampling: SamplingParams) -> None:
        if sampling is not self._sampling:
            floats, ints = packed(sampling)
            self._w_params[:4].view(np.float64)[:] = floats
            self._w_params[4:].view(np.int32)[:] = ints
            self._sampling = sampling

    def _write_slots(self, out: Words, cache: KVCache, place: int) -> None:
        """The cache rows of places place, place + 1, ..."""
        done, size, count = 0, self._page_size, len(out)
        while done < count:
            page, offset = divmod(place + done, size)
            part = min(size - offset, count - done)
            np.add(self._iota[:part], int(cache.numbers[page]) * size + offset, out=out[done : done + part])
            done += part

    def _write_pages(self, cache: KVCache) -> None:
        """The table's first entries; what is behind them is not looked at."""
        count = cache.page_count
        self._w_table[:count] = cache.numbers[:count]
