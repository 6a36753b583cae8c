"""What the engine reaches on one GPU with Qwen3-4B's shapes: steps, host time, replayed edits, drafts, prefill, load.

    python bench/h200.py --corpus edits.jsonl --tokenizer DIR [--json FILE] [--only NAMES] [--shape 4b]

Weights are random and made on the device. Rates of replayed edits come from a target whose choices are replaced by the
edit's own tokens (replay_target.py): the whole pass is computed, but how much is accepted is the corpus's merit.
Each section has its own time limit and runs though another failed; the table comes last. On a CPU (--shape small) the
same steps run without graphs, which tests the script and measures nothing.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import h200_jobs as jobs
import h200_steps as steps
import torch
from shapes import SHAPES

ROOT = Path(__file__).parents[1]
SECTIONS: dict[str, tuple[Callable[[steps.Bench], dict[str, Any]], int]] = {  # and seconds it may take
    "machine": (steps.machine, 15),
    "build": (steps.build, 60),
    "capture": (steps.capture, 90),
    "steps": (steps.steps, 20),
    "plain": (steps.plain, 15),
    "equality": (jobs.equality, 30),
    "replay": (jobs.replay, 45),
    "dflash": (jobs.dflash, 30),
    "prefill": (jobs.prefill, 15),
    "transformers": (jobs.transformers, 40),
    "load": (jobs.load_from_disk, 80),
}


def commit() -> str:
    """SPECD_COMMIT, where the tree has no history, else git's."""
    if named := os.environ.get("SPECD_COMMIT"):
        return named
    try:
        command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def run_section(name: str, bench: steps.Bench, results: dict[str, Any]) -> None:
    """Adds the section's figures to the results, or its traceback's end to the output."""
    work, limit = SECTIONS[name]
    limit *= 1 if bench.is_gpu else 10

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"section {name} took over {limit} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    began = time.perf_counter()
    try:
        results |= work(bench)
    except Exception:
        lines = traceback.format_exc().splitlines()
        print(f"-- section {name} failed", *lines[-30:], sep="\n", flush=True)
        results.setdefault("failed", []).append(f"{name}: {lines[-1][:150]}")
    finally:
        signal.alarm(0)
    results.setdefault("section_s", {})[name] = round(time.perf_counter() - began, 1)
    print(f"-- {name}: {results['section_s'][name]} s", flush=True)


def table(results: dict[str, Any]) -> list[str]:
    """One line a figure, step times by width in one line."""
    lines = []
    for key, value in results.items():
        if isinstance(value, dict):
            value = "  ".join(f"{k}: {v:.4g}" if isinstance(v, float) else f"{k}: {v}" for k, v in value.items())
        elif isinstance(value, float):
            value = f"{value:.5g}"
        elif isinstance(value, list):
            value = "; ".join(map(str, value))
        lines.append(f"{key:24} {value}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="edits to replay, JSON Lines (without: no replay)")
    parser.add_argument("--tokenizer", type=Path, help="folder with Qwen3's tokenizer.json")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections to run")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="4b")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--context", type=int, default=2048, help="tokens before the steps (2048)")
    parser.add_argument("--far", type=int, default=16384, help="the longer context (16384)")
    parser.add_argument("--edits", type=int, default=1000, help="most edits to replay")
    parser.add_argument("--budget", type=float, default=165.0, help="seconds after which it stops, whatever it does")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name]
    if unknown := set(names) - set(SECTIONS):
        parser.error(f"unknown sections: {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")

    bench = steps.Bench(options)
    is_gpu = bench.device.type == "cuda"
    results: dict[str, Any] = {
        "commit": commit(),
        "gpu": torch.cuda.get_device_name(bench.device) if is_gpu else platform.machine(),
        "torch": torch.__version__,
        "shape": options.shape,
        "context": options.context,
    }

    def report() -> None:
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n")
        print("\n".join(table(results)), flush=True)

    def give_up() -> None:
        results.setdefault("failed", []).append(f"stopped after {options.budget:.0f} s")
        report()
        os._exit(3)

    watchdog = threading.Timer(options.budget, give_up)
    watchdog.daemon = True
    watchdog.start()
    for name in ["machine", "build", "capture", *names]:
        if name not in results.get("section_s", {}):
            run_section(name, bench, results)
    watchdog.cancel()
    report()
    return 1 if "failed" in results else 0


if __name__ == "__main__":
    sys.exit(main())
