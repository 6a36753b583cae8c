"""The code-action menu, and what goes wrong: refusals, conflicts, failures, deaths."""

import os
import signal
from collections.abc import Callable

from daemon_home import GRID, MESH, Home, wait_for
from real_nvim import Nvim

StartNvim = Callable[..., Nvim]
WARN, ERROR = 3, 4  # of vim.log.levels


def test_a_conflict_is_a_diagnostic_and_settled_from_the_menu_as_an_undo_step_of_its_own(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! slowly")
    wait_for(lambda: "class Mesh" in nvim.text)
    nvim.api.command("16s/)/, mine)/")
    message = nvim.wait_said()
    assert "the text changed under the rewrite: 1 of 3 hunks not applied (line 16)" in message
    mine = MESH.replace("(grid: Mesh)", "(grid: Grid, mine)")
    assert nvim.text == mine
    wait_for(lambda: nvim.lua("return #vim.diagnostic.get(0)") == 1)
    nvim.api.input("16G")
    nvim.lua("vim.lsp.buf.code_action({ apply = true, filter = function(a) return a.title:match('specd') end })")
    wait_for(lambda: nvim.text == MESH)
    wait_for(lambda: nvim.lua("return #vim.diagnostic.get(0)") == 0)
    nvim.api.input("u")
    assert nvim.text == mine


def test_stopping_the_server_is_told(start: StartNvim) -> None:
    at = start()
    at.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(at.hunks()) == 3)
    at.lua("vim.lsp.enable('specd', false)")
    message = at.wait_said()  # the server's last word, or, if it was too late for one, the plugin's
    assert "3 hunks applied so far stay (:SpecdRevert takes them back)" in message
    assert at.marks("region") == []
    assert at.lua("return require('specd.jobs').all()") == []


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
    nvim.api.command(f"edit {nvim.home.work}")
    nvim.api.command("SpecdRewrite! at once")
    assert "this buffer is a folder" in nvim.wait_said("folder")
    nvim.api.command("help")
    nvim.api.command("setlocal modifiable noreadonly")
    nvim.api.command("SpecdRewrite! at once")
    assert "not a file" in nvim.wait_said("not a file")


def test_a_failure_of_the_engine_is_an_error_and_what_came_stays(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! fail")
    message = nvim.wait_said()
    assert (message, ERROR) in nvim.said
    assert nvim.marks("region") == []


def test_what_parses_no_more_is_told_as_a_warning_though_all_of_it_came(nvim: Nvim) -> None:
    """How grave it is, is the server's to say."""
    nvim.api.command("SpecdRewrite! break")
    message = nvim.wait_said("1 hunk")
    assert (message, WARN) in nvim.said
    nvim.lua("_G.said = {}")
    nvim.api.command("SpecdRevert")
    nvim.wait_said("took 1 hunk back")


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


def server_of(at: Nvim) -> int:
    """The process of its language server."""
    return int(at.lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())")[0])


def test_a_server_that_hangs_is_left_by_cancelling_and_another_is_started(start: StartNvim) -> None:
    at = start()
    at.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(at.hunks()) == 3)
    hanging = server_of(at)
    os.kill(hanging, signal.SIGSTOP)
    at.api.command("SpecdCancel")
    at.wait_said("specd: cancelling: the language server has not answered yet", 5)
    assert "cancelled; the language server did not answer" in at.wait_said("cancelled")
    assert at.marks("region") == []
    at.api.input("u")
    assert at.text == GRID
    at.lua("_G.said = {}")
    at.api.command("SpecdRewrite! at once")
    at.wait_said("3 hunks")
    assert at.text == MESH
    os.kill(hanging, signal.SIGCONT)  # it was told to end, which it does now
    wait_for(lambda: at.home.client.status()["jobs"] == {"active": 0, "waiting": 0})
    assert len(at.hunks()) == 3


def test_a_server_that_is_killed_is_told_and_started_again(start: StartNvim) -> None:
    at = start()
    at.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(at.hunks()) == 3)
    os.kill(server_of(at), signal.SIGKILL)
    assert "the language server has gone" in at.wait_said("gone")
    assert at.marks("region") == []
    wait_for(lambda: at.home.client.status()["jobs"] == {"active": 0, "waiting": 0})
    at.lua("_G.said = {}")
    at.api.command("silent! undo")
    at.api.command("SpecdRewrite! at once")
    at.wait_said("3 hunks")
    assert at.text == MESH
