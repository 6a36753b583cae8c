"""Taking back while a command line is open: Neovim tells nobody of a change that is made under a preview."""

import os
import signal
from collections.abc import Callable

import pytest
from daemon_home import GRID, MESH, wait_for
from real_nvim import Nvim
from test_taking_back import kill_server, server_of

StartNvim = Callable[..., Nvim]
TYPED = (
    "specd: a command is being typed, whose preview ('inccommand') hides changes from the server; "
    "leave it first (<Esc>)"
)


def rewritten(at: Nvim) -> None:
    at.show()
    at.api.command("SpecdRewrite! at once")
    at.wait_said("hunk")
    at.lua("_G.said = {}")


@pytest.mark.parametrize("call", ["revert", "revert_hunk"])
@pytest.mark.parametrize("is_dead", [False, True], ids=["server", "no server"])
def test_under_a_preview_nothing_is_taken_back_and_it_is_said(start: StartNvim, call: str, is_dead: bool) -> None:
    at = start()
    rewritten(at)
    if is_dead:
        kill_server(at)
        at.lua("_G.said = {}")
    at.api.command("1")
    at.api.input(":%s/return/give")
    wait_for(lambda: at.mode == "c" and any("give" in at.row(number) for number in range(1, 22)))
    at.lua(f"require('specd').{call}()")
    assert at.wait_said() == TYPED
    at.api.input("<C-c>")
    wait_for(lambda: at.mode == "n")
    assert (at.text, len(at.hunks())) == (MESH, 3)
    at.api.command("SpecdRevert")
    at.wait_said("took 3 hunks back")
    assert at.text == GRID
    wait_for(lambda: at.hunks() == at.marks("hunks") == [])


@pytest.mark.parametrize("is_hanging", [False, True], ids=["slow", "hanging"])
@pytest.mark.parametrize("finish", ["<CR>", "<C-c>"])
def test_a_command_that_is_typed_while_hunks_are_taken_back_has_no_preview_and_hinders_nothing(
    start: StartNvim, finish: str, is_hanging: bool
) -> None:
    at = start()
    rewritten(at)
    server = server_of(at)
    os.kill(server, signal.SIGSTOP)
    at.api.command("SpecdRevert")
    at.api.input(":%s/return/give")
    wait_for(lambda: at.mode == "c")
    assert at.lua("return vim.o.inccommand") == ""
    if not is_hanging:
        os.kill(server, signal.SIGCONT)
    at.wait_said("took 3 hunks back")
    assert (at.mode, at.text) == ("c", GRID)
    wait_for(lambda: at.hunks() == at.marks("hunks") == [])
    at.end_command(finish, GRID, MESH)
    at.api.input(":")
    wait_for(lambda: at.mode == "c")
    assert at.lua("return vim.o.inccommand") == "nosplit"
    at.api.input("<C-c>")
