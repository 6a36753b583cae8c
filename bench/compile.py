"""Compiles the GPU kernels where there is no GPU: does each build, in how many registers, and does any spill?

    python bench/compile.py [--capability 90] [--only attention,products] [--rows 1,128] [--json FILE]

What bench/kernels.py checks on a device is compiled for one that is not there, by Triton and the ptxas in its package;
nothing is launched. Ends with status 1 if a kernel does not build, or needs more shared memory than such a device has.
One that spills registers is marked: its time is not what its bytes say.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "0"

import torch
import triton
from kernel_builds import Job, build_one, jobs_of_checks
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from specd.engine.kernels import launch

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
SHARED = {80: 166912, 86: 101376, 89: 101376, 120: 101376}  # bytes that a program may have, by capability
HOPPER = 232448  # ... elsewhere
USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


class Absent:
    """What Triton asks of a driver before it compiles, of a device that is not there."""

    def __init__(self, capability: int) -> None:
        self._target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("meta")


def used(folder: Path) -> list[dict[str, Any]]:
    """Resources of every kernel in Triton's cache `folder`."""
    found = []
    for cubin in sorted(folder.rglob("*.cubin")):
        said = subprocess.run(
            [TOOLS / "cuobjdump", "--dump-resource-usage", cubin], capture_output=True, text=True, check=True
        ).stdout
        sizes = USAGE.search(said)
        made = json.loads(cubin.with_suffix(".json").read_text())
        if sizes is None:
            raise SystemExit(f"cuobjdump says nothing of {cubin.stem}")
        registers, stack, _, local = map(int, sizes.groups())
        found.append(
            {"kernel": cubin.stem, "warps": made["num_warps"], "stages": made["num_stages"], "registers": registers,
             "spilled_bytes": stack + local, "shared_bytes": made["shared"]}
        )  # fmt: skip
    return found


def wanted(job: Job, kinds: str, rows: str) -> bool:
    count = {"products": 4, "attention": 5}.get(job[0])
    return (not kinds or job[0] in kinds.split(",")) and (
        not rows or count is None or str(job[count]) in rows.split(",")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--capability", type=int, default=90, help="of the device: 80, 90, ... (90)")
    parser.add_argument("--only", default="", help="kinds of jobs: attention, products, small, draws, accept (all)")
    parser.add_argument("--rows", default="", help="numbers of rows, for attention and products (all)")
    parser.add_argument("--json", metavar="FILE", help="write what each kernel uses")
    options = parser.parse_args()
    driver.set_active(Absent(options.capability))
    launch._generation = lambda: options.capability // 10  # type: ignore[assignment]
    limit = SHARED.get(options.capability, HOPPER)
    launch.shared_memory = lambda: limit  # type: ignore[assignment]
    jobs = [job for job in jobs_of_checks() if wanted(job, options.only, options.rows)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        failed = {job: error for job, error in map(build_one, jobs) if error}
        kernels = used(Path(folder))
    for job, error in failed.items():
        print(f"does not build: {job}: {error}", file=sys.stderr)
    large = [kernel for kernel in kernels if kernel["shared_bytes"] > limit]
    for kernel in large:
        print(f"has no room on the device: {kernel}", file=sys.stderr)
    print(f"{'':16}{'warps':>6}{'stages':>8}{'registers':>11}{'shared':>9}")
    for kernel in sorted(kernels, key=lambda kernel: (kernel["kernel"], kernel["registers"])):
        spilled = f"  spills {kernel['spilled_bytes']} bytes" if kernel["spilled_bytes"] else ""
        print(
            f"{kernel['kernel']:16}{kernel['warps']:>6}{kernel['stages']:>8}{kernel['registers']:>11}"
            f"{kernel['shared_bytes']:>9}{spilled}"
        )
    print(f"{len(kernels)} kernels of {len(jobs)} jobs for sm_{options.capability}; {len(failed)} jobs failed")
    if options.json:
        Path(options.json).write_text(
            json.dumps({"capability": options.capability, "kernels": kernels}, indent=1) + "\n"
        )
    return 1 if failed or large or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
