"""Compiles cpu.c once a machine and wraps its functions for float32 CPU tensors.

Without a C compiler `load` returns None, and `ops.py` falls back to torch: slower, the same function. It knows nothing
of models; shapes are those of `ops.py`.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from specd.engine.kernels.lanes import as_mask

log = logging.getLogger(__name__)

_SOURCES = [Path(__file__).with_name(name) for name in ("cpu.c", "attention.h", "pool.h")]
_FLAGS = ["-O3", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared", "-pthread"]
_VARIANTS = [["-march=native"], []]  # tried in turn

_POINTER, _LONG, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
_SIGNATURES = {
    "specd_linear": [_INT, _POINTER, _POINTER, _INT, _POINTER, _POINTER, _LONG, _LONG, _LONG],
    "specd_add_rms_norm": [_POINTER, _POINTER, _POINTER, _FLOAT, _POINTER, _LONG, _LONG],
    "specd_silu_mul": [_POINTER, _POINTER, _LONG, _LONG],
    "specd_qk_norm_rope_store": [_POINTER] * 3 + [_FLOAT] + [_POINTER] * 6 + [_LONG] * 4,
    "specd_attention": [_INT] + [_POINTER] * 4 + [_LONG, _LONG, _POINTER, _FLOAT, _POINTER] + [_LONG] * 4,
    "specd_span_attention": [_INT] + [_POINTER] * 4 + [_LONG] * 3 + [_POINTER, _FLOAT, _POINTER] + [_LONG] * 4,
}


def _processor() -> str:
    """What tells one machine's `-march=native` code from another's, where a cache folder is shared between machines."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return "".join(sorted({line for line in file if line.startswith(("flags", "Features", "model name"))}))
    except OSError:
        return platform.processor()


def _cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root) / "specd" / "kernels"


def _build(folder: Path) -> ctypes.CDLL | None:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        log.warning("no C compiler found: the CPU engine runs on torch alone, at about a third of the speed")
        return None
    key = [*(path.read_text(encoding="utf-8") for path in _SOURCES), compiler, platform.machine(), _processor()]
    digest = hashlib.sha256("|".join(key).encode()).hexdigest()[:16]
    for number, variant in enumerate(_VARIANTS):
        target = folder / f"cpu-{digest}-{number}.so"
        if not target.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                made = Path(scratch) / "cpu.so"
                command = [*compiler.split(), *_FLAGS, *variant, str(_SOURCES[0]), "-o", str(made), "-lm"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    log.debug("%s: %s", " ".join(command), done.stderr.strip())
                    continue
                made.replace(target)
        try:
            library = ctypes.CDLL(str(target))
        except OSError as error:
            log.debug("%s", error)
            continue
        for name, types in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = types, None
        return library
    log.warning(
        "%s cannot build the CPU kernels: the engine runs on torch alone, at about a third of the speed", compiler
    )
    return None


@cache
def load() -> "CpuKernels | None":
    """The compiled kernels, built on the first call in about two seconds; None where they cannot be had.

    `SPECD_NATIVE=0` in the environment turns them off.
    """
    if os.environ.get("SPECD_NATIVE") == "0":
        return None
    try:
        library = _build(_cache_folder())
    except OSError as error:  # a read-only home: build anew in every process
        log.debug("%s", error)
        library = _build_aside()
    return CpuKernels(library) if library is not None else None


def _build_aside() -> ctypes.CDLL | None:
    """In a folder that is gone when the library is loaded."""
    try:
        with tempfile.TemporaryDirectory(prefix="specd-kernels-") as folder:
            return _build(Path(folder))
    except OSError as error:
        log.warning("nowhere to build the CPU kernels: the engine runs on torch alone, at about a third of the speed")
        log.debug("%s", error)
        return None


def _pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


class CpuKernels:
    """The operations of `ops.Ops` by cpu.c, on contiguous tensors: float32, but weights may be bfloat16, which
    are read as stored. Row-invariant by construction. Its loops run on as many threads as torch has, even in `alone`.
    """

    name = "native"
    row_invariant = True

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self._threads: int | None = None  # torch's number, inside `alone`

    @property
    def threads(self) -> int:
        """Threads of a loop."""
        return self._threads or torch.get_num_threads()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside: torch's own operations stay on the calling thread. May be nested."""
        threads = torch.get_num_threads()
        if threads == 1:
            yield
            return
        self._threads = threads
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            self._threads = None

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x [M, K], weight [N, K], bias [N] float32 -> [M, N]."""
        x = x.contiguous()
        rows, columns = x.shape[0], weight.shape[0]
        out = torch.empty(rows, columns)
        is_bf16 = weight.dtype == torch.bfloat16
        self.library.specd_linear(
            self.threads, x.data_ptr(), weight.data_ptr(), is_bf16, _pointer(bias), out.data_ptr(), rows,
            columns, weight.shape[1],
        )  # fmt: skip
        return out

    def projection(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """As `linear`."""
        return self.linear(x, weight, bias)

    def gated(self, x: Tensor, gate_up: Tensor) -> Tensor:
        """x [M, H], gate_up [2 I, H] -> [M, I]."""
        return self.silu_mul(self.linear(x, gate_up))

    def add_rms_norm(self, x: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> Tensor:
        """x [M, H] += delta in place, then its RMS norm [M, H]."""
        out = torch.empty_like(x)
        self.library.specd_add_rms_norm(
            x.data_ptr(), _pointer(delta), weight.data_ptr(), eps, out.data_ptr(), x.shape[0], x.shape[1]
        )
        return out

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """gate_up [M, 2 I] -> [M, I]."""
        out = torch.empty(gate_up.shape[0], gate_up.shape[1] // 2)
        self.library.specd_silu_mul(gate_up.data_ptr(), out.data_ptr(), out.shape[0], out.shape[1])
        return out

    def qk_norm_rope_store(
        self,
        qkv: Tensor,
        norms: tuple[Tensor, Tensor] | None,
        eps: float,
        rope: tuple[Tensor, Tensor],
        slots: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
    ) -> Tensor:
        """qkv [M, (Hq + 2 G) D], rope: cos and sin [M, D/2], slots [M] int64, caches [slots, G, D] -> q [M, Hq, D]."""
        rows = qkv.shape[0]
        groups, size = k_cache.shape[-2:]
        heads = qkv.shape[1] // size - 2 * groups
        out = torch.empty(rows, heads, size)
        q_norm, k_norm = norms if norms is not None else (None, None)
        self.library.specd_qk_norm_rope_store(
            qkv.data_ptr(), _pointer(q_norm), _pointer(k_norm), eps, rope[0].data_ptr(), rope[1].data_ptr(),
            slots.data_ptr(), out.data_ptr(), k_cache.data_ptr(), v_cache.data_ptr(), rows, heads, groups, size,
        )  # fmt: skip
        return out

    def attention(
        self,
        q: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        table: Tensor,
        page: int,
        base: int | Tensor,
        mask: Tensor | None,
    ) -> Tensor:
        """q [M, Hq, D], caches [slots, G, D], table [pages] int32, mask [M, M] bool, lanes or None -> [M, Hq, D]."""
        mask = None if mask is None else as_mask(mask).to(torch.uint8).contiguous()
        rows, heads, size = q.shape
        out = torch.empty_like(q)
        self.library.specd_attention(
            self.threads,
            q.data_ptr(), k_cache.data_ptr(), v_cache.data_ptr(), table.data_ptr(), page, int(base), _pointer(mask),
            size**-0.5, out.data_ptr(), rows, heads, k_cache.shape[-2], size,
        )  # fmt: skip
        return out

    def span_attention(
        self,
        q: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        table: Tensor,
        page: int,
        start: int | Tensor,
        stop: int | Tensor,
        spans: Tensor | None,
    ) -> Tensor:
        """q [M, Hq, D], caches [slots, G, D], table [pages] int32, spans [M, 2] int64 or None -> [M, Hq, D]."""
        rows, heads, size = q.shape
        out = torch.empty_like(q)
        self.library.specd_span_attention(
            self.threads,
            q.data_ptr(), k_cache.data_ptr(), v_cache.data_ptr(), table.data_ptr(), page, int(start), int(stop),
            _pointer(spans), size**-0.5, out.data_ptr(), rows, heads, k_cache.shape[-2], size,
        )  # fmt: skip
        return out
