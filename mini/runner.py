"""Runs training steps: several processes, and the two halves of a step as CUDA graphs.

A step at this model's size is launch-bound when run kernel by kernel (the CPU needs longer than the GPU), so forward +
backward and the optimizer are each captured once and replayed; the gradients of the processes are added up in between.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

Log = Callable[[str], None]


class World:
    """The processes of a torchrun launch, or this one alone."""

    def __init__(self, device: str):
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.device = torch.device(f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" else device)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
            torch.set_float32_matmul_precision("high")
            torch.set_num_threads(2)  # the CPU copies inputs; more threads spin and take it from those who make edits
        if self.size > 1:
            dist.init_process_group(
                "nccl" if device == "cuda" else "gloo", device_id=self.device if device == "cuda" else None
            )

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def add_up(self, x: Tensor) -> None:
        """Replace x by its sum over the processes."""
        if self.size > 1:
            dist.all_reduce(x)

    def same(self, values: Sequence[float]) -> list[float]:
        """The first process's values, in every process."""
        x = torch.tensor(list(values), dtype=torch.float64, device=self.device)
        if self.size > 1:
            dist.broadcast(x, 0)
        agreed: list[float] = x.tolist()
        return agreed

    def close(self) -> None:
        if self.size > 1:
            dist.barrier()
            dist.destroy_process_group()


class Step:
    """One training step on static input buffers: eager for three calls, then (on CUDA) two replayed graphs."""

    def __init__(
        self,
        inputs: Sequence[Tensor],
        forward_backward: Callable[[], None],
        between: Callable[[], None],
        update: Callable[[], None],
        log: Log,
    ):
        self.inputs, self.between, self.log = list(inputs), between, log
        self._halves: list[Callable[[], None]] = [forward_backward, update]
        self._is_cuda = self.inputs[0].is_cuda
        self._calls = 0
        self._running: list[Any] = []

    def __call__(self, *values: Any) -> None:
        for buffer, value in zip(self.inputs, values, strict=True):
            tensor = torch.as_tensor(value)
            if self._is_cuda:
                buffer.copy_(tensor.pin_memory(), non_blocking=True)
            else:
                buffer.copy_(tensor)
        if self._is_cuda and self._calls == 3:
            self._halves = [self._capture(half) for half in self._halves]
        if self._is_cuda and self._calls < 3:  # warm up off the default stream, as capture asks
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._run()
            torch.cuda.current_stream().wait_stream(side)
        else:
            self._run()
        self._calls += 1
        if self._is_cuda:  # never more than six steps ahead of the device
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record()
            self._running.append(event)
            if len(self._running) > 6:
                self._running.pop(0).synchronize()

    def _run(self) -> None:
        self._halves[0]()
        self.between()
        self._halves[1]()

    def _capture(self, half: Callable[[], None]) -> Callable[[], None]:
        try:
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                half()
            replay: Callable[[], None] = graph.replay
            return replay
        except RuntimeError as error:
            self.log(f"no CUDA graph, going on without: {error!r:.300}")
            return half
