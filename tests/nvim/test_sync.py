"""What the language server takes for the buffer's text is the buffer's text, however the two came apart."""

import os
import signal
import subprocess
from collections.abc import Callable

import pytest
from daemon_home import GRID, MESH, wait_for
from real_nvim import Nvim

StartNvim = Callable[..., Nvim]
DETACH = "lua vim.lsp.buf_detach_client(0, vim.lsp.get_clients({ name = 'specd' })[1].id)"
STOP = "lua vim.lsp.stop_client(vim.lsp.get_clients({ name = 'specd' }))"


def put_line_on_top(nvim: Nvim, line: str = "# typed") -> None:
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, { ... })", line)


def kill_server(nvim: Nvim) -> None:
    pid = nvim.lua("return vim.fn.getpid()")
    children = subprocess.run(["pgrep", "-f", "--parent", str(pid), "lsp$"], capture_output=True, text=True).stdout
    for child in children.split():
        os.kill(int(child), signal.SIGKILL)


def lose(nvim: Nvim, how: str) -> None:
    """End the buffer's attachment, and change the buffer while nobody listens."""
    if how == "kill":
        kill_server(nvim)
    else:
        nvim.api.command(how)
    wait_for(lambda: not nvim.is_attached())
    put_line_on_top(nvim)


@pytest.mark.parametrize("how", ["set ft=text", DETACH, STOP, "kill", "lua vim.lsp.enable('specd', false)"])
def test_a_buffer_that_changed_while_no_server_was_attached_is_rewritten_as_any(start: StartNvim, how: str) -> None:
    at = start()
    lose(at, how)
    before = at.text
    for _ in range(2):
        at.lua("_G.said = {}")
        at.api.command("SpecdRewrite! stream")
        assert at.wait_said().startswith("specd: 3 hunks, ")
        assert at.text == "# typed\n" + MESH
        at.api.command("SpecdRevert")
        at.wait_said("took 3 hunks back")
        assert at.text == before


@pytest.mark.parametrize("how", ["set ft=text", DETACH])
def test_typing_in_the_stream_after_that_moves_the_hunks_that_are_to_come(nvim: Nvim, how: str) -> None:
    lose(nvim, how)
    nvim.api.command("SpecdRewrite! slowly")
    wait_for(lambda: "class Mesh" in nvim.text)
    nvim.api.input("ggO# x2<Esc>")
    assert nvim.wait_said().startswith("specd: 3 hunks, ")
    assert nvim.text == "# x2\n# typed\n" + MESH
    nvim.api.command("SpecdRevert")
    nvim.wait_said("took 3 hunks back")
    assert nvim.text == "# x2\n# typed\n" + GRID


def test_what_is_changed_after_that_by_every_means_is_told(nvim: Nvim) -> None:
    lose(nvim, "set ft=text")
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said("3 hunks")
    for command in ("1delete", "$put ='end'", "%s/ /  /g", "undo", "$delete", "1,3move $", "%delete", "undo", "%join"):
        nvim.api.command(command)
        assert mirrored(nvim), command
    nvim.api.command("undo | setlocal noendofline nofixendofline | $put ='z'")
    assert mirrored(nvim)
    nvim.api.command("edit!")
    assert mirrored(nvim)
    nvim.api.command("silent %s/Grid/Other/")
    assert mirrored(nvim)


def mirrored(nvim: Nvim) -> bool:
    """Whether a rewrite that tells the text's hash is taken without the text being told anew."""
    nvim.lua("""
      _G.answer = nil
      local sync = require('specd.sync')
      vim.lsp.get_clients({ name = 'specd', bufnr = 0 })[1]:request('specd/rewrite', {
        uri = vim.uri_from_bufnr(0), instruction = 'nothing', sha256 = sync.sha256(0),
      }, function(err, result) _G.answer = err and err.message or result.outcome end)
    """)
    wait_for(lambda: bool(nvim.lua("return _G.answer ~= nil")))
    return bool(nvim.lua("return _G.answer") != "unsynced")


def test_a_buffer_that_is_read_again_or_closed_after_that_is_so_for_the_server(nvim: Nvim) -> None:
    lose(nvim, "set ft=text")
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said("3 hunks")
    nvim.api.command("edit!")
    nvim.lua("_G.said = {}")
    nvim.api.command("SpecdRewrite! at once")
    assert nvim.wait_said().startswith("specd: 3 hunks, ")
    assert nvim.text == MESH
    nvim.api.command(f"set hidden | enew | bdelete! grid.py | edit {nvim.home.work / 'grid.py'}")
    put_line_on_top(nvim)
    nvim.lua("_G.said = {}")
    nvim.api.command("SpecdRewrite! at once")
    assert nvim.wait_said().startswith("specd: 3 hunks, ")
    assert nvim.text == "# typed\n" + MESH


def test_a_server_that_has_another_text_is_told_the_buffers_before_it_rewrites(nvim: Nvim) -> None:
    nvim.lua("""
      vim.lsp.get_clients({ name = 'specd', bufnr = 0 })[1]:notify('textDocument/didChange', {
        textDocument = { uri = vim.uri_from_bufnr(0), version = vim.lsp.util.buf_versions[vim.fn.bufnr()] },
        contentChanges = { { text = 'x = Grid\\n' } },
      })
    """)
    nvim.api.command("SpecdRewrite! stream")
    assert nvim.wait_said().startswith("specd: 3 hunks, ")
    assert nvim.text == MESH
    nvim.api.command("SpecdRevert")
    nvim.wait_said("took 3 hunks back")
    assert nvim.text == GRID


def test_so_is_one_that_has_none(nvim: Nvim) -> None:
    nvim.lua("""
      vim.lsp.get_clients({ name = 'specd', bufnr = 0 })[1]:notify('textDocument/didClose', {
        textDocument = { uri = vim.uri_from_bufnr(0) },
      })
    """)
    nvim.api.command("SpecdRewrite! stream")
    assert nvim.wait_said().startswith("specd: 3 hunks, ")
    assert nvim.text == MESH


@pytest.mark.parametrize("naming", ["write! ", "file ", "saveas! "])
def test_a_buffer_that_got_its_file_type_before_its_name_is_rewritten_as_any(nvim: Nvim, naming: str) -> None:
    nvim.api.command("enew | set ft=python")
    nvim.api.current.buffer[:] = GRID.splitlines()
    wait_for(nvim.is_attached)
    file = nvim.home.work / "named.py"
    file.unlink(missing_ok=True)
    nvim.api.command(naming + str(file))
    nvim.api.command("SpecdRewrite! at once")
    assert nvim.wait_said().startswith("specd: 3 hunks, ")
    assert nvim.text == MESH


def test_a_text_with_a_nul_is_rewritten_too(nvim: Nvim) -> None:
    file = nvim.open("nul.py", "class Grid:\n    cell = '\0'\n    kind = Grid\n")
    nvim.api.command("SpecdRewrite! stream")
    assert " hunk" in nvim.wait_said()
    nvim.api.command("write")
    assert file.read_text() == "class Mesh:\n    cell = '\0'\n    kind = Mesh\n"


RETURNS = "a = Grid\r\nb = Grid\r\nc = Grid\nd = Grid\r\n"


@pytest.mark.parametrize("instruction", ["at once", "stream"])
@pytest.mark.parametrize(
    ("text", "command"),
    [
        (RETURNS, "SpecdRewrite!"),
        (RETURNS, "1,2SpecdRewrite"),
        (RETURNS, "4SpecdRewrite"),
        (GRID.replace("\n", "\r\n"), "SpecdRewrite!"),
    ],
)
def test_carriage_returns_at_line_ends_are_kept(nvim: Nvim, text: str, command: str, instruction: str) -> None:
    file = nvim.open("returns.py", text)
    nvim.api.command("edit ++ff=unix")
    wait_for(nvim.is_attached)
    nvim.api.command(f"{command} {instruction}")
    assert " hunk" in nvim.wait_said()
    assert "not applied" not in nvim.said[0][0]
    nvim.api.command("write")
    new = file.read_bytes().decode()
    assert new.replace("Mesh", "Grid") == text.replace("Mesh", "Grid")
    assert "Mesh" in new
    nvim.api.command("SpecdRevert")
    nvim.wait_said("took")
    nvim.api.command("write")
    assert file.read_bytes().decode() == text


@pytest.mark.parametrize("finish", ["<CR>", "<C-c>"])
def test_a_command_that_is_typed_in_the_stream_hinders_nothing_and_is_an_undo_step_of_its_own(
    start: StartNvim, finish: str
) -> None:
    at = start()
    at.show()
    assert at.lua("return vim.o.inccommand") == "nosplit"
    at.api.command("SpecdRewrite! slowly")
    wait_for(lambda: "class Mesh" in at.text)
    at.api.input(":%s/return/give")
    assert at.wait_said().startswith("specd: 3 hunks, ")
    assert at.mode == "c"
    assert at.text == MESH
    at.end_command(finish, MESH, GRID)
    at.api.input("2<C-r>")
    at.api.command("SpecdRevert")
    at.wait_said("took 3 hunks back")
    assert at.text.replace("give", "return") == GRID


def test_a_rewrite_that_begins_while_a_preview_is_shown_changes_nothing_unseen(start: StartNvim) -> None:
    at = start()
    at.show()
    at.api.input(":%s/return/give")
    wait_for(lambda: at.mode == "c")
    at.lua("require('specd').rewrite('file', 'stream')")
    assert "a command is being typed" in at.wait_said()
    at.api.input("<C-c>")
    wait_for(lambda: at.mode == "n")
    assert at.text == GRID
    at.lua("_G.said = {}")
    at.api.command("SpecdRewrite! stream")
    assert at.wait_said().startswith("specd: 3 hunks, ")
    assert at.text == MESH
