"""After each kind of cancel the daemon is idle within one step, with replayed answers and with the bundled model. Steps
are counted in the daemon's own record of the job, not timed.
"""

import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_home import GRID, RENAME, Home, wait_for
from replay_home import ANSWERS, start_replay
from scripted_editor import VSCODE, Editor, Habits

GetEditor = Callable[..., Editor]
Cancel = Callable[[Editor, str, int], None]
PLUGIN = Habits(plugin=True)
PAIRS = 60  # each is a step of the replay, and a hunk of its own
PADDED = "Grid = 0000\nother 00000\n" * PAIRS
STEPPING = {"when": "step by step", "swap": [["Grid", "Mesh"]], "step_ms": 250, "characters": 24}


@pytest.fixture(scope="module")
def stepping() -> Iterator[Home]:
    """A daemon whose replay makes a hunk a step."""
    home = Home(Path(tempfile.mkdtemp(prefix="sl-", dir="/tmp")))
    start_replay(home, [STEPPING, *ANSWERS])
    yield home
    home.close()


@pytest.fixture(scope="module")
def bundled(bundled_folder: Path) -> Iterator[Home]:
    """A daemon with the bundled model."""
    home = Home(Path(tempfile.mkdtemp(prefix="sl-", dir="/tmp")), f'model = "{bundled_folder}"\nwatch = false\n')
    home.edit(home.write("warm_up.py", GRID), "--dry-run")
    yield home
    home.close()


def by_progress(at: Editor, uri: str, number: int) -> None:
    at.notify("window/workDoneProgress/cancel", {"token": at.of("$/progress")[0]["token"]})


def by_command(at: Editor, uri: str, number: int) -> None:
    at.request("workspace/executeCommand", {"command": "specd.cancel", "arguments": [{"uri": uri}]})


def by_request(at: Editor, uri: str, number: int) -> None:
    at.notify("$/cancelRequest", {"id": number})


def by_undo(at: Editor, uri: str, number: int) -> None:
    """Of the latest hunk; a hunk that comes in between makes another the latest, so this goes on until it is told."""
    while not at.has_answer(number):
        with at.lock:
            edit = at.of("workspace/applyEdit")[-1]["edit"]["documentChanges"][0]["edits"][-1]["range"]["start"]
            lines = at.text(uri).split("\n")
            before = "".join(f"{line}\n" for line in lines[: edit["line"]])
            line = lines[edit["line"]]
            at.type(uri, before + line, before + line.replace("Mesh", "Grid"))


def by_close(at: Editor, uri: str, number: int) -> None:
    at.close_document(uri)


def by_end_of_input(at: Editor, uri: str, number: int) -> None:
    assert at.process.stdin is not None
    at.process.stdin.close()
    at.process.wait(10)


def by_kill(at: Editor, uri: str, number: int) -> None:
    os.kill(at.process.pid, signal.SIGKILL)
    at.process.wait(10)


def cancelled(home: Home, at: Editor, uri: str, instruction: str, cancel: Cancel) -> dict[str, Any]:
    """The daemon's record of a job that was cancelled after its first edits."""
    number = at.ask("specd/rewrite", {"uri": uri, "instruction": instruction})
    wait_for(lambda: at.edits >= 2 and bool(at.progress("begin")), 120)
    cancel(at, uri, number)
    wait_for(lambda: home.client.status()["jobs"] == {"active": 0, "waiting": 0}, 60)
    edits, text = at.edits, at.buffers[uri].text if uri in at.buffers else ""
    out = home.run("trace", "--json", "-n", 1000).stdout
    record: dict[str, Any] = [one for one in map(json.loads, out.splitlines()) if one["kind"] == "rewrite"][-1]
    assert record["outcome"] == "cancelled"
    assert 0 <= record["cancel_to_idle_ms"] <= record["total_ms"]
    assert (at.edits, at.buffers[uri].text if uri in at.buffers else "") == (edits, text)
    return record


EVERY = [by_progress, by_command, by_request, by_undo, by_close, by_end_of_input, by_kill]


@pytest.mark.parametrize("cancel", EVERY, ids=lambda cancel: cancel.__name__)
def test_no_more_than_the_step_under_way_is_made_after_a_cancel(
    stepping: Home, editor_at: GetEditor, cancel: Cancel
) -> None:
    at = editor_at(stepping, PLUGIN)
    uri = at.open(PADDED)
    seen: list[int] = []

    def count_then_cancel(at: Editor, uri: str, number: int) -> None:
        seen.append(at.edits)
        cancel(at, uri, number)

    record = cancelled(stepping, at, uri, "step by step", count_then_cancel)
    fence, under_way, on_its_way = 1, 1, 1
    assert record["steps"] <= seen[0] + fence + under_way + on_its_way < PAIRS


@pytest.mark.parametrize("cancel", [by_command, by_undo, by_close, by_end_of_input], ids=lambda cancel: cancel.__name__)
def test_the_bundled_model_stops_as_well(bundled: Home, editor_at: GetEditor, cancel: Cancel) -> None:
    """A step each few lines: the whole answer would be dozens of steps."""
    at = editor_at(bundled, PLUGIN)
    blocks = 24
    uri = at.open("".join(GRID.replace("make_grid", f"make_grid{number}") for number in range(blocks)))
    record = cancelled(bundled, at, uri, RENAME, cancel)
    assert 0 < record["steps"] <= 6
    assert record["lines"] < blocks
    assert bundled.edit(bundled.write("after.py", GRID)).returncode == 0


def test_the_bundled_model_renames_in_an_editor(bundled: Home, editor_at: GetEditor) -> None:
    at = editor_at(bundled, VSCODE)
    uri = at.open(GRID)
    at.rewrite(uri, RENAME)
    assert at.wait_shown(1, 120).startswith("specd: 3 hunks")
    assert at.text(uri) == GRID.replace("Grid", "Mesh")
    at.request("specd/revert", {"uri": uri})
    assert at.text(uri) == GRID
