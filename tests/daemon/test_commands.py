"""`specd status`, `serve`, `doctor`, `completion`, and the command line's own manners."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_home import Home, wait_for

from specd.daemon import arguments, doctor
from specd.daemon.arguments import EXIT_CODES
from specd.daemon.commands import describe
from specd.daemon.errors import DONE, FAILED, INTERRUPTED, NO_CHANGE, REFUSED, USAGE
from specd.daemon.protocol import Speculation
from specd.daemon.service import Service
from specd.daemon.settings import Settings


def test_status_tells_model_device_memory_jobs_and_cache(noise: Home, slow_model: Path) -> None:
    out = noise.run("status").stdout
    for word in (
        "ready",
        "pid",
        "up",
        "memory",
        "0 active, 0 waiting",
        str(slow_model),
        "cpu, float32",
        "prompts kept",
    ):
        assert word in out
    assert json.loads(noise.run("status", "--json").stdout)["jobs"] == {"active": 0, "waiting": 0}


def test_a_daemon_in_the_foreground_ends_with_ctrl_c(home: Home) -> None:
    process = home.start("serve")
    wait_for(home.client.is_reachable)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "serves at" in err
    assert "Traceback" not in err
    assert not home.socket.exists()


def test_serve_takes_a_model_in_place_of_the_setting(home: Home, tiny_folder: Callable[..., Path]) -> None:
    other = tiny_folder(seed=9)
    process = home.start("serve", "--model", other, "--device", "cpu")
    wait_for(home.client.is_reachable)
    assert [model["path"] for model in home.client.status()["models"]] == [str(other)]
    process.terminate()
    process.communicate(timeout=60)


@pytest.mark.parametrize(
    ("option", "value", "status", "words"),
    [
        ("--model", "/nope", 3, "--model /nope: no such folder"),
        ("--model", "nope", 3, "--model nope: no such folder"),
        ("--device", "foo", 2, "--device must be auto, cpu"),
    ],
)
def test_serve_refuses_at_once_what_cannot_be(home: Home, option: str, value: str, status: int, words: str) -> None:
    done = home.run("serve", option, value)
    assert done.returncode == status
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_status_tells_drafters_and_a_failed_try_last_and_not_for_ever(edit_model: Path) -> None:
    service = Service(Settings(model=str(edit_model), dflash="", trace=False))
    try:
        service.pool.request(service.key()).result()
        bad = service.pool.request(service.key(speculation=Speculation(dflash="/nope")))
        bad.ended.wait()
        status = service.status()
        assert [(model["state"], model["dflash"]) for model in status["models"]] == [("ready", ""), ("failed", "/nope")]
        assert [model["message"] for model in status["models"]] == ["", str(bad.error)]
        assert "dflash /nope" in describe(status)
        bad.last_used -= 301.0
        assert [model["state"] for model in service.status()["models"]] == ["ready"]
    finally:
        service.stop()


def test_doctor_finds_what_is_wrong(home: Home) -> None:
    good = home.run("doctor")
    assert good.returncode == 0, good.stdout
    for word in ("ok   specd", "torch", "cpu:", "settings", "model", "none runs"):
        assert word in good.stdout
    home.settings.write_text("modle = 1\n")
    bad = home.run("doctor", "--json")
    assert bad.returncode == 4
    problems = [finding for finding in json.loads(bad.stdout) if finding["level"] == "bad"]
    assert [problem["topic"] for problem in problems] == ["settings"]
    home.settings.write_text(f'model = "{home.work}"\n')
    assert "bad  model" in home.run("doctor").stdout


def test_what_fits_grows_with_the_memory() -> None:
    gib = 2**30
    assert doctor.fitting(0) == []
    assert doctor.fitting(10 * gib)[-1] == "Qwen3-4B"
    assert doctor.fitting(141 * gib) == list(doctor.SIZES)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_parses_in_its_shell(home: Home, shell: str) -> None:
    script = home.run("completion", shell).stdout
    for word in ("edit", "serve", "status", "--instruction" if shell != "fish" else "-l instruction"):
        assert word in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["specd", "s"], {"serve", "status", "stop"}),
        (["specd", "edit", "--max"], {"--max-tokens"}),
        (["specd", "edit", "--guard", "re"], {"report", "refuse"}),
        (["specd", "completion", "f"], {"fish"}),
    ],
)
def test_bash_completes_commands_options_and_values(home: Home, words: list[str], offered: set[str]) -> None:
    script = home.run("completion", "bash").stdout
    quoted = " ".join(f"'{word}'" for word in words)
    ask = f'{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _specd; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == offered


def test_help_documents_every_exit_status(home: Home) -> None:
    out = home.run("edit", "--help").stdout
    assert EXIT_CODES in out
    for code in (DONE, NO_CHANGE, USAGE, REFUSED, FAILED, INTERRUPTED):
        assert f"\n  {code:<4} " in EXIT_CODES


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("d.py -i x c.py --dry-run", ["d.py", "c.py"]),
        ("-i x c.py --dry-run d.py --at 1 e.py", ["c.py", "d.py", "e.py"]),
        ("--dry-run -i x -", ["-"]),
        ("c.py -i x --at 1 -- -odd.py", ["c.py", "-odd.py"]),
        ("-i x -- -odd.py c.py", ["-odd.py", "c.py"]),
    ],
)
def test_files_may_stand_between_options(words: str, files: list[str]) -> None:
    assert list(map(str, arguments.parse(["edit", *words.split()]).files)) == files


@pytest.mark.parametrize("command", ["edit a -i x --nope", "edit -i x a --diff --nope b", "status more"])
def test_what_is_not_known_names_the_help_of_its_command(home: Home, command: str) -> None:
    done = home.run(*command.split())
    assert done.returncode == 2
    assert done.stderr.endswith(f"see `specd {command.split()[0]} --help`.\n")


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("dance",),
        ("edit",),
        ("edit", "a", "--nope"),
        ("edit", "a", "-i", "x", "--range", "1:2", "--at", "1"),
        ("edit", "a", "b", "./a", "-i", "x", "--atomic"),
        ("edit", "a", "-i", "x", "--proposer", "nobody"),
        ("serve", "--tcp", "99999"),
    ],
)
def test_a_wrong_command_line_is_status_2(home: Home, args: tuple[str, ...]) -> None:
    done = home.run(*args)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("specd: ")
    assert "--help" in done.stderr or args[-1] == "--atomic"


INTERRUPTED_IMPORT = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "specd.daemon.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from specd.daemon.start import main
sys.exit(main())
"""


def test_ctrl_c_during_the_first_imports_is_a_line_too(home: Home) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], env=home.environ, capture_output=True, text=True)
    assert done.returncode == INTERRUPTED
    assert done.stderr == "specd: interrupted before it began; nothing was changed.\n"


def test_a_reader_that_has_seen_enough_is_no_error(noise: Home) -> None:
    command = " ".join(noise.command("status", "--json")) + " | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=noise.environ)
    assert done.stdout == "{\n"
    assert done.stderr == ""
