"""Keys and values of committed tokens, in pages: one PagePool a model, one KVCache a sequence.

Rollback is `truncate(length)` and nothing else: absolute and idempotent, so that a step that fails or is cancelled can
always be undone without knowing how far it got. Pages are counted: `fork` shares full pages, and writing into a shared
page copies it first. The paged layout is vLLM's (PagedAttention, arXiv 2309.06180).
"""

from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from specd.engine.errors import ContextOverflow, OutOfMemory

LONGEST_STEP = 128  # rows of the widest step of fixed shape
LONGEST_READ = 1024  # rows of the widest pass of fixed shape, which may reach beyond what a cache holds


class Sizes(Protocol):
    """The part of a model's config that its cache depends on."""

    @property
    def num_layers(self) -> int: ...
    @property
    def num_kv_heads(self) -> int: ...
    @property
    def head_dim(self) -> int: ...


class PagePool:
    """k, v: [L, P + 1, S, G, D] for L layers, P pages of S tokens, G key/value heads of size D. The last page is
    nobody's: `dummy` is its first slot, where the padding of a fixed step writes."""

    def __init__(self, config: Sizes, pages: int, page_size: int, device: torch.device, dtype: torch.dtype) -> None:
        shape = (config.num_layers, pages + 1, page_size, config.num_kv_heads, config.head_dim)
        # A kernel may read what nobody wrote, with a weight of 0: on an accelerator it must be a number then.
        new = torch.empty if device.type == "cpu" else torch.zeros
        try:
            self.k = new(shape, device=device, dtype=dtype)
            self.v = new(shape, device=device, dtype=dtype)
        except (torch.OutOfMemoryError, RuntimeError) as error:
            gigabytes = 2 * torch.Size(shape).numel() * dtype.itemsize / 2**30
            raise OutOfMemory(
                f"no room for a key/value pool of {gigabytes:.1f} GiB, {pages * page_size} tokens; ask for fewer tokens"
            ) from error
        self.page_size = page_size
        self.dummy = pages * page_size
        self.layers = [
            (self.k[layer].view(-1, *shape[-2:]), self.v[layer].view(-1, *shape[-2:])) for layer in range(shape[0])
        ]  # per layer, by slot: [P S, G, D]
        self._users = [0] * pages
        self._free = list(range(pages))[::-1]

    @property
    def free_pages(self) -> int:
        return len(self._free)

    @property
    def pages(self) -> int:
        return len(self._users)

    @property
    def bytes_per_page(self) -> int:
        return 2 * self.k[:, 0].numel() * self.k.element_size()

    def users(self, page: int) -> int:
        """How many caches hold the page."""
        return self._users[page]

    def take(self) -> int:
        """A free page, held once. Raises OutOfMemory when there is none."""
        if not self._free:
            total = self.pages * self.page_size
            raise OutOfMemory(
                f"all {total} tokens of the key/value pool are in use; wait for a job to end or raise kv_tokens"
            )
        page = self._free.pop()
        self._users[page] = 1
        return page

    def share(self, page: int) -> None:
        self._users[page] += 1

    def release(self, page: int) -> None:
        """Gives up one hold; the last one frees the page."""
        self._users[page] -= 1
        if self._users[page] == 0:
            self._free.append(page)

    def move(self, source: Tensor, target: Tensor) -> None:
        """Keys and values of the slots `source` [n] go to `target` [n], which may be among them."""
        for k, v in self.layers:
            k[target], v[target] = k[source], v[source]  # the right side is gathered before anything is written

    def copy(self, source: int, target: int) -> None:
        self.k[:, target] = self.k[:, source]
        self.v[:, target] = self.v[:, source]


class KVCache:
    """One sequence's keys and values: positions 0..length-1. table: [max_pages] int32, the page of each S positions,
    on the pool's device; right after `reserve`, `keep` and `slots`. numbers: the same on the host (numpy), where it is
    right as far as there are pages."""

    def __init__(self, pool: PagePool, max_positions: int) -> None:
        self.pool = pool
        self.length = 0
        self.max_positions = max_positions
        self._pages: list[int] = []
        self._held = 0  # leading entries of table that are right
        size = -(-(max_positions + LONGEST_READ) // pool.page_size)
        self.table = torch.zeros(size, dtype=torch.int32, device=pool.k.device)
        self.numbers = np.zeros(size, dtype=np.int32)

    @property
    def pages(self) -> tuple[int, ...]:
        """The pages that hold the sequence, in order."""
        return tuple(self._pages)

    @property
    def page_count(self) -> int:
        return len(self._pages)

    def reserve(self, n: int) -> Tensor:
        """[n] int64 slots (cache rows) of the n positions after `length`, which does not move: see `advance`.

        Raises ContextOverflow beyond max_positions and OutOfMemory when the pool is empty; the cache is then as before.
        """
        self.hold(n)
        return self._slots(torch.arange(self.length, self.length + n, device=self.table.device))

    def hold(self, n: int) -> None:
        """Has `pages` of its own for the n positions after `length`, as `reserve` does; the device is not told."""
        size, end = self.pool.page_size, self.length + n
        if end > self.max_positions:
            raise ContextOverflow(f"{end} tokens do not fit the model's context of {self.max_positions}")
        first = self.length // size
        for index in range(first, -(-end // size)):
            if index == len(self._pages):
                self._pages.append(self.pool.take())
                self.numbers[index] = self._pages[index]
            elif self.pool.users(self._pages[index]) > 1:  # copy on write
                fresh = self.pool.take()
                if self.length > index * size:
                    self.pool.copy(self._pages[index], fresh)
                self.pool.release(self._pages[index])
                self._pages[index] = self.numbers[index] = fresh
                self._held = min(self._held, index)

    def advance(self, n: int) -> None:
        """The n reserved positions now hold keys and values."""
        self.length += n

    def truncate(self, length: int) -> None:
        """Forgets all positions >= length. Absolute and idempotent; a length beyond the present one changes nothing."""
        if length < 0:
            raise ValueError(f"cannot truncate to {length}")
        self.length = min(self.length, length)
        needed = -(-self.length // self.pool.page_size)
        while len(self._pages) > needed:
            self.pool.release(self._pages.pop())
        self._held = min(self._held, needed)

    def keep(self, start: int, path: list[int]) -> None:
        """After a tree step whose rows lie at start, start+1, ...: rows `path` (ascending) move to the front, in order,
        and become positions start..start+len(path)-1; the rest is forgotten."""
        if any(b <= a for a, b in pairwise(path)) or (path and path[0] < 0):
            raise ValueError(f"a path must ascend: {path}")
        if path != list(range(len(path))):
            source, target = (self.slots(start, rows) for rows in (path, list(range(len(path)))))
            self.pool.move(source, target)
        self.truncate(start + len(path))

    def slots(self, start: int, offsets: list[int]) -> Tensor:
        """[n] int64 cache rows of positions start + offsets."""
        return self._slots(torch.tensor(offsets, dtype=torch.int64, device=self.table.device) + start)

    def fork(self, length: int) -> "KVCache":
        """A second cache with positions 0..length-1 of this one: full pages are shared, a partial last page is shared
        until either side writes to it."""
        if length > self.length:
            raise ValueError(f"cannot fork {length} of {self.length} positions")
        other = KVCache(self.pool, self.max_positions)
        other._pages = self._pages[: -(-length // self.pool.page_size)]
        for page in other._pages:
            self.pool.share(page)
        other.numbers[: len(other._pages)] = other._pages
        other.length = length
        other._sync()
        return other

    def free(self) -> None:
        """Gives all pages back. Idempotent; the cache is empty and may be used again."""
        self.truncate(0)

    def _slots(self, positions: Tensor) -> Tensor:
        self._sync()
        size = self.pool.page_size
        return self.table[positions // size].long() * size + positions % size

    def _sync(self) -> None:
        if self._held < len(self._pages):
            fresh = torch.tensor(self._pages[self._held :], dtype=torch.int32)
            self.table[self._held : len(self._pages)] = fresh.to(self.table.device)
            self._held = len(self._pages)
