"""The kinds of edit. A maker is a function (random numbers, region) -> Made; None if the region offers no such edit."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from specd.mini.region import Region


@dataclass(frozen=True)
class Made:
    """An instruction and the code it leads to; `before` if the maker first changed the region (a look-alike). `names`
    are the old and new names of a rename, or the old and new text of a literal: what the answer must tell apart."""

    instruction: str
    after: str
    before: str | None = None
    names: tuple[str, ...] = ()


Maker = Callable[[Random, Region], Made | None]
