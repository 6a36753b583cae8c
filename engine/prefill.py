"""A prompt into the cache, chunk by chunk: what is read between two of them can be kept, and a cancel is seen there."""

from collections.abc import Callable, Generator
from collections.abc import Sequence as Tokens
from dataclasses import dataclass

import torch

from specd.engine.draft import Committed
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3
from specd.engine.passes import nothing


@dataclass(frozen=True)
class PrefillProgress:
    """done of total prompt tokens are in the cache."""

    done: int
    total: int


def prefill(
    model: Qwen3,
    ids: Tokens[int],
    cache: KVCache,
    taps: Tokens[int] = (),
    meanwhile: Callable[[], None] = nothing,
) -> Generator[tuple[PrefillProgress, torch.Tensor | None], None, None]:
    """Brings the cache to hold all of `ids` but the last, chunk by chunk, on a grid of absolute positions.

    The cache must hold a prefix of ids. Yields after each chunk, with its taps [n, T, H] where layers are named;
    between two next() the cache is valid at some length, so closing early loses nothing. meanwhile: called while the
    device works on a chunk.
    """
    total = len(ids) - 1
    while cache.length < total:
        start, chunk, steps = cache.length, model.engine.prefill_chunk, model.steps
        if steps is not None:
            chunk = min(chunk, steps.longest_read(start))
        end = min(start - start % chunk + chunk, total)
        if steps is not None and steps.reads(end - start, taps):
            tapped = steps.read(cache, ids[start:end], taps, meanwhile)
        else:
            tapped = _read(model, ids, start, end, cache, taps, meanwhile)
        yield PrefillProgress(end, total), tapped


def _read(
    model: Qwen3,
    ids: Tokens[int],
    start: int,
    end: int,
    cache: KVCache,
    taps: Tokens[int],
    meanwhile: Callable[[], None],
) -> torch.Tensor | None:
    tokens = torch.tensor(ids[start:end], device=model.device)
    try:
        with model.ops.alone():
            hidden = model.forward(tokens, torch.arange(start, end, device=model.device), cache, taps=taps)
        meanwhile()
        if model.device.type == "cuda":  # nothing is queued beyond a chunk: a cancel is seen after it
            torch.cuda.current_stream(model.device).synchronize()
    except BaseException:
        cache.truncate(start)
        raise
    return hidden.taps


def prefilled(progress: PrefillProgress, taps: torch.Tensor | None) -> Committed:
    """What proposers observe of one chunk of `prefill`: no token, and the taps of the positions it brought in."""
    return Committed([], taps=taps, taps_start=progress.done - (0 if taps is None else len(taps)))
