"""Everything around a rewrite: the prompt, cancelling, taking back, hunks, the code-action menu, what goes wrong."""

import os
import signal
from collections.abc import Callable

from daemon_home import GRID, MESH, Home, wait_for
from real_nvim import Nvim

StartNvim = Callable[..., Nvim]
ERROR = 4
SPY = """
_G.sent = {}
local client = vim.lsp.get_clients({ name = 'specd', bufnr = 0 })[1]
_G.plain_request = _G.plain_request or client.request
client.request = function(self, method, params, ...)
  table.insert(_G.sent, { method, params })
  return _G.plain_request(self, method, params, ...)
end
"""


def test_the_prompt_prepares_at_once_and_the_instruction_follows(nvim: Nvim) -> None:
    nvim.lua(SPY)
    nvim.api.input("gg:SpecdRewrite!<CR>")
    wait_for(lambda: bool(nvim.lua("return #_G.sent > 0")))
    assert nvim.lua("return _G.sent[1][1]") == "specd/prepare"
    assert nvim.mode == "c"  # it waits for words
    nvim.api.input("at once<CR>")
    nvim.wait_said("3 hunks")
    assert nvim.lua("return vim.tbl_map(function(one) return one[1] end, _G.sent)")[:2] == [
        "specd/prepare",
        "specd/rewrite",
    ]
    assert nvim.text == MESH


def test_escape_at_the_prompt_leaves_no_trace(nvim: Nvim) -> None:
    nvim.api.input(":SpecdRewrite<CR>make it<Esc>")
    nvim.api.input(":SpecdRewrite<CR>   <CR>")
    nvim.api.input("<C-l>")
    assert nvim.said == []
    assert nvim.text == GRID
    assert [nvim.marks(name) for name in ("region", "hunks", "target")] == [[], [], []]
    assert nvim.lua("return require('specd.jobs').all()") == []


def test_a_prompt_that_does_not_block_rewrites_the_same_lines_after_the_text_has_moved(nvim: Nvim) -> None:
    nvim.lua("_G.plain = vim.ui.input; vim.ui.input = function(options, done) _G.prompt, _G.done = options, done end")
    nvim.lua(SPY)
    nvim.api.command("11,12SpecdRewrite")
    nvim.api.input("ggO# one<CR># two<Esc>")
    wait_for(lambda: nvim.lua("return #_G.sent") >= 2)  # prepared again, for the new text
    assert nvim.lua("return _G.sent[#_G.sent][2].range.start.line") == 12
    nvim.lua("vim.ui.input = _G.plain; _G.done('at once')")
    nvim.wait_said()
    assert nvim.lua("return _G.prompt.prompt") == "Rewrite lines 11-12: "
    assert nvim.text == "# one\n# two\n" + GRID.replace("grid = Grid", "grid = Mesh")


def test_earlier_instructions_are_in_the_history_and_completed(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! nothing to see")
    nvim.wait_said("no change needed")
    assert nvim.api.call("getcompletion", "SpecdRewrite nothing to", "cmdline") == ["to see"]
    assert nvim.api.call("histget", "input", -1) == "nothing to see"
    nvim.api.input(":SpecdRewrite!<CR><Up><CR>")
    wait_for(lambda: len(nvim.said) == 2)


def test_again_takes_the_last_instruction(nvim: Nvim) -> None:
    nvim.api.command("SpecdAgain")
    assert "there is no instruction yet" in nvim.wait_said()
    nvim.api.command("1SpecdRewrite at once")
    nvim.wait_said("1 hunk")
    nvim.api.command("11,$SpecdAgain")
    nvim.wait_said("2 hunks")
    assert nvim.text == MESH


def test_cancel_ends_it_and_says_what_stays(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(nvim.hunks()) == 3)
    assert nvim.lua("return require('specd').status()").startswith("specd: ")
    nvim.api.command("SpecdCancel")
    message = "specd: cancelled (by the user); 3 hunks applied so far stay (:SpecdRevert takes them back)"
    assert nvim.wait_said() == message
    assert nvim.marks("region") == []
    assert nvim.text == MESH
    wait_for(lambda: nvim.home.client.status()["jobs"] == {"active": 0, "waiting": 0})
    nvim.api.command("SpecdCancel")
    assert "no rewrite is under way" in nvim.wait_said("no rewrite")
    assert nvim.lua("return require('specd').status()") == ""


def test_an_undo_in_mid_stream_ends_it(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(nvim.hunks()) == 3)
    nvim.api.input("u")
    assert "cancelled (undone)" in nvim.wait_said()
    assert nvim.text == GRID
    wait_for(lambda: nvim.hunks() == [])


def test_a_conflict_is_a_diagnostic_and_settled_from_the_menu_as_an_undo_step_of_its_own(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! slowly")
    wait_for(lambda: "class Mesh" in nvim.text)
    nvim.api.command("16s/)/, mine)/")
    message = nvim.wait_said()
    assert "the text changed under the rewrite: 1 of 3 hunks not applied (lines 16)" in message
    mine = MESH.replace("(grid: Mesh)", "(grid: Grid, mine)")
    assert nvim.text == mine
    wait_for(lambda: nvim.lua("return #vim.diagnostic.get(0)") == 1)
    nvim.api.input("16G")
    nvim.lua("vim.lsp.buf.code_action({ apply = true, filter = function(a) return a.title:match('specd') end })")
    wait_for(lambda: nvim.text == MESH)
    assert nvim.lua("return #vim.diagnostic.get(0)") == 0
    nvim.api.input("u")
    assert nvim.text == mine


def test_closing_the_buffer_ends_it(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(nvim.hunks()) == 3)
    nvim.api.command("enew | bwipeout! grid.py")
    assert "cancelled (the document was closed)" in nvim.wait_said()
    wait_for(lambda: nvim.home.client.status()["jobs"] == {"active": 0, "waiting": 0})


def test_reading_the_file_again_ends_it_and_leaves_no_marks(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! slowly")
    wait_for(lambda: "class Mesh" in nvim.text)
    nvim.api.command("edit!")
    assert "cancelled (the document was closed)" in nvim.wait_said()
    assert nvim.text == GRID
    assert nvim.hunks() == nvim.marks("region") == []
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said("3 hunks, ")


def test_a_write_in_mid_stream_writes_whole_lines_and_the_rewrite_is_one_undo_all_the_same(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! slowly")
    wait_for(lambda: "class Mesh" in nvim.text)
    nvim.api.command("write")
    nvim.wait_said("3 hunks")
    written = (nvim.home.work / "grid.py").read_text().split("\n")
    assert all(line in (old, new) for line, old, new in zip(written, GRID.split("\n"), MESH.split("\n"), strict=True))
    nvim.api.input("u")
    assert nvim.text == GRID


def test_stopping_the_server_is_told(start: StartNvim) -> None:
    at = start()
    at.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(at.hunks()) == 3)
    at.lua("vim.lsp.enable('specd', false)")
    message = at.wait_said()  # the server's last word, or, if it was too late for one, the plugin's
    assert "3 hunks applied so far stay" in message or "the language server has gone" in message
    assert at.marks("region") == []
    assert at.lua("return require('specd.jobs').all()") == []


def test_a_second_rewrite_of_the_same_buffer_waits_for_the_first(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! hang")
    nvim.api.command("SpecdRewrite! at once")
    assert "a rewrite of this buffer is under way" in nvim.wait_said()
    nvim.api.command("SpecdCancel")
    nvim.wait_said("cancelled")


def test_revert_takes_back_all_but_what_was_changed_since_as_one_undo_step(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said()
    nvim.api.input("Go# mine<Esc>")
    nvim.api.command("silent! %s/trace(grid: Mesh)/trace(mine: Mesh)/")
    before = nvim.text
    nvim.api.command("SpecdRevert")
    assert "took 2 hunks back; left lines 16, which changed since" in nvim.wait_said("took")
    expected = GRID.replace("trace(grid: Grid)", "trace(mine: Mesh)")
    assert nvim.text == expected + "# mine\n"
    wait_for(lambda: nvim.hunks() == [])
    nvim.api.input("u")
    assert nvim.text == before
    nvim.api.command("SpecdRevert")
    nvim.wait_said()


def test_hunks_are_visited_shown_taken_back_one_by_one_and_dismissed(nvim: Nvim) -> None:
    maps = {"]h": "next-hunk", "[h": "previous-hunk", "gh": "revert-hunk", "gd": "diff", "gx": "dismiss"}
    for keys, name in maps.items():
        nvim.lua("vim.keymap.set('n', ...)", keys, f"<Plug>(specd-{name})")
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said()
    rows = []
    for keys in ("gg]h", "]h", "]h", "[h", "[h"):
        nvim.api.input(keys)
        rows.append(nvim.api.current.window.cursor[0])
    assert rows == [12, 16, 1, 16, 12]
    nvim.api.input("gd")
    old = {row: details["virt_lines"] for row, _, details in nvim.marks("old")}
    assert [lines[0][0][0] for lines in old.values()] == [line for line in GRID.split("\n") if "Grid" in line]
    nvim.api.input("gd")
    assert nvim.marks("old") == []
    nvim.api.input("gh")  # on line 12
    assert nvim.text == MESH.replace("grid = Mesh", "grid = Grid")
    wait_for(lambda: nvim.hunks() == [(0, 1), (15, 16)])
    nvim.api.input("gx")
    assert nvim.hunks() == nvim.marks("hunks") == []
    nvim.api.input("]h")
    nvim.wait_said("no hunk is marked")


def test_a_deleted_line_is_marked_and_can_come_back(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! drop a line")
    nvim.wait_said("1 hunk")
    ((row, _, details),) = nvim.marks("hunks")
    assert (row, details["virt_text"][0][0]) == (3, "1 line deleted")
    nvim.api.input("4G")
    nvim.lua("require('specd').revert_hunk()")
    assert nvim.text == GRID


def test_a_mark_goes_when_its_lines_are_changed(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said()
    nvim.api.input("12GA  # mine<Esc>")
    wait_for(lambda: nvim.hunks() == [(0, 1), (15, 16)])
    nvim.api.input("ggdd")
    wait_for(lambda: nvim.hunks() == [(14, 15)])


def test_the_stock_code_action_menu_has_presets_and_asks_for_more(start: StartNvim) -> None:
    at = start(opts="{ presets = { ['To meshes'] = 'at once' } }")
    at.lua("vim.ui.select = function(items, options, done) _G.items = items; _G.choose = done end")

    def menu() -> list[str]:
        at.lua("_G.items = nil; vim.lsp.buf.code_action()")
        wait_for(lambda: bool(at.lua("return _G.items ~= nil")))
        return [str(title) for title in at.lua("return vim.tbl_map(function(i) return i.action.title end, _G.items)")]

    assert menu() == ["Rewrite with LLM…", "Rewrite: To meshes"]
    at.api.input("12G")
    menu()
    at.lua("_G.choose(_G.items[2])")
    at.wait_said("1 hunk")
    assert at.text == GRID.replace("grid = Grid", "grid = Mesh")
    assert at.hunks() == [(11, 12)]
    assert menu()[-1] == "Rewrite again: at once"
    at.api.input("gg")
    menu()
    at.lua("_G.said = {}; vim.schedule(function() _G.choose(_G.items[1]) end)")
    wait_for(lambda: at.mode == "c")
    at.api.input("at once<CR>")
    at.wait_said("1 hunk")
    assert at.text == MESH.replace("(grid: Mesh)", "(grid: Grid)")


def test_a_comment_that_asks_goes_with_the_edit(start: StartNvim) -> None:
    at = start(text=GRID.replace("def make", "# specd: at once\ndef make"), opts="{ presets = {} }")
    at.api.input("14G")
    at.lua("vim.ui.select = function(items, options, done) done(items[1]) end")
    at.lua("vim.lsp.buf.code_action()")
    at.wait_said("hunk")
    assert at.text == GRID.replace("grid = Grid", "grid = Mesh")


def test_a_menu_that_is_older_than_the_text_is_refused(nvim: Nvim) -> None:
    nvim.lua("_G.plain_select = vim.ui.select")
    nvim.lua("vim.ui.select = function(items, options, done) _G.items = items; _G.choose = done end")
    nvim.lua("_G.items = nil; vim.lsp.buf.code_action()")
    wait_for(lambda: bool(nvim.lua("return _G.items ~= nil")))
    nvim.api.input("ggO# typed<Esc>")
    nvim.lua("_G.choose(_G.items[#_G.items]); vim.ui.select = _G.plain_select")
    assert "the text has changed since the request was made" in nvim.wait_said()
    assert nvim.text == "# typed\n" + GRID


def test_a_read_only_buffer_a_nameless_one_and_no_file_are_refused_in_words(nvim: Nvim) -> None:
    nvim.api.command("set readonly")
    nvim.api.command("SpecdRewrite! at once")
    assert "read-only" in nvim.wait_said()
    nvim.api.command("enew")
    nvim.api.command("SpecdRewrite! at once")
    assert "has no name" in nvim.wait_said("name")
    nvim.api.command("help")
    nvim.api.command("setlocal modifiable noreadonly")
    nvim.api.command("SpecdRewrite! at once")
    assert "not a file" in nvim.wait_said("not a file")


def test_a_buffer_that_becomes_unmodifiable_keeps_its_text_and_the_reason_is_said(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! slowly")
    nvim.api.command("set nomodifiable")
    assert "the buffer is not modifiable" in nvim.wait_said()
    assert nvim.text == GRID
    nvim.api.command("set modifiable")


def test_a_failure_of_the_engine_is_an_error_and_what_came_stays(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! fail")
    message = nvim.wait_said()
    assert (message, ERROR) in nvim.said
    assert nvim.marks("region") == []


def test_a_daemon_that_is_killed_in_the_middle_is_told_and_started_again(own_replay: Home, start: StartNvim) -> None:
    at = start(own_replay)
    at.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(at.hunks()) == 3)
    os.kill(own_replay.daemon_pid(), signal.SIGKILL)
    assert "the daemon ended in the middle of the job" in at.wait_said()
    assert at.marks("region") == []
    assert at.text == MESH
    at.api.command("SpecdRevert")
    at.wait_said("took 3 hunks back")
    at.api.command("SpecdRewrite! at once")
    at.wait_said("3 hunks, ")
    assert at.text == MESH


def test_a_server_that_is_killed_is_told_and_started_again(start: StartNvim) -> None:
    at = start()
    at.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(at.hunks()) == 3)
    server = at.lua("return vim.lsp.get_clients({ name = 'specd' })[1].rpc.is_closing and vim.fn.getpid()")
    children = at.lua("return vim.api.nvim_get_proc_children(...)", server)
    os.kill(int(children[0]), signal.SIGKILL)
    assert "the language server has gone" in at.wait_said("gone")
    assert at.marks("region") == []
    wait_for(lambda: at.home.client.status()["jobs"] == {"active": 0, "waiting": 0})
    at.lua("_G.said = {}")
    at.api.command("silent! undo")
    at.api.command("SpecdRewrite! at once")
    at.wait_said("3 hunks")
    assert at.text == MESH
