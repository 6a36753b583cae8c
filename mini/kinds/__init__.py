"""The kinds of edit. A maker is a function (random numbers, region) -> Made; None if the region offers no such edit."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from specd.mini.region import Region


@dataclass(frozen=True)
class Made:
    """An instruction and the code it leads to; `before` if the maker first changed the region (a look-alike). `names`:
    the old names of a rename, then the new ones; a literal's old and new text; a line that goes or gets a neighbour,
    then the text that comes after or beside it. Where these begin, an answer goes on right or goes wrong."""

    instruction: str
    after: str
    before: str | None = None
    names: tuple[str, ...] = ()


Maker = Callable[[Random, Region], Made | None]
