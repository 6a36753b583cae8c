"""Fixtures of the language server's tests: a daemon that replays answers, and editors at it."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "daemon"))  # for `import daemon_home`
sys.path.insert(0, str(Path(__file__).parent))  # for `import scripted_editor`

from daemon_home import Home, wait_for
from scripted_editor import VSCODE, Editor, Habits

MESH = {"swap": [["Grid", "Mesh"]]}
ANSWERS = [
    {"when": "at once", **MESH, "characters": 100000},
    {"when": "stream", **MESH, "step_ms": 15, "characters": 40},
    {"when": "slowly", **MESH, "step_ms": 60, "characters": 40},
    {"when": "nothing"},
    {"when": "refuse", "text": "I cannot do that."},
    {"when": "cut", "text": "```\nclass Mesh:\n    def __init__(self, width, height):\n        self", "end": "length"},
    {"when": "hang", **MESH, "end": "hang"},
    {"when": "fail", **MESH, "end": "fail"},
    {"when": "break", "swap": [["def get(self, x, y):", "def get(self, x, y:"]]},
]


def start_replay(home: Home, answers: list[dict[str, Any]]) -> None:
    """A daemon at `home` that answers so; it starts anew by itself if it dies."""
    file = home.work / "replay.json"
    file.write_text(json.dumps({"answers": answers}))
    home.settings.write_text(f'model = "{file}"\nwatch = false\n')
    home.start("serve")
    wait_for(home.client.is_reachable)


@pytest.fixture(scope="session")
def replay() -> Iterator[Home]:
    """One home for many tests, its daemon replaying ANSWERS."""
    home = Home(Path(tempfile.mkdtemp(prefix="sl-", dir="/tmp")))
    start_replay(home, ANSWERS)
    yield home
    home.close()


@pytest.fixture
def own_replay() -> Iterator[Home]:
    """A home of the test's own, whose daemon it may kill."""
    home = Home(Path(tempfile.mkdtemp(prefix="sl-", dir="/tmp")))
    start_replay(home, ANSWERS)
    yield home
    home.close()


@pytest.fixture
def editor_at() -> Iterator[Callable[..., Editor]]:
    """Starts editors at a home; their servers are gone at the end."""
    editors: list[Editor] = []

    def start(home: Home, habits: Habits = VSCODE, **more: Any) -> Editor:
        editors.append(Editor(home, habits, **more))
        return editors[-1]

    yield start
    for editor in editors:
        if editor.process.poll() is None:
            editor.kill()


@pytest.fixture(scope="session")
def _running(replay: Home) -> Iterator[dict[Habits, Editor]]:
    editors: dict[Habits, Editor] = {}
    yield editors
    for editor in editors.values():
        if editor.process.poll() is None:
            editor.kill()


@pytest.fixture
def editor(replay: Home, _running: dict[Habits, Editor]) -> Callable[..., Editor]:
    """An editor with these habits at the replay daemon; its server is kept for the next test that wants one."""

    def get(habits: Habits = VSCODE) -> Editor:
        if habits not in _running or _running[habits].process.poll() is not None:
            _running[habits] = Editor(replay, habits)
        _running[habits].forget()
        return _running[habits]

    return get
