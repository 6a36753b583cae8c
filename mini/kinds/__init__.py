"""The kinds of edit. Each maker is a function (random numbers, region) -> Made, or None where the region offers no such edit."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from specd.mini.region import Region


@dataclass(frozen=True)
class Made:
    """An instruction and the code it leads to; `before` where the maker changed the region first (planted a look-alike)."""

    instruction: str
    after: str
    before: str | None = None


Maker = Callable[[Random, Region], Made | None]
