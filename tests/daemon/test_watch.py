"""A running daemon follows its settings file and its model's folder."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from daemon_home import GRID, Home, wait_for

SHORT = ("--max-tokens", 3)


def test_a_changed_setting_holds_from_the_next_job_on_and_a_wrong_one_is_told(home: Home, slow_model: Path) -> None:
    path = home.write("a.py", GRID)
    assert "limit" not in home.run("edit", path.name, "-i", "x", *SHORT).stderr
    home.settings.write_text(f'model = "{slow_model}"\nmax_lines = 5\nlog_size = 99\n')
    wait_for(lambda: "setting max_lines changed" in home.log.read_text())
    assert "the limit is 5" in home.run("edit", path.name, "-i", "x", *SHORT).stderr
    assert home.client.status()["restart"] == ["log_size"]
    assert "log_size: changed, waits for the next start" in home.run("status").stdout
    assert "setting log_size changed: takes effect when the daemon starts again" in home.log.read_text()
    home.settings.write_text("max_lines = 0\n")
    wait_for(lambda: "max_lines must be 1 or more" in home.client.status()["problem"])
    assert "problem" in home.run("status").stdout
    assert "the limit is 5" in home.run("edit", path.name, "-i", "x", *SHORT).stderr
    home.settings.write_text(f'model = "{slow_model}"\n')
    wait_for(lambda: home.client.status()["problem"] == "")
    assert home.client.status()["restart"] == []
    assert "restart" not in home.run("status").stdout


def test_a_model_that_changes_on_disk_is_swapped_between_jobs(
    new_home: Callable[..., Home], tiny_folder: Callable[..., Path]
) -> None:
    shape = {"max_position_embeddings": 32768, "eos_token_id": 271}
    first, second = tiny_folder(seed=3, **shape), tiny_folder(seed=4, **shape)
    home = new_home()
    model = Path(shutil.copytree(first, home.folder / "model"))
    home.settings.write_text(f'model = "{model}"\n')
    path = home.write("a.py", GRID)
    ask = ("edit", path.name, "-i", "x", "--json", "--dry-run", "--max-tokens", 40)
    before = json.loads(home.run(*ask).stdout)
    running = home.start("edit", path.name, "-i", "x", "--max-tokens", 20000)
    wait_for(lambda: home.client.status()["jobs"]["active"] == 1)
    shutil.copy(second / "model.safetensors", model / "model.safetensors.new")
    (model / "model.safetensors.new").replace(model / "model.safetensors")
    wait_for(lambda: "was reloaded" in home.log.read_text())
    assert running.poll() is None  # the job that runs goes on, on the old weights
    after = json.loads(home.run(*ask).stdout)
    assert (before["exit_code"], after["exit_code"]) == (4, 4)  # noise, cut off by the limit
    running.terminate()
    running.communicate(timeout=30)
    wait_for(lambda: home.client.status()["jobs"]["active"] == 0)


def test_a_drafter_that_changes_on_disk_is_loaded_again(
    new_home: Callable[..., Home], slow_model: Path, tiny_folder: Callable[..., Path]
) -> None:
    home = new_home()
    draft = Path(shutil.copytree(tiny_folder(seed=6, max_position_embeddings=32768), home.folder / "draft"))
    home.settings.write_text(f'model = "{slow_model}"\ndraft_model = "{draft}"\n')
    path = home.write("a.py", GRID)
    home.run("edit", path.name, "-i", "x", *SHORT)
    assert [model["draft"] for model in home.client.status()["models"]] == [str(draft)]
    other = tiny_folder(seed=7, max_position_embeddings=32768)
    shutil.copy(other / "model.safetensors", draft / "model.safetensors.new")
    (draft / "model.safetensors.new").replace(draft / "model.safetensors")
    wait_for(lambda: "was reloaded" in home.log.read_text())


def test_another_model_in_the_settings_is_loaded_beside_the_present_one(
    home: Home, tiny_folder: Callable[..., Path]
) -> None:
    path = home.write("a.py", GRID)
    home.run("edit", path.name, "-i", "x", *SHORT)
    other = tiny_folder(seed=5, max_position_embeddings=4096)
    home.settings.write_text(f'model = "{other}"\n')
    wait_for(lambda: [model["path"] for model in home.client.status()["models"]] == [str(other)])
    broken = home.folder / "broken"
    broken.mkdir()
    home.settings.write_text(f'model = "{broken}"\n')
    wait_for(lambda: "config.json" in home.client.status()["problem"])
    assert "broke off" in home.run("edit", path.name, "-i", "x", *SHORT).stderr  # the one that works stays
