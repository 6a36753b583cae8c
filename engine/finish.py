"""Where a generation ends: one pure rule over the tokens that a step commits. First hit wins; nothing after it counts.

In the order of the tokens: a stop id (kept, without text), a stop string (the text before it is kept), the budget.
A stop string may begin in one token and end in another, so text that could be the beginning of one is held back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Reason = Literal["stop", "length", "context"]


@dataclass(frozen=True)
class FinishRules:
    """max_tokens: budget of output tokens. context_full: that budget is the context's, not the caller's."""

    stop_ids: frozenset[int] = frozenset()
    stop_strings: tuple[str, ...] = ()
    max_tokens: int = 1 << 30
    context_full: bool = False


@dataclass(frozen=True)
class Cut:
    """How many of a step's tokens count, the text that leaves with them, the text held back, and why it is over."""

    kept: int
    text: str
    held: str
    reason: Reason | None


def cut(
    rules: FinishRules, emitted: int, held: str, tokens: Sequence[int], decode: Callable[[int], str] = lambda _: ""
) -> Cut:
    """Applies the rules to `tokens`, after `emitted` earlier ones whose last text `held` has not left yet.

    decode is called once a token, in order, and gives the text that it completes.
    """
    text = held
    for number, token in enumerate(tokens, start=1):
        if token in rules.stop_ids:
            return Cut(number, text, "", "stop")
        text += decode(token)
        if (start := _first_stop(text, rules.stop_strings)) is not None:
            return Cut(number, text[:start], "", "stop")
        if emitted + number >= rules.max_tokens:
            return Cut(number, text, "", "context" if rules.context_full else "length")
    split = len(text) - _possible_start(text, rules.stop_strings)
    return Cut(len(tokens), text[:split], text[split:], None)


def _first_stop(text: str, stops: Sequence[str]) -> int | None:
    return min((place for stop in stops if stop and (place := text.find(stop)) >= 0), default=None)


def _possible_start(text: str, stops: Sequence[str]) -> int:
    """Length of the longest end of text that a stop string could begin with."""
    for length in range(min(len(text), max(map(len, stops), default=1) - 1), 0, -1):
        if any(stop.startswith(text[-length:]) for stop in stops):
            return length
    return 0
