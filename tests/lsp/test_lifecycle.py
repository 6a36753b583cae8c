"""The server's own life: options, the daemon it warms, the editor it ends with, what never appears on its output."""

import subprocess
import sys
import time
from collections.abc import Callable

from daemon_home import GRID, Home, wait_for
from scripted_editor import VSCODE, Editor, Habits, span

GetEditor = Callable[..., Editor]


def titles(editor: Editor, uri: str) -> list[str]:
    params = {"textDocument": {"uri": uri}, "range": span(GRID, "class"), "context": {"diagnostics": []}}
    return [action["title"] for action in editor.request("textDocument/codeAction", params)["result"]]


def test_a_warm_start_starts_the_daemon_and_offers_its_presets(own_replay: Home, editor_at: GetEditor) -> None:
    own_replay.run("stop", "--now")
    own_replay.settings.write_text(own_replay.settings.read_text() + '[presets]\n"To mesh" = "at once"\n')
    at = editor_at(own_replay, warm=True)
    uri = at.open(GRID)
    wait_for(lambda: titles(at, uri) == ["Rewrite: To mesh"])
    assert own_replay.client.is_reachable()


def test_presets_of_the_editor_win(replay: Home, editor_at: GetEditor) -> None:
    at = editor_at(replay, presets={"Mine": "at once"}, warm=True)
    uri = at.open(GRID)
    time.sleep(0.3)
    assert titles(at, uri) == ["Rewrite: Mine"]
    at.rewrite(uri, "at once")
    at.wait_shown()
    assert titles(at, uri) == ["Rewrite: Mine", "Rewrite again: at once"]


def test_a_wrong_option_is_said_and_the_server_works(replay: Home, editor_at: GetEditor) -> None:
    at = editor_at(replay, stream="sometimes")
    assert at.wait_shown() == "specd: option 'stream' must be auto, always or never; the default is used."
    at.rewrite(at.open(GRID), "at once")
    assert at.wait_shown(2).startswith("specd: 3 hunks")


def test_an_answer_for_which_nobody_waits_any_more_is_left_out(replay: Home, editor_at: GetEditor) -> None:
    """The job is over before the editor has answered the request for its progress."""
    at = editor_at(replay, Habits(progress_seconds=1.0))
    uri = at.open(GRID)
    at.rewrite(uri, "at once")
    at.wait_shown()
    time.sleep(1.5)
    at.rewrite(uri, "nothing")
    assert at.wait_shown(2) == "specd: the model changed nothing"


def test_the_server_ends_with_the_editors_process_even_if_the_pipe_stays_open(replay: Home) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    editor = Editor(replay, VSCODE, process_id=parent.pid)
    try:
        editor.request("specd/status", None)
        parent.kill()
        parent.wait()
        editor.process.wait(10)
    finally:
        editor.kill()


def test_the_server_never_imports_what_is_heavy(replay: Home) -> None:
    heavy = ["torch", "transformers", "aiohttp", "numpy"]
    code = f"import sys; import specd.lsp.handlers; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], env=replay.environ, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_messages_that_are_none_are_left_out_and_the_next_is_read(editor: GetEditor) -> None:
    at = editor()
    assert at.process.stdin is not None
    for body in (b"{", b"[]", b"5", b'{"jsonrpc": "2.0"}', b'{"jsonrpc": "2.0", "method": "unheard/of"}', b"\xff\xfe"):
        at.process.stdin.write(b"Content-Length: %d\r\nX-Other: 1\r\n\r\n%s" % (len(body), body))
    at.process.stdin.flush()
    error = at.request("unheard/of", {})["error"]
    assert error["code"] == -32601
    assert at.request("specd/status", None)["result"]["jobs"] == []


def test_initialize_says_what_the_server_does(editor: GetEditor) -> None:
    capabilities = editor().initialized["result"]["capabilities"]
    assert capabilities["positionEncoding"] == "utf-16"
    assert capabilities["textDocumentSync"]["change"] == 2
    assert capabilities["codeActionProvider"] == {"codeActionKinds": ["refactor.rewrite", "quickfix"]}
    assert capabilities["executeCommandProvider"]["commands"] == [
        "specd.rewrite",
        "specd.rewrite.here",
        "specd.cancel",
        "specd.revert",
        "specd.conflict",
    ]
