"""Prompts kept in the KV cache, so that a file seen before need not be read again.

Each entry is the tokens of a prompt and the cache that holds them. A new prompt takes the entry with which it shares
the longest beginning and forks it there: full pages are shared, so an entry costs only what is its own. The least
recently used go first. Runs on the engine's thread only. (The idea is vLLM's and SGLang's prefix caching; a list is
enough here, since a user has few files in hand.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Cache(Protocol):
    """The part of the engine's KVCache that is needed here."""

    length: int

    @property
    def pages(self) -> tuple[int, ...]: ...
    def fork(self: "C", length: int) -> "C": ...
    def truncate(self, length: int) -> None: ...
    def free(self) -> None: ...


C = TypeVar("C", bound=Cache)


@dataclass
class _Entry(Generic[C]):
    tokens: list[int]
    cache: C


class PrefixStore(Generic[C]):
    """At most `max_pages` pages of kept prompts."""

    def __init__(self, max_pages: int) -> None:
        self.max_pages = max_pages
        self._entries: list[_Entry[C]] = []  # the most recently used last

    @property
    def tokens(self) -> int:
        """Tokens kept, shared ones counted once an entry."""
        return sum(entry.cache.length for entry in self._entries)

    @property
    def pages(self) -> int:
        """Pages held, shared ones counted once."""
        return len({page for entry in self._entries for page in entry.cache.pages})

    def take(self, ids: Sequence[int]) -> C | None:
        """A cache that holds the longest kept beginning of `ids`, short of their last token; None if there is none."""
        best, length = None, 0
        for entry in self._entries:
            shared = min(common_prefix(entry.tokens, ids), entry.cache.length, len(ids) - 1)
            if shared > length:
                best, length = entry, shared
        if best is None:
            return None
        self._entries.remove(best)
        self._entries.append(best)
        return best.cache.fork(length)

    def put(self, ids: Sequence[int], cache: C) -> None:
        """Keep the prompt `ids`, of which `cache` holds a beginning; the store owns the cache from now on."""
        cache.truncate(len(ids))
        tokens = list(ids[: cache.length])
        if cache.length == 0 or any(entry.tokens[: len(tokens)] == tokens for entry in self._entries):
            cache.free()
            return
        for entry in [entry for entry in self._entries if tokens[: len(entry.tokens)] == entry.tokens]:
            self._drop(entry)
        self._entries.append(_Entry(tokens, cache))
        while self._entries and self.pages > self.max_pages:
            self._drop(self._entries[0])

    def drop_oldest(self) -> bool:
        """Free the entry that was unused longest; False if there is none."""
        if not self._entries:
            return False
        self._drop(self._entries[0])
        return True

    def clear(self) -> None:
        while self.drop_oldest():
            pass

    def _drop(self, entry: _Entry[C]) -> None:
        self._entries.remove(entry)
        entry.cache.free()


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
