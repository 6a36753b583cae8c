"""`specd edit` from the shell, on a warm daemon with a model that can rename."""

import json
import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from daemon_home import GRID, MESH, RENAME, Home, wait_for


def test_a_rename_is_written_and_told_in_one_line(warm: Home) -> None:
    path = warm.write("rename.py", GRID)
    done = warm.edit(path)
    assert done.returncode == 0, done.stderr
    assert path.read_text() == MESH
    assert done.stdout == ""
    assert "rename.py: 3 lines in 3 hunks · " in done.stderr
    assert " tokens/step · " in done.stderr
    assert done.stderr.rstrip().endswith("% drafted")
    assert done.stderr.count("\n") == 1


def test_diff_prints_a_patch_that_applies_and_writes_nothing(warm: Home) -> None:
    path = warm.write("patch.py", GRID)
    done = warm.edit(path, "--diff")
    assert done.returncode == 0, done.stderr
    assert path.read_text() == GRID
    subprocess.run(["git", "apply", "-"], input=done.stdout, text=True, cwd=warm.work, check=True)
    assert path.read_text() == MESH


def test_a_dry_run_writes_nothing(warm: Home) -> None:
    path = warm.write("dry.py", GRID)
    done = warm.edit(path, "--dry-run")
    assert (done.returncode, path.read_text()) == (0, GRID)
    assert "3 lines in 3 hunks" in done.stderr


def test_a_range_bounds_the_change(warm: Home) -> None:
    path = warm.write("range.py", GRID)
    done = warm.edit(path, "--range", "11:13")
    assert done.returncode == 0, done.stderr
    assert path.read_text() == GRID.replace("grid = Grid(n, n)", "grid = Mesh(n, n)")


def test_at_takes_the_definition_around_the_line(warm: Home) -> None:
    path = warm.write("at.py", GRID)
    done = warm.run("edit", path.name, "-i", "rename n to size", "--at", "12")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("at.py: function make_grid, lines 11-13: 2 lines in 1 hunk")
    assert path.read_text() == GRID.replace("make_grid(n)", "make_grid(size)").replace("Grid(n, n)", "Grid(size, size)")


def test_nothing_to_do_is_exit_status_1_and_no_write(warm: Home) -> None:
    path = warm.write("same.py", MESH)
    before = path.stat()
    done = warm.edit(path)
    assert done.returncode == 1, done.stderr
    assert "the model changed nothing" in done.stderr
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_json_tells_the_hunks_and_the_counts(warm: Home) -> None:
    path = warm.write("as_json.py", GRID)
    done = warm.edit(path, "--json")
    data = json.loads(done.stdout)
    assert (data["outcome"], data["exit_code"], data["written"]) == ("done", 0, True)
    assert data["hunks"][0] == {"start_line": 0, "end_line": 1, "new_lines": ["class Mesh:\n"]}
    assert data["summary"]["tokens"] > data["summary"]["steps"] > 0
    assert done.stderr == ""


def test_standard_input_comes_out_rewritten(warm: Home) -> None:
    done = warm.run("edit", "--stdin", "shapes.py", "-i", RENAME, input=GRID)
    assert (done.returncode, done.stdout) == (0, MESH)
    dash = warm.run("edit", "-", "-i", RENAME, input=GRID)
    assert (dash.returncode, dash.stdout) == (0, MESH)


def test_standard_input_comes_out_as_it_was_when_it_is_refused(warm: Home) -> None:
    raw = b"caf\xe9 = 1\n"
    done = subprocess.run(
        warm.command("edit", "--stdin", "-i", RENAME), input=raw, capture_output=True, env=warm.environ, check=False
    )
    assert (done.returncode, done.stdout) == (3, raw)
    assert b"not UTF-8" in done.stderr


def test_several_files_have_a_line_each_and_the_worst_status(warm: Home) -> None:
    good, other = warm.write("one.py", GRID), warm.write("two.py", GRID)
    done = warm.run("edit", "one.py", "missing.py", "two.py", "-i", RENAME)
    assert done.returncode == 3
    assert (good.read_text(), other.read_text()) == (MESH, MESH)
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["one.py", "specd", "two.py"]


def test_the_same_file_twice_is_rewritten_twice(warm: Home) -> None:
    path = warm.write("twice.py", GRID)
    done = warm.run("edit", "twice.py", "twice.py", "-i", RENAME)
    assert done.returncode == 0, done.stderr
    assert path.read_text() == MESH
    assert "the model changed nothing" in done.stderr


def test_other_names_of_a_file_keep_the_old_text_and_that_is_told(warm: Home) -> None:
    path = warm.write("name.py", GRID)
    other = warm.work / "other_name.py"
    other.hardlink_to(path)
    done = warm.edit(path)
    assert (done.returncode, path.read_text(), other.read_text()) == (0, MESH, GRID)
    assert "hard links" in done.stderr


def test_links_modes_and_line_ends_survive(warm: Home) -> None:
    real = warm.write("real.py", GRID.replace("\n", "\r\n"))
    real.chmod(0o750)
    link = warm.work / "link.py"
    link.symlink_to(real)
    done = warm.edit(link)
    assert done.returncode == 0, done.stderr
    assert link.is_symlink()
    assert real.read_bytes() == MESH.replace("\n", "\r\n").encode()
    assert stat.S_IMODE(real.stat().st_mode) == 0o750


def test_without_a_daemon_the_answer_is_the_same(warm: Home) -> None:
    path = warm.write("alone.py", GRID)
    done = warm.edit(path, "--no-daemon")
    assert done.returncode == 0, done.stderr
    assert path.read_text() == MESH


@pytest.mark.parametrize("how", [("--speculate", 0), ("--speculate", 5), ("--proposer", "ngram")])
def test_drafting_does_not_change_the_answer(warm: Home, how: tuple[str, object]) -> None:
    path = warm.write("how.py", GRID)
    done = warm.edit(path, *how)
    assert done.returncode == 0, done.stderr
    assert path.read_text() == MESH


def test_a_seed_makes_sampling_repeat(warm: Home) -> None:
    path = warm.write("sampled.py", GRID)
    sampled = ("--temperature", 1.5, "--seed", 7, "--diff")
    first, second = warm.edit(path, *sampled), warm.edit(path, *sampled)
    assert first.stdout == second.stdout
    assert first.returncode == second.returncode


def test_an_answer_cut_by_the_limit_is_not_written(warm: Home) -> None:
    path = warm.write("cut.py", GRID)
    done = warm.edit(path, "--max-tokens", 20)
    assert done.returncode == 4
    assert path.read_text() == GRID
    assert "broke off" in done.stderr


def test_a_terminal_gets_colours_and_progress_and_a_pipe_does_not(warm: Home) -> None:
    path = warm.write("terminal.py", GRID)
    shown = _in_terminal(warm, path.name, {})
    assert "\x1b[31m-class Grid:\x1b[0m" in shown
    assert "\x1b[32m+class Mesh:\x1b[0m" in shown
    path.write_text(GRID)
    plain = _in_terminal(warm, path.name, {"NO_COLOR": "1"})
    assert "-class Grid:" in plain
    assert "\x1b[3" not in plain


def _in_terminal(home: Home, name: str, environ: dict[str, str]) -> str:
    """What `specd edit` shows on a pseudo-terminal."""
    parent, child = os.openpty()
    process = subprocess.Popen(
        home.command("edit", name, "-i", RENAME),
        cwd=home.work,
        env={**home.environ, "TERM": "xterm", **environ},
        stdin=child,
        stdout=child,
        stderr=child,
    )
    os.close(child)
    parts = []
    while True:
        try:
            part = os.read(parent, 4096)
        except OSError:  # Linux: the child has closed the terminal
            break
        if not part:
            break
        parts.append(part)
    os.close(parent)
    assert process.wait(30) == 0
    return b"".join(parts).decode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("args", [("--diff",), ("--json",), ("--stdin",)])
def test_output_that_cannot_be_written_is_said_in_a_line(warm: Home, args: tuple[str, ...]) -> None:
    path = warm.write("full.py", GRID)
    with open("/dev/full", "w") as full, path.open() as text:
        command = warm.command("edit", path.name, "-i", RENAME, "--dry-run", *args)
        done = subprocess.run(
            command, cwd=warm.work, env=warm.environ, stdin=text, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == "specd: cannot write the output: No space left on device."
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_ctrl_c_ends_the_job_and_leaves_the_file(noise: Home) -> None:
    path = noise.write("ctrl_c.py", GRID)
    wait_for(lambda: not noise.is_busy())  # an earlier test's job is not this one's
    editing = noise.start("edit", path.name, "-i", "go on and on", "--max-tokens", 30000, "--speculate", 0)
    wait_for(noise.is_busy)
    editing.send_signal(signal.SIGINT)
    _, said = editing.communicate(timeout=60)
    assert editing.returncode == 130, said
    assert said == "specd: ctrl_c.py: interrupted; it is as it was.\n"
    assert path.read_text() == GRID
    wait_for(lambda: noise.client.status()["jobs"]["active"] == 0)


def test_a_message_brings_no_escapes_to_the_terminal(warm: Home) -> None:
    done = warm.run("edit", "no\x1b[31m.py", "-i", RENAME)
    assert done.stderr == "specd: no?[31m.py: no such file; check the name.\n"


def test_a_name_that_is_none_is_refused_in_a_line(warm: Home) -> None:
    path = warm.write("name.py", GRID)
    done = warm.edit(path, "--model", "a" * 5000)
    assert done.returncode == 2
    assert done.stderr.startswith("specd: --model must be a folder or a hub name, not 'aaa")
    assert done.stderr.count("\n") == 1


def test_a_note_is_told_where_nothing_changed_too(warm: Home) -> None:
    path = warm.write("note.py", MESH)
    done = warm.edit(path, "--context", "missing.py")
    assert done.returncode == 1
    assert "the model changed nothing" in done.stderr
    assert "missing.py cannot be read" in done.stderr
