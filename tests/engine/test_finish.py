"""The finish rules against a slow definition: look at the whole output, find the first thing that ends it."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from specd.engine.finish import Cut, FinishRules, cut

STOP = 9  # a stop id
LETTERS = "abc"  # token n < 3 is one letter, token 3 is two, others none


def decode(tokens: Sequence[int]) -> str:
    return "".join({0: "a", 1: "b", 2: "c", 3: "ab"}.get(token, "") for token in tokens)


def slow(rules: FinishRules, tokens: list[int]) -> tuple[int, str, str | None]:
    """(tokens kept, their text, reason) of a whole output."""
    text = ""
    for number, token in enumerate(tokens, start=1):
        if token in rules.stop_ids:
            return number, text, "stop"
        text += decode([token])
        places = [text.find(stop) for stop in rules.stop_strings if stop in text]
        if places:
            return number, text[: min(places)], "stop"
        if number >= rules.max_tokens:
            return number, text, "length"
    return len(tokens), text, None


@given(
    st.lists(st.sampled_from([0, 1, 2, 3, 4, STOP]), max_size=30),
    st.lists(st.text(LETTERS, min_size=1, max_size=4), max_size=3),
    st.integers(1, 30),
    st.data(),
)
def test_any_steps_end_where_the_whole_output_ends(
    tokens: list[int], stops: list[str], budget: int, data: st.DataObject
) -> None:
    rules = FinishRules(frozenset({STOP}), tuple(stops), budget)
    kept, text, held, reason, rest = 0, "", "", None, tokens
    while rest and reason is None:
        size = data.draw(st.integers(1, len(rest)))
        result = cut(rules, kept, held, rest[:size], decode)
        kept, text, held, reason = kept + result.kept, text + result.text, result.held, result.reason
        rest = rest[size:]
    assert (kept, text + held, reason) == slow(rules, tokens)


def test_text_that_may_begin_a_stop_string_waits() -> None:
    rules = FinishRules(stop_strings=("abc",))
    assert cut(rules, 0, "", [2, 0, 1], decode) == Cut(3, "c", "ab", None)
    assert cut(rules, 3, "ab", [2], decode) == Cut(1, "", "", "stop")
    assert cut(rules, 3, "ab", [0], decode) == Cut(1, "ab", "a", None)


def test_the_stop_id_is_kept_and_what_follows_is_not() -> None:
    rules = FinishRules(frozenset({STOP}), ("b",), 5)
    assert cut(rules, 0, "", [0, STOP, 1, 0], decode) == Cut(2, "a", "", "stop")
    assert cut(rules, 4, "", [0, STOP], decode) == Cut(1, "a", "", "length")
    assert cut(FinishRules(max_tokens=2, context_full=True), 0, "", [0, 0, 0], decode) == Cut(2, "aa", "", "context")
