"""What every kernel does at its start, and the options it is launched with.

Programmatic dependent launch (CUDA, compute capability 9.0): a kernel may start while the one before still runs. It
`trigger`s the next kernel's start early, and touches no other kernel's results before `start`. Every kernel here waits
in `start`, so a kernel that has passed it knows that all earlier ones have ended.
"""

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

INTERPRETED = bool(triton.knobs.runtime.interpret)


def constant(value: int) -> Any:
    """A number that kernels may use as a global name."""
    return value if INTERPRETED else tl.constexpr(value)


@triton.jit
def start(PDL: tl.constexpr):
    """Waits until all kernels before have ended and their writes are seen."""
    if PDL:
        gdc_wait()


@triton.jit
def trigger(PDL: tl.constexpr):
    """Lets the next kernel's programs start, as soon as all programs of this one have called this or ended."""
    if PDL:
        gdc_launch_dependents()


def options(warps: int) -> dict[str, Any]:
    """Launch options of every kernel. No multiply-add is formed by the compiler's choice: variants of a kernel round
    alike. WIDE: the interpreter's 16-bit products are wrong, so tests there widen them."""
    pdl = _depends()
    return {"num_warps": warps, "PDL": pdl, "WIDE": INTERPRETED, "launch_pdl": pdl, "enable_fp_fusion": False}


def knows_tma() -> bool:
    """Whether the device copies tiles by descriptor (the tensor memory accelerator). The interpreter does as if."""
    return INTERPRETED or _depends()


def knows_wgmma() -> bool:
    """Whether the device has Hopper's matrix unit, which those after it have not."""
    return _generation() == 9


@cache
def shared_memory() -> int:
    """Bytes of shared memory that one program may have: 227 KiB on Hopper, 99 on most cards of a desktop."""
    if INTERPRETED or not torch.cuda.is_available():
        return 232448
    utils = triton.runtime.driver.active.utils
    return int(utils.get_device_properties(torch.cuda.current_device())["max_shared_mem"])


def _depends() -> bool:
    """Whether the device knows programmatic dependent launch."""
    return _generation() >= 9


@cache
def _generation() -> int:
    """The device's compute capability without its minor part; 0 without a GPU."""
    return 0 if INTERPRETED or not torch.cuda.is_available() else int(torch.cuda.get_device_capability()[0])
