"""Follows new lines through the original ones as they arrive, and says when both run together again.

`Aligner` knows lines only by their keys (see `hunks.py`). In step, each new line is the next original line. From the
first line on that is not, new lines are pending until enough of them have matched original lines in a row: then the
pending ones before that run are known to stand for the original ones before it. A wrong guess costs extra changed
lines, never a wrong text, so the evidence asked for grows with the number of original lines that a guess would drop.

Each line costs a bounded number of steps, whatever the text repeats.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

STARTS = 12
"""How many occurrences of a line are tried as the place where both run together again."""
RUNS = 48
"""How many such places are followed at once."""
PLACES = 64
"""Beyond so many places, the line after an omission tells nothing."""
IN_PLACE = 6
"""So many changed lines in a row are compared with the original ones they take the place of."""
SURE = 3
"""The weight of the lines after an omission that tells their place: one that the original has once, or several."""


@dataclass(frozen=True)
class Sync:
    """The new lines with the keys `replacing` stand for original lines [start, resumed); what follows is in step."""

    start: int
    resumed: int
    replacing: list[str]


@dataclass(frozen=True)
class _Run:
    pending_before: int
    resumed: int
    weight: float


class Aligner:
    """position: original lines accounted for; pending: keys of the new lines since the last that was in step."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.position = 0
        self.pending: list[str] = []
        self._keys = keys
        self._at: dict[str, list[int]] = {}
        for line, key in enumerate(keys):
            self._at.setdefault(key, []).append(line)
        self._runs: dict[int, _Run] = {}  # by the original line that would come next
        self._places: list[int] | None = None  # after an omission: where the next line may be

    def push(self, key: str) -> Sync | None:
        """Takes the next new line. A `Sync` when both are in step again after it (for a line in step: right away)."""
        if not self.pending and self.position < len(self._keys) and self._keys[self.position] == key:
            self.position += 1
            return Sync(self.position - 1, self.position - 1, [])
        self._runs = self._followed(key)
        self.pending.append(key)
        ready = [(at, run) for at, run in self._runs.items() if run.weight >= self._needed(run)]
        if not ready:
            return None
        at, run = min(ready, key=lambda r: (self._dropped(r[1]), r[1].pending_before))
        return self._resume(at, run)

    def settle(self) -> Sync | None:
        """Takes the one place where the last pending lines match, if there is one only: before an omission line."""
        runs = [(at, run) for at, run in self._runs.items() if run.weight >= SURE]
        if len(runs) != 1 or self._dropped(runs[0][1]):
            return None
        return self._resume(*runs[0])

    def forget(self) -> None:
        """Takes the pending lines back."""
        self.pending, self._runs = [], {}

    def skip_to(self, key: str) -> Sync | Literal[False] | None:
        """Takes a line after an omission. The `Sync` once its place is sure; False when there is none."""
        if self._places is None:
            occurrences = self._at.get(key, [])
            places = occurrences[bisect_left(occurrences, self.position) :]
            self._places = places if len(places) <= PLACES else []
        else:
            self._places = [p for p in self._places if p + len(self.pending) < len(self._keys)]
            self._places = [p for p in self._places if self._keys[p + len(self.pending)] == key]
        self.pending.append(key)
        if not self._places:
            return False
        sure = len(self._places) == 1 and sum(map(self._weight, self.pending)) >= SURE
        return self._skipped(self._places[0]) if sure else None

    def skip_to_end(self) -> Sync | Literal[False]:
        """The same when no line follows: the pending ones must be the last of the original."""
        last = len(self._keys) - len(self.pending)
        return self._skipped(last) if last in (self._places or [last]) else False

    def _skipped(self, place: int) -> Sync:
        sync = Sync(place, place, [])
        self.position = place + len(self.pending)
        self.pending, self._places = [], None
        return sync

    def _followed(self, key: str) -> dict[int, _Run]:
        weight = self._weight(key)
        runs: dict[int, _Run] = {}
        for at, run in self._runs.items():
            if at < len(self._keys) and self._keys[at] == key and len(runs) < RUNS:
                runs[at + 1] = _Run(run.pending_before, run.resumed, run.weight + weight)
        occurrences = self._at.get(key, [])
        first = bisect_left(occurrences, self.position)
        starts = occurrences[first : first + STARTS]
        in_place = self.position + len(self.pending)
        if in_place < len(self._keys) and self._keys[in_place] == key:
            starts.append(in_place)
        for at in starts:
            if at + 1 not in runs:
                runs[at + 1] = _Run(len(self.pending), at, weight)
        return runs

    def _weight(self, key: str) -> float:
        """How much one matching line tells: a rare line of some length most, a blank one or a lone bracket little."""
        text = key.strip()
        if not text:
            return 0.25
        if sum(map(str.isalnum, text[:40])) < 4:
            return 0.5
        count = len(self._at.get(key, ()))
        return 3 if count == 1 else 2 if count <= 4 else 1

    def _dropped(self, run: _Run) -> int:
        return max(0, (run.resumed - self.position) - run.pending_before)

    def _needed(self, run: _Run) -> float:
        """The weight to ask for: `bench/rewrite.py` tells what it costs in extra lines and in lines waited."""
        dropped = self._dropped(run)
        if dropped:
            return 9 if dropped <= 8 else 12
        return 1 if self._is_in_place(run) else 5

    def _is_in_place(self, run: _Run) -> bool:
        """Whether each pending line before the run looks like the original line that it takes the place of."""
        old = self._keys[self.position : run.resumed]
        return len(old) == run.pending_before <= IN_PLACE and all(map(_alike, old, self.pending))

    def _resume(self, at: int, run: _Run) -> Sync:
        sync = Sync(self.position, run.resumed, self.pending[: run.pending_before])
        self.position = at
        self.pending, self._runs = [], {}
        return sync


def _alike(old: str, new: str) -> bool:
    """Whether half of the longer line is a common beginning or end: a renamed name, a changed argument."""
    old, new = old.strip()[:160], new.strip()[:160]
    longest, shortest = max(len(old), len(new)), min(len(old), len(new))
    start = next((at for at in range(shortest) if old[at] != new[at]), shortest)
    end = next((at for at in range(shortest - start) if old[-1 - at] != new[-1 - at]), shortest - start)
    return 2 * (start + end) >= longest > 0
