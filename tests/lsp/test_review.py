"""Setting `review`: the user takes or leaves each hunk before anything changes, and is asked once."""

from collections.abc import Callable

import pytest
from daemon_home import GRID, MESH, Home
from scripted_editor import Editor, Habits

GetEditor = Callable[..., Editor]
PARTS = [("class Grid", "class Mesh"), ("grid = Grid", "grid = Mesh"), ("grid: Grid", "grid: Mesh")]


@pytest.mark.parametrize("takes", [(0, 1, 2), (1,), (0, 2), ()])
def test_what_the_user_leaves_out_is_out_and_is_not_asked_for_again(
    replay: Home, editor_at: GetEditor, takes: tuple[int, ...]
) -> None:
    at = editor_at(replay, Habits(takes=takes), review="hunks")
    uri = at.open(GRID)
    at.rewrite(uri, "stream it")
    message = at.wait_shown()
    expected = GRID
    for number in takes:
        expected = expected.replace(*PARTS[number])
    assert at.text(uri) == expected
    (asked,) = at.of("workspace/applyEdit")
    annotations = asked["edit"]["changeAnnotations"]
    assert [one["needsConfirmation"] for one in annotations.values()] == [True] * 3
    (change,) = asked["edit"]["documentChanges"]
    assert [one["annotationId"] for one in change["edits"]] == list(annotations)
    left = 3 - len(takes)
    if takes:
        assert message.startswith(f"specd: {len(takes)} hunk")
        assert message.endswith(f"; you left {left} hunk{'s' * (left > 1)} out" if left else "drafted)")
    else:
        assert message == "specd: nothing was changed: you left all 3 hunks out"
    assert at.of("textDocument/publishDiagnostics") == []
    at.request("specd/revert", {"uri": uri})
    assert at.text(uri) == GRID


def test_an_editor_that_cannot_ask_applies_and_one_can_revert(replay: Home, editor_at: GetEditor) -> None:
    at = editor_at(replay, review="hunks")
    uri = at.open(GRID)
    at.rewrite(uri, "stream it")
    at.wait_shown()
    assert at.text(uri) == MESH
    assert all("changeAnnotations" not in one["edit"] for one in at.of("workspace/applyEdit"))
