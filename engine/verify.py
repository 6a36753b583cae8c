"""One verify step: a draft and the newest token through the target at once, and which of the draft is accepted.

`accept` is the exact rule: the target's own token (greedy, or drawn with counter-based noise) decides at every place,
and a drafted token is accepted exactly when it equals it. What is emitted is therefore what plain decoding emits.
The other rule, for sampled drafts, is in rejection.py.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from specd.engine.choice import Accepted, accept, as_tensor
from specd.engine.draft import Draft
from specd.engine.errors import NonFiniteLogits
from specd.engine.kernels.lanes import as_lanes
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3
from specd.engine.ops import StaticOps
from specd.engine.passes import nothing
from specd.engine.rejection import accept_by_rejection, rule_for
from specd.engine.sampling import NOT_FINITE, AcceptRule, SamplingParams, sample
from specd.engine.static_step import Flight


def tree_layout(parents: Tensor) -> tuple[Tensor, Tensor]:
    """depth [k+1] and mask [k+1, k+1] of the root (row 0) and k drafted rows: a row sees its ancestors and itself."""
    rows = parents.shape[0] + 1
    depth = [0] * rows
    mask = torch.eye(rows, dtype=torch.bool)
    for index, parent in enumerate(parents.tolist()):
        if not -1 <= parent < index:
            raise ValueError(f"draft {index} has parent {parent}: parents stand before their children")
        depth[index + 1] = depth[parent + 1] + 1
        mask[index + 1] |= mask[parent + 1]
    return torch.tensor(depth), mask


class Step(NamedTuple):
    """What a verify step found. taps: [accepted + 1, T, H], rows of the positions that stay in the cache.
    logits: [accepted + 1, V], the rows that chose `accepted.tokens`, None where they stayed on the device. rule: the
    one that was followed."""

    accepted: Accepted
    taps: Tensor | None
    logits: Tensor | None
    rule: AcceptRule = "exact"


def verify(
    model: Qwen3,
    cache: KVCache,
    newest: int,
    draft: Draft,
    sampling: SamplingParams,
    taps: Sequence[int] = (),
    accept_rule: AcceptRule = "exact",
    with_logits: bool = True,
    meanwhile: Callable[[], None] = nothing,
) -> Step:
    """Verifies `draft` after the token `newest`, which the cache does not hold yet. Afterwards the cache holds `newest`
    and the accepted tokens; if anything raises, it is as before. Without need of logits it runs as a step of fixed
    shape where the model has those. meanwhile: called once all work is launched, before its result is waited for."""
    flight = launch(model, cache, newest, draft, sampling, taps, accept_rule, with_logits)
    if flight is not None:
        return land(flight, taps, meanwhile)
    start, rule = cache.length, rule_for(draft, sampling, accept_rule)
    try:
        drafted = draft.tokens.to(model.device)  # a draft made on the device goes straight into the step
        tokens = torch.cat((torch.tensor([newest], dtype=drafted.dtype, device=model.device), drafted)).long()
        depth, mask = torch.arange(len(tokens)), None
        if draft.parents is not None:
            depth, mask = tree_layout(draft.parents)
            mask = mask if model.device.type == "cpu" else as_lanes(mask).to(model.device)
        positions = (start + depth).to(model.device)
        hidden = model.forward(tokens, positions, cache, mask, taps)
        logits = model.logits(hidden.last)
        meanwhile()
        if rule == "rejection":
            emitted = accept_by_rejection(draft, logits, positions + 1, sampling)
            accepted = Accepted(list(range(len(emitted) - 1)), emitted)
        else:
            targets = _targets(model, logits, positions + 1, sampling)
            parents = None if draft.parents is None else draft.parents.tolist()
            accepted = accept(draft.tokens.tolist(), parents, targets.tolist())
        rows = [0, *(index + 1 for index in accepted.path)]
        cache.keep(start, rows)
    except BaseException:
        cache.truncate(start)
        raise
    return Step(accepted, None if hidden.taps is None else hidden.taps[rows], logits[rows], rule)


def launch(
    model: Qwen3,
    cache: KVCache,
    newest: int,
    draft: Draft,
    sampling: SamplingParams,
    taps: Sequence[int] = (),
    accept_rule: AcceptRule = "exact",
    with_logits: bool = True,
) -> Flight | None:
    """The first half of `verify` where it runs as a step of fixed shape; None, and nothing done, where it does not."""
    steps = model.steps
    if steps is None or with_logits or not steps.takes(draft.size + 1, taps):
        return None
    if rule_for(draft, sampling, accept_rule) != "exact":
        return None
    return steps.begin(cache, newest, draft, sampling)


def land(flight: Flight, taps: Sequence[int] = (), meanwhile: Callable[[], None] = nothing) -> Step:
    """The second half of `verify` after `launch`. If anything raises, the cache is as it was before that."""
    path, emitted, tapped = flight.steps.end(flight, taps, meanwhile)
    return Step(Accepted(path, emitted), tapped, None, "exact")


def _targets(model: Qwen3, logits: Tensor, positions: Tensor, sampling: SamplingParams) -> Tensor:
    """The target's token after every row, [M] int64. Raises NonFiniteLogits."""
    if model.device.type == "cpu" or not isinstance(model.ops, StaticOps):
        return sample(logits, positions, sampling)
    # By the kernels of the fixed steps: on one device a token must not depend on which kind of step chose it.
    chosen = model.ops.choose(logits, positions, as_tensor(sampling).to(model.device))
    if int(chosen.min()) < 0:
        raise NonFiniteLogits(NOT_FINITE)
    return chosen
