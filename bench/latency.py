"""What `specd edit` costs on a warm daemon outside of the daemon's work: process, imports, connection, diff, write.

    python bench/latency.py [--runs 30] [--lines 100] [--out bench/results/latency.json]

Starts a daemon of its own (its own socket, settings and log), renames a name back and forth in a file through the shell
command, and takes from each command's wall time what the daemon says that it spent on the job. Also times a bare
`python -c pass`, since nothing can be faster than that; on a busy machine the client's CPU time is the steadier figure.
The promise is 150 ms at the most.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROMISE_MS = 150
SOURCE = Path(__file__).parents[1] / "src"


def program(lines: int, name: str) -> str:
    """A Python file of about `lines` lines that uses `name` in every fourth."""
    body = [f"class {name}:", "    def __init__(self, size):", "        self.size = size", ""]
    for number in range((lines - len(body)) // 4):
        body += [f"def step_{number}(grid):", f"    other = {name}({number})", "    return grid.size + other.size", ""]
    return "\n".join(body) + "\n"


class Bench:
    """A private home for the daemon, and the commands run in it."""

    def __init__(self, folder: Path, model: str | None) -> None:
        for name in ("run", "config/specd", "state"):
            (folder / name).mkdir(parents=True, mode=0o700)
        if model:
            (folder / "config/specd/config.toml").write_text(f'model = "{Path(model).resolve()}"\n')
        self.folder = folder
        self.environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
        }

    def timed(self, *command: str) -> tuple[float, float, str]:
        """Wall time and CPU time of a command in ms, and what it printed."""
        began, used = time.perf_counter(), cpu()
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=self.environ)
        wall = (time.perf_counter() - began) * 1000
        if done.returncode:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr or done.stdout}")
        return wall, (cpu() - used) * 1000, done.stdout

    def edit(self, path: Path, instruction: str) -> tuple[float, float, float]:
        """(wall, the daemon's part of it, the client's CPU time) in ms of one `specd edit`."""
        command = (sys.executable, "-m", "specd.daemon", "edit", path.name, "-i", instruction, "--json")
        wall, used, out = self.timed(*command)
        return wall, json.loads(out)["summary"]["total_seconds"] * 1000, used


def measure(runs: int, lines: int, model: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="specd-bench-", dir="/tmp") as name:
        bench = Bench(Path(name), model)
        path = bench.folder / "program.py"
        path.write_text(program(lines, "Grid"))
        names = ["Grid", "Mesh"]
        try:
            bench.edit(path, "rename Grid to Mesh")
            bench.edit(path, "rename Mesh to Grid")
            walls, daemons, cpus, bare = [], [], [], []
            for number in range(runs):
                old, new = names[number % 2], names[(number + 1) % 2]
                wall, daemon, used = bench.edit(path, f"rename {old} to {new}")
                walls.append(wall)
                daemons.append(daemon)
                cpus.append(used)
                bare.append(bench.timed(sys.executable, "-c", "pass")[0])
        finally:
            subprocess.run([sys.executable, "-m", "specd.daemon", "stop"], env=bench.environ, capture_output=True)
    overhead = [wall - daemon for wall, daemon in zip(walls, daemons, strict=True)]
    return {
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_average": [round(value, 1) for value in os.getloadavg()],
        "runs": runs,
        "lines": lines,
        "wall_ms": spread(walls),
        "daemon_ms": spread(daemons),
        "outside_daemon_ms": spread(overhead),
        "client_cpu_ms": spread(cpus),
        "bare_python_ms": spread(bare),
    }


def cpu() -> float:
    """CPU seconds of all commands that have ended. A daemon is none of them: it is nobody's child."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "min": round(ordered[0], 1),
        "median": round(statistics.median(ordered), 1),
        "p90": round(ordered[int(0.9 * (len(ordered) - 1))], 1),
        "max": round(ordered[-1], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--model", help="a model's folder (default: the bundled model)")
    parser.add_argument("--out", type=Path, help="write the figures there as JSON")
    args = parser.parse_args()
    figures = measure(args.runs, args.lines, args.model)
    print(json.dumps(figures, indent=2))
    if args.out:
        args.out.write_text(json.dumps(figures, indent=2) + "\n")
    median = figures["outside_daemon_ms"]["median"]
    print(f"outside of the daemon: {median} ms (median), promised at most {PROMISE_MS} ms", file=sys.stderr)


if __name__ == "__main__":
    main()
