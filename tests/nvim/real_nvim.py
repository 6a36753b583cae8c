"""A real Neovim, embedded and driven over its API, whose configuration has the plugin as a user's has."""

import contextlib
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from daemon_home import GRID, Home, wait_for

pynvim = pytest.importorskip("pynvim", reason="pynvim is not installed")
NVIM = shutil.which("nvim", path=str(Path(sys.executable).parent)) or shutil.which("nvim")
PLUGIN = Path(__file__).parents[2] / "editors" / "nvim"

# What a user writes, each with a server that is run from this tree.
SETUP = "require('specd').setup(vim.tbl_extend('force', { cmd = CMD }, OPTS))"
ENABLE = "vim.lsp.config('specd', { cmd = CMD })  vim.lsp.enable('specd')"
NOTHING = "vim.lsp.config('specd', { cmd = CMD })"
LISTEN = """
_G.said, _G.prompted = {}, {}
_G.stock_notify = vim.notify
vim.notify = function(message, level) table.insert(_G.said, { message, level or vim.log.levels.INFO }) end
"""


class Nvim:
    """Neovim with one file open: `name`, which holds `text`. said: what vim.notify was told, with its level.

    config: the user's lines, Lua; CMD and OPTS stand for the server's command and for `opts`, also Lua.
    """

    def __init__(
        self,
        home: Home,
        *,
        text: str = GRID,
        name: str = "grid.py",
        config: str = SETUP,
        opts: str = "{}",
        attached: bool = True,
    ) -> None:
        self.home = home
        file = home.work / name
        file.write_bytes(text.encode())
        init = home.folder / "init.lua"
        words = "{ " + ", ".join(f"[[{word}]]" for word in home.command("lsp")) + " }"
        lines = config.replace("CMD", words).replace("OPTS", opts)
        init.write_text(f"{LISTEN}\nvim.opt.runtimepath:prepend([[{PLUGIN}]])\n{lines}\n")
        environ = [f"{key}={value}" for key, value in home.environ.items() if key.startswith(("XDG_", "PYTHONPATH"))]
        argv = ["env", "OMP_NUM_THREADS=1", *environ, NVIM, "--embed", "--headless"]
        self.api = pynvim.attach("child", argv=[*argv, "-u", str(init), "-i", "NONE", "-n", str(file)])
        if attached:
            wait_for(self.is_attached, 60)

    def renew(self) -> None:
        """As if it had just been started, on a file that holds GRID."""
        self.api.input("<C-\\><C-n>")
        self.api.command("silent! SpecdCancel!")
        wait_for(lambda: self.lua("return #require('specd.jobs').all()") == 0)
        self.api.command("only | silent! %bwipeout!")
        self.lua("_G.said = {}; require('specd.prompt').history = {}")
        self.open("grid.py", GRID)

    def open(self, name: str, text: str) -> Path:
        """Write a file and edit it."""
        file = self.home.work / name
        file.write_bytes(text.encode())
        self.api.command(f"edit {file}")
        wait_for(self.is_attached)
        return file

    def show(self, columns: int = 80, lines: int = 24) -> None:
        """Attach a screen, so that Neovim draws, and waits where it would for a user."""
        self.api.ui_attach(columns, lines, rgb=True)

    def waits_for_a_key(self) -> bool:
        """Whether it shows "Press ENTER"; then gives it one, since it hears nothing else until then."""
        waits = bool(self.api.request("nvim_get_mode")["blocking"])
        if waits:
            self.api.input("<CR>")
        return waits

    def row(self, number: int) -> str:
        """What can be read in a row of the screen, which count from 1."""
        code = """
        vim.cmd.redraw()
        local cells = {}
        for column = 1, vim.o.columns do
          cells[column] = vim.fn.screenstring(..., column)
        end
        return table.concat(cells)
        """
        return str(self.lua(code, number)).rstrip()

    def lua(self, code: str, *args: Any) -> Any:
        return self.api.exec_lua(code, *args)

    def is_attached(self) -> bool:
        return bool(self.lua("return #vim.lsp.get_clients({ name = 'specd', bufnr = 0 }) > 0"))

    @property
    def text(self) -> str:
        return "\n".join(self.api.current.buffer[:]) + "\n"

    @property
    def mode(self) -> str:
        return str(self.api.request("nvim_get_mode")["mode"])

    @property
    def said(self) -> list[tuple[str, int]]:
        return [(str(message), int(level)) for message, level in self.lua("return _G.said")]

    def wait_said(self, words: str = "", seconds: float = 30) -> str:
        """The first message that has `words`, as soon as it is there."""

        def found() -> list[str]:
            return [message for message, _ in self.said if words in message]

        wait_for(lambda: bool(found()), seconds)
        return found()[0]

    def marks(self, namespace: str) -> list[tuple[int, int | None, dict[str, Any]]]:
        """(row, end row, details) of the plugin's extmarks, 0-based."""
        code = """
        local ns = vim.api.nvim_get_namespaces()['specd.' .. ...]
        return ns and vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true }) or {}
        """
        return [(row, details.get("end_row"), details) for _, row, _, details in self.lua(code, namespace)]

    def hunks(self) -> list[tuple[int, int]]:
        """Lines of the marked hunks, 0-based, half open."""
        code = "return require('specd.marks').hunks(vim.fn.bufnr())"
        return [(one["first"], one["last"]) for one in self.lua(code)]

    def region(self) -> tuple[int, int] | None:
        """Lines that are highlighted as being rewritten, 0-based, half open."""
        found = [(row, end + 1) for row, end, details in self.marks("region") if end is not None]
        return found[0] if found else None

    def progress(self) -> str:
        """The virtual text beside the region, empty without one."""
        return "".join(text for _, _, details in self.marks("region") for text, _ in details.get("virt_text", []))

    def log(self) -> str:
        file = self.home.folder / "state" / "nvim" / "specd.log"
        return file.read_text() if file.exists() else ""

    def close(self) -> None:
        with contextlib.suppress(EOFError, OSError):  # it goes, as told
            self.api.command("qa!")
        self.api.close()

    def end_command(self, finish: str, text: str, before: str) -> None:
        """Ends the command line `:%s/return/give` that is open over `text`, by <CR> or <C-c>: previews are back, the
        command was an undo step of its own, and the step before it brings back `before`."""
        self.api.input(finish)
        wait_for(lambda: self.mode == "n")
        assert self.lua("return vim.o.inccommand") == "nosplit"
        if finish == "<CR>":
            wait_for(lambda: self.text == text.replace("return", "give"))
            self.api.input("u")
            wait_for(lambda: self.text == text)
        self.api.input("u")
        wait_for(lambda: self.text == before)
