"""Edits at the end of the text, where Neovim's buffer has no line that the server's text has."""

import pytest
from daemon_home import GRID, wait_for
from real_nvim import Nvim

TAIL = "    return sum(grid.get(i, i) for i in range(grid.width))\n"
LONGER, SHORTER = GRID + "\nx = 1\n", GRID.removesuffix(TAIL)


@pytest.mark.parametrize("format", ["unix", "dos"])
@pytest.mark.parametrize(
    ("instruction", "text", "hunk"), [("append", LONGER, (17, 19)), ("shorten", SHORTER, (16, 16))]
)
def test_lines_come_and_go_at_the_end_as_anywhere(
    nvim: Nvim, format: str, instruction: str, text: str, hunk: tuple[int, int]
) -> None:
    nvim.api.command(f"set fileformat={format} | write!")
    nvim.api.command(f"SpecdRewrite! {instruction}")
    assert nvim.wait_said().startswith("specd: 1 hunk, ")
    assert nvim.text == text
    assert nvim.hunks() == [hunk]
    nvim.api.command("SpecdRevert")
    wait_for(lambda: nvim.text == GRID)
    nvim.api.input("u")
    wait_for(lambda: nvim.text == text)
    nvim.api.input("u")
    wait_for(lambda: nvim.text == GRID)


def test_the_last_definition_grows_at_the_end(nvim: Nvim) -> None:
    nvim.api.command("$")
    nvim.api.command("SpecdRewrite append")
    assert nvim.wait_said().startswith("specd: 1 hunk, ")
    assert nvim.text == LONGER


EDITS = [
    ([(0, 0, 0, 0, "new\n")], ["new", "one", "two", "three"]),
    ([(1, 0, 2, 0, "")], ["one", "three"]),
    ([(1, 0, 3, 0, "2\n3\n4\n")], ["one", "2", "3", "4"]),
    ([(3, 0, 3, 0, "four\n")], ["one", "two", "three", "four"]),
    ([(3, 0, 3, 0, "four")], ["one", "two", "three", "four"]),
    ([(0, 0, 3, 0, "")], [""]),
    ([(2, 0, 3, 0, "")], ["one", "two"]),
    ([(2, 5, 3, 0, "!\n")], ["one", "two", "three!"]),
    ([(2, 5, 2, 5, "\nfour")], ["one", "two", "three", "four"]),
    ([(1, 1, 1, 2, "W")], ["one", "tWo", "three"]),
    ([(0, 1, 2, 1, "\r\n")], ["o\r", "hree"]),  # where lines end with LF alone
    ([(0, 0, 1, 0, "1\n"), (2, 0, 3, 0, "3\n")], ["1", "two", "3"]),
]


@pytest.mark.parametrize(("edits", "lines"), EDITS)
def test_an_edit_is_one_change_wherever_it_is(
    nvim: Nvim, edits: list[tuple[int, int, int, int, str]], lines: list[str]
) -> None:
    nvim.api.command("enew! | set buftype=nofile")
    nvim.api.current.buffer[:] = ["one", "two", "three"]
    tick = nvim.lua("return vim.b.changedtick")
    asked = [
        {"range": {"start": {"line": a, "character": b}, "end": {"line": c, "character": d}}, "newText": text}
        for a, b, c, d, text in edits
    ]
    nvim.api.exec_lua("require('specd.text_edits').make(..., vim.api.nvim_get_current_buf(), 'utf-16')", asked)
    assert list(nvim.api.current.buffer[:]) == lines
    assert nvim.lua("return vim.b.changedtick") == tick + len(edits)


@pytest.mark.parametrize(("fileformat", "end"), [("dos", "\r\n"), ("dos", "\n"), ("mac", "\r")])
def test_a_line_end_of_the_server_is_one_of_the_buffer(nvim: Nvim, fileformat: str, end: str) -> None:
    nvim.api.command(f"enew! | set buftype=nofile fileformat={fileformat}")
    nvim.api.current.buffer[:] = ["one", "two", "three"]
    edit = {"range": {"start": {"line": 0, "character": 1}, "end": {"line": 2, "character": 1}}, "newText": end}
    nvim.api.exec_lua("require('specd.text_edits').make(..., vim.api.nvim_get_current_buf(), 'utf-16')", [edit])
    assert list(nvim.api.current.buffer[:]) == ["o", "hree"]


@pytest.mark.parametrize("typed", [False, True])
def test_a_return_inside_a_line_is_refused_since_lines_are_counted_otherwise(nvim: Nvim, typed: bool) -> None:
    if typed:
        nvim.api.input("4GO" + "a<C-v><CR>b<Esc>")
    else:
        nvim.api.current.buffer[:] = [*GRID.splitlines()[:3], "a\rb", *GRID.splitlines()[3:]]
        nvim.api.command("write! | edit")
    wait_for(lambda: "a\rb\n" in nvim.text)
    before = nvim.text
    nvim.api.command("SpecdRewrite! at once")
    assert "has a carriage return (^M) inside a line" in nvim.wait_said()
    assert nvim.text == before
    nvim.api.command("%s/\\r//g | write! | edit")
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said("3 hunks, ")
    assert nvim.text == before.replace("\r", "").replace("Grid", "Mesh")


def test_a_file_of_an_old_mac_is_rewritten_as_one(nvim: Nvim) -> None:
    nvim.api.command("set fileformat=mac | write!")
    nvim.api.command("SpecdRewrite! append")
    assert nvim.wait_said().startswith("specd: 1 hunk, ")
    assert nvim.text == LONGER
