"""What a step of fixed shape is told: one buffer that the host fills and that goes to the device in one copy.

The buffer is the only thing that differs between two replays of a captured step. Words of 64 bits, in this order:
rows and base, the sampling parameters, tokens, positions, slots and parents of 128 rows, the page table, and for trees
the lanes, W x W for a step of width W.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from specd.engine.choice import PARAMS, packed
from specd.engine.kv_cache import LONGEST_STEP, KVCache
from specd.engine.sampling import SamplingParams

_HEAD = 8  # words: base and rows, int32, and nothing behind them


class StepInputs:
    """The buffer on both sides. The device's parts, by name, keep their addresses for good."""

    def __init__(self, table: int, page_size: int, dummy: int, device: torch.device) -> None:
        """table: entries of a cache's page table. dummy: first slot of the page where padding is written."""
        self._page_size = page_size
        rows = LONGEST_STEP
        sizes = [_HEAD, PARAMS, rows, rows, rows, rows // 2, (table + 1) // 2, rows * rows // 2]
        ends = np.cumsum(sizes).tolist()
        self._host = torch.zeros(ends[-1], dtype=torch.int64, pin_memory=device.type == "cuda")
        self._device = torch.zeros_like(self._host, device=device)
        self._chain_words = ends[-2]
        parts = torch.split(self._device, sizes)
        head = parts[0].view(torch.int32)
        self.base, self.rows = head[0:1], head[1:2]  # [1] int32 each
        self.params = parts[1]
        self.tokens, self.positions, self.slots = parts[2:5]  # [128] int64 each
        self.parents = parts[5].view(torch.int32)  # [128]
        self.table = parts[6].view(torch.int32)
        self._lanes: Tensor = parts[7].view(torch.int32)
        words = np.split(self._host.numpy(), ends[:-1])
        self._w_head = words[0].view(np.int32)
        self._w_params = words[1]
        self._w_tokens, self._w_positions, self._w_slots = words[2:5]
        self._w_parents, self._w_table, self._w_lanes = (part.view(np.int32) for part in words[5:8])
        self._iota = np.arange(rows, dtype=np.int64)
        self._dummies = dummy + self._iota % page_size
        self._pages: tuple[int, ...] = ()  # what the table's first entries say
        self._sampling: SamplingParams | None = None
        self._w_positions[:] = self._iota
        self._w_slots[:] = self._dummies
        self._w_head[1] = 1

    def lanes(self, width: int) -> Tensor:
        """[width, width] int32 on the device."""
        return self._lanes[: width * width].view(width, width)

    def copy(self, width: int, is_tree: bool) -> None:
        """Host to device, as far as a step of that width reads."""
        words = self._chain_words + (width * width // 2 if is_tree else 0)
        self._device[:words].copy_(self._host[:words], non_blocking=True)

    def write(self, cache: KVCache, tokens: list[int], width: int, sampling: SamplingParams) -> None:
        """A chain of tokens, the newest first, after the cache, which holds pages for them; padded to `width`."""
        start, rows = cache.length, len(tokens)
        self._w_head[0], self._w_head[1] = start, rows
        self._w_tokens[:rows] = tokens
        np.add(self._iota[:width], start, out=self._w_positions[:width])
        self._write_pages(cache.pages)
        done, size = 0, self._page_size
        while done < rows:
            page, offset = divmod(start + done, size)
            count = min(size - offset, rows - done)
            np.add(self._iota[:count], self._pages[page] * size + offset, out=self._w_slots[done : done + count])
            done += count
        self._w_slots[rows:width] = self._dummies[rows:width]
        if sampling is not self._sampling:
            floats, ints = packed(sampling)
            self._w_params[:4].view(np.float64)[:] = floats
            self._w_params[4:].view(np.int32)[:] = ints
            self._sampling = sampling

    def write_tree(self, parents: Sequence[int], width: int) -> None:
        """After `write`: the drafts' parents, as in Draft. Raises ValueError for a child before its parent."""
        lanes = self._w_lanes[: width * width].reshape(width, width)
        lanes[:] = -1
        lanes[:, 0] = 0  # all rows see the root; padding sees nothing else
        depths = [0]
        for row, parent in enumerate(parents, start=1):
            if not -1 <= parent < row - 1:
                raise ValueError(f"draft {row - 1} has parent {parent}: parents stand before their children")
            depth = depths[parent + 1] + 1
            depths.append(depth)
            lanes[row, :depth] = lanes[parent + 1, :depth]
            lanes[row, depth] = row
        self._w_parents[1 : len(depths)] = np.add(parents, 1) if len(depths) > 1 else 0
        self._w_positions[: len(depths)] = np.add(depths, int(self._w_head[0]))

    def _write_pages(self, pages: tuple[int, ...]) -> None:
        """The table's first entries. Nearly always all but the last few are there already."""
        same = min(len(pages), len(self._pages))
        if pages[:same] != self._pages[:same]:
            same = next(place for place in range(same) if pages[place] != self._pages[place])
        elif len(pages) <= len(self._pages):
            return
        self._w_table[same : len(pages)] = pages[same:]
        self._pages = pages
