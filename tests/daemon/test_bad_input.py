"""What specd refuses: a message of one or two lines that says what to do, the right exit status, the file untouched."""

import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_home import GRID, MESH, RENAME, Home, wait_for


def refused(done: "subprocess.CompletedProcess[str]", status: int, *words: str) -> None:
    """Assert the shape of a refusal: status, nothing on stdout, at most two lines, the words in them."""
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert 1 <= len(done.stderr.splitlines()) <= 2, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_no_such_file(noise: Home) -> None:
    refused(noise.run("edit", "nowhere.py", "-i", RENAME), 3, "nowhere.py", "no such file", "check the name")


def test_a_folder(noise: Home) -> None:
    (noise.work / "folder").mkdir()
    refused(noise.run("edit", "folder", "-i", RENAME), 3, "is a folder", "name a text file")


def test_no_regular_file(noise: Home) -> None:
    os.mkfifo(noise.work / "pipe")
    refused(noise.run("edit", "pipe", "-i", RENAME), 3, "not a regular file")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x7fELF\0\0\0", ("binary",)),
        ("é = 1\n".encode("latin-1") * 3, ("not UTF-8", "0xe9", "line 1", "iconv")),
        (b"", ("empty", "nothing to rewrite")),
        (b" \n\t\n", ("empty",)),
    ],
)
def test_content_that_is_no_text(noise: Home, content: bytes, words: tuple[str, ...]) -> None:
    path = noise.write("content.py", content)
    refused(noise.edit(path), 3, "content.py", *words)
    assert path.read_bytes() == content


@pytest.mark.parametrize("where", [("--range", "90:95"), ("--range", "3:95"), ("--at", "95")])
def test_lines_outside_the_file(noise: Home, where: tuple[str, str]) -> None:
    path = noise.write("lines.py", GRID)
    refused(noise.edit(path, *where), 3, "95", "17 lines")
    assert path.read_text() == GRID


@pytest.mark.parametrize("where", [("--range", "0:3"), ("--range", "5:2"), ("--range", "a:b"), ("--at", "0")])
def test_lines_that_make_no_sense(noise: Home, where: tuple[str, str]) -> None:
    path = noise.write("sense.py", GRID)
    done = noise.edit(path, *where)
    assert done.returncode == 2
    assert where[1] in done.stderr
    assert path.read_text() == GRID


@pytest.mark.parametrize("instruction", ["", "  \n "])
def test_an_empty_instruction(noise: Home, instruction: str) -> None:
    path = noise.write("empty.py", GRID)
    refused(noise.run("edit", path.name, "-i", instruction), 2, "instruction is empty", "say what to change")
    assert path.read_text() == GRID


def test_no_file_at_all(noise: Home) -> None:
    refused(noise.run("edit", "-i", RENAME), 2, "FILE", "--stdin")


@pytest.mark.parametrize(
    ("option", "value", "bounds"),
    [
        ("--temperature", "-1", "from 0 to 100"),
        ("--temperature", "nan", "from 0 to 100"),
        ("--top-p", "3", "above 0 and at most 1"),
        ("--top-p", "0", "above 0 and at most 1"),
        ("--top-k", "-1", "0 or more"),
        ("--speculate", "-3", "from 0 to 4096"),
        ("--max-tokens", "-1", "0 or more"),
    ],
)
def test_a_number_out_of_bounds_is_told_with_its_option_and_the_bounds(
    home: Home, option: str, value: str, bounds: str
) -> None:
    path = home.write("numbers.py", GRID)
    refused(home.edit(path, f"{option}={value}"), 2, f"specd: {option} must be {bounds}, not {value}")


def test_an_instruction_that_is_no_utf_8(home: Home) -> None:
    path = home.write("latin.py", GRID)
    command = [*home.command("edit", path.name, "-i"), b"caf\xe9"]
    environ = {**home.environ, "PYTHONUTF8": "1"}
    done = subprocess.run(command, cwd=home.work, env=environ, capture_output=True, text=True)
    refused(done, 2, "--instruction is not UTF-8: byte 0xe9 at character 4")


@pytest.mark.parametrize("args", [("edit", "", "-i", RENAME), ("edit", "-i", RENAME, "--dry-run", "")])
def test_a_file_without_a_name(home: Home, args: tuple[str, ...]) -> None:
    refused(home.run(*args), 2, "name is empty")


def test_a_model_folder_that_does_not_exist(noise: Home) -> None:
    path = noise.write("absent.py", GRID)
    refused(noise.edit(path, "--model", "./absent"), 4, "absent", "no such model folder")
    assert path.read_text() == GRID


@pytest.mark.parametrize("option", ["--draft", "--dflash"])
def test_a_drafter_that_does_not_exist_is_told_with_its_option(noise: Home, option: str) -> None:
    path = noise.write("drafter.py", GRID)
    refused(noise.edit(path, option, "nosuch"), 4, f"({option}): no such model folder: nosuch")
    assert path.read_text() == GRID


def test_a_proposer_without_its_model_is_a_wrong_command_line(noise: Home) -> None:
    path = noise.write("proposer.py", GRID)
    refused(noise.edit(path, "--proposer", "draft_model"), 2, "name one with --draft MODEL")
    assert path.read_text() == GRID


def test_a_model_folder_without_config(noise: Home, slow_model: Path) -> None:
    broken = Path(shutil.copytree(slow_model, noise.folder / "a_model_folder_without_config"))
    (broken / "config.json").unlink()
    path = noise.write("config.py", GRID)
    refused(noise.edit(path, "--model", broken), 4, "config.json", str(broken))
    assert path.read_text() == GRID


def test_a_model_of_an_architecture_that_is_not_supported(noise: Home, slow_model: Path) -> None:
    broken = Path(shutil.copytree(slow_model, noise.folder / "a_model_of_an_architecture_that_is_not_supported"))
    config = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(json.dumps({**config, "model_type": "mamba"}))
    path = noise.write("mamba.py", GRID)
    refused(noise.edit(path, "--model", broken), 4, "mamba", "not supported")
    assert path.read_text() == GRID


def test_a_truncated_safetensors(noise: Home, slow_model: Path) -> None:
    broken = Path(shutil.copytree(slow_model, noise.folder / "a_truncated_safetensors"))
    with (broken / "model.safetensors").open("r+b") as file:
        file.truncate((broken / "model.safetensors").stat().st_size // 2)
    path = noise.write("truncated.py", GRID)
    refused(noise.edit(path, "--model", broken), 4, "model.safetensors", "cut short")
    assert path.read_text() == GRID


def test_a_model_that_failed_to_load_is_tried_again_when_it_is_there(warm: Home, edit_model: Path) -> None:
    path = warm.write("later.py", GRID)
    assert warm.edit(path, "--model", "./later").returncode == 4
    shutil.copytree(edit_model, warm.work / "later")
    assert warm.edit(path, "--model", "./later").returncode == 0
    assert path.read_text() == MESH


def test_a_read_only_file(noise: Home) -> None:
    path = noise.write("locked.py", GRID)
    path.chmod(0o444)
    refused(noise.edit(path), 3, "read-only", "chmod u+w", "--diff")
    assert path.read_text() == GRID


def test_a_write_that_hits_a_limit_leaves_the_file_as_it_was(warm: Home) -> None:
    path = warm.write("limit.py", GRID * 40)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    refused(warm.run("edit", path.name, "-i", RENAME, "--at", "1", preexec_fn=limit), 3, "cannot write", "as it was")
    assert path.read_text() == GRID * 40
    assert [other.name for other in warm.work.iterdir() if "specd" in other.name] == []


def test_no_room_on_the_disk(warm: Home) -> None:
    disk = warm.work / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small disk here")
    try:
        path = disk / "full.py"
        path.write_text(GRID)
        (disk / "filler").write_bytes(b"\0" * 12288)
        refused(warm.run("edit", "disk/full.py", "-i", RENAME), 3, "no room on the disk", "as it was")
        assert path.read_text() == GRID
        assert sorted(other.name for other in disk.iterdir()) == ["filler", "full.py"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_daemon_killed_while_it_works(home: Home) -> None:
    path = home.write("killed.py", GRID)
    editing = home.start("edit", path.name, "-i", RENAME, "--max-tokens", 20000)
    wait_for(lambda: home.socket.exists() and home.client.status()["jobs"]["active"] == 1)
    os.kill(home.daemon_pid(), signal.SIGKILL)
    out, err = editing.communicate(timeout=30)
    refused(subprocess.CompletedProcess([], editing.returncode, out, err), 4, "killed.py", "ended", "Try again")
    assert path.read_text() == GRID
    assert home.run("edit", path.name, "-i", RENAME, "--max-tokens", 5).returncode in (1, 4)  # a new one works


def test_two_edits_of_a_file_at_once(noise: Home) -> None:
    path = noise.write("both.py", GRID)
    first = noise.start("edit", path.name, "-i", RENAME, "--max-tokens", 30000, "--speculate", 0)
    wait_for(lambda: noise.socket.exists() and noise.client.status()["jobs"]["active"] == 1)
    refused(noise.edit(path), 3, "another `specd edit`", "both.py", "try again")
    assert path.read_text() == GRID
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=30)
    assert first.returncode == 130, err
    assert "interrupted" in err
    assert path.read_text() == GRID


def test_a_file_that_changes_meanwhile_is_a_conflict(warm: Home) -> None:
    path = warm.write("meanwhile.py", GRID)
    editing = warm.start("edit", path.name, "-i", RENAME, "--speculate", 0)
    wait_for(lambda: warm.client.status()["jobs"]["active"] == 1)
    path.write_text(GRID + "# typed meanwhile\n")
    out, err = editing.communicate(timeout=60)
    refused(subprocess.CompletedProcess([], editing.returncode, out, err), 3, "changed on disk", "Run it again")
    assert path.read_text() == GRID + "# typed meanwhile\n"


def test_a_socket_left_by_a_dead_daemon(home: Home) -> None:
    path = home.write("stale.py", GRID)
    assert home.edit(path, "--max-tokens", 5).returncode in (1, 4)
    pid = home.daemon_pid()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not home.client.is_reachable())
    assert home.socket.exists()
    done = home.edit(path, "--max-tokens", 5)
    assert done.returncode in (1, 4)
    assert "daemon" not in done.stderr
    assert home.daemon_pid() != pid


def test_a_region_beyond_the_limit(new_home: Callable[..., Home], slow_model: Path) -> None:
    home = new_home(f'model = "{slow_model}"\nmax_lines = 10\n')
    path = home.write("long.py", GRID)
    refused(home.edit(path), 3, "17", "limit", "10", "--range")
    assert path.read_text() == GRID


def test_a_text_beyond_the_models_window(noise: Home) -> None:
    path = noise.write("wide.py", f'x = "{"a" * 40000}"\n')
    refused(noise.edit(path), 3, "wide.py", "tokens")


def test_settings_with_an_error_are_told_with_key_and_line(new_home: Callable[..., Home]) -> None:
    home = new_home('# mine\nmodle = "x"\n')
    path = home.write("settings.py", GRID)
    refused(home.edit(path), 2, "line 2", "modle", "'model'")
    refused(home.edit(path, "--no-daemon"), 2, "line 2", "modle")
    assert path.read_text() == GRID


def test_a_device_that_is_not_there_is_named(new_home: Callable[..., Home], slow_model: Path) -> None:
    home = new_home(f'model = "{slow_model}"\ndevice = "cuda:99"\n')
    path = home.write("a.py", GRID)
    refused(home.edit(path), 4, "finds no device cuda:99 here", "set device to auto or cpu")
    assert path.read_text() == GRID
