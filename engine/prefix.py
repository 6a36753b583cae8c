"""Prompts kept in the KV cache, so that a file seen before need not be read again.

An entry is the tokens of a prompt, the cache that holds them, and what drafters know of them (their own keys and values
come from the target's hidden states, which a hit does not compute again). A new prompt takes the entry with which it
shares the longest beginning and forks it there: full pages are shared, so an entry costs what is its own. The least
recently used go first. The idea is vLLM's and SGLang's prefix caching; a list is enough for the few files in hand.

Warm equals cold, to the bit: where rows do not depend on the rows beside them (ops.row_invariant) any prefix may be
reused; elsewhere only whole prefill chunks, since a row's bits then depend on its chunk.
"""

import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from specd.engine.draft import Proposer
from specd.engine.draft import Sequence as Growing
from specd.engine.events import PrefillDone
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3
from specd.engine.prefill import PrefillProgress, prefill, prefilled


class DrafterState(Protocol):
    """What a drafter keeps of a prefix, such as a DFlashContext."""

    @property
    def cache(self) -> KVCache: ...
    def fork(self, length: int, /) -> "DrafterState": ...
    def truncate(self, length: int, /) -> None: ...
    def free(self) -> None: ...


@dataclass
class Kept:
    """A cache that holds a beginning of a prompt, and the drafters' states of it by proposer name."""

    cache: KVCache
    states: dict[str, DrafterState] = field(default_factory=dict)

    def free(self) -> None:
        self.cache.free()
        for state in self.states.values():
            state.free()


@dataclass
class _Entry:
    tokens: list[int]
    kept: Kept


class PrefixCache:
    """At most `max_bytes` of kept keys and values, the drafters' own included."""

    def __init__(self, model: Qwen3, max_bytes: int) -> None:
        self.model = model
        self.max_bytes = max_bytes
        self._grid = 1 if model.ops.row_invariant else model.engine.prefill_chunk
        self._entries: list[_Entry] = []  # the most recently used last

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def tokens(self) -> int:
        """Tokens kept, those that entries share counted once an entry."""
        return sum(entry.kept.cache.length for entry in self._entries)

    @property
    def bytes(self) -> int:
        """Bytes of the pages held, shared ones counted once."""
        caches = [entry.kept.cache for entry in self._entries]
        caches += [state.cache for entry in self._entries for state in entry.kept.states.values()]
        pages = {(id(cache.pool), page): cache.pool.bytes_per_page for cache in caches for page in cache.pages}
        return sum(pages.values())

    def take(self, ids: Sequence[int]) -> Kept:
        """A cache of the caller's own with the longest kept beginning of `ids`, short of their last token, or empty."""
        best, length = self._longest(ids)
        if best is None:
            return Kept(self.model.new_cache())
        self._entries.remove(best)
        self._entries.append(best)
        states = {name: state.fork(length) for name, state in best.kept.states.items()}
        return Kept(best.kept.cache.fork(length), states)

    def known(self, ids: Sequence[int]) -> int:
        """How many tokens of `ids` a `take` would find kept."""
        return self._longest(ids)[1]

    def _longest(self, ids: Sequence[int]) -> tuple[_Entry | None, int]:
        best, length = None, 0
        for entry in self._entries:
            shared = min(common_prefix(entry.tokens, ids), entry.kept.cache.length, len(ids) - 1)
            shared -= shared % self._grid
            if shared > length:
                best, length = entry, shared
        return best, length

    def put(self, ids: Sequence[int], kept: Kept) -> None:
        """Keeps the prompt `ids`, of which the cache holds a beginning; cache and states are owned from now on."""
        kept.cache.truncate(len(ids))
        for state in kept.states.values():
            state.truncate(len(ids))
        tokens = list(ids[: kept.cache.length])
        covered = [entry for entry in self._entries if entry.tokens[: len(tokens)] == tokens]
        if not tokens or any(kept.states.keys() <= entry.kept.states.keys() for entry in covered):
            kept.free()
            return
        for entry in list(self._entries):
            if tokens[: len(entry.tokens)] == entry.tokens and entry.kept.states.keys() <= kept.states.keys():
                self._drop(entry)
        self._entries.append(_Entry(tokens, kept))
        while self._entries and self.bytes > self.max_bytes:
            self._drop(self._entries[0])

    def make_room(self, pages: int) -> bool:
        """Frees entries until the model's pool has that many free pages; False if it cannot."""
        while self.model.pool.free_pages < pages and self.drop_oldest():
            pass
        return self.model.pool.free_pages >= pages

    def drop_oldest(self) -> bool:
        """Frees the entry that was unused longest; False if there is none."""
        if not self._entries:
            return False
        self._drop(self._entries[0])
        return True

    def clear(self) -> None:
        while self.drop_oldest():
            pass

    def _drop(self, entry: _Entry) -> None:
        self._entries.remove(entry)
        entry.kept.free()


def prepare(
    model: Qwen3, ids: Sequence[int], prefix: PrefixCache, proposers: Iterable[Proposer] = (), kept: Kept | None = None
) -> Generator[PrefillProgress | PrefillDone, None, None]:
    """Prefills `ids` and keeps them, chunk by chunk: one event a chunk, so it can be closed (what was done is kept).

    proposers: those that observe the prompt's taps; one with a `feed` method reads the prompt too, chunk by chunk, one
    with a `fork` method has its state kept with the prompt.
    """
    kept = prefix.take(ids) if kept is None else kept
    seq, watchers = Growing(list(ids), len(ids)), tuple(proposers)
    taps = next((proposer.tap_layers for proposer in watchers if hasattr(proposer, "tap_layers")), ())
    reused = kept.cache.length
    try:
        began = time.perf_counter()
        for progress, rows in prefill(model, [*ids, ids[-1]], kept.cache, taps):  # all of ids, the last one too
            for proposer in watchers:
                proposer.observe(seq, prefilled(progress, rows))
                if hasattr(proposer, "feed"):
                    proposer.feed(seq, progress.done)
            yield progress
        yield PrefillDone(reused, kept.cache.length - reused, time.perf_counter() - began)
    finally:
        prefix.put(ids, Kept(kept.cache, kept.states | states_of(watchers, kept.cache.length)))


def states_of(proposers: Iterable[Proposer], length: int) -> dict[str, DrafterState]:
    """Forks of what the proposers know of positions below `length`, by name, where they keep such a state."""
    return {proposer.name: proposer.fork(length) for proposer in proposers if hasattr(proposer, "fork")}


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading items of `a` and `b` are equal."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while low + 1 < high:  # the first `low` are equal, the first `high` are not
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
