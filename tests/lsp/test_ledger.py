"""The account of what is in the buffer: hunks and a typing user in any order give what a serial history would."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from race import Race

from specd.lsp.ledger import Ledger
from specd.lsp.splice import Splice


def hunks_for(draw: random.Random, count: int) -> list[tuple[int, int, list[str]]]:
    """Hunks of a text of `count` lines, top to bottom, apart or touching; no two insertions in one place."""
    found: list[tuple[int, int, list[str]]] = []
    at = 0
    while at < count:
        start = at + draw.choice([0, 0, 1, 1, 2, 3])
        end = start + draw.choice([0, 1, 1, 2])
        if end >= count:
            break
        new = [f"hunk {len(found)}.{line}\n" for line in range(draw.choice([0, 1, 1, 2]))]
        if new or end > start:
            found.append((start, end, new))
        at = max(end, start + 1)
    return found


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 14), st.integers(5, 80))
def test_typing_meanwhile_gives_the_text_of_a_serial_history(seed: int, count: int, steps: int) -> None:
    draw = random.Random(seed)
    texts = [*(f"line {at}\n" for at in range(count)), ""]
    race = Race(draw, texts, hunks_for(draw, count))
    for _ in range(steps):
        race.step()
    race.finish()
    buffer = [text for _, text in race.editor.lines]
    assert race.ledger.lines == buffer
    for entry in race.ledger.entries:
        assert entry.is_in == (entry.number in race.editor.applied - race.undone)
        start, end = race.ledger.remains(entry)
        is_same = buffer[start:end] == list(entry.new)  # the user made the same change
        assert entry.is_in or entry.is_conflict or entry.number in race.undone or is_same
        if entry.number in race.undone:  # the user deleted just what was inserted: that is an undo
            assert not entry.old
            assert not [name for name in race.editor.names() if name[:2] == ("h", entry.number)]
        if entry.is_conflict and entry.old:  # a conflict is a line of the hunk's that the user touched
            assert race.editor.span(entry.start, entry.end) is None


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 14), st.integers(5, 80))
def test_lines_that_look_alike_are_told_apart(seed: int, count: int, steps: int) -> None:
    draw = random.Random(seed)
    texts = [*(draw.choice(["a\n", "b\n", "\n"]) for _ in range(count)), ""]
    race = Race(draw, texts, [hunk for hunk in hunks_for(draw, count) if hunk[2]])
    for _ in range(steps):
        race.step()
    race.finish()
    buffer = [text for _, text in race.editor.lines]
    assert race.ledger.lines == buffer
    for entry in race.ledger.entries:
        assert entry.is_in == (entry.number in race.editor.applied - race.undone)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_revert_takes_back_our_hunks_and_nothing_else(seed: int, count: int) -> None:
    draw = random.Random(seed)
    texts = [*(f"line {at}\n" for at in range(count)), ""]
    race = Race(draw, texts, hunks_for(draw, count))
    race.finish()
    for _ in range(draw.randrange(4)):
        race.type()
    race.finish()
    before = list(race.ledger.lines)
    for entry in race.ledger.entries:
        entry.is_wanted = False
    changes = race.ledger.take()
    for entry, splice in reversed(changes):
        entry.is_asked = True
        before[splice.start : splice.end] = splice.new
        race.ledger.observe(splice)
    assert race.ledger.lines == before
    kept = [entry for entry in race.ledger.entries if entry.is_in]
    assert all(entry.is_conflict for entry in kept)
    if not kept and not race.typed:
        assert before == texts
    for line in (text for _, text in race.editor.lines if text.startswith("user")):
        assert line in before


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger(["a\n", "b\n", "c\n", "d\n", ""])
    ledger.add(1, 2, ["B\n"])
    ledger.add(3, 4, [])
    return ledger


def put_in(ledger: Ledger) -> None:
    for entry, splice in reversed(ledger.take()):
        entry.is_asked = True
        assert [flip.by_user for flip in ledger.observe(splice)] == [False]


def test_an_undo_of_a_hunk_is_seen_as_the_users(ledger: Ledger) -> None:
    put_in(ledger)
    (flip,) = ledger.observe(Splice(1, ("B\n",), ("b\n",)))
    assert flip.by_user
    assert not flip.entry.is_in
    assert not flip.entry.is_pending


def test_an_undo_of_everything_at_once_is_seen_too(ledger: Ledger) -> None:
    put_in(ledger)
    flips = ledger.observe(Splice(0, tuple(ledger.lines), ("a\n", "b\n", "c\n", "d\n", "")))
    assert [flip.by_user and not flip.entry.is_in for flip in flips] == [True, True]


def test_what_the_user_did_by_hand_needs_no_edit(ledger: Ledger) -> None:
    (flip,) = ledger.observe(Splice(1, ("b\n",), ("B\n",)))
    assert flip.by_user
    assert flip.entry.is_in
    assert [entry.number for entry, _ in ledger.take()] == [1]


def test_a_line_that_was_touched_is_a_conflict_and_the_others_go_on(ledger: Ledger) -> None:
    ledger.observe(Splice(1, ("b\n",), ("bb\n",)))
    assert [(entry.number, splice.start) for entry, splice in ledger.take()] == [(1, 3)]
    assert [entry.is_conflict for entry in ledger.entries] == [True, False]


def test_lines_added_above_move_the_rest_down(ledger: Ledger) -> None:
    ledger.observe(Splice(0, (), ("x\n", "y\n")))
    assert [splice.start for _, splice in ledger.take()] == [3, 5]


def test_an_insertion_goes_on_beside_a_changed_line_but_not_between_added_ones() -> None:
    ledger = Ledger(["a\n", "b\n", ""])
    ledger.add(1, 1, ["new\n"])
    ledger.observe(Splice(0, ("a\n",), ("A\n",)))
    assert [splice.start for _, splice in ledger.take()] == [1]
    ledger.observe(Splice(1, (), ("mine\n",)))
    assert ledger.take() == []
    assert ledger.entries[0].is_conflict


def test_a_hunk_that_is_put_in_after_all_goes_where_it_was_in_conflict() -> None:
    """The user's lines there look like others of the user's above."""
    lines = ["a\n", "b\n", ""]
    ledger = Ledger(lines)
    ledger.add(1, 1, ["hunk\n"])
    for at in (1, 0):
        ledger.observe(Splice(at, (), ("mine\n",)))
    (entry,) = ledger.entries
    assert ledger.take() == []
    ledger.adopt(entry)
    assert ledger.lines == ["mine\n", "a\n", "mine\n", "b\n", ""]
    assert ledger.change_for(entry) == Splice(2, ("mine\n",), ("mine\n", "hunk\n"))


def test_lines_of_a_hunk_are_where_it_is_in_the_buffer_now() -> None:
    ledger = Ledger([f"line {at}\n" for at in range(6)])
    ledger.add(1, 2, ["one\n", "two\n"])
    ledger.add(4, 4, ["three\n"])
    for entry, splice in reversed(ledger.take()):
        entry.is_asked = True
        ledger.observe(splice)
    ledger.observe(Splice(0, (), ("mine\n",)))
    ledger.observe(Splice(3, ("two\n",), ("two, and mine\n",)))
    assert [ledger.lines_of(entry) for entry in ledger.entries] == [(2, 4), (6, 7)]
    assert [ledger.place(entry) for entry in ledger.entries] == [None, 6]
