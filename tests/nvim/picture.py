"""Draws editors/nvim/rewrite.svg: one rewrite with the bundled model, in four screens of the real Neovim.

python tests/nvim/picture.py editors/nvim/rewrite.svg
"""

import copy
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "daemon"), str(HERE.parents[1] / "src")]

from daemon_home import Home, wait_for  # noqa: E402
from real_nvim import SETUP, Nvim  # noqa: E402
from screen import Screen, svg  # noqa: E402

CODE = '''\
"""A board of cells."""


class Grid:
    def __init__(self, width, height):
        self.width = width
        self.height = height
        self.cells = [[0] * width for _ in range(height)]

    def get(self, x, y):
        return self.cells[y % self.height][x % self.width]


def make_grid(n):
    grid = Grid(n, n)
    return grid


def step(grid: Grid) -> Grid:
    after = Grid(grid.width, grid.height)
    for y in range(grid.height):
        for x in range(grid.width):
            after.cells[y][x] = lives(grid, x, y)
    return after
'''
LOOK = """
vim.notify = function(message) vim.api.nvim_echo({ { message } }, true, {}) end
vim.o.termguicolors, vim.o.number, vim.o.laststatus, vim.o.ruler = true, true, 0, false
vim.o.signcolumn, vim.o.background = 'yes', 'dark'
vim.cmd.syntax('on')
"""
COLUMNS, LINES = 80, 26


class Watched:
    """A Neovim whose screen is followed."""

    def __init__(self, home: Home) -> None:
        self.nvim = Nvim(home, text=CODE, name="board.py", config=SETUP + LOOK)
        self.screen = Screen(COLUMNS, LINES)
        self.nvim.api.ui_attach(COLUMNS, LINES, rgb=True, ext_linegrid=True)
        self.nvim.lua("vim.cmd.redraw()")

    def look(self) -> Screen:
        """The screen as it is now."""
        self.nvim.lua("vim.rpcnotify(0, 'looked')")
        while (message := self.nvim.api.next_message()) is not None and message[1] != "looked":
            if message[1] == "redraw":
                self.screen.redraw(message[2])
        return copy.deepcopy(self.screen)

    def look_until(self, words: str, seconds: float = 120) -> list[Screen]:
        """Screens up to the first that shows `words`."""
        seen = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            seen.append(self.look())
            if words in seen[-1].text():
                return seen
            time.sleep(0.01)
        raise SystemExit(f"{words!r} was not seen; the last screen:\n{seen[-1].text()}")


def screens(home: Home) -> list[tuple[str, Screen]]:
    """(what is seen, screen) of the four steps."""
    watched = Watched(home)
    api = watched.nvim.api
    api.command("SpecdRewrite! rename Grid to Board")  # once before, so that the model is loaded
    watched.look_until("tok/s,")
    api.input("u")
    wait_for(lambda: watched.nvim.hunks() == [])
    api.input(":mess clear<CR>:echo<CR>20G")
    api.input(":SpecdRewrite!<CR>rename Grid to Mesh")
    prompt = watched.look_until("rename Grid to Mesh")[-1]
    api.input("<CR>")
    working = watched.look_until("tok/s,")
    done = working.pop()
    middle = next(
        one
        for one in working
        if "hunk" in one.text() and "make_grid" in one.text() and "step(grid: Grid)" in one.text()
    )
    api.command("SpecdDiff")
    old = watched.look_until("class Grid")[-1]
    watched.nvim.close()
    return [
        ("1  :SpecdRewrite! asks what to change; the model reads the code meanwhile", prompt),
        ("2  hunks come in while it works; go on typing if you like", middle),
        ("3  done: what has changed is marked, and u takes all of it back", done),
        ("4  :SpecdDiff shows what was there before", old),
    ]


def main() -> None:
    home = Home(Path(tempfile.mkdtemp(prefix="sn-", dir="/tmp")), "watch = false\n")
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        home.environ[name] = str(home.folder / name[4:].lower())
    try:
        taken = screens(home)
    finally:
        home.close()
    width, height = taken[0][1].size()
    groups = [screen.svg_group(10, 30 + at * (height + 40), title) for at, (title, screen) in enumerate(taken)]
    Path(sys.argv[1]).write_text(svg(groups, width + 20, len(taken) * (height + 40) + 10))


if __name__ == "__main__":
    main()
