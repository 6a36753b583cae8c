"""Rewrites in an editor, over the wire: streams, refusals, typing meanwhile, one outcome."""

import hashlib
import os
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_home import GRID, MESH, Home, wait_for
from scripted_editor import EGLOT, MUTE, NEOVIM, SLOW_NEOVIM, VSCODE, Editor, Habits, span

GetEditor = Callable[..., Editor]
MERGING = Habits(name="Zed", merges=True)


def outcome_is_one(editor: Editor) -> None:
    """Exactly one message to the user, progress ended as often as it began, and one line in the log. A job that is over
    before the editor has answered for its token begins no progress."""
    wait_for(lambda: len(editor.of("window/logMessage")) == len(editor.shown) == 1)
    time.sleep(0.1)
    assert len(editor.shown) == 1
    assert len(editor.progress("begin")) == len(editor.progress("end")) <= 1


@pytest.mark.parametrize("habits", [VSCODE, NEOVIM, SLOW_NEOVIM, MERGING], ids=lambda habits: habits.name)
def test_hunks_stream_into_the_buffer_while_the_model_writes(editor: GetEditor, habits: Habits) -> None:
    at = editor(habits)
    uri = at.open(GRID)
    at.rewrite(uri, "stream it")
    assert at.wait_shown().startswith("specd: 3 hunks, ")
    assert at.text(uri) == MESH
    assert at.edits >= 2
    outcome_is_one(at)
    assert bool(at.progress("begin")) == habits.progress


@pytest.mark.parametrize("habits", [EGLOT, MUTE], ids=["eglot", "mute"])
def test_an_editor_that_cannot_stream_gets_one_edit_at_the_end(editor: GetEditor, habits: Habits) -> None:
    at = editor(habits)
    uri = at.open(GRID)
    at.rewrite(uri, "stream it")
    message = at.wait_shown()
    if habits is MUTE:
        assert "did not answer" in message
        assert at.text(uri) == GRID
    else:
        assert at.text(uri) == MESH
        assert at.edits == 1
    outcome_is_one(at)


def test_an_editor_that_answers_too_late_is_given_the_rest_at_the_end_and_nothing_twice(editor: GetEditor) -> None:
    at = editor(Habits(name="Helix", answer_seconds=0.7))
    uri = at.open(GRID)
    at.rewrite(uri, "stream it")
    assert at.wait_shown().startswith("specd: 3 hunks")
    assert at.text(uri) == MESH
    assert at.edits == 2
    outcome_is_one(at)


@pytest.mark.parametrize("habits", [VSCODE, NEOVIM, SLOW_NEOVIM], ids=["refuses", "drops", "drops late"])
def test_typing_elsewhere_meanwhile_loses_nothing(editor: GetEditor, habits: Habits) -> None:
    at = editor(habits)
    lines = "".join(f"x{number} = {number}\n" for number in range(8))
    uri = at.open(lines + GRID)
    at.rewrite(uri, "slowly")
    for number in range(8):
        at.type(uri, f"x{number} = {number}\n", f"x{number} = {number}{number}\n\n")
        time.sleep(0.07)
    at.wait_shown()
    typed = "".join(f"x{number} = {number}{number}\n\n" for number in range(8))
    assert at.text(uri) == typed + MESH
    outcome_is_one(at)


def test_typing_in_a_line_that_is_to_change_is_a_conflict_and_stays(editor: GetEditor) -> None:
    at = editor()
    uri = at.open(GRID)
    at.rewrite(uri, "slowly")
    at.type(uri, "range(grid.width))", "range(grid.width))  # mine")
    at.type(uri, "def trace(grid: Grid)", "def trace(grid: Grid, mine)")
    message = at.wait_shown()
    assert "the text changed under the rewrite: 1 of 3 hunks not applied (line 16)" in message
    expected = MESH.replace("def trace(grid: Mesh)", "def trace(grid: Grid, mine)")
    assert at.text(uri) == expected.replace("range(grid.width))", "range(grid.width))  # mine")
    outcome_is_one(at)


def test_a_race_at_every_edit_still_ends_right(editor: GetEditor) -> None:
    """Each of the first edits meets a keystroke that the server cannot know of yet."""
    at = editor()
    uri = at.open("note = ''\n" + GRID)
    raced = []

    def race() -> None:
        if len(raced) < 5:
            raced.append(1)
            at.type(uri, "note = '", "note = 'x")

    at.on_edit = race
    at.rewrite(uri, "stream it")
    at.wait_shown()
    assert at.text(uri) == "note = 'xxxxx'\n" + MESH
    outcome_is_one(at)


@pytest.mark.parametrize(
    ("instruction", "words", "text"),
    [
        ("nothing", "the model changed nothing", GRID),
        ("refuse", "the model declined: I cannot do that; nothing was changed", GRID),
        ("cut", "broke off", None),
        ("fail", "the replay says that the engine fails here", None),
        ("unheard of", "the replay has no answer", GRID),
    ],
)
def test_every_outcome_is_said_once(editor: GetEditor, instruction: str, words: str, text: str | None) -> None:
    at = editor()
    uri = at.open(GRID)
    at.rewrite(uri, instruction)
    assert words in at.wait_shown()
    if text is not None:
        assert at.text(uri) == text
    outcome_is_one(at)


def test_an_editor_that_refuses_is_quoted(editor: GetEditor) -> None:
    at = editor()
    uri = at.open(GRID)
    at.readonly = "buffer is not modifiable"
    at.rewrite(uri, "at once")
    message = at.wait_shown()
    assert "the editor refused the edit: buffer is not modifiable: 3 of 3 hunks not applied" in message
    assert at.text(uri) == GRID
    outcome_is_one(at)


def test_a_refused_edit_at_the_end_is_sent_again_only_when_the_text_is_another(editor: GetEditor) -> None:
    """A client like eglot has told of nothing that was typed in the last half second; and it may ask its user."""
    at = editor(EGLOT)
    uri = at.open("note = ''\n" + GRID)
    at.on_edit = lambda: at.type(uri, "note = ''", "note = 'x'") if "''" in at.text(uri) else None
    at.rewrite(uri, "at once")
    at.wait_shown()
    assert at.text(uri) == "note = 'x'\n" + MESH
    assert len(at.of("workspace/applyEdit")) == 2
    outcome_is_one(at)


def test_only_the_selected_lines_change(editor: GetEditor) -> None:
    at = editor(VSCODE)
    uri = at.open(GRID)
    at.rewrite(uri, "at once", range=span(GRID, "grid = Grid"))
    at.wait_shown()
    assert at.text(uri) == GRID.replace("grid = Grid(n, n)", "grid = Mesh(n, n)")


def test_a_cursor_stands_for_the_definition_around_it(editor: GetEditor) -> None:
    at = editor()
    uri = at.open(GRID)
    place = span(GRID, "for i in range(grid.width)")["start"]
    at.rewrite(uri, "at once", range={"start": place, "end": place})
    at.wait_shown()
    assert at.text(uri) == GRID.replace("grid: Grid", "grid: Mesh")


def test_a_comment_that_asks_goes_with_the_edit(editor: GetEditor) -> None:
    at = editor()
    text = GRID.replace("def make_grid", "# specd: at once\ndef make_grid")
    uri = at.open(text)
    place = span(text, "return grid\n")["start"]
    at_cursor = {"start": place, "end": place}
    answer = at.request(
        "textDocument/codeAction", {"textDocument": {"uri": uri}, "range": at_cursor, "context": {"diagnostics": []}}
    )
    action = answer["result"][0]
    assert action["title"] == "Rewrite with LLM: at once"
    at.request("workspace/executeCommand", action["command"])
    at.wait_shown()
    assert at.text(uri) == GRID.replace("grid = Grid(n, n)", "grid = Mesh(n, n)")
    outcome_is_one(at)


def test_a_comment_stays_where_nothing_was_changed(editor: GetEditor) -> None:
    at = editor()
    uri = at.open("# specd: nothing\n" + GRID)
    at.rewrite(uri, "nothing", comment=0)
    at.wait_shown()
    assert at.text(uri) == "# specd: nothing\n" + GRID


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_bytes_that_are_not_rewritten_stay(editor: GetEditor, end: str) -> None:
    at = editor()
    text = "\ufeff# 😀 \u2028 \x0c\t \n\n".replace("\n", end) + GRID.replace("\n", end).rstrip("\r\n")
    uri = at.open(text)
    at.rewrite(uri, "at once")
    at.wait_shown()
    assert at.text(uri) == text.replace("Grid", "Mesh")


def test_several_documents_at_once_are_rewritten_each_for_itself(editor: GetEditor) -> None:
    at = editor()
    uris = [at.open(GRID + f"# {number}\n") for number in range(3)]
    for uri in uris:
        at.rewrite(uri, "stream it")
    at.wait_shown(3)
    assert [at.text(uri) for uri in uris] == [MESH + f"# {number}\n" for number in range(3)]


def test_two_rewrites_of_one_document_both_arrive_one_edit_at_a_time(editor: GetEditor) -> None:
    at = editor(Habits(name="Helix", answer_seconds=0.1))
    uri = at.open(GRID + "\n" + GRID.replace("def ", "async def "))
    half = GRID.count("\n")
    for first, last in ((0, half), (half + 1, 2 * half + 1)):
        places = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
        at.rewrite(uri, "stream it", range=places)
    at.wait_shown(2)
    assert at.text(uri) == MESH + "\n" + MESH.replace("def ", "async def ")
    assert at.most_under_way == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [({"readonly": True}, "read-only"), ({"instruction": " "}, "instruction is empty"), ({"version": 7}, "ask again")],
)
def test_what_cannot_be_done_is_refused_at_once(editor: GetEditor, more: dict[str, object], words: str) -> None:
    at = editor()
    uri = at.open(GRID)
    at.rewrite(uri, **{"instruction": "at once", **more})  # type: ignore[arg-type]
    assert words in at.wait_shown()
    assert at.text(uri) == GRID


def test_a_read_only_file_is_refused(editor: GetEditor, tmp_path: Path) -> None:
    file = tmp_path / "a b.py"
    file.write_text(GRID)
    at = editor()
    uri = at.open(GRID, file.as_uri())
    at.rewrite(uri, "at once")
    at.wait_shown()
    assert at.text(uri) == MESH
    os.chmod(file, 0o444)
    at.rewrite(uri, "at once")
    assert "the file is read-only" in at.wait_shown(2)


def test_a_file_that_is_not_utf_8_is_refused_and_a_real_replacement_character_is_not(
    editor: GetEditor, tmp_path: Path
) -> None:
    at = editor()
    for number, (data, words) in enumerate([(b"# \xe9\n", "not UTF-8"), ("# \ufffd\n".encode(), "3 hunks")]):
        file = tmp_path / f"{number}.py"
        file.write_bytes(data + GRID.encode())
        uri = at.open("# \ufffd\n" + GRID, file.as_uri())
        at.rewrite(uri, "at once")
        assert words in at.wait_shown(number + 1)


def test_an_empty_document_and_a_document_not_open_are_said(editor: GetEditor) -> None:
    at = editor()
    at.rewrite(at.open("\n"), "at once")
    assert at.wait_shown().endswith("the text is empty; there is nothing to rewrite")
    at.rewrite("file:///nowhere.py", "at once")
    assert "not open" in at.wait_shown(2)


def test_what_the_guard_refuses_is_taken_out_again(editor: GetEditor, own_replay: Home, editor_at: GetEditor) -> None:
    own_replay.settings.write_text(own_replay.settings.read_text() + 'guard = "refuse"\n')
    own_replay.run("stop", "--now")
    at = editor_at(own_replay)
    uri = at.open(GRID)
    at.rewrite(uri, "break it")
    assert "nothing was changed" in at.wait_shown()
    assert at.text(uri) == GRID
    assert at.edits == 2


def test_what_the_guard_refuses_on_its_way_is_taken_out_again(own_replay: Home, editor_at: GetEditor) -> None:
    own_replay.settings.write_text(own_replay.settings.read_text() + 'guard = "refuse"\n')
    own_replay.run("stop", "--now")
    at = editor_at(own_replay, Habits(answer_seconds=0.2, echo_seconds=0.2))
    uri = at.open(GRID)
    at.rewrite(uri, "break it")
    assert "nothing was changed" in at.wait_shown()
    assert at.text(uri) == GRID
    assert at.edits == 2


@pytest.mark.parametrize("habits", [VSCODE, NEOVIM, SLOW_NEOVIM, MERGING], ids=["refuses", "drops", "late", "merges"])
def test_random_typing_everywhere_loses_no_character(editor: GetEditor, habits: Habits) -> None:
    """Marks typed anywhere, also in lines that are to change: without them the text is the old one, renamed in part."""
    at = editor(habits)
    draw = random.Random(habits.name)
    uri = at.open(GRID * 3)
    at.rewrite(uri, "stream it")
    end = time.monotonic() + 1.5
    while time.monotonic() < end and not at.shown:
        time.sleep(draw.random() * 0.1)
        at.insert(uri, draw.random(), draw.choice(["«»", "«😀»", "«\n»", "«\r\n»"]))
    at.wait_shown()
    text = at.text(uri)
    while (less := re.sub("«(\r?\n|😀)?»", "", text)) != text:  # a mark may be inside of another
        text = less
    assert text.replace("Mesh", "Grid") == GRID * 3
    outcome_is_one(at)


def test_a_text_that_is_not_the_editors_is_not_rewritten(editor: GetEditor) -> None:
    """Where the request tells which text it means; a document that is opened again is the editor's again."""
    at = editor(VSCODE)
    mine = "# é😀\n" + GRID
    uri = at.open(GRID)
    sha256 = hashlib.sha256(mine.encode()).hexdigest()
    params = {"uri": uri, "instruction": "stream it", "sha256": sha256}
    assert at.request("specd/rewrite", params)["result"]["outcome"] == "unsynced"
    assert at.text(uri) == GRID
    at.open(mine, uri, version=2)
    assert at.request("specd/rewrite", params)["result"]["outcome"] == "done"
    assert at.text(uri) == "# é😀\n" + MESH
    at.close_document(uri)
    assert at.request("specd/rewrite", params)["result"]["outcome"] == "unsynced"
    del params["sha256"]
    assert at.request("specd/rewrite", params)["result"]["outcome"] == "refused"
