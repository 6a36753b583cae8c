"""Hours of bad luck in minutes: jobs, cancels and kill -9 at random points, and what is left of files and memory.

    python bench/soak.py [--jobs 200] [--minutes 3] [--out bench/results/soak.json]

Part one runs `specd edit` on real files and kills the daemon, the client, both or nobody at a random moment: every file
must be as it was or as it should be. Part two keeps one daemon under load for some minutes (rewrites, prepares,
hang-ups, malformed and slow requests from many threads) and follows its memory, threads and open files.
"""

import argparse
import contextlib
import json
import os
import platform
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from specd.daemon.client import Client
from specd.daemon.errors import SpecdError
from specd.daemon.events import event_name
from specd.daemon.protocol import PrepareRequest, RewriteRequest, Target
from specd.daemon.transport import Address

SOURCE = Path(__file__).parents[1] / "src"
PROGRAM = "".join(f"def step_{n}(grid):\n    return Grid({n}).get(grid)\n\n\n" for n in range(12))
KEPT = 64  # MiB of kept prompts, which the daemon's memory may grow by
BEFORE = f"class Grid:\n    pass\n\n\n{PROGRAM}"
AFTER = BEFORE.replace("Grid", "Mesh")


class Home:
    """A private home, so that nobody else's daemon is killed."""

    def __init__(self, folder: Path, model: str | None) -> None:
        for name in ("run", "config/specd", "state", "cache"):
            (folder / name).mkdir(parents=True, mode=0o700)
        lines = [f'model = "{Path(model).resolve()}"'] if model else []
        (folder / "config/specd/config.toml").write_text(
            "\n".join([*lines, "request_timeout = 1", f"cache_memory = {KEPT}", ""])
        )
        self.folder = folder
        self.environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }
        self.address = Address(socket=folder / "run/specd/daemon.sock")

    def start(self, *args: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "specd.daemon", *args]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def client(self, name: str = "soak") -> Client:
        return Client(self.address, name=name)

    def processes(self) -> list[int]:
        """Processes of this home that are there, zombies among our own children included."""
        found = [child.pid for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("XDG_RUNTIME_DIR") == self.environ["XDG_RUNTIME_DIR"]:
                    found.append(process.pid)
        return found

    def daemon(self) -> psutil.Process | None:
        try:
            return psutil.Process(self.client().status()["pid"])
        except (SpecdError, psutil.Error):
            return None


def killing(home: Home, jobs: int, chance: random.Random) -> dict[str, Any]:
    """Part one. Counts of what was killed, how the commands ended, and what the files hold."""
    killed: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    held: Counter[str] = Counter()
    longest = 0.0
    for number in range(jobs):
        path = home.folder / f"file{number % 7}.py"
        path.write_text(BEFORE)
        began = time.monotonic()
        editing = home.start("edit", path.name, "-i", "rename Grid to Mesh")
        victim = chance.choice(["daemon", "client", "both", "nobody"])
        time.sleep(chance.uniform(0, 1.5))
        daemon = home.daemon() if victim in ("daemon", "both") else None
        if daemon is not None:
            daemon.send_signal(signal.SIGKILL)
        if victim in ("client", "both"):
            editing.kill()
        killed[victim] += 1
        try:
            editing.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            held["hang"] += 1
            editing.kill()
            editing.communicate()
        longest = max(longest, time.monotonic() - began)
        ends[str(editing.returncode)] += 1
        text = path.read_text()
        held["before" if text == BEFORE else "after" if text == AFTER else "LOST"] += 1
    last = home.folder / "last.py"
    last.write_text(BEFORE)
    code = home.start("edit", last.name, "-i", "rename Grid to Mesh").wait()
    left = [path.name for path in home.folder.iterdir() if ".specd-" in path.name]
    return {
        "jobs": jobs,
        "killed": dict(killed),
        "exit_status": dict(ends),
        "files": dict(held),
        "temporary_files_left": len(left),
        "longest_s": round(longest, 1),
        "works_afterwards": code == 0 and last.read_text() == AFTER,
    }


def load(home: Home, minutes: float, chance: random.Random) -> dict[str, Any]:
    """Part two. Outcomes of the jobs, and the daemon's memory, threads and files at the beginning and the end."""
    outcomes: Counter[str] = Counter()
    home.start("edit", "last.py", "-i", "rename Mesh to Grid").wait()
    process = home.daemon()
    assert process is not None, "the daemon runs"
    idle_before = process.memory_info().rss / 2**20
    processes_before = len(home.processes())
    end = time.monotonic() + 60 * minutes
    seeds = [chance.randrange(2**31) for _ in range(8)]

    def worker(seed: int) -> None:
        own = random.Random(seed)
        client = home.client(f"soak-{seed}")
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                outcomes[once(home, client, own)] += 1

    samples = []
    threads = [threading.Thread(target=worker, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        samples.append((process.memory_info().rss / 2**20, process.num_threads(), process.num_fds()))
    idle = wait_idle(home)
    quarter = max(1, len(samples) // 4)
    return {
        "minutes": minutes,
        "threads": len(threads),
        "outcomes": dict(outcomes),
        "idle_again": idle,
        "same_process": home.daemon() == process,
        "memory_mib": {
            "first_quarter_max": round(max(sample[0] for sample in samples[:quarter])),
            "last_quarter_max": round(max(sample[0] for sample in samples[-quarter:])),
            "idle_before": round(idle_before),
            "idle_after": round(process.memory_info().rss / 2**20),
            "kept_prompts_limit": KEPT,
        },
        "processes": [processes_before, len(home.processes())],
        "daemon_threads": [samples[0][1], process.num_threads()],
        "daemon_files": [samples[0][2], process.num_fds()],
    }


def once(home: Home, client: Client, chance: random.Random) -> str:
    """One of the things that clients do; what came of it."""
    what = chance.choice(["rewrite", "rewrite", "hang-up", "prepare", "malformed", "slow", "huge"])
    text = BEFORE + f"# {chance.randrange(50)}\n"
    target = Target(text, "a.py", lines=(0, chance.randrange(4, 40)))
    try:
        if what == "rewrite":
            return event_name(list(client.rewrite(RewriteRequest(target, "rename Grid to Mesh")))[-1])
        if what == "hang-up":
            stream = client.rewrite(RewriteRequest(target, "rename Grid to Mesh"))
            threading.Timer(chance.uniform(0, 0.5), stream.cancel).start()
            return "hung up after events" if list(stream) else "hung up before any event"
        if what == "prepare":
            return "prepared" if not client.prepare(PrepareRequest(target)).replaced else "replaced"
    except SpecdError as error:
        return f"refused: {error.code}"
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(10)
        raw.connect(str(home.address.socket))
        if what == "malformed":
            raw.sendall(chance.randbytes(chance.randrange(1, 400)) + b"\r\n\r\n")
        elif what == "slow":
            raw.sendall(b"POST /v1/rewrite HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        else:
            raw.sendall(b"POST /v1/rewrite HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        answer = raw.recv(100)
    return f"{what}: {answer.split(b' ')[1].decode() if answer.startswith(b'HTTP') else 'hung up on'}"


def wait_idle(home: Home) -> bool:
    for _ in range(200):
        if home.client().status()["jobs"] == {"active": 0, "waiting": 0}:
            return True
        time.sleep(0.1)
    return False


def wait_gone(home: Home) -> int:
    """Processes that are still there some seconds after the end."""
    for _ in range(50):
        if not home.processes():
            return 0
        time.sleep(0.2)
    return len(home.processes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", help="a model's folder (default: the bundled model)")
    parser.add_argument("--out", type=Path, help="write the figures there as JSON")
    args = parser.parse_args()
    chance = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="specd-soak-", dir="/tmp") as name:
        home = Home(Path(name), args.model)
        try:
            killed = killing(home, args.jobs, chance)
            loaded = load(home, args.minutes, chance)
        finally:
            home.start("stop", "--now").wait()
        left = wait_gone(home)
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    figures = {
        "python": platform.python_version(),
        "machine": machine,
        "killing": killed,
        "load": loaded,
        "processes_left": left,
    }
    print(json.dumps(figures, indent=2))
    if args.out:
        args.out.write_text(json.dumps(figures, indent=2) + "\n")
    files = killed["files"]
    sys.exit(bool(files.get("LOST") or files.get("hang") or not loaded["idle_again"] or left))


if __name__ == "__main__":
    main()
