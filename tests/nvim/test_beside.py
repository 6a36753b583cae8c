"""What goes on beside a rewrite: typing while a message comes, starting, other line ends, what the screen shows."""

import time
from collections.abc import Callable

from daemon_home import GRID, MESH, wait_for
from real_nvim import Nvim

StartNvim = Callable[..., Nvim]
# The server, which takes its time to start.
SLOWLY = "require('specd').setup({ cmd = vim.list_extend({ 'sh', '-c', 'sleep 2; exec \"$@\"', 'sh' }, CMD) })"


def test_a_message_that_is_wider_than_the_screen_takes_no_key_from_who_is_typing(start: StartNvim) -> None:
    at = start()
    at.show(columns=60)
    at.lua("vim.notify = _G.stock_notify")
    at.api.command("SpecdRewrite! slowly")
    wait_for(lambda: "class Mesh" in at.text)
    at.api.command("12s/Grid/Mine/ | 16s/grid:/mine:/")
    at.api.input("8GA")
    typed = ""
    message = "the text changed under the rewrite: 2 of 3 hunks not applied (lines 12, 16)"
    deadline = time.monotonic() + 30
    while True:
        assert not at.waits_for_a_key()
        assert time.monotonic() < deadline
        if message in at.api.command_output("messages"):
            break
        at.api.input("x")
        typed += "x"
        time.sleep(0.02)
    at.api.input("yz<Esc>")
    assert at.text.split("\n")[7] == f"        return self.cells[y][x]{typed}yz"


def test_a_message_that_is_too_wide_is_shown_in_part_and_kept_whole(start: StartNvim) -> None:
    at = start()
    at.show(columns=60)
    at.lua("vim.notify = _G.stock_notify")
    for mode in ("n", "i"):
        at.lua("require('specd.say').say('specd: ' .. ('ä '):rep(40) .. ..., vim.log.levels.WARN)", mode)
        assert not at.waits_for_a_key()
        if mode == "n":  # in the other one Neovim draws the mode over any message
            wait_for(lambda: "…" in at.row(24))
            assert at.row(24).startswith("specd: ä ä ä")
        assert at.mode == mode
        assert at.api.command_output("messages").endswith("ä ä " + mode)
        at.api.input("i")


def test_a_rewrite_is_seen_and_cancelled_while_its_server_is_being_started(start: StartNvim) -> None:
    at = start(config=SLOWLY, attached=False)
    at.api.command("SpecdRewrite! at once")
    assert at.progress() == "specd: starting"
    assert at.lua("return require('specd').status()") == "specd: starting"
    at.api.command("SpecdRewrite! at once")
    assert "a rewrite of this buffer is under way" in at.wait_said()
    at.api.command("SpecdCancel")
    assert at.wait_said("cancelled") == "specd: cancelled (by the user); nothing was changed"
    wait_for(at.is_attached)
    time.sleep(0.5)
    assert at.text == GRID
    assert at.marks("region") == at.marks("target") == []


def test_a_buffer_that_is_closed_while_its_server_is_being_started_leaves_nothing_behind(start: StartNvim) -> None:
    at = start(config=SLOWLY, attached=False)
    at.api.command("SpecdRewrite! at once")
    at.api.command("bdelete")
    wait_for(lambda: at.lua("return #require('specd.jobs').all()") == 0)
    assert at.said == []


def test_other_line_ends_are_told_to_the_server(nvim: Nvim) -> None:
    file = nvim.open("text.py", GRID)
    nvim.api.command("set fileformat=dos")
    nvim.api.command("SpecdRewrite! slowly")
    assert nvim.wait_said().startswith("specd: 3 hunks, ")
    nvim.api.command("write")
    assert file.read_bytes() == MESH.replace("\n", "\r\n").encode()
    nvim.api.command("SpecdRevert")
    nvim.wait_said("took 3 hunks back")
    nvim.api.command("write")
    assert file.read_bytes() == GRID.replace("\n", "\r\n").encode()


def test_old_lines_above_the_first_line_are_in_view(start: StartNvim) -> None:
    at = start()
    at.show()
    at.api.command("SpecdRewrite! at once")
    at.wait_said()
    at.api.command("SpecdDiff")
    assert [at.row(1).strip(), at.row(2).strip(" ▎")] == ["class Grid:", "class Mesh:"]
    at.api.command("SpecdDiff")
    assert at.row(1).strip(" ▎") == "class Mesh:"


def test_after_a_hunk_is_taken_back_each_row_shows_its_line(start: StartNvim) -> None:
    at = start()
    at.show(lines=30)
    at.api.command("SpecdRewrite! at once")
    at.wait_said()
    at.api.command("SpecdDiff")
    at.row(1)
    at.api.input("12G")
    at.lua("require('specd').revert_hunk()")
    wait_for(lambda: len(at.marks("old")) == 2)
    shown = [at.row(number).strip(" ▎") for number in range(1, 20)]
    lines = MESH.replace("= Mesh", "= Grid").splitlines()
    lines.insert(15, GRID.splitlines()[15])
    assert shown == [line.strip() for line in ["class Grid:", *lines]]


def test_what_has_no_hunks_says_so(nvim: Nvim) -> None:
    for command in ("SpecdDiff", "SpecdDismiss"):
        nvim.lua("_G.said = {}")
        nvim.api.command(command)
        assert nvim.wait_said() == "specd: no hunk is marked here"


def test_a_help_page_and_a_terminal_are_no_files(nvim: Nvim) -> None:
    for command in ("help", "terminal"):
        nvim.lua("_G.said = {}")
        nvim.api.command(command)
        nvim.api.command("SpecdRewrite! at once")
        assert nvim.wait_said() == "specd: this buffer is not a file; open one"
        nvim.api.command("bwipeout!")


def test_the_place_of_the_cursor_is_the_same_when_lines_come_above_it_before_the_prompt_is_answered(nvim: Nvim) -> None:
    nvim.lua("_G.ask = vim.ui.input; vim.ui.input = function(_, done) _G.answer = done end")
    nvim.api.command("1")
    nvim.api.command("SpecdRewrite")
    wait_for(lambda: bool(nvim.lua("return _G.answer ~= nil")))
    nvim.api.input("ggO# new<Esc>")
    wait_for(lambda: nvim.text.startswith("# new\n"))
    nvim.lua("vim.ui.input = _G.ask; _G.answer('at once'); _G.answer = nil")
    assert nvim.wait_said().startswith("specd: 1 hunk, ")
    assert nvim.text == "# new\n" + GRID.replace("class Grid", "class Mesh")


def test_lines_that_are_gone_when_the_prompt_is_answered_are_not_others(nvim: Nvim) -> None:
    nvim.lua("_G.ask = vim.ui.input; vim.ui.input = function(_, done) _G.answer = done end")
    nvim.api.command("2,4SpecdRewrite")
    wait_for(lambda: bool(nvim.lua("return _G.answer ~= nil")))
    nvim.api.command("2,4delete")
    before = nvim.text
    nvim.lua("vim.ui.input = _G.ask; _G.answer('at once'); _G.answer = nil")
    assert "the lines that you asked for are gone; nothing was changed" in nvim.wait_said()
    assert nvim.text == before


def test_a_line_of_a_closed_fold_stands_for_all_of_it_as_for_other_commands(nvim: Nvim) -> None:
    nvim.api.command("setlocal foldmethod=manual | 11,13fold")
    for command in ("13SpecdRewrite at once", "13SpecdAgain"):
        nvim.lua("_G.said = {}")
        nvim.api.command("normal! 11Gzc")
        nvim.api.command(command)
        assert "(3 lines, " in nvim.wait_said("1 hunk")
        assert nvim.text == GRID.replace("grid = Grid", "grid = Mesh")
        nvim.api.input("u")


def test_the_log_that_is_shown_already_is_gone_to(nvim: Nvim) -> None:
    nvim.api.command("SpecdLog")
    log = nvim.api.current.window
    nvim.api.command("wincmd p | SpecdLog")
    assert nvim.api.current.window == log
    assert len(nvim.api.windows) == 2


def test_lines_that_the_file_has_no_more_when_it_is_read_again_before_the_prompt_is_answered(nvim: Nvim) -> None:
    for command in ("12,13SpecdRewrite", "12 | SpecdRewrite"):
        nvim.open("short.py", GRID)
        nvim.lua("_G.said = {}; _G.ask = vim.ui.input; vim.ui.input = function(_, done) _G.answer = done end")
        nvim.api.command(command)
        wait_for(lambda: bool(nvim.lua("return _G.answer ~= nil")))
        (nvim.home.work / "short.py").write_text("x = Grid\n")
        nvim.api.command("edit!")
        nvim.lua("vim.ui.input = _G.ask; local answer = _G.answer; _G.answer = nil; answer('at once')")
        assert "the lines that you asked for are gone; nothing was changed" in nvim.wait_said()
        assert nvim.text == "x = Grid\n"
