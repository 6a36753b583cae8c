"""The kinds of edit. A maker is a function (random numbers, region) -> Made; None if the region offers no such edit."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from specd.mini.region import Region


@dataclass(frozen=True)
class Made:
    """An instruction and the code it leads to; `before` if the maker first changed the region (a look-alike). `names`
    are the old names of a rename and then the new ones, or a literal's old and new text: what must be told apart."""

    instruction: str
    after: str
    before: str | None = None
    names: tuple[str, ...] = ()


Maker = Callable[[Random, Region], Made | None]
