"""Fixtures of the language server's tests: a daemon that replays answers, and editors at it."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "daemon"))  # for `import daemon_home`
sys.path.insert(0, str(Path(__file__).parent))  # for `import scripted_editor`

from daemon_home import Home
from replay_home import ANSWERS, start_replay
from scripted_editor import VSCODE, Editor, Habits


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
