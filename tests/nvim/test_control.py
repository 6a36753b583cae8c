"""Everything around a rewrite: the prompt, cancelling, taking back, hunks."""

from daemon_home import GRID, MESH, wait_for
from real_nvim import Nvim

SPY = """
_G.sent = {}
local client = vim.lsp.get_clients({ name = 'specd', bufnr = 0 })[1]
_G.plain_request = _G.plain_request or client.request
client.request = function(self, method, params, ...)
  table.insert(_G.sent, { method, params })
  return _G.plain_request(self, method, params, ...)
end
"""


def test_the_prompt_prepares_at_once_and_the_instruction_follows(nvim: Nvim) -> None:
    nvim.lua(SPY)
    nvim.api.input("gg:SpecdRewrite!<CR>")
    wait_for(lambda: bool(nvim.lua("return #_G.sent > 0")))
    assert nvim.lua("return _G.sent[1][1]") == "specd/prepare"
    assert nvim.mode == "c"  # it waits for words
    nvim.api.input("at once<CR>")
    nvim.wait_said("3 hunks")
    assert nvim.lua("return vim.tbl_map(function(one) return one[1] end, _G.sent)")[:2] == [
        "specd/prepare",
        "specd/rewrite",
    ]
    assert nvim.text == MESH


def test_escape_at_the_prompt_leaves_no_trace(nvim: Nvim) -> None:
    nvim.api.input(":SpecdRewrite<CR>make it<Esc>")
    nvim.api.input(":SpecdRewrite<CR>   <CR>")
    nvim.api.input("<C-l>")
    assert nvim.said == []
    assert nvim.text == GRID
    assert [nvim.marks(name) for name in ("region", "hunks", "target")] == [[], [], []]
    assert nvim.lua("return require('specd.jobs').all()") == []


def test_a_prompt_that_does_not_block_rewrites_the_same_lines_after_the_text_has_moved(nvim: Nvim) -> None:
    nvim.lua("_G.plain = vim.ui.input; vim.ui.input = function(options, done) _G.prompt, _G.done = options, done end")
    nvim.lua(SPY)
    nvim.api.command("11,12SpecdRewrite")
    nvim.api.input("ggO# one<CR># two<Esc>")
    wait_for(lambda: nvim.lua("return #_G.sent") >= 2)  # prepared again, for the new text
    assert nvim.lua("return _G.sent[#_G.sent][2].range.start.line") == 12
    nvim.lua("vim.ui.input = _G.plain; _G.done('at once')")
    nvim.wait_said()
    assert nvim.lua("return _G.prompt.prompt") == "Rewrite lines 11-12: "
    assert nvim.text == "# one\n# two\n" + GRID.replace("grid = Grid", "grid = Mesh")


def test_earlier_instructions_are_in_the_history_and_completed(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! nothing to see")
    nvim.wait_said("the model changed nothing")
    assert nvim.api.call("getcompletion", "SpecdRewrite nothing to", "cmdline") == ["to see"]
    assert nvim.api.call("histget", "input", -1) == "nothing to see"
    nvim.api.input(":SpecdRewrite!<CR><Up><CR>")
    wait_for(lambda: len(nvim.said) == 2)


def test_again_takes_the_last_instruction(nvim: Nvim) -> None:
    nvim.api.command("SpecdAgain")
    assert "there is no instruction yet" in nvim.wait_said()
    nvim.api.command("1SpecdRewrite at once")
    nvim.wait_said("1 hunk")
    nvim.api.command("11,$SpecdAgain")
    nvim.wait_said("2 hunks")
    assert nvim.text == MESH


def test_cancel_ends_it_and_says_what_stays(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(nvim.hunks()) == 3)
    assert nvim.lua("return require('specd').status()").startswith("specd: ")
    nvim.api.command("SpecdCancel")
    message = "specd: cancelled (by the user); 3 hunks applied so far stay (:SpecdRevert takes them back)"
    assert nvim.wait_said() == message
    assert nvim.marks("region") == []
    assert nvim.text == MESH
    wait_for(lambda: nvim.home.client.status()["jobs"] == {"active": 0, "waiting": 0})
    nvim.api.command("SpecdCancel")
    assert "no rewrite is under way" in nvim.wait_said("no rewrite")
    assert nvim.lua("return require('specd').status()") == ""


def test_an_undo_in_mid_stream_ends_it(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(nvim.hunks()) == 3)
    nvim.api.input("u")
    assert "cancelled (undone)" in nvim.wait_said()
    assert nvim.text == GRID
    wait_for(lambda: nvim.hunks() == [])


def test_reading_the_file_again_ends_it_and_leaves_no_marks(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! slowly")
    wait_for(lambda: "class Mesh" in nvim.text)
    nvim.api.command("edit!")
    assert "cancelled (the buffer was read from its file again" in nvim.wait_said()
    assert nvim.text == GRID
    assert nvim.hunks() == nvim.marks("region") == []
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said("3 hunks, ")


def test_a_buffer_that_gets_another_name_ends_it_and_can_be_rewritten_by_its_new_one(nvim: Nvim) -> None:
    for command in ("file", "saveas!"):
        nvim.open("grid.py", GRID)
        nvim.lua("_G.said = {}")
        nvim.api.command("SpecdRewrite! slowly")
        wait_for(lambda: "class Mesh" in nvim.text)
        nvim.api.command(f"{command} {nvim.home.work}/renamed.py")
        assert "cancelled (the buffer got another name)" in nvim.wait_said()
        assert nvim.marks("region") == []
        nvim.api.input("u")
        assert nvim.text == GRID
        wait_for(lambda: nvim.hunks() == [])
        nvim.api.command("SpecdRewrite! at once")
        nvim.wait_said("3 hunks, ")
        assert nvim.text == MESH
        nvim.api.command("SpecdRevert")
        nvim.wait_said("took 3 hunks back")
        nvim.api.command("bwipeout!")


def test_a_write_in_mid_stream_writes_whole_lines_and_the_rewrite_is_one_undo_all_the_same(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! slowly")
    wait_for(lambda: "class Mesh" in nvim.text)
    nvim.api.command("write")
    nvim.wait_said("3 hunks")
    written = (nvim.home.work / "grid.py").read_text().split("\n")
    assert all(line in (old, new) for line, old, new in zip(written, GRID.split("\n"), MESH.split("\n"), strict=True))
    nvim.api.input("u")
    assert nvim.text == GRID


def test_a_second_rewrite_of_the_same_buffer_waits_for_the_first(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! hang")
    nvim.api.command("SpecdRewrite! at once")
    assert "a rewrite of this buffer is under way" in nvim.wait_said()
    nvim.api.command("SpecdCancel")
    nvim.wait_said("cancelled")


def test_revert_takes_back_all_but_what_was_changed_since_as_one_undo_step(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said()
    nvim.api.input("Go# mine<Esc>")
    nvim.api.command("silent! %s/trace(grid: Mesh)/trace(mine: Mesh)/")
    before = nvim.text
    nvim.api.command("SpecdRevert")
    assert "took 2 hunks back; left line 16, which changed since" in nvim.wait_said("took")
    expected = GRID.replace("trace(grid: Grid)", "trace(mine: Mesh)")
    assert nvim.text == expected + "# mine\n"
    wait_for(lambda: nvim.hunks() == [])
    nvim.api.input("u")
    assert nvim.text == before
    nvim.api.command("SpecdRevert")
    nvim.wait_said()


def test_hunks_are_visited_shown_taken_back_one_by_one_and_dismissed(nvim: Nvim) -> None:
    maps = {"]h": "next-hunk", "[h": "previous-hunk", "gh": "revert-hunk", "gd": "diff", "gx": "dismiss"}
    for keys, name in maps.items():
        nvim.lua("vim.keymap.set('n', ...)", keys, f"<Plug>(specd-{name})")
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said()
    rows = []
    for keys in ("gg]h", "]h", "]h", "[h", "[h"):
        nvim.api.input(keys)
        rows.append(nvim.api.current.window.cursor[0])
    assert rows == [12, 16, 1, 16, 12]
    nvim.api.input("gd")
    old = {row: details["virt_lines"] for row, _, details in nvim.marks("old")}
    assert [lines[0][0][0] for lines in old.values()] == [line for line in GRID.split("\n") if "Grid" in line]
    nvim.api.input("gd")
    assert nvim.marks("old") == []
    nvim.api.input("gh")  # on line 12
    assert nvim.text == MESH.replace("grid = Mesh", "grid = Grid")
    wait_for(lambda: nvim.hunks() == [(0, 1), (15, 16)])
    nvim.api.input("gx")
    assert nvim.hunks() == nvim.marks("hunks") == []
    nvim.api.input("]h")
    nvim.wait_said("no hunk is marked")


def test_a_deleted_line_is_marked_and_can_come_back(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! drop a line")
    nvim.wait_said("1 hunk")
    ((row, _, details),) = nvim.marks("hunks")
    assert (row, details["virt_text"][0][0]) == (3, "1 line deleted")
    nvim.api.input("4G")
    nvim.lua("require('specd').revert_hunk()")
    assert nvim.text == GRID


def test_a_mark_goes_when_its_lines_are_changed(nvim: Nvim) -> None:
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said()
    nvim.api.input("12GA  # mine<Esc>")
    wait_for(lambda: nvim.hunks() == [(0, 1), (15, 16)])
    nvim.api.input("ggdd")
    wait_for(lambda: nvim.hunks() == [(14, 15)])
