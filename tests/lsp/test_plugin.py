"""The custom requests of editors/PROTOCOL.md."""

from collections.abc import Callable

import pytest
from daemon_home import GRID, MESH, Home, wait_for
from scripted_editor import NEOVIM, VSCODE, Editor, Habits, span

GetEditor = Callable[..., Editor]
PLUGIN = Habits(plugin=True)


def test_a_rewrite_request_is_open_until_done_and_its_answer_is_the_outcome(editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open(GRID)
    result = at.request("specd/rewrite", {"uri": uri, "instruction": "stream it", "version": 1})["result"]
    assert at.text(uri) == MESH
    assert (result["outcome"], result["hunks"], result["conflicts"]) == ("done", 3, [])
    assert result["summary"]["tokens"] > 0
    assert result["message"].startswith("3 hunks")
    assert result["severity"] == "info"
    assert at.shown == []
    wait_for(lambda: len(at.of("window/logMessage")) == 1)


def test_a_plugin_hears_of_region_and_hunks_in_lines_of_its_buffer(editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open("\n\n" + GRID)
    at.request("specd/rewrite", {"uri": uri, "instruction": "stream it", "range": span("\n\n" + GRID, GRID)})
    (region,) = at.of("specd/region")
    assert (region["startLine"], region["endLine"], region["version"]) == (2, 2 + GRID.count("\n"), 1)
    lines = at.text(uri).split("\n")
    hunks = at.of("specd/hunk")
    assert len(hunks) == 3
    for hunk in hunks:
        new = "\n".join(lines[hunk["startLine"] : hunk["endLine"]]) + "\n"
        assert "Mesh" in new
        assert hunk["oldText"] == new.replace("Mesh", "Grid")
        assert hunk["removed"] is False


def test_an_editor_without_a_plugin_hears_nothing_of_it(editor: GetEditor) -> None:
    at = editor(VSCODE)
    uri = at.open(GRID)
    at.rewrite(uri, "stream it")
    at.wait_shown()
    assert at.of("specd/region") == at.of("specd/hunk") == []


def test_a_refusal_is_an_outcome_not_an_error(editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open(GRID)
    for more, words in (({"version": 9}, "ask again"), ({"readonly": True}, "read-only")):
        result = at.request("specd/rewrite", {"uri": uri, "instruction": "at once", **more})["result"]
        assert (result["outcome"], result["severity"], words in result["message"]) == ("refused", "error", True)


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("specd/rewrite", {"instruction": "x"}, "lacks the field 'uri'"),
        ("specd/rewrite", {"uri": "a", "instruction": 5}, "field 'instruction' must be a string, not int"),
        ("specd/rewrite", {"uri": "a", "instruction": "x", "wholeFile": True}, "no field 'wholeFile'"),
        ("specd/rewrite", {"uri": "a", "instruction": "x", "version": True}, "'version' must be a whole number"),
        ("specd/prepare", {"uri": "a", "range": "everything"}, "field 'range' must be an LSP range"),
        ("specd/status", [], "must be an object"),
        ("workspace/executeCommand", {"command": "specd.rewrite", "arguments": [{"uri": "a"}]}, "'instruction'"),
        ("workspace/executeCommand", {"command": "specd.rewrite", "arguments": []}, "one argument is expected"),
        ("workspace/executeCommand", {"command": "specd.cancel", "arguments": [5]}, "must be an object"),
        ("workspace/executeCommand", {"command": "specd.unheard", "arguments": []}, "specd.unheard"),
        ("textDocument/codeAction", {"range": 5}, "textDocument/codeAction are wrong"),
    ],
)
def test_wrong_parameters_are_answered_by_name(editor: GetEditor, method: str, params: object, words: str) -> None:
    at = editor(PLUGIN)
    error = at.request(method, params)["error"]
    assert error["code"] == -32602
    assert words in error["message"]
    assert at.request("specd/status", {})["result"]["jobs"] == []


def test_prepare_reads_the_prompt_and_says_how_much(editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open(GRID)
    result = at.request("specd/prepare", {"uri": uri, "range": span(GRID, "grid = Grid")})["result"]
    assert result["new"] > 0
    assert result["replaced"] is False
    assert "not open" in at.request("specd/prepare", {"uri": "untitled:none"})["error"]["message"]


def test_status_is_the_daemons_and_names_the_jobs(editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open(GRID)
    job = at.rewrite(uri, "hang")
    wait_for(lambda: at.edits > 0)
    result = at.request("specd/status", None)["result"]
    assert result["daemon"]["state"] == "ready"
    assert result["jobs"] == [{"job": job, "uri": uri, "running": True}]
    assert result["problem"] == ""


def test_status_says_why_there_is_no_word_of_the_daemon(own_replay: Home, editor_at: GetEditor) -> None:
    own_replay.run("stop")
    at = editor_at(own_replay)
    result = at.request("specd/status", None)["result"]
    assert result["daemon"] is None
    assert result["problem"] == f"no daemon runs at unix:{own_replay.socket}; the next rewrite starts one."
    own_replay.settings.write_text("modle = 1\n")
    assert "none can be started: " in at.request("specd/status", None)["result"]["problem"]


@pytest.mark.parametrize("habits", [PLUGIN, NEOVIM], ids=["vscode", "neovim"])
def test_revert_takes_back_all_that_nobody_touched(editor: GetEditor, habits: Habits) -> None:
    at = editor(habits)
    uri = at.open(GRID)
    at.rewrite(uri, "stream it")
    at.wait_shown()
    at.type(uri, "class Mesh", "# mine\nclass Mesh")
    at.type(uri, "def trace(grid: Mesh)", "def trace(grid: Mesh, mine)")
    result = at.request("specd/revert", {"uri": uri})["result"]
    assert (result["reverted"], result["refused"]) == (2, ["17"])
    assert "left line 17, which changed since" in result["message"]
    expected = GRID.replace("class Grid", "# mine\nclass Grid").replace("(grid: Grid)", "(grid: Mesh, mine)")
    assert at.text(uri) == expected
    assert at.request("specd/revert", {"uri": uri})["result"]["reverted"] == 0
    assert at.text(uri) == expected


def test_revert_in_mid_stream_cancels_first(replay: Home, editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open(GRID)
    job = at.rewrite(uri, "hang")
    wait_for(lambda: at.text(uri) == MESH)
    result = at.request("specd/revert", {"job": job})["result"]
    assert result["reverted"] == 3
    assert at.text(uri) == GRID
    assert at.wait_shown() == "specd: cancelled (taken back)"
    wait_for(lambda: replay.client.status()["jobs"]["active"] == 0)


def test_two_reverts_at_once_take_each_hunk_back_once(editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open(GRID)
    at.request("specd/rewrite", {"uri": uri, "instruction": "at once"})
    numbers = [at.ask("specd/revert", {"uri": uri}) for _ in range(2)]
    assert sorted(at.answer(number)["result"]["reverted"] for number in numbers) == [0, 3]
    assert at.text(uri) == GRID


def test_a_revert_before_the_first_hunk_ends_the_job(replay: Home, editor: GetEditor) -> None:
    at = editor(Habits(plugin=True, answer_seconds=60))
    uri = at.open(GRID)
    job = at.rewrite(uri, "nothing, slowly")
    at.request("specd/revert", {"job": job})
    assert at.wait_shown() == "specd: cancelled (taken back)"
    wait_for(lambda: replay.client.status()["jobs"] == {"active": 0, "waiting": 0}, 5)


def test_no_more_jobs_than_can_be_taken_back_tell_of_their_hunks(editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open(GRID)
    for _ in range(9):
        assert at.request("specd/rewrite", {"uri": uri, "instruction": "at once"})["result"]["outcome"] == "done"
        at.type(uri, at.text(uri), GRID)
    assert len(at.request("specd/status", None)["result"]["jobs"]) == 8


def test_a_rewrite_that_is_cancelled_by_command_is_answered_with_what_stays(editor: GetEditor) -> None:
    at = editor(PLUGIN)
    uri = at.open(GRID)
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": "hang"})
    wait_for(lambda: at.text(uri) == MESH)
    at.request("workspace/executeCommand", {"command": "specd.cancel", "arguments": [{"uri": uri}]})
    result = at.answer(number)["result"]
    assert (result["outcome"], result["severity"], result["hunks"]) == ("cancelled", "info", 3)
    assert result["message"].startswith("cancelled (by the user); 3 hunks applied so far stay")
    assert at.shown == []


@pytest.mark.parametrize(("habits", "asks"), [(PLUGIN, True), (VSCODE, False)], ids=["plugin", "none"])
def test_a_plugin_that_can_ask_is_offered_an_action_without_words(
    editor: GetEditor, habits: Habits, asks: bool
) -> None:
    at = editor(habits)
    uri = at.open(GRID)
    where = {"textDocument": {"uri": uri}, "range": span(GRID, "grid = Grid"), "context": {"diagnostics": []}}
    actions = at.request("textDocument/codeAction", where)["result"]
    wordless = [one["title"] for one in actions if not one["command"]["arguments"][0]["instruction"]]
    assert wordless == (["Rewrite with LLM…"] if asks else [])


def test_rewrite_here_is_where_code_actions_were_asked_for(editor: GetEditor) -> None:
    at = editor()
    uri = at.open(GRID)
    context = {"diagnostics": []}
    at.request(
        "textDocument/codeAction",
        {"textDocument": {"uri": uri}, "range": span(GRID, "grid = Grid"), "context": context},
    )
    command = {"command": "specd.rewrite.here", "arguments": [{"instruction": "at once"}]}
    at.request("workspace/executeCommand", command)
    at.wait_shown()
    assert at.text(uri) == GRID.replace("grid = Grid", "grid = Mesh")


def test_the_uri_is_echoed_as_the_client_wrote_it(editor: GetEditor) -> None:
    at = editor()
    uri = at.open(GRID, "file:///c%3A/Some%20Folder/a%2Bb.py")
    at.rewrite("file:///C:/Some Folder/a+b.py", "at once")
    at.wait_shown()
    assert at.text(uri) == MESH
