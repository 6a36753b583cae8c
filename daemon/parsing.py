"""Work on whole texts, done aside: to parse a large text, or one that a parser gets lost in, takes up to seconds, and
the engine has other jobs to step meanwhile.
"""

import concurrent.futures
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from specd.daemon.rewrite.tree import parse
from specd.daemon.scheduler import Steps

SMALL: Final = 4096  # characters that are dealt with in a moment, whatever they are
_MOMENT: Final = 0.01  # seconds that all jobs wait for such work: most texts take no longer

T = TypeVar("T")

_thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="specd-parse")


def aside(work: Callable[[], T], *, size: int) -> Generator[bool, None, T]:
    """Steps of a job that waits for what `work` returns on another thread. size: characters that it works on."""
    if size < SMALL:
        return work()
    working = _thread.submit(work)
    concurrent.futures.wait([working], _MOMENT)
    while not working.done():
        yield False
    return working.result()


def parsed(language: str | None, text: str) -> Steps:
    """Steps of a job that waits until `rewrite.tree.parse` has the tree of `text` at hand, where it has one."""
    yield from aside(lambda: parse(language, text), size=len(text))
