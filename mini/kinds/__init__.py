"""The kinds of edit. A maker is a function (random numbers, region) -> Made; None if the region offers no such edit."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from specd.mini.region import Region


@dataclass(frozen=True)
class Made:
    """An instruction and the code it leads to; `before` if the maker first changed the region (a look-alike)."""

    instruction: str
    after: str
    before: str | None = None


Maker = Callable[[Random, Region], Made | None]
