"""A pretended user's home for the daemon's tests, and the text that they edit."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import specd.daemon
from specd.daemon.client import Client
from specd.daemon.errors import SpecdError
from specd.daemon.transport import Address

SOURCE = str(Path(specd.daemon.__file__).parents[2])  # where these tests import specd from
RENAME = "rename Grid to Mesh"
GRID = """\
class Grid:
    def __init__(self, width, height):
        self.width = width
        self.height = height
        self.cells = [[0] * width for _ in range(height)]

    def get(self, x, y):
        return self.cells[y][x]


def make_grid(n):
    grid = Grid(n, n)
    return grid


def trace(grid: Grid) -> int:
    return sum(grid.get(i, i) for i in range(grid.width))
"""
MESH = GRID.replace("Grid", "Mesh")


class Home:
    """Settings, socket, log and traces of one pretended user, in a short path (a socket's may have 107 bytes)."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.folder = folder
        self.work = folder / "work"
        self.settings = folder / "config" / "specd" / "config.toml"
        for path in (folder / "run", self.settings.parent, folder / "state", self.work):
            path.mkdir(parents=True, mode=0o700)
        self.settings.write_text(settings)
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SPECD_")},
            "PYTHONPATH": SOURCE,
            "OMP_NUM_THREADS": "1",
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
        }
        self.socket = folder / "run" / "specd" / "daemon.sock"
        self.log = folder / "state" / "specd" / "daemon.log"

    @property
    def client(self) -> Client:
        return Client(Address(socket=self.socket), name="test")

    def command(self, *args: object) -> list[str]:
        return [sys.executable, "-m", "specd.daemon", *map(str, args)]

    def run(self, *args: object, timeout: float = 120, **more: Any) -> "subprocess.CompletedProcess[str]":
        """`specd ARGS` to its end, in the folder `work`."""
        more = {"cwd": self.work, "env": self.environ, **more}
        return subprocess.run(self.command(*args), capture_output=True, text=True, timeout=timeout, **more)

    def start(self, *args: object, **more: Any) -> "subprocess.Popen[str]":
        """`specd ARGS` as a running process."""
        more = {"cwd": self.work, "env": self.environ, **more}
        return subprocess.Popen(self.command(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.work / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def edit(self, path: Path, *args: object) -> "subprocess.CompletedProcess[str]":
        return self.run("edit", path.name, "-i", RENAME, *args)

    def is_busy(self) -> bool:
        """A daemon answers and works on a job; one that is just dying or not yet up does not."""
        try:
            return self.client.is_reachable() and bool(self.client.status()["jobs"]["active"])
        except SpecdError:
            return False

    def daemon_pid(self) -> int:
        return int(self.client.status()["pid"])

    def close(self) -> None:
        self.run("stop", "--now")
        shutil.rmtree(self.folder, ignore_errors=True)


def wait_for(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
