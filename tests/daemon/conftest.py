"""Fixtures of the daemon's tests: homes, models, and a daemon that stays warm."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `import daemon_home`

from daemon_home import GRID, Home


@pytest.fixture(scope="session")
def edit_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that can rename: the bundled one, or the folder in SPECD_TEST_MODEL."""
    from specd.mini import weights_path

    folder = Path(os.environ.get("SPECD_TEST_MODEL") or weights_path())
    if not (folder / "model.safetensors").exists():
        pytest.skip("the bundled model's weights are not in this tree")
    return folder


@pytest.fixture(scope="session")
def slow_model(tiny_folder: Callable[..., Path]) -> Path:
    """A random model with a long window: what it answers is noise, but it goes on answering for many steps."""
    return tiny_folder(seed=3, max_position_embeddings=32768, eos_token_id=271)


@pytest.fixture
def new_home() -> Iterator[Callable[..., Home]]:
    """Makes homes; their daemons are stopped and their folders removed at the end."""
    homes: list[Home] = []

    def make(settings: str = "") -> Home:
        homes.append(Home(Path(tempfile.mkdtemp(prefix="sd-", dir="/tmp")), settings))
        return homes[-1]

    yield make
    for home in homes:
        home.close()


@pytest.fixture
def home(new_home: Callable[..., Home], slow_model: Path) -> Home:
    """A home without a daemon yet; its model is the random one."""
    return new_home(f'model = "{slow_model}"\n')


@pytest.fixture(scope="session")
def warm(edit_model: Path) -> Iterator[Home]:
    """One home for many tests, its daemon warm with a model that can rename."""
    home = Home(Path(tempfile.mkdtemp(prefix="sd-", dir="/tmp")), f'model = "{edit_model}"\n')
    path = home.write("warm_up.py", GRID)
    done = home.edit(path)
    assert done.returncode == 0, done.stderr
    yield home
    home.close()


@pytest.fixture(scope="session")
def noise(slow_model: Path) -> Iterator[Home]:
    """One home for many tests, its daemon running with the random model."""
    home = Home(Path(tempfile.mkdtemp(prefix="sd-", dir="/tmp")), f'model = "{slow_model}"\n')
    home.edit(home.write("warm_up.py", GRID), "--max-tokens", 5)
    assert home.client.is_reachable(), home.log.read_text()
    yield home
    home.close()
