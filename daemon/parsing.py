"""Syntax trees made aside: a large text, or one that a parser gets lost in, takes up to seconds, and the engine has
other jobs to step meanwhile.
"""

import concurrent.futures
from typing import Final

from specd.daemon.rewrite.tree import parse
from specd.daemon.scheduler import Steps

SMALL: Final = 4096  # characters that are parsed in a moment, whatever they are
_MOMENT: Final = 0.01  # seconds that all jobs wait for a parser: most texts take no longer

_thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="specd-parse")


def parsed(language: str | None, text: str | None) -> Steps:
    """Steps of a job that waits until `rewrite.tree.parse` has the tree of `text` at hand, where it has one."""
    if text is None or len(text) < SMALL:
        return
    parsing = _thread.submit(parse, language, text)
    concurrent.futures.wait([parsing], _MOMENT)
    while not parsing.done():
        yield False
