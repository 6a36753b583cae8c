"""The GPU kernels build for a GPU that is not here: no test on a CPU would see that they do not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = {
    "accept_kernel", "add_rms_norm_kernel", "border_kernel", "draw_kernel", "linear_gluon_kernel", "linear_kernel",
    "linear_pair_kernel", "linear_tma_kernel", "merge_kernel", "partial_kernel", "pick_kernel",
    "qk_norm_rope_store_kernel", "scan_kernel", "tail_kernel",
}  # fmt: skip


def ptxas() -> Path:
    triton = pytest.importorskip("triton", reason="triton is not installed")
    path = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    if not path.exists():
        pytest.skip("this triton has no ptxas to compile for NVIDIA GPUs")
    return path


def compiled(*args: object, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, ROOT / "bench" / "compile.py", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environ})


def test_every_kernel_builds_for_hopper(tmp_path: Path) -> None:
    ptxas()
    done = compiled("--rows", "1,16,64", "--json", tmp_path / "used.json")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "used.json").read_text())
    assert told["capability"] == 90
    assert {kernel["kernel"] for kernel in told["kernels"]} >= KERNELS
    assert all(0 < kernel["registers"] <= 255 for kernel in told["kernels"])


@pytest.mark.parametrize("capability", [89, 120])
def test_products_and_attention_fit_the_shared_memory_of_a_smaller_gpu(capability: int) -> None:
    """99 KiB, of which tiles that were measured on an H200 take more: a kernel would build, and fail at its launch."""
    ptxas()
    done = compiled("--capability", capability, "--only", "products,attention", "--rows", "1,128")
    assert done.returncode == 0, done.stderr


def test_what_does_not_build_is_named(tmp_path: Path) -> None:
    failing = tmp_path / "ptxas"
    failing.write_text(f'#!/bin/sh\ncase "$*" in *--version*) exec {ptxas()} --version;; esac\nexit 1\n')
    failing.chmod(0o755)
    done = compiled("--only", "accept", TRITON_PTXAS_PATH=str(failing))
    assert done.returncode == 1
    assert "does not build: ('accept', 32, True)" in done.stderr
