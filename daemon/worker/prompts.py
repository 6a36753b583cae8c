"""The prompts of a model: those that are kept, and those that jobs are just reading.

Jobs on the same file have the same beginning. One that comes while another is still reading it waits for that, and
takes it from there. From one that only prepares, a rewrite takes over at once: the rewrite goes first in the queue, and
what was read is kept.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from specd.daemon.generation import Waits

if TYPE_CHECKING:
    from specd.engine import Kept, Proposer
    from specd.engine.model import Qwen3

WORTH: Final = 64  # tokens in common with what is being read, and not kept yet, from which on it is waited for


@dataclass(eq=False)
class Reading:
    """A prompt that a job is reading now. steps: of a job that only prepares; they may be ended by others."""

    ids: Sequence[int]
    steps: Generator[Any, None, None] | None = None


class Prompts:
    """Owns a model's prefix cache. On the scheduler's thread only, but for `kept`'s counts."""

    def __init__(self, model: "Qwen3", max_bytes: int) -> None:
        from specd import engine

        self._model = model
        self._reading: list[Reading] = []
        self.kept = engine.PrefixCache(model, max_bytes)

    def await_others(self, ids: Sequence[int], *, takes_over: bool) -> Iterator[Waits]:
        """Waits as long as other jobs read a good part of `ids`. takes_over: ends those that only prepare instead."""
        for other in [other for other in self._reading if self._gain(other, ids) >= WORTH]:
            while other in self._reading:
                if takes_over and other.steps is not None:
                    self._reading.remove(other)
                    other.steps.close()
                else:
                    yield Waits()

    def begin(self, ids: Sequence[int], steps: Generator[Any, None, None] | None = None) -> Reading:
        """Others know from now on that `ids` are being read."""
        reading = Reading(ids, steps)
        self._reading.append(reading)
        return reading

    def end(self, reading: Reading) -> bool:
        """They are read, or no more being read; False if another job had ended it."""
        if reading not in self._reading:
            return False
        self._reading.remove(reading)
        return True

    def take(self, ids: Sequence[int], more: int) -> "Kept":
        """What is kept of `ids`, and room in the pool for the rest of them and `more` tokens."""
        kept = self.kept.take(ids)
        pages = -(-(len(ids) + more - kept.cache.length) // self._model.pool.page_size)
        self.kept.make_room(pages + 2)  # the last ones of what is taken, and of what is shared, are written to
        return kept

    def share(self, ids: Sequence[int], kept: "Kept", proposers: "tuple[Proposer, ...]") -> None:
        """Keep what a job has read for others already, while it goes on."""
        from specd.engine.prefix import Kept, states_of

        length = kept.cache.length
        self.kept.put(ids, Kept(kept.cache.fork(length), states_of(proposers, length)))

    def put(self, ids: Sequence[int], kept: "Kept", proposers: "tuple[Proposer, ...]") -> None:
        """Keep what a job had of `ids`, which has ended."""
        from specd.engine.prefix import states_of

        for state in kept.states.values():  # of drafters that this job did not have
            state.free()
        kept.states = states_of(proposers, min(kept.cache.length, len(ids)))
        self.kept.put(ids, kept)

    def _gain(self, other: Reading, ids: Sequence[int]) -> int:
        """Tokens of `ids` that `other` is reading and that are not kept."""
        from specd.engine.prefix import common_prefix

        return common_prefix(other.ids, ids) - self.kept.known(ids)
