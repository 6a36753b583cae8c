"""Cancel in all its forms: no edit after the answer, one outcome, and a daemon that is idle."""

import os
import signal
import time
from collections.abc import Callable

import pytest
from daemon_home import GRID, MESH, Home, wait_for
from scripted_editor import NEOVIM, VSCODE, Editor, Habits

GetEditor = Callable[..., Editor]
PLUGIN = Habits(plugin=True)


def first_edit(editor: Editor) -> None:
    wait_for(lambda: editor.edits > 0)


def idle(home: Home) -> None:
    wait_for(lambda: home.client.status()["jobs"] == {"active": 0, "waiting": 0}, 5)


def quiet(editor: Editor, uri: str) -> None:
    """No edit comes any more."""
    edits, text = editor.edits, editor.text(uri)
    time.sleep(0.3)
    assert (editor.edits, editor.text(uri)) == (edits, text)


def cancel_progress(editor: Editor, job: str, number: int) -> None:
    wait_for(lambda: bool(editor.progress("begin")))
    token = editor.of("$/progress")[0]["token"]
    editor.notify("window/workDoneProgress/cancel", {"token": token})


def cancel_command(editor: Editor, job: str, number: int) -> None:
    answer = editor.request("workspace/executeCommand", {"command": "specd.cancel", "arguments": []})
    assert answer["result"] == {"cancelled": 1}


def cancel_command_by_name(editor: Editor, job: str, number: int) -> None:
    editor.request("workspace/executeCommand", {"command": "specd.cancel", "arguments": [{"job": job}]})


def cancel_request(editor: Editor, job: str, number: int) -> None:
    editor.notify("$/cancelRequest", {"id": number})


def undo(editor: Editor, job: str, number: int) -> None:
    (uri,) = editor.buffers
    editor.type(uri, "class Mesh", "class Grid")


@pytest.mark.parametrize("cancel", [cancel_progress, cancel_command, cancel_command_by_name, cancel_request, undo])
@pytest.mark.parametrize("habits", [VSCODE, NEOVIM], ids=lambda habits: habits.name)
def test_a_cancel_ends_the_job_at_once(
    replay: Home, editor: GetEditor, habits: Habits, cancel: Callable[[Editor, str, int], None]
) -> None:
    at = editor(habits)
    uri = at.open(GRID)
    argument = {"uri": uri, "instruction": "hang"}
    number = at.ask("workspace/executeCommand", {"command": "specd.rewrite", "arguments": [argument]})
    job = at.answer(number)["result"]["job"]
    first_edit(at)
    began = time.monotonic()
    cancel(at, job, number)
    assert at.wait_shown().startswith("specd: cancelled (")
    assert time.monotonic() - began < 2
    idle(replay)
    quiet(at, uri)
    assert len(at.shown) == 1
    assert len(at.progress("end")) == len(at.progress("begin")) == 1


def test_a_cancelled_request_is_answered_so_and_no_edit_comes_after_it(replay: Home, editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "slowly"})
    first_edit(at)
    assert not at.has_answer(number)
    at.notify("$/cancelRequest", {"id": number})
    assert at.answer(number)["error"]["code"] == -32800
    idle(replay)
    quiet(at, uri)
    assert at.text(uri) != MESH
    assert at.shown == []
    assert len(at.progress("end")) == len(at.progress("begin"))


def test_hunks_that_wait_behind_an_edit_are_not_sent_after_a_cancel(editor: GetEditor) -> None:
    at = editor(Habits(plugin=True, answer_seconds=0.3))
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "stream it"})
    wait_for(lambda: len(at.of("workspace/applyEdit")) == 1)
    time.sleep(0.2)  # the other hunks have come meanwhile
    at.notify("$/cancelRequest", {"id": number})
    assert at.answer(number)["error"]["code"] == -32800
    time.sleep(0.6)
    assert len(at.of("workspace/applyEdit")) == 1


def test_a_cancel_before_the_first_event_is_as_good(replay: Home, editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "hang"})
    at.notify("$/cancelRequest", {"id": number})
    assert at.answer(number)["error"]["code"] == -32800
    idle(replay)
    quiet(at, uri)


def test_closing_the_document_ends_its_job(replay: Home, editor: GetEditor) -> None:
    at = editor()
    uri = at.open(GRID)
    other = at.open(GRID)
    at.rewrite(uri, "hang")
    at.rewrite(other, "stream it")
    first_edit(at)
    at.close_document(uri)
    messages = {at.wait_shown(1), at.wait_shown(2)}
    assert any("the document was closed" in message for message in messages)
    wait_for(lambda: at.text(other) == MESH)
    idle(replay)


def test_a_cancel_of_what_is_over_or_unknown_does_nothing(editor: GetEditor) -> None:
    at = editor()
    uri = at.open(GRID)
    job = at.rewrite(uri, "at once")
    at.wait_shown()
    for argument in ({"job": job}, {"job": "?"}, {"uri": uri}, {}):
        answer = at.request("workspace/executeCommand", {"command": "specd.cancel", "arguments": [argument]})
        assert answer["result"] == {"cancelled": 0}
    at.notify("window/workDoneProgress/cancel", {"token": "unheard of"})
    at.notify("$/cancelRequest", {"id": 12345})
    assert at.request("specd/status", None)["result"]["jobs"][0]["running"] is False


@pytest.mark.parametrize("how", ["end of input", "kill", "exit"])
def test_the_end_of_the_editor_ends_server_and_job(replay: Home, editor_at: GetEditor, how: str) -> None:
    at = editor_at(replay)
    uri = at.open(GRID)
    at.rewrite(uri, "hang")
    first_edit(at)
    if how == "end of input":
        assert at.process.stdin is not None
        at.process.stdin.close()
    elif how == "kill":
        os.kill(at.process.pid, signal.SIGKILL)
    else:
        assert at.close() == 0
    at.process.wait(3)
    idle(replay)
    assert at.errors() == ""
