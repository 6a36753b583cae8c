"""Taking back what a language server wrote that is gone, and hunks that are visited and taken back one by one."""

import os
import signal
from collections.abc import Callable

import pytest
from daemon_home import GRID, MESH, wait_for
from real_nvim import Nvim

StartNvim = Callable[..., Nvim]
GONE = "specd: the language server has gone; 3 hunks applied so far stay (:SpecdRevert takes them back)"


def server_of(at: Nvim) -> int:
    """The process of its language server."""
    return int(at.lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())")[0])


def kill_server(at: Nvim) -> None:
    os.kill(server_of(at), signal.SIGKILL)
    wait_for(lambda: not at.is_attached())


def after_a_death(at: Nvim, instruction: str = "at once") -> None:
    """A buffer with a rewrite whose server is gone."""
    at.api.command(f"SpecdRewrite! {instruction}")
    at.wait_said("hunk")
    kill_server(at)
    at.lua("_G.said = {}")


@pytest.mark.parametrize("opts", ["{}", "{ hunks = false }"])
def test_a_rewrite_is_taken_back_after_its_server_was_killed_as_one_undo_step(start: StartNvim, opts: str) -> None:
    at = start(opts=opts)
    after_a_death(at)
    assert len(at.hunks()) == (0 if opts != "{}" else 3)
    at.api.command("SpecdRevert")
    assert at.wait_said() == "specd: took 3 hunks back"
    assert at.text == GRID
    wait_for(lambda: at.hunks() == at.marks("hunks") == [])
    at.api.command("SpecdRevert")
    assert at.wait_said("nothing") == "specd: there is nothing to take back"
    at.api.input("u")
    assert at.text == MESH
    at.api.command("SpecdRevert")
    wait_for(lambda: at.text == GRID)


def test_a_server_that_is_killed_in_mid_stream_leaves_hunks_that_are_taken_back(start: StartNvim) -> None:
    at = start()
    at.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(at.hunks()) == 3)
    kill_server(at)
    assert at.wait_said("gone") == GONE
    at.api.command("SpecdRevert")
    at.wait_said("took 3 hunks back")
    assert at.text == GRID


def test_also_by_another_server_and_after_it_was_asked_to_end(start: StartNvim) -> None:
    at = start()
    at.api.command("SpecdRewrite! at once")
    at.wait_said("3 hunks")
    at.lua("vim.lsp.enable('specd', false)")
    wait_for(lambda: not at.is_attached())
    at.lua("vim.lsp.enable('specd')")
    wait_for(at.is_attached)
    at.api.command("SpecdRevert")
    at.wait_said("took 3 hunks back")
    assert at.text == GRID
    at.lua("_G.said = {}")
    at.api.command("SpecdRewrite! drop a line")
    at.wait_said("1 hunk")
    at.api.command("SpecdRevert")
    at.wait_said("took 1 hunk back")
    assert at.text == GRID


def test_lines_that_the_user_changed_since_are_left_and_named_and_what_moved_is_found(start: StartNvim) -> None:
    at = start()
    after_a_death(at)
    at.api.command("silent! 16s/grid: Mesh/mine: Mesh/")
    at.api.input("ggO# above<Esc>Go# below<Esc>")
    at.api.command("SpecdRevert")
    assert at.wait_said() == "specd: took 2 hunks back; left line 17, which changed since"
    assert at.text == "# above\n" + GRID.replace("grid: Grid", "mine: Mesh") + "# below\n"


def test_a_line_that_is_the_same_as_one_that_was_deleted_is_not_taken_for_it(start: StartNvim) -> None:
    at = start(text="x = Grid\nx = Mesh\n")
    after_a_death(at)
    at.api.command("1delete")
    at.api.command("SpecdRevert")
    assert at.wait_said() == "specd: took 0 hunks back; left line 1, which changed since"
    assert at.text == "x = Mesh\n"


@pytest.mark.parametrize("instruction", ["at once", "drop a line", "append", "shorten"])
def test_after_an_undo_there_is_nothing_to_take_back_and_after_a_redo_there_is(
    start: StartNvim, instruction: str
) -> None:
    at = start()
    after_a_death(at, instruction)
    after = at.text
    at.api.input("u")
    assert at.text == GRID
    at.api.command("SpecdRevert")
    assert at.wait_said() == "specd: there is nothing to take back"
    assert at.text == GRID
    at.api.input("<C-r>")
    assert at.text == after
    at.api.command("SpecdRevert")
    at.wait_said("took")
    assert at.text == GRID


@pytest.mark.parametrize("instruction", ["at once", "hang"])
def test_a_server_that_hangs_is_left_by_reverting(start: StartNvim, instruction: str) -> None:
    at = start()
    at.api.command(f"SpecdRewrite! {instruction}")
    wait_for(lambda: len(at.hunks()) == 3)
    hanging = server_of(at)
    os.kill(hanging, signal.SIGSTOP)
    at.api.command("SpecdRevert")
    at.wait_said("specd: taking back: the language server has not answered yet", 5)
    assert at.wait_said("took") == "specd: took 3 hunks back (the language server did not answer and was ended)"
    assert at.text == GRID
    assert at.lua("return require('specd.jobs').all()") == at.marks("region") == []
    os.kill(hanging, signal.SIGCONT)
    wait_for(lambda: not at.is_attached())


def test_lines_deleted_at_the_end_are_seen_visited_and_taken_back(start: StartNvim) -> None:
    at = start()
    at.show(lines=30)
    at.api.command("SpecdRewrite! shorten")
    at.wait_said("1 hunk")
    assert at.row(16).split("▁")[-1].strip() == "def trace(grid: Grid) -> int: 1 line deleted below"
    for keys, call in (("gg", "next_hunk"), ("gg", "previous_hunk"), ("G", "next_hunk"), ("G", "previous_hunk")):
        at.api.input(keys)
        at.lua(f"require('specd').{call}()")
        assert at.api.current.window.cursor[0] == 16
    at.lua("require('specd').revert_hunk()")
    assert at.text == GRID
    wait_for(lambda: at.hunks() == at.marks("hunks") == [])


def test_next_and_previous_take_a_count_and_heed_wrapscan(nvim: Nvim) -> None:
    for keys, name in {"]h": "next-hunk", "[h": "previous-hunk"}.items():
        nvim.lua("vim.keymap.set('n', ...)", keys, f"<Plug>(specd-{name})")
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said()
    rows = []
    for keys in ("gg2]h", "]h", "2[h", "[h"):
        nvim.api.input(keys)
        rows.append(nvim.api.current.window.cursor[0])
    assert rows == [16, 1, 12, 1]
    nvim.api.command("set nowrapscan")
    nvim.lua("_G.said = {}")
    nvim.api.input("[h")
    assert nvim.wait_said() == "specd: there is no hunk above ('nowrapscan')"
    nvim.api.input("9]h")
    nvim.api.input("]h")
    assert nvim.wait_said("below") == "specd: there is no hunk below ('nowrapscan')"
    assert nvim.api.current.window.cursor[0] == 16
    nvim.api.command("set wrapscan")


def test_a_rewrite_that_writes_what_an_undone_one_had_written_is_marked_once_and_taken_back(start: StartNvim) -> None:
    """The server tells of the earlier one's hunks too, which are in the buffer again."""
    at = start()
    at.api.command("SpecdRewrite! at once")
    at.wait_said("3 hunks")
    at.api.input("u")
    wait_for(lambda: at.hunks() == [])
    at.lua("_G.said = {}")
    at.api.command("SpecdRewrite! slowly")
    at.wait_said("3 hunks")
    assert at.hunks() == [(0, 1), (11, 12), (15, 16)]
    for keys, count in (("u", 0), ("<C-r>", 3)):
        at.api.input(keys)
        wait_for(lambda count=count: len(at.hunks()) == count)  # type: ignore[misc]
    kill_server(at)
    at.api.command("SpecdRevert")
    at.wait_said("took 3 hunks back")
    assert at.text == GRID


def test_two_rewrites_undone_and_redone_are_marked_each_in_turn(start: StartNvim) -> None:
    at = start()
    for lines in ("1", "11,12"):
        at.lua("_G.said = {}")
        at.api.command(f"{lines}SpecdRewrite at once")
        at.wait_said("1 hunk")
    assert at.hunks() == [(11, 12)]
    at.api.input("uu")
    wait_for(lambda: at.hunks() == [])
    at.api.input("<C-r>")
    wait_for(lambda: at.hunks() == [(0, 1)])
    at.api.input("<C-r>")
    wait_for(lambda: at.hunks() == [(11, 12)])
    kill_server(at)
    at.api.command("SpecdRevert")
    at.wait_said("took 1 hunk back")
    assert at.text == GRID.replace("class Grid", "class Mesh")


def test_lines_that_come_where_lines_were_deleted_at_the_end_come_behind_them(start: StartNvim) -> None:
    at = start()
    at.show(lines=30)
    at.api.command("SpecdRewrite! shorten")
    at.wait_said("1 hunk")
    shorter = at.text
    at.api.input("Go# mine<Esc>")
    wait_for(lambda: "1 line deleted" in at.row(17))
    assert "deleted" not in at.row(16)
    at.api.input("u")
    wait_for(lambda: "1 line deleted below" in at.row(16))
    at.api.input("<C-r>gg")
    wait_for(lambda: "1 line deleted" in at.row(17))
    at.lua("require('specd').next_hunk(); require('specd').revert_hunk()")
    assert at.text == GRID + "    # mine\n"
    at.api.input("uG")
    assert at.text == shorter + "    # mine\n"
    kill_server(at)
    at.api.command("SpecdRevert")
    assert at.text == GRID + "    # mine\n"


@pytest.mark.parametrize("command", ["%delete", "2,6delete"])
def test_a_deleted_line_does_not_come_back_where_all_around_it_is_gone(start: StartNvim, command: str) -> None:
    at = start()
    after_a_death(at, "drop a line")
    at.api.command(command)
    before = at.text
    wait_for(lambda: at.hunks() == [])
    at.api.command("SpecdRevert")
    assert at.wait_said().startswith("specd: took 0 hunks back; left line ")
    assert at.text == before


def test_a_line_that_was_changed_and_changed_back_is_taken_back_too_in_one_step(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said("3 hunks")
    nvim.api.input("12GA # mine<Esc>u")
    nvim.api.command("SpecdRevert")
    assert nvim.wait_said("took") == "specd: took 3 hunks back"
    assert nvim.text == GRID
    nvim.api.input("u")
    assert nvim.text == MESH


def test_other_line_ends_keep_nothing_from_being_taken_back(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said("3 hunks")
    nvim.api.command("set fileformat=dos")
    nvim.api.command("SpecdRevert")
    assert nvim.wait_said("took") == "specd: took 3 hunks back"
    assert nvim.text == GRID
