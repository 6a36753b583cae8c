"""Hunks that the user's typing was in the way of: shown as hints, settled by a code action, never forced."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from daemon_home import GRID, MESH, wait_for
from hypothesis import example, given, settings
from hypothesis import strategies as st
from race import Race
from scripted_editor import EGLOT, NEOVIM, VSCODE, Editor, Habits
from test_ledger import hunks_for

from specd.lsp.ledger import Ledger
from specd.lsp.splice import Splice

GetEditor = Callable[..., Editor]
MINE = "def trace(grid: Grid, mine)"


def in_conflict(at: Editor) -> tuple[str, dict[str, Any]]:
    """A document whose last hunk was not applied, and the hint that says so."""
    uri = at.open(GRID)
    at.rewrite(uri, "slowly")
    at.type(uri, "def trace(grid: Grid)", MINE)
    assert "1 of 3 hunks not applied (line 16)" in at.wait_shown()
    wait_for(lambda: bool(at.of("textDocument/publishDiagnostics")))
    (told,) = at.of("textDocument/publishDiagnostics")
    assert told["uri"] == uri
    (hint,) = told["diagnostics"]
    return uri, hint


def actions(at: Editor, uri: str, hint: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The quick fixes at the hint, by title."""
    context = {"diagnostics": [hint], "only": ["quickfix"], "triggerKind": 1}
    params = {"textDocument": {"uri": uri}, "range": hint["range"], "context": context}
    return {action["title"]: action for action in at.request("textDocument/codeAction", params)["result"]}


def hints(at: Editor) -> list[dict[str, Any]]:
    """Those that were told last."""
    found: list[dict[str, Any]] = at.of("textDocument/publishDiagnostics")[-1]["diagnostics"]
    return found


@pytest.mark.parametrize("habits", [VSCODE, NEOVIM, EGLOT], ids=["vscode", "neovim", "eglot"])
def test_specds_version_can_be_had_after_all(editor: GetEditor, habits: Habits) -> None:
    at = editor(habits)
    uri, hint = in_conflict(at)
    line = GRID.split("\n").index("def trace(grid: Grid) -> int:")
    assert hint["severity"] == 4
    assert hint["range"]["start"] == {"line": line, "character": 0}
    assert hint["range"]["end"]["line"] == line
    assert "def trace(grid: Mesh) -> int:" in hint["message"]
    found = actions(at, uri, hint)
    assert list(found) == ["Use specd's version", "Keep mine"]
    answer = at.request("workspace/executeCommand", found["Use specd's version"]["command"])
    assert answer["result"] is None
    wait_for(lambda: at.text(uri) == MESH)
    wait_for(lambda: hints(at) == [])
    assert actions(at, uri, hint) == {}
    assert len(at.shown) == 1


def test_mine_stays_where_it_is_kept(editor: GetEditor) -> None:
    at = editor()
    uri, hint = in_conflict(at)
    at.request("workspace/executeCommand", actions(at, uri, hint)["Keep mine"]["command"])
    wait_for(lambda: hints(at) == [])
    assert MINE in at.text(uri)
    assert actions(at, uri, hint) == {}


def test_what_was_put_in_so_is_taken_back_to_the_users_version(editor: GetEditor) -> None:
    at = editor()
    uri, hint = in_conflict(at)
    at.request("workspace/executeCommand", actions(at, uri, hint)["Use specd's version"]["command"])
    wait_for(lambda: at.text(uri) == MESH)
    result = at.request("specd/revert", {"uri": uri})["result"]
    assert (result["reverted"], result["refused"]) == (3, [])
    assert at.text(uri) == GRID.replace("def trace(grid: Grid)", MINE)


def test_a_hint_goes_with_its_document_and_with_a_revert(editor: GetEditor) -> None:
    at = editor()
    uri, _ = in_conflict(at)
    at.request("specd/revert", {"uri": uri})
    assert hints(at) == []
    at.forget()
    uri, _ = in_conflict(at)
    at.close_document(uri)
    wait_for(lambda: hints(at) == [])


def test_an_edit_that_the_editor_refused_can_be_tried_again(editor: GetEditor) -> None:
    at = editor()
    uri = at.open(GRID)
    at.readonly = "buffer is not modifiable"
    at.rewrite(uri, "at once")
    at.wait_shown()
    wait_for(lambda: bool(at.of("textDocument/publishDiagnostics")))
    first, second, third = hints(at)
    use = actions(at, uri, first)["Use specd's version"]["command"]
    at.request("workspace/executeCommand", use)
    assert "specd's version was not applied: the editor refused the edit" in at.wait_shown(2)
    at.readonly = ""
    for hint in (third, first, second):
        at.request("workspace/executeCommand", actions(at, uri, hint)["Use specd's version"]["command"])
    wait_for(lambda: at.text(uri) == MESH)
    at.request("workspace/executeCommand", use)
    assert at.wait_shown(3) == "specd: this conflict has been settled already."


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"job": "?", "hunk": 0}, "lacks the field 'use'"),
        ({"job": "?", "hunk": 0, "use": "both"}, "must be one of specd, mine"),
        ({"job": "?", "hunk": "0", "use": "mine"}, "field 'hunk' must be a whole number"),
    ],
)
def test_wrong_arguments_are_named(editor: GetEditor, argument: dict[str, Any], words: str) -> None:
    command = {"command": "specd.conflict", "arguments": [argument]}
    assert words in editor().request("workspace/executeCommand", command)["error"]["message"]


def test_a_cancelled_rewrite_leaves_no_hints(editor: GetEditor) -> None:
    at = editor()
    uri = at.open(GRID)
    at.rewrite(uri, "hang")
    at.type(uri, "def trace(grid: Grid)", MINE)
    wait_for(lambda: at.edits > 0)
    at.request("workspace/executeCommand", {"command": "specd.cancel", "arguments": []})
    at.wait_shown()
    at.request("specd/status", None)
    assert at.of("textDocument/publishDiagnostics") == []


def test_what_the_user_has_typed_as_specd_would_is_no_conflict() -> None:
    ledger = Ledger(["a\n", "b\n", "c\n", "d\n", ""])
    ledger.add(1, 2, [])
    ledger.add(2, 3, ["C\n"])
    ledger.add(3, 4, ["D\n"])
    for typed in (Splice(3, ("d\n",), ("D\n",)), Splice(1, ("b\n", "c\n"), ("C\n",))):
        ledger.observe(typed)
    assert ledger.take() == []
    assert not any(entry.is_conflict for entry in ledger.entries)


def test_lines_that_are_only_added_come_behind_the_users() -> None:
    ledger = Ledger(["a\n", "b\n", ""])
    ledger.add(1, 1, ["new\n"])
    ledger.observe(Splice(1, (), ("mine\n",)))
    assert ledger.take() == []
    (entry,) = ledger.entries
    assert ledger.remains(entry) == (1, 2)
    ledger.adopt(entry)
    ((_, splice),) = ledger.take()
    ledger.observe(splice)
    assert ledger.lines == ["a\n", "mine\n", "new\n", "b\n", ""]
    assert entry.is_in


@pytest.mark.parametrize(
    ("lines", "hunk", "typed", "after"),
    [
        (["a\n", "b\n", ""], (1, 2, ["B\n"]), Splice(1, ("b\n", ""), ("mine",)), ["a\n", "B\n", ""]),
        (["a\n", "b"], (1, 2, ["B"]), Splice(1, ("b",), ("mine\r\n", "")), ["a\n", "B"]),
        (["a\n", "b\n", "c\n", ""], (1, 2, []), Splice(1, ("b\n",), ("x\n", "y\n")), ["a\n", "c\n", ""]),
        (["a\n", "b\n", "c\n", ""], (1, 2, ["B\n"]), Splice(1, ("b\n",), ()), ["a\n", "B\n", "c\n", ""]),
    ],
    ids=["the end lost its line end", "the end got one", "a deletion", "the user deleted it"],
)
def test_a_hunk_put_in_by_force_fits_the_text_around_it(
    lines: list[str], hunk: tuple[int, int, list[str]], typed: Splice, after: list[str]
) -> None:
    ledger = Ledger(lines)
    ledger.add(*hunk)
    ledger.observe(typed)
    assert ledger.take() == []
    (entry,) = ledger.entries
    before = list(ledger.lines)
    ledger.adopt(entry)
    ((_, splice),) = ledger.take()
    ledger.observe(splice)
    assert (ledger.lines, entry.is_in) == (after, True)
    entry.is_wanted = False
    ((_, back),) = ledger.take()
    ledger.observe(back)
    assert ledger.lines == before


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
@example(200, 9)
@example(1520, 7)
@example(34702, 3)
def test_settling_conflicts_touches_no_line_of_another_hunk(seed: int, count: int) -> None:
    """Whatever was typed: each conflict can be settled for specd, and all other hunks stay as they are."""
    draw = random.Random(seed)
    race = Race(draw, [*(f"line {at}\n" for at in range(count)), ""], hunks_for(draw, count))
    for _ in range(30):
        race.step()
    race.finish()
    ledger = race.ledger
    for entry in [entry for entry in ledger.entries if entry.is_conflict and not entry.is_in]:
        # those with lines in the buffer: a deletion is known by its neighbours alone, which may be settled away
        placed = [
            other
            for other in ledger.entries
            if other is not entry and (other.new if other.is_in else other.old) and ledger.place(other) is not None
        ]
        start, end = ledger.remains(entry)
        above, below = ledger.lines[:start], ledger.lines[end:]
        ledger.adopt(entry)
        entry.is_asked = True
        change = ledger.change_for(entry)
        assert change is not None
        if entry.old == entry.new:  # a conflict no more: the user has typed the same since
            continue
        ledger.observe(change)
        assert entry.is_in
        assert ledger.lines == [*above, *entry.new, *below]
        assert all(ledger.place(other) is not None for other in placed)
