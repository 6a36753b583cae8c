"""A rewrite in real Neovim: the command, the stream, what is seen of it, and undo."""

import time
from collections.abc import Callable

import pytest
from daemon_home import GRID, MESH, Home, wait_for
from real_nvim import ENABLE, NOTHING, SETUP, Nvim

StartNvim = Callable[..., Nvim]


def test_hunks_stream_into_the_buffer_and_progress_stands_beside_the_region(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! slowly")
    texts, progress, regions = set(), set(), set()
    while not nvim.said:
        texts.add(nvim.text)
        progress.add(nvim.progress())
        regions.add(nvim.region())
        time.sleep(0.02)
    assert nvim.said[0][0].startswith("specd: 3 hunks, ")
    assert nvim.text == MESH
    assert len(texts) >= 3  # it was seen in part
    assert any("hunk 1" in text and "tok/s" in text for text in progress)
    assert regions - {None} == {(0, 17)}
    assert nvim.marks("region") == []
    assert nvim.hunks() == [(0, 1), (11, 12), (15, 16)]
    assert nvim.lua("return vim.bo.modified") is True  # and nobody saved it


@pytest.mark.parametrize("config", [SETUP, ENABLE], ids=["setup", "vim.lsp.enable"])
def test_either_way_of_enabling_it_will_do(start: StartNvim, config: str) -> None:
    at = start(config=config)
    at.api.command("SpecdRewrite! at once")
    assert at.wait_said().startswith("specd: 3 hunks")
    assert at.text == MESH


def test_loaded_late_as_lazy_nvim_does_it_works_on_the_buffer_that_is_open(start: StartNvim) -> None:
    """lazy.nvim with `cmd`: a command loads the plugin, `setup(opts)` is called, and the command is run again."""
    config = """
    local folder = table.remove(vim.opt.runtimepath:get(), 1)
    vim.opt.runtimepath:remove(folder)
    vim.api.nvim_create_user_command('SpecdRewrite', function(given)
      vim.api.nvim_del_user_command('SpecdRewrite')
      vim.opt.runtimepath:prepend(folder)
      vim.cmd.source(folder .. '/plugin/specd.lua')
      require('specd').setup({ cmd = CMD })
      vim.cmd.SpecdRewrite({ bang = given.bang, args = given.fargs })
    end, { nargs = '*', bang = true })
    """
    at = start(config=config, attached=False)
    at.api.command("SpecdRewrite! at once")
    assert at.wait_said().startswith("specd: 3 hunks")
    assert at.text == MESH
    assert at.is_attached()


def test_a_server_that_is_not_enabled_is_started_by_the_command(start: StartNvim) -> None:
    at = start(config=NOTHING, attached=False, name="grid.unheard")
    assert not at.is_attached()
    at.api.command("SpecdRewrite! at once")
    at.wait_said()
    assert at.text == MESH


def test_the_lines_of_a_range_and_no_others(nvim: Nvim) -> None:
    nvim.api.command("11,12SpecdRewrite at once")
    nvim.wait_said()
    assert nvim.text == GRID.replace("grid = Grid", "grid = Mesh")
    assert nvim.hunks() == [(11, 12)]


def test_without_a_range_the_definition_around_the_cursor(nvim: Nvim) -> None:
    nvim.api.input("12G")
    nvim.api.command("SpecdRewrite slowly")
    wait_for(lambda: nvim.region() is not None)
    assert nvim.region() == (10, 13)
    nvim.wait_said()
    assert nvim.text == GRID.replace("grid = Grid", "grid = Mesh")


def test_maps_rewrite_a_selection_and_a_motion(start: StartNvim) -> None:
    maps = "vim.keymap.set({ 'n', 'x' }, '<F5>', '<Plug>(specd-rewrite)')\n"
    maps += "vim.keymap.set('n', '<F6>', '<Plug>(specd-operator)')\n"
    at = start(config=maps + SETUP)
    at.api.input("11GVj<F5>at once<CR>")
    at.wait_said()
    assert at.text == GRID.replace("grid = Grid", "grid = Mesh")
    at.lua("_G.said = {}")
    at.api.input("gg<F6>jat once<CR>")
    at.wait_said()
    assert at.text == MESH.replace("(grid: Mesh)", "(grid: Grid)")


def test_one_rewrite_is_one_undo_and_one_redo(nvim: Nvim) -> None:
    nvim.api.input("Gothe last line<Esc>")
    before = nvim.text
    nvim.api.command("SpecdRewrite! slowly")
    nvim.wait_said()
    after = nvim.text
    assert after == before.replace("Grid", "Mesh")
    assert nvim.lua("return #vim.lsp.get_clients()") == 1
    nvim.api.input("u")
    assert nvim.text == before
    wait_for(lambda: nvim.hunks() == [])
    nvim.api.input("<C-r>")
    assert nvim.text == after
    wait_for(lambda: len(nvim.hunks()) == 3)
    nvim.api.input("uu")
    assert nvim.text == GRID


def test_what_was_typed_meanwhile_is_kept_and_undone_in_its_turn(nvim: Nvim) -> None:
    nvim.open("text.py", "note = 1\n" + GRID)
    nvim.api.command("2,$SpecdRewrite slowly")
    wait_for(lambda: "class Mesh" in nvim.text)
    nvim.api.input("ggA")
    for letter in "  # typed":
        nvim.api.input(letter)
        time.sleep(0.04)
    nvim.api.input("<Esc>")
    assert nvim.wait_said().startswith("specd: 3 hunks")
    assert nvim.text == "note = 1  # typed\n" + MESH
    seen = [nvim.text]
    while nvim.text != "note = 1\n" + GRID and len(seen) < 40:
        nvim.api.input("u")
        seen.append(nvim.text)
    assert seen[-1] == "note = 1\n" + GRID
    assert 2 < len(seen) < 40
    for text in seen:  # no step tears a hunk or a word that was typed apart from its line
        assert text.replace("Mesh", "Grid").split("\n")[1:] == ("note = 1\n" + GRID).split("\n")[1:]
    nvim.api.command("silent! 99redo")


def test_typing_above_the_region_moves_marks_with_the_text(nvim: Nvim) -> None:
    nvim.open("text.py", "\n\n" + GRID)
    nvim.api.command("3,$SpecdRewrite slowly")
    wait_for(lambda: len(nvim.hunks()) == 1)
    nvim.api.input("ggO# one<CR># two<Esc>")
    nvim.wait_said()
    assert nvim.text == "# one\n# two\n\n\n" + MESH
    assert nvim.hunks() == [(4, 5), (15, 16), (19, 20)]


def test_a_rewrite_in_a_buffer_that_is_not_shown_is_one_undo_there(nvim: Nvim) -> None:
    nvim.api.command("set hidden")
    nvim.api.command("SpecdRewrite! slowly")
    nvim.api.command("enew")
    assert nvim.wait_said().startswith("specd: 3 hunks")
    assert nvim.api.current.buffer[:] == [""]
    nvim.api.command("buffer grid.py")
    assert nvim.text == MESH
    nvim.api.input("u")
    assert nvim.text == GRID


def test_the_cursor_and_marks_of_the_user_stay_on_their_text(nvim: Nvim) -> None:
    nvim.api.input("8G2lma")
    nvim.api.command("SpecdRewrite! drop a line")
    nvim.wait_said()
    assert nvim.lua("return vim.fn.getline('.')") == "        return self.cells[y][x]"
    assert nvim.lua('return vim.fn.getline("\'a")') == "        return self.cells[y][x]"


def test_line_ends_of_a_dos_file_stay(nvim: Nvim) -> None:
    nvim.open("text.py", GRID.replace("\n", "\r\n"))
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said()
    nvim.api.command("write")
    assert (nvim.home.work / "text.py").read_bytes() == MESH.replace("\n", "\r\n").encode()


def test_a_file_without_a_last_line_end_stays_without(nvim: Nvim) -> None:
    nvim.open("text.py", "x = Grid\ny = Grid")
    nvim.api.command("set nofixeol")
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said()
    nvim.api.command("write")
    assert (nvim.home.work / "text.py").read_bytes() == b"x = Mesh\ny = Mesh"


def test_two_neovims_share_one_daemon_and_work_at_the_same_time(own_replay: Home, start: StartNvim) -> None:
    one = start(own_replay, name="one.py")
    other = start(own_replay, name="other.py")
    for at in (one, other):
        at.api.command("SpecdRewrite! slowly")
    for at in (one, other):
        assert at.wait_said().startswith("specd: 3 hunks")
        assert at.text == MESH
    assert own_replay.client.status()["jobs"] == {"active": 0, "waiting": 0}


def test_two_buffers_of_one_neovim_are_rewritten_at_the_same_time(nvim: Nvim) -> None:
    nvim.api.command("set hidden")
    nvim.api.command("SpecdRewrite! slowly")
    nvim.api.command(f"edit {nvim.home.work}/other.py")
    nvim.api.current.buffer[:] = GRID.removesuffix("\n").split("\n")
    nvim.api.command("SpecdRewrite! slowly")
    wait_for(lambda: len(nvim.said) == 2)
    assert nvim.text == MESH
    nvim.api.command("buffer grid.py")
    assert nvim.text == MESH
    assert len(nvim.hunks()) == 3
