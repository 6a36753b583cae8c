"""Steps of fixed shape as CUDA graphs: captured once a width at load, replayed ever after.

A replay is one call where the operations one by one are some hundred launches. All graphs share one memory pool, the
widest first, since no two of them ever run at once. What they point to, and they themselves, belong to the StaticStep:
`release` drops them together.
"""

import gc
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import torch

from specd.engine.errors import OutOfMemory
from specd.engine.passes import Passes, Shape
from specd.engine.static_step import READ_WIDTHS, TREE_WIDTHS, WIDTHS, Kind, StaticStep
from specd.engine.weights import Progress

_KINDS: dict[Kind, tuple[int, ...]] = {"read": READ_WIDTHS, "tree": TREE_WIDTHS, "chain": WIDTHS}
STAGES = tuple(sorted([(width, kind) for kind, widths in _KINDS.items() for width in widths], reverse=True))


def capture_steps(
    steps: StaticStep, progress: Progress | None = None, stages: Sequence[tuple[int, Kind]] = STAGES
) -> None:
    """Captures every width of `steps`, chains and trees, on the model's device, and has the model use them.

    stages: widths and kinds, the widest first. progress: called with a fraction 0..1 and a few words. Raises
    OutOfMemory; nothing is left of them then."""
    device = steps.model.device

    def tell(number: int) -> None:
        if progress:
            progress(number / len(stages), f"capturing steps of {stages[number][0]} rows")

    try:
        Recorder(device).record_all(steps, stages, tell)
    except torch.OutOfMemoryError as error:
        steps.replays.clear()
        raise OutOfMemory(
            f"no room on {device} to capture the steps; ask for fewer tokens (kv_tokens) or use a smaller model"
        ) from error
    steps.model.steps = steps


def release(steps: StaticStep) -> None:
    """The model runs its operations one by one again. Frees the graphs; idempotent."""
    if steps.model.steps is steps:
        steps.model.steps = None
    steps.replays.clear()


class Recorder:
    """Captures work on one device, all of it in one memory pool and on one stream."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()
        gc.collect()  # what is collected while a graph is captured would become a part of it
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()

    def record_all(
        self,
        passes: Passes[*Shape],
        shapes: Sequence[tuple[*Shape]],
        begins: Callable[[int], None] = lambda number: None,
    ) -> None:
        """Captures the passes of all these shapes, and has them replayed. begins: called with each one's number."""
        for number, shape in enumerate(shapes):
            begins(number)
            passes.blank(*shape)
            passes.replays[shape] = self.record(partial(passes.run, *shape))
        torch.cuda.empty_cache()  # what first runs left on the recorder's stream

    @torch.inference_mode()
    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Runs `work` twice: once for what only a first run does (compiling, loading code), once into a graph. -> what
        replays it on the current stream."""
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            work()
            self._stream.synchronize()
            # Other threads may run another model meanwhile: only this one must keep to what a capture allows.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                work()
            except BaseException:
                _abandon(graph)
                raise
            graph.capture_end()
        current.wait_stream(self._stream)
        replay: Callable[[], None] = graph.replay
        return replay


def _abandon(graph: torch.cuda.CUDAGraph) -> None:
    """Ends a capture that failed; that it failed is told by the error that is under way."""
    with suppress(RuntimeError):
        graph.capture_end()
