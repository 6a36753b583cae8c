"""Requests and events survive the wire; what is ill-formed is refused by name of the field."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specd.daemon import wire
from specd.daemon.errors import UsageError
from specd.daemon.events import OUTCOMES, decode_event, encode_event, event_name
from specd.daemon.protocol import (
    Cancelled,
    ContextFile,
    Declined,
    Done,
    Event,
    Failed,
    HunkReady,
    Loading,
    NoChange,
    PrepareRequest,
    Progress,
    Queued,
    RegionChosen,
    RewriteRequest,
    Sampling,
    Speculation,
    Summary,
    Target,
    Truncated,
    parse_prepare,
    parse_rewrite,
)

text = st.text(max_size=20)  # no half surrogate pairs
name = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), max_size=20)
count = st.integers(0, 2**31)
share = st.floats(0, 1)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


targets = st.one_of(
    st.builds(Target, text, maybe(text), maybe(text), st.tuples(st.integers(0, 9), st.integers(10, 20))),
    st.builds(Target, text, maybe(text), maybe(text), st.none(), maybe(count)),
)
requests = st.builds(
    RewriteRequest,
    target=targets,
    instruction=text.filter(str.strip),
    model=maybe(name),
    max_tokens=maybe(st.integers(0, 2**31)),
    guard=maybe(st.sampled_from(["report", "refuse", "off"])),
    sampling=st.builds(
        Sampling, maybe(st.floats(0, 100)), maybe(count), maybe(st.floats(0.1, 1)), maybe(share), maybe(count)
    ),
    speculation=st.builds(
        Speculation, maybe(st.integers(0, 4096)), maybe(name), maybe(name), maybe(st.just("edit")), st.booleans()
    ),
    context=st.lists(st.builds(ContextFile, text, maybe(text)), max_size=3).map(tuple),
    client=text,
)
summaries = st.builds(Summary, text, text, count, count, count, count, first_hunk_seconds=maybe(share))
events = st.one_of(
    st.builds(Queued, count),
    st.builds(Loading, share, text),
    st.builds(RegionChosen, text, count, count, text, text),
    st.builds(Progress, count, count, share, share),
    st.builds(HunkReady, count, count, st.lists(text).map(tuple)),
    st.builds(Done, text, summaries, st.lists(text).map(tuple)),
    st.builds(NoChange, summaries, st.lists(text).map(tuple)),
    st.builds(Declined, text, summaries),
    st.builds(Truncated, text, text, summaries),
    st.builds(Failed, text, text, summaries),
    st.builds(Cancelled, text, summaries),
)


@given(requests)
def test_a_request_survives_the_wire(request: RewriteRequest) -> None:
    assert parse_rewrite(json.loads(json.dumps(wire.to_json(request)))) == request


@given(targets, maybe(name), text)
def test_a_prepare_survives_the_wire(target: Target, model: str | None, client: str) -> None:
    request = PrepareRequest(target, model, client)
    assert parse_prepare(json.loads(json.dumps(wire.to_json(request)))) == request


@given(events)
def test_an_event_survives_the_wire(event: Event) -> None:
    lines = encode_event(event).decode().split("\n")
    assert lines[0] == f"event: {event_name(event)}"
    assert lines[2:] == ["", ""]  # one line of data, whatever line ends the text has
    assert decode_event(event_name(event), lines[1].removeprefix("data: ")) == event


def test_exactly_the_last_events_are_outcomes() -> None:
    names = {event_name(kind.__new__(kind)) for kind in OUTCOMES}
    assert names == {"done", "no_change", "declined", "truncated", "error", "cancelled"}


def test_an_unknown_event_is_skipped_and_unknown_fields_are_too() -> None:
    assert decode_event("weather", "{}") is None
    assert decode_event("queued", '{"position": 2, "colour": "red"}') == Queued(2)


VALID: dict[str, Any] = {"target": {"text": "a\n"}, "instruction": "x"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"instruction": " "}, "instruction is empty"),
        ({"instruction": 4}, "instruction: must be a string, not a whole number"),
        ({"colour": "red"}, "colour: no such field"),
        ({"target": {}}, "target.text: is missing"),
        ({"target": {"text": "a", "lines": [1]}}, "target.lines: must have 2 items, not 1"),
        ({"target": {"text": "a", "lines": [3, 2]}}, "target.lines"),
        ({"target": {"text": "a", "lines": [0, 2], "at": 1}}, "exclude each other"),
        ({"target": {"text": "a", "at": -1}}, "target.at"),
        ({"target": {"text": "\ud800"}}, "half of a surrogate pair"),
        ({"sampling": {"temperature": float("nan")}}, "sampling.temperature"),
        ({"sampling": {"seed": True}}, "sampling.seed: must be a whole number, not true or false"),
        ({"guard": "maybe"}, "guard: must be one of 'report', 'refuse', 'off'"),
        ({"context": [{"text": "b"}]}, "context[0].path: is missing"),
        ({"max_tokens": -1}, "max_tokens must be 0 or more, not -1"),
        ({"model": "a" * 5000}, "model must be a folder or a hub name, not 'aaa"),
        ({"model": "a\nb"}, "model must be a folder or a hub name, not 'a\\nb'"),
        ({"speculation": {"dflash": "\0"}}, "dflash must be a folder"),
        ({"sampling": {"top_p": 0}}, "sampling.top_p must be above 0 and at most 1, not 0"),
        ({"sampling": {"top_p": float("nan")}}, "sampling.top_p must be above 0"),
        ({"speculation": {"k": -1}}, "speculation.k must be from 0"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rewrite({**VALID, **change})
    assert words in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["target", "text", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*RewriteRequest.fields, "x"]), json_values, max_size=4) | json_values)
def test_no_json_raises_anything_but_a_usage_error(data: Any) -> None:
    with contextlib.suppress(UsageError):
        parse_rewrite(data)


def test_a_record_is_a_value() -> None:
    assert Queued(1) == Queued(position=1) != Queued(2)
    assert len({Queued(1), Queued(1), Queued(2)}) == 2
    assert Queued(1).replace(position=3) == Queued(3)
    assert repr(Queued(1)) == "Queued(position=1)"
    for wrong in (lambda: Queued(), lambda: Queued(1, 2), lambda: Queued(1, position=1), lambda: Queued(colour=1)):  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(AttributeError):
        Queued(1).position = 2  # type: ignore[misc]
