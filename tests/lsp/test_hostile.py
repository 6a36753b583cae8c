"""A user, or a client, who does everything wrong: each time one clear answer, the text whole, and the server well."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from daemon_home import GRID, MESH, Home, wait_for
from scripted_editor import Buffer, Editor, Habits

GetEditor = Callable[..., Editor]
PLUGIN = Habits(plugin=True)
MOST = 2**31 - 1
CROWD = 60  # fewer than the daemon lets wait


@pytest.fixture
def at(editor: GetEditor) -> Editor:
    one: Editor = editor(PLUGIN)
    return one


def rewrite(at: Editor, uri: str, instruction: str = "at once", **more: Any) -> dict[str, Any]:
    """The result, or the error."""
    answer = at.request("specd/rewrite", {"uri": uri, "instruction": instruction, **more})
    found: dict[str, Any] = answer.get("result") or answer["error"]
    return found


def places(first: Any, start: Any, last: Any, end: Any) -> dict[str, Any]:
    return {"start": {"line": first, "character": start}, "end": {"line": last, "character": end}}


def is_well(at: Editor) -> bool:
    uri = at.open(GRID)
    return rewrite(at, uri)["outcome"] == "done" and at.text(uri) == MESH


@pytest.mark.parametrize("text", ["# ok\n# \ud83d\n" + GRID, "\r\r# \udc00"])
def test_half_a_character_is_named_with_its_line(at: Editor, text: str) -> None:
    uri = at.open(text)
    line = 2 if "ok" in text else 3
    words = f"the text has half of a character in line {line} (a lone surrogate); delete it first."
    result = rewrite(at, uri)
    assert (result["outcome"], result["message"]) == ("refused", words)
    assert at.request("specd/prepare", {"uri": uri})["error"]["message"] == words
    assert is_well(at)  # with the other document open beside it


def test_half_a_character_in_the_instruction_is_named(at: Editor) -> None:
    assert (
        "the instruction has half of a character in line 2" in rewrite(at, at.open(GRID), "at\nonce \udc00")["message"]
    )


@pytest.mark.parametrize("where", [places(16, 0, 0, 0), places(0, MOST, MOST, MOST), places(0, 0, MOST, 0)])
def test_positions_out_of_range_or_in_reverse_are_clamped(at: Editor, where: dict[str, Any]) -> None:
    uri = at.open(GRID)
    assert rewrite(at, uri, range=where)["outcome"] == "done"
    assert "Grid" not in at.text(uri).split("\n", 1)[1]


@pytest.mark.parametrize("line", [-1, 1.5, True, "1", None, 2**31, 10**30])
def test_a_line_that_is_no_number_is_named(at: Editor, line: object) -> None:
    error = rewrite(at, at.open(GRID), range=places(line, 0, 5, 0))
    assert error["code"] == -32602
    assert "field 'range' must be an LSP range" in error["message"]


def test_a_column_inside_of_a_character_is_the_column_before_it(at: Editor) -> None:
    text = GRID.replace("grid = Grid", "grid = '😀', Grid")
    uri = at.open(text)
    column = 4 + len("grid = '") + 1  # between the two halves of the pair
    assert rewrite(at, uri, range=places(11, column, 11, column))["outcome"] == "done"
    assert at.text(uri) == text.replace("'😀', Grid", "'😀', Mesh")


@pytest.mark.parametrize("end", ["\r", "\r\n", "mixed"])
def test_line_ends_of_all_kinds_stream_and_are_taken_back(at: Editor, end: str) -> None:
    old = GRID.replace("\n", "\r", 5).replace("\n", "\r\n", 5) if end == "mixed" else GRID.replace("\n", end)
    uri = at.open(old)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "slowly"})
    wait_for(lambda: at.edits > 0)
    typed_over = "return grid" + ("\n" if end == "mixed" else end)
    at.type(uri, typed_over, "return grid\r# mine\n")
    assert at.answer(number)["result"]["outcome"] == "done"
    typed = old.replace(typed_over, "return grid\r# mine\n", 1)
    assert at.text(uri) == typed.replace("Grid", "Mesh")
    at.request("specd/revert", {"uri": uri})
    assert at.text(uri) == typed


@pytest.mark.parametrize(
    "uri",
    ["", "not a uri", "file:///%zz", "file:///nul%00.py", "http://[bad", "vscode-remote://wsl+x/a.py", "x:", "\ud83d",
     "file:///a#b?c=d", "file:///" + "a" * 5000],
    ids=lambda uri: ascii(uri)[:20],
)  # fmt: skip
def test_any_uri_will_do_and_comes_back_as_it_was(at: Editor, uri: str) -> None:
    at.buffers[uri] = Buffer(GRID, 1)
    item = {"uri": uri, "languageId": "python", "version": 1, "text": GRID}
    at.notify("textDocument/didOpen", {"textDocument": item})
    context = {"textDocument": {"uri": uri}, "range": places(0, 0, 3, 0), "context": {"diagnostics": []}}
    assert at.request("textDocument/codeAction", context)["result"]
    assert rewrite(at, uri)["outcome"] == "done"
    assert at.text(uri) == MESH


def test_two_rewrites_of_the_same_lines_end_each_with_its_own_word(at: Editor) -> None:
    uri = at.open(GRID)
    numbers = [at.ask("specd/rewrite", {"uri": uri, "instruction": "stream it"}) for _ in range(2)]
    results = [at.answer(number)["result"] for number in numbers]
    assert at.text(uri) == MESH
    assert sum(result["hunks"] for result in results) == 3
    assert {result["outcome"] for result in results} <= {"done", "no_change"}
    at.request("specd/revert", {"uri": uri})
    at.request("specd/revert", {"uri": uri})
    assert at.text(uri) == GRID


def test_cancelled_many_times_over_is_cancelled_once(at: Editor) -> None:
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "hang"})
    wait_for(lambda: at.edits > 0)
    for _ in range(3):
        at.notify("$/cancelRequest", {"id": number})
        at.request("workspace/executeCommand", {"command": "specd.cancel", "arguments": []})
    assert at.answer(number)["error"]["code"] == -32800
    wait_for(lambda: len(at.progress("end")) == len(at.progress("begin")))
    assert at.shown == []


@pytest.mark.parametrize("closes", [True, False], ids=["closed and opened", "opened twice"])
def test_a_document_opened_anew_has_nothing_to_do_with_the_old_job(at: Editor, closes: bool) -> None:
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "slowly"})
    wait_for(lambda: at.edits > 0)
    with at.lock:
        if closes:
            at.close_document(uri)
        at.open(GRID, uri)
    result = at.answer(number)["result"]
    assert result["outcome"] == "cancelled"
    assert result["message"].startswith("cancelled (the document was closed")
    assert "specd.revert" not in result["message"]
    time.sleep(0.3)
    assert at.text(uri) == GRID
    assert rewrite(at, uri)["outcome"] == "done"
    assert at.text(uri) == MESH


def test_a_whole_new_text_in_mid_job_stays(at: Editor) -> None:
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "slowly"})
    wait_for(lambda: at.edits > 0)
    with at.lock:
        at.buffers[uri].text = "# all new\n"
        at.buffers[uri].version += 1
        identifier = {"uri": uri, "version": at.buffers[uri].version}
        at.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": "# all new\n"}]})
    assert at.answer(number)["result"]["outcome"] == "conflict"
    assert at.text(uri) == "# all new\n"


def test_versions_may_go_down_and_changes_be_empty(at: Editor) -> None:
    uri = at.open(GRID, version=10)
    for version, changes in ((3, [{"range": places(0, 0, 0, 0), "text": "# x\n"}]), (2, [])):
        at.notify(
            "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}
        )
    at.buffers[uri] = Buffer("# x\n" + GRID, 2)
    assert rewrite(at, uri)["outcome"] == "done"
    assert at.text(uri) == "# x\n" + MESH


@pytest.mark.parametrize(
    "change",
    [
        {"range": places(-1, 0, 0, 0), "text": "x"},
        {"range": "no", "text": ""},
        {"text": None},
        {"text": 5},
        {},
        5,
        None,
    ],
    ids=str,
)
def test_a_change_that_cannot_be_read_ends_what_runs_and_is_said(at: Editor, change: object) -> None:
    """What the editor shows is not known any more, so nothing is edited until it is told anew."""
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "hang"})
    wait_for(lambda: at.edits > 0)
    with at.lock:
        identifier = {"uri": uri, "version": at.buffers[uri].version + 1}
        at.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]})
    assert "a change of the document could not be read" in at.answer(number)["result"]["message"]
    result = rewrite(at, uri)
    assert (result["outcome"], "close it and open it again" in result["message"]) == ("refused", True)
    at.close_document(uri)
    at.open(GRID, uri)
    assert rewrite(at, uri)["outcome"] == "done"


def test_replies_and_notifications_out_of_nowhere_are_let_by(at: Editor) -> None:
    for message in (
        {"id": 987654, "result": {"applied": True}},
        {"id": "unheard", "error": {"code": 1, "message": "x"}},
        {"id": None, "result": 1},
        {"method": "$/progress"},
        {"method": "$/cancelRequest", "params": {}},
        {"method": "$/setTrace", "params": {"value": "loud"}},
        {"method": "textDocument/didClose", "params": {"textDocument": {"uri": "file:///unheard"}}},
        {"method": "textDocument/didChange", "params": {"textDocument": {"uri": "file:///unheard", "version": 1}}},
        {"id": 5},
    ):
        at.send(message)
    assert is_well(at)


@pytest.mark.parametrize("instruction", ["at once\nand\x00more\n\n", "at once " + "x" * 1_000_000], ids=["odd", "long"])
def test_any_instruction_is_taken(at: Editor, instruction: str) -> None:
    assert rewrite(at, at.open(GRID), instruction)["outcome"] == "done"


def test_a_very_long_instruction_or_diagnostic_does_not_swell_every_menu(at: Editor) -> None:
    uri = at.open(GRID)
    rewrite(at, uri, "at once, and shortly")
    rewrite(at, uri, "nothing" + "x" * 1_000_000)
    found = [{"range": places(0, 0, 0, 5), "message": "long " * 100_000}]
    params = {"textDocument": {"uri": uri}, "range": places(0, 0, 3, 0), "context": {"diagnostics": found}}
    actions = at.request("textDocument/codeAction", params)["result"]
    assert "Rewrite again: at once, and shortly" in [action["title"] for action in actions]
    assert all(len(str(action["command"])) < 10_000 for action in actions)


def test_after_shutdown_requests_are_refused_and_exit_is_clean(replay: Home, editor_at: GetEditor) -> None:
    one = editor_at(replay, PLUGIN)
    one.request("shutdown", None)
    assert one.request("specd/status", None)["error"]["code"] == -32600
    one.notify("exit", None)
    assert one.process.wait(10) == 0


def test_before_initialize_nothing_is_served_and_it_comes_once(replay: Home) -> None:
    body = b'{"jsonrpc": "2.0", "id": %d, "method": "%s", "params": {"capabilities": {}, "processId": null}}'
    bodies = [
        body % (number, name)
        for number, name in enumerate((b"specd/status", b"initialized", b"initialize", b"initialize"))
    ]
    bodies[1] = bodies[1].replace(b'"id": 1, ', b"")
    said = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(one), one) for one in bodies)
    run = subprocess.run(replay.command("lsp"), input=said, env=replay.environ, capture_output=True, check=False)
    answers = [json.loads(part.split(b"\r\n\r\n", 1)[1]) for part in run.stdout.split(b"Content-Length: ")[1:]]
    assert [answer["id"] for answer in answers] == [0, 2, 3]
    assert answers[0]["error"]["code"] == -32002
    assert answers[1]["result"]["serverInfo"]["name"] == "specd"
    assert answers[2]["error"]["code"] == -32600


@pytest.mark.parametrize("length", ["four", "-4", "4.5", ""])
def test_a_length_that_is_none_ends_the_server_and_is_said(replay: Home, length: str) -> None:
    said = f"Content-Length: {length}\r\n\r\n{{}}".encode()
    run = subprocess.run(replay.command("lsp"), input=said, env=replay.environ, capture_output=True, check=False)
    assert run.returncode == 1
    assert b"it is not known where the next message begins" in run.stderr


def test_trace_values_of_other_libraries_are_taken(replay: Home, editor_at: GetEditor) -> None:
    one = editor_at(replay, PLUGIN, trace="compact")
    assert one.initialized["result"]["serverInfo"]["name"] == "specd"
    assert rewrite(one, one.open(GRID))["outcome"] == "done"
    wait_for(lambda: bool(one.of("$/logTrace")))


def test_a_client_that_knows_only_commands_is_offered_commands(editor: GetEditor) -> None:
    """`codeActionLiteralSupport` of LSP 3.8 is missing."""
    one = editor(Habits(literals=False))
    uri = one.open(GRID)
    params = {"textDocument": {"uri": uri}, "range": places(0, 0, 3, 0), "context": {"diagnostics": []}}
    found = one.request("textDocument/codeAction", params)["result"]
    assert found
    assert all(isinstance(action["command"], str) for action in found)
    one.request("workspace/executeCommand", {key: found[0][key] for key in ("command", "arguments")})
    one.wait_shown()


def test_tokens_that_any_request_may_have_are_let_by(at: Editor) -> None:
    assert rewrite(at, at.open(GRID), workDoneToken="t", partialResultToken=5)["outcome"] == "done"


@pytest.mark.parametrize("version", [{}, {"version": None}], ids=["missing", "null"])
def test_changes_without_a_version_are_followed_by_one_edit_without_one(at: Editor, version: dict[str, Any]) -> None:
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "slowly"})
    wait_for(lambda: at.edits > 0)
    with at.lock:
        buffer = at.buffers[uri]
        buffer.text = "# mine\n" + buffer.text
        change = {"range": places(0, 0, 0, 0), "text": "# mine\n"}
        at.notify("textDocument/didChange", {"textDocument": {"uri": uri, **version}, "contentChanges": [change]})
    assert at.answer(number)["result"]["outcome"] == "done"
    assert at.text(uri) == "# mine\n" + MESH
    assert "changes" in at.of("workspace/applyEdit")[-1]["edit"]


class OddEditor(Editor):
    """Answers edits, or the request for a progress, in a way of its own."""

    odd = ""

    def _edit(self, message: dict[str, Any]) -> None:
        number = message["id"]
        if self.odd == "answers twice":
            super()._edit(message)
            self.send({"id": number, "result": {"applied": False}})
        elif self.odd == "applies and says no":
            super()._edit({**message, "id": "nobody asked"})
            self.send({"id": number, "result": {"applied": False}})
        elif self.odd in ("no progress", "silent"):
            super()._edit(message)
        else:
            odd_answers = {"null": None, "a list": [1], "a word": {"applied": "yes"}}
            self.send({"id": number, "result": odd_answers[self.odd]})

    def _serve(self, message: dict[str, Any]) -> None:
        if self.odd == "no progress" and message["method"] == "window/workDoneProgress/create":
            self.send({"id": message["id"], "error": {"code": -32601, "message": "no"}})
        elif self.odd != "silent" or message["method"] != "window/workDoneProgress/create":
            super()._serve(message)


@pytest.fixture
def odd_editor(replay: Home) -> Iterator[OddEditor]:
    one = OddEditor(replay, PLUGIN)
    yield one
    one.kill()


@pytest.mark.parametrize("odd", ["answers twice", "applies and says no"])
def test_what_the_buffer_shows_counts_and_not_what_the_client_says(odd_editor: OddEditor, odd: str) -> None:
    uri = odd_editor.open(GRID)
    odd_editor.odd = odd
    result = rewrite(odd_editor, uri, "stream it")
    assert (result["outcome"], result["hunks"], odd_editor.text(uri)) == ("done", 3, MESH)


@pytest.mark.parametrize("odd", ["null", "a list", "a word"])
def test_answers_that_are_none_end_in_a_conflict_and_change_nothing(odd_editor: OddEditor, odd: str) -> None:
    uri = odd_editor.open(GRID)
    odd_editor.odd = odd
    result = rewrite(odd_editor, uri, "at once")
    assert (result["outcome"], odd_editor.text(uri)) == ("conflict", GRID)
    assert "the editor " in result["message"]


@pytest.mark.parametrize("odd", ["no progress", "silent"])
def test_a_progress_that_cannot_be_had_holds_nothing_up(odd_editor: OddEditor, odd: str) -> None:
    odd_editor.odd = odd
    uri = odd_editor.open(GRID)
    assert rewrite(odd_editor, uri, "stream it")["outcome"] == "done"
    assert odd_editor.text(uri) == MESH
    assert odd_editor.progress("begin") == odd_editor.progress("end") == []


def test_a_crowd_of_rewrites_all_end(at: Editor) -> None:
    uris = [at.open(GRID + f"# {number}\n") for number in range(CROWD)]
    numbers = [at.ask("specd/rewrite", {"uri": uri, "instruction": "at once"}) for uri in uris]
    assert {at.answer(number, 60)["result"]["outcome"] for number in numbers} == {"done"}
    assert [at.text(uri) for uri in uris] == [MESH + f"# {number}\n" for number in range(CROWD)]
