"""Where a generation ends: one pure rule over the tokens that a step commits. First hit wins; nothing after it counts.

In the order of the tokens: a stop id (kept, without text), a stop string (the text before it is kept), the budget.
A stop string may begin in one token and end in another, so text that could be the beginning of one is held back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Reason = Literal["stop", "length", "context"]


@dataclass(frozen=True)
class FinishRules:
    """max_tokens: budget of output tokens. context_full: that budget is the context's, not the caller's."""

    stop_ids: frozenset[int] = frozenset()
    stop_strings: tuple[str, ...] = ()
    max_tokens: int = 1 << 30
    context_full: bool = False


class Cut(NamedTuple):
    """How many of a step's tokens count, the text that leaves with them, the text held back, and why it is over."""

    kept: int
    text: str
    held: str
    reason: Reason | None


def cut(
    rules: FinishRules,
    emitted: int,
    held: str,
    tokens: Sequence[int],
    decode: Callable[[Sequence[int]], str] = lambda _: "",
) -> Cut:
    """Applies the rules to `tokens`, after `emitted` earlier ones whose last text `held` has not left yet.

    decode is called with the tokens in order, some at a time, each once at most, and gives the text that they complete.
    """
    left = rules.max_tokens - emitted
    ends = len(tokens)  # tokens before the first stop id
    if not rules.stop_ids.isdisjoint(tokens):
        ends = next(place for place, token in enumerate(tokens) if token in rules.stop_ids)
    count, text = min(ends, left), held
    if not rules.stop_strings:  # nothing is searched: all at once
        text += decode(tokens[:count])
    for number in range(count if rules.stop_strings else 0):
        text += decode(tokens[number : number + 1])
        if (start := _first_stop(text, rules.stop_strings)) is not None:
            return Cut(number + 1, text[:start], "", "stop")
    if count == left:
        return Cut(count, text, "", "context" if rules.context_full else "length")
    if ends < len(tokens):
        return Cut(ends + 1, text, "", "stop")
    split = len(text) - _possible_start(text, rules.stop_strings) if rules.stop_strings else len(text)
    return Cut(len(tokens), text[:split], text[split:], None)


def _first_stop(text: str, stops: Sequence[str]) -> int | None:
    return min((place for stop in stops if stop and (place := text.find(stop)) >= 0), default=None)


def _possible_start(text: str, stops: Sequence[str]) -> int:
    """Length of the longest end of text that a stop string could begin with."""
    for length in range(min(len(text), max(map(len, stops), default=1) - 1), 0, -1):
        if any(stop.startswith(text[-length:]) for stop in stops):
            return length
    return 0
