"""The buffer changes hands in mid-stream: it is read again, closed, emptied, renamed, or may no longer be changed. The
message says so, and says what of the rewrite is left.
"""

import pytest
from daemon_home import GRID, MESH, wait_for
from real_nvim import Nvim

FIRST = GRID.replace("class Grid", "class Mesh")


def in_mid_stream(nvim: Nvim) -> None:
    """A rewrite of which one hunk is in the buffer, of three; the next one is a second away."""
    nvim.api.command("SpecdRewrite! leisurely")
    wait_for(lambda: len(nvim.hunks()) == 1)
    assert nvim.text == FIRST


def before_its_end(nvim: Nvim) -> None:
    """A rewrite of which all hunks are in the buffer, and which has not ended."""
    nvim.api.command("SpecdRewrite! hang")
    wait_for(lambda: len(nvim.hunks()) == 3)


def is_over(nvim: Nvim) -> bool:
    return bool(nvim.home.client.status()["jobs"] == {"active": 0, "waiting": 0})


@pytest.mark.parametrize("before", ["", "write | "])
def test_a_buffer_that_is_read_again_holds_what_its_file_does(nvim: Nvim, before: str) -> None:
    in_mid_stream(nvim)
    nvim.api.command(f"{before}edit!")
    message = "specd: cancelled (the buffer was read from its file again); what was not written is no longer in it"
    assert nvim.wait_said() == message
    assert nvim.text == (FIRST if before else GRID)
    nvim.api.command("SpecdRevert")
    nvim.wait_said("there is nothing to take back")


@pytest.mark.parametrize("command", ["bdelete!", "bwipeout!", "set nohidden | new | wincmd p | quit! | set hidden"])
def test_a_buffer_that_is_closed_takes_what_was_not_written_with_it(nvim: Nvim, command: str) -> None:
    in_mid_stream(nvim)
    nvim.api.command(command)
    assert nvim.wait_said() == "specd: cancelled (the buffer was closed); what was not written went with it"
    wait_for(lambda: is_over(nvim))
    assert (nvim.home.work / "grid.py").read_text() == GRID


def test_what_was_deleted_meanwhile_is_not_said_to_stay(nvim: Nvim) -> None:
    before_its_end(nvim)
    nvim.api.command("%delete")
    nvim.api.command("SpecdCancel")
    assert nvim.wait_said() == "specd: cancelled (by the user); nothing of it is left in the buffer"
    nvim.api.input("u")
    wait_for(lambda: nvim.text == MESH)


def test_of_hunks_that_were_deleted_meanwhile_the_others_stay(nvim: Nvim) -> None:
    before_its_end(nvim)
    nvim.api.command("12delete")
    nvim.api.command("SpecdCancel")
    message = "specd: cancelled (by the user); 2 hunks applied so far stay (:SpecdRevert takes them back)"
    assert nvim.wait_said() == message


def test_an_emptied_buffer_gets_nothing_more_and_no_marks(nvim: Nvim) -> None:
    in_mid_stream(nvim)
    nvim.api.command("%delete")
    assert "2 of 3 hunks not applied" in nvim.wait_said()
    assert nvim.text == "\n"
    assert nvim.hunks() == nvim.marks("hunks") == []


def test_deleted_in_the_moment_a_hunk_comes_it_is_not_marked_as_a_deletion(nvim: Nvim) -> None:
    """The hunk is told of after the buffer has changed again."""
    nvim.lua("""
      local handlers = vim.lsp.get_clients({ name = 'specd', bufnr = 0 })[1].handlers
      local plain = handlers['specd/hunk']
      handlers['specd/hunk'] = function(...)
        handlers['specd/hunk'] = plain
        vim.cmd('%delete')
        return plain(...)
      end
    """)
    nvim.api.command("SpecdRewrite! slowly")
    nvim.wait_said("not applied")
    assert nvim.hunks() == nvim.marks("hunks") == []


@pytest.mark.parametrize(
    ("option", "why"),
    [("readonly", "the buffer is read-only now"), ("nomodifiable", "the buffer is not modifiable now")],
)
def test_a_buffer_that_may_no_longer_be_changed_is_not(nvim: Nvim, option: str, why: str) -> None:
    remedy = {"readonly": "noreadonly", "nomodifiable": "modifiable"}[option]
    in_mid_stream(nvim)
    nvim.api.command(f"setlocal {option}")
    message = f"specd: cancelled ({why}); 1 hunk applied so far stays (:SpecdRevert takes it back)"
    assert nvim.wait_said("cancelled") == message
    wait_for(lambda: is_over(nvim))
    assert nvim.text == FIRST
    assert nvim.marks("region") == []
    nvim.lua("_G.said = {}")
    for call in ("revert", "revert_hunk"):
        nvim.lua(f"vim.cmd('1'); require('specd').{call}()")
        assert nvim.said[-1][0] == f"specd: {why.removesuffix(' now')}; change that first (:set {remedy})"
    assert nvim.text == FIRST
    nvim.api.command("setlocal noreadonly modifiable")
    nvim.api.command("SpecdRevert")
    nvim.wait_said("took 1 hunk back")
    assert nvim.text == GRID


def test_a_buffer_that_is_read_only_without_an_event_gets_nothing_more_either(nvim: Nvim) -> None:
    in_mid_stream(nvim)
    nvim.api.command("noautocmd setlocal readonly")
    assert "the buffer is read-only: 2 of 3 hunks not applied (lines 12, 16)" in nvim.wait_said()
    assert nvim.text == FIRST


def test_another_buffer_that_becomes_read_only_stops_nothing(nvim: Nvim) -> None:
    nvim.api.command("set hidden")
    in_mid_stream(nvim)
    nvim.api.command("new | setlocal readonly nomodifiable")
    assert nvim.wait_said().startswith("specd: 3 hunks, ")
    nvim.api.command("bwipeout!")
    assert nvim.text == MESH


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("file renamed.py", "the buffer got another name"),
        ("set filetype=nosuch", "the language server was detached from the buffer"),
    ],
)
def test_what_stays_can_be_taken_back_though_its_server_knows_it_no_more(nvim: Nvim, command: str, why: str) -> None:
    in_mid_stream(nvim)
    nvim.api.command(command)
    message = f"specd: cancelled ({why}); 1 hunk applied so far stays (:SpecdRevert takes it back)"
    assert nvim.wait_said() == message
    assert len(nvim.hunks()) == 1
    nvim.api.command("SpecdRevert")
    nvim.wait_said("specd: took 1 hunk back")
    assert nvim.text == GRID


def test_a_name_that_another_buffer_has_changes_nothing(nvim: Nvim) -> None:
    other = nvim.home.work / "other.py"
    other.write_text(GRID)
    nvim.api.command(f"badd {other} | set hidden | buffer {other} | buffer grid.py")
    in_mid_stream(nvim)
    nvim.api.command(f"silent! file {other}")
    assert nvim.wait_said().startswith("specd: 3 hunks, ")
    assert nvim.text == MESH
    assert nvim.is_attached()


@pytest.mark.parametrize(
    ("command", "why"), [("edit!", "the buffer was read from its file again"), ("bdelete!", "the buffer was closed")]
)
def test_where_nothing_had_come_yet_nothing_was_changed(nvim: Nvim, command: str, why: str) -> None:
    nvim.api.command("3,5SpecdRewrite leisurely")
    nvim.api.command(command)
    assert nvim.wait_said() == f"specd: cancelled ({why}); nothing was changed"
