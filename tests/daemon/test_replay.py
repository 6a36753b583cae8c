"""The replay: clients see the real path with answers that a test wrote."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_home import GRID, Home, wait_for

from specd.daemon.events import OUTCOMES, Declined, Done, Failed, HunkReady, Truncated
from specd.daemon.protocol import RewriteRequest, Target

ANSWERS = [
    {"when": "rename Grid", "text": f"```python\n{GRID.replace('Grid', 'Mesh', 1)}```\n"},
    {"when": "rename", "swap": [["Grid", "Mesh"]], "characters": 40},
    {"when": "slowly", "swap": [["Grid", "Mesh"]], "step_ms": 20, "characters": 20},
    {"when": "refuse", "text": "I cannot do that."},
    {"when": "cut", "text": "```\nclass Mesh:\n", "end": "length"},
    {"when": "hang", "swap": [["Grid", "Mesh"]], "end": "hang"},
    {"when": "chat", "text": f"Sure! Here\x1b[2J it is:\n```python\n{GRID.replace('Grid', 'Mesh')}```\nDo"},
    {"when": "leave", "text": f"There is nothing to do.\n```python\n{GRID}```\n"},
    {"when": "talk", "text": f"```python\n{GRID.replace('Grid', 'Mesh')}```\n" + "I renamed it.\n" * 500},
    {"when": "half", "text": f"```\n{GRID.replace('Grid', 'Mesh')[:300]}", "end": "length"},
    {"when": "break", "swap": [["return grid", "return (grid"]]},
    {"when": "fail", "swap": [["Grid", "Mesh"]], "end": "fail"},
]


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(Path(tmp_path_factory.mktemp("r")))
    file = home.work / "replay.json"
    file.write_text(json.dumps({"answers": ANSWERS}))
    daemon = home.start("serve", "--replay", file)
    wait_for(home.client.is_reachable)
    yield home
    home.close()
    daemon.wait(20)


@pytest.mark.parametrize(
    ("instruction", "outcome", "hunks"),
    [("rename it", Done, 3), ("refuse", Declined, 0), ("cut", Truncated, 0), ("fail", Failed, 3), ("else", Failed, 0)],
)
def test_a_replay_ends_as_its_file_says(replay: Home, instruction: str, outcome: type, hunks: int) -> None:
    events = list(replay.client.rewrite(RewriteRequest(Target(GRID, "grid.py"), instruction)))
    assert isinstance(events[-1], outcome)
    assert sum(isinstance(event, OUTCOMES) for event in events) == 1
    assert sum(isinstance(event, HunkReady) for event in events) == hunks


def test_an_edit_that_breaks_off_says_that_nothing_was_written_and_what_to_do(replay: Home) -> None:
    path = replay.write("half.py", GRID)
    done = replay.run("edit", path.name, "-i", "half")
    assert done.returncode == 4
    assert done.stderr == (
        "specd: half.py: the answer broke off; nothing was written."
        " Raise --max-tokens, or rewrite less at once with --range A:B or --at LINE.\n"
    )
    told = json.loads(replay.run("edit", path.name, "-i", "half", "--json").stdout)
    assert (told["outcome"], told["written"]) == ("truncated", False)
    assert len(told["hunks"]) == told["summary"]["hunks"] == 2
    assert replay.run("edit", path.name, "-i", "half", "--diff").stdout == ""
    assert path.read_text() == GRID


def test_a_rename_that_was_left_half_done_is_told(replay: Home) -> None:
    path = replay.write("left.py", "\n\n" + GRID)
    lines = [number for number, line in enumerate(path.read_text().split("\n"), 1) if "Grid" in line][1:]
    done = replay.run("edit", path.name, "-i", "rename Grid to Mesh", "--range", f"3:{len(GRID.splitlines()) + 2}")
    assert done.returncode == 0
    assert f"left.py: Grid is still there: lines {', '.join(map(str, lines))}\n" in done.stderr


def test_what_the_model_said_beside_the_code_is_told(replay: Home) -> None:
    *_, done = replay.client.rewrite(RewriteRequest(Target(GRID, "grid.py"), "chat"))
    assert isinstance(done, Done)
    assert done.said == "Sure! Here\x1b[2J it is:"
    path = replay.write("chat.py", GRID)
    assert replay.run("edit", path.name, "-i", "chat").stderr.splitlines()[1:] == [
        "chat.py: the model added: Sure! Here?[2J it is:"
    ]
    assert "the model added: There is nothing to do." in replay.run("edit", path.name, "-i", "leave").stderr


def test_a_change_that_the_guard_refuses_is_told_with_the_way_around_it(replay: Home) -> None:
    path = replay.write("broken.py", GRID)
    done = replay.run("edit", path.name, "-i", "break", "--guard", "refuse")
    assert done.returncode == 4
    assert done.stderr == (
        "specd: broken.py: the change would break it (line 13 does not parse; gone: trace); nothing was written."
        " `--guard report` writes it all the same.\n"
    )
    assert path.read_text() == GRID
    assert replay.run("edit", path.name, "-i", "break", "--guard", "report").returncode == 0
    assert path.read_text() == GRID.replace("return grid", "return (grid")


def test_hunks_come_at_the_pace_of_the_file(replay: Home) -> None:
    began = time.monotonic()
    times = [
        time.monotonic() - began
        for event in replay.client.rewrite(RewriteRequest(Target(GRID, "grid.py"), "slowly"))
        if isinstance(event, HunkReady)
    ]
    steps = len(GRID) / 20
    assert times[-1] - times[0] > steps / 2 * 0.02  # a sleep is never shorter


def test_a_model_that_goes_on_talking_after_its_code_is_not_listened_to(replay: Home) -> None:
    events = list(replay.client.rewrite(RewriteRequest(Target(GRID, "grid.py"), "talk")))
    assert isinstance(events[-1], Done)
    assert sum(isinstance(event, HunkReady) for event in events) == 3
    assert events[-1].summary.steps < len(GRID) / 16 + 4  # 16 characters a step


def test_a_replay_that_hangs_is_cancelled_by_hanging_up(replay: Home) -> None:
    stream = replay.client.rewrite(RewriteRequest(Target(GRID, "grid.py"), "hang"))
    next(stream)
    stream.close()
    wait_for(lambda: replay.client.status()["jobs"]["active"] == 0)


@pytest.mark.parametrize(("name", "content", "words"), [("a.json", "{", "wrong"), ("a.txt", "{}", "must end in .json")])
def test_a_wrong_file_is_said_at_once(new_home: Callable[..., Home], name: str, content: str, words: str) -> None:
    home = new_home()
    done = home.run("serve", "--replay", home.write(name, content))
    assert done.returncode == 2
    assert words in done.stderr
