"""Edits that are under way when a job ends: none comes after its answer, and what comes too late can be taken back."""

import time
from collections.abc import Callable

import pytest
from daemon_home import GRID, Home, wait_for
from scripted_editor import VSCODE, Editor, Habits, span

GetEditor = Callable[..., Editor]
SLOW = Habits(plugin=True, answer_seconds=0.3)
LATE = Habits(plugin=True, answer_seconds=3)  # later than the time that an answer has, and a change after it


def sent(editor: Editor) -> None:
    wait_for(lambda: bool(editor.of("workspace/applyEdit")))


def hints(editor: Editor) -> int:
    """How many were told last; -1 if none were told ever."""
    told = editor.of("textDocument/publishDiagnostics")
    return len(told[-1]["diagnostics"]) if told else -1


def test_a_cancelled_request_is_answered_once_the_edit_under_way_is_in(replay: Home, editor: GetEditor) -> None:
    at = editor(SLOW)
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "hang"})
    sent(at)
    at.notify("$/cancelRequest", {"id": number})
    wait_for(lambda: replay.client.status()["jobs"]["active"] == 0, 5)
    assert at.answer(number)["error"]["code"] == -32800
    text = at.text(uri)
    assert text != GRID
    time.sleep(0.5)
    assert at.text(uri) == text
    assert at.request("specd/revert", {"uri": uri})["result"]["reverted"] >= 1
    assert at.text(uri) == GRID


def test_a_cancel_counts_the_edit_under_way_in_what_it_says(editor: GetEditor) -> None:
    at = editor(Habits(answer_seconds=0.3))
    uri = at.open(GRID)
    at.rewrite(uri, "hang")
    sent(at)
    at.request("workspace/executeCommand", {"command": "specd.cancel", "arguments": []})
    assert "applied so far stay" in at.wait_shown()
    assert at.text(uri) != GRID
    at.request("workspace/executeCommand", {"command": "specd.revert", "arguments": []})
    at.wait_shown(2)
    assert at.text(uri) == GRID


def test_an_engine_that_fails_counts_the_edit_under_way(editor: GetEditor) -> None:
    at = editor(SLOW)
    uri = at.open(GRID)
    result = at.request("specd/rewrite", {"uri": uri, "instruction": "stumble"})["result"]
    assert (result["outcome"], result["hunks"]) == ("error", len(at.of("specd/hunk")))
    assert f"{result['hunks']} hunk" in result["message"]
    text = at.text(uri)
    assert text != GRID
    time.sleep(0.5)
    assert at.text(uri) == text


def test_an_edit_that_is_made_after_the_outcome_can_be_taken_back(replay: Home, editor_at: GetEditor) -> None:
    at = editor_at(replay, LATE)
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "hang"})
    sent(at)
    at.notify("$/cancelRequest", {"id": number})
    at.answer(number)
    assert at.text(uri) == GRID
    wait_for(lambda: at.text(uri) != GRID)
    wait_for(lambda: bool(at.of("specd/hunk")))
    at.habits = VSCODE
    at.request("specd/revert", {})
    assert at.text(uri) == GRID


def test_a_hint_goes_when_its_hunk_comes_late(editor: GetEditor) -> None:
    at = editor(LATE)
    uri = at.open(GRID)
    assert at.request("specd/rewrite", {"uri": uri, "instruction": "at once"})["result"]["outcome"] == "conflict"
    wait_for(lambda: hints(at) == 3)
    wait_for(lambda: at.text(uri) != GRID)
    wait_for(lambda: hints(at) == 3 - len(at.of("specd/hunk")) < 3)


@pytest.mark.parametrize("version", [1, None])
def test_a_request_is_about_the_text_that_was_there_when_it_was_sent(editor: GetEditor, version: int | None) -> None:
    """Both messages are in the pipe when the server reads it."""
    at = editor(Habits(plugin=True))
    uri = at.open(GRID)
    where = span(GRID, "grid = Grid")
    with at.corked():
        params = {"uri": uri, "instruction": "at once", "range": where, "version": version}
        number = at.ask("specd/rewrite", params)
        at.insert(uri, 0, "# one\n# two\n# three\n")
    result = at.answer(number)["result"]
    assert (result["outcome"], result["hunks"]) == ("done", 1)
    assert at.text(uri) == "# one\n# two\n# three\n" + GRID.replace("grid = Grid", "grid = Mesh")
