"""One verify step: a draft and the newest token through the target at once, and which of the draft is accepted.

`accept` is the exact rule: the target's own token (greedy, or drawn with counter-based noise) decides at every place,
and a drafted token is accepted exactly when it equals it. What is emitted is therefore what plain decoding emits.
The other rule, for sampled drafts, is in rejection.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specd.engine.draft import Draft
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3
from specd.engine.rejection import accept_by_rejection, rule_for
from specd.engine.sampling import AcceptRule, SamplingParams, sample


@dataclass(frozen=True)
class Accepted:
    """path: accepted draft indices, from the root down. tokens: their tokens and the bonus token after them."""

    path: list[int]
    tokens: list[int]


def accept(drafted: Sequence[int], parents: Sequence[int] | None, targets: Sequence[int]) -> Accepted:
    """The longest path of drafted tokens that the target agrees with, and the target's token after it.

    targets: k+1 tokens, the target's choice after the newest token (index 0) and after each drafted one (index i+1);
    parents as in Draft. Pure; linear in k. Of two siblings with one token the first counts.
    """
    if parents is None:
        count = 0
        while count < len(drafted) and drafted[count] == targets[count]:
            count += 1
        return Accepted(list(range(count)), [*drafted[:count], targets[count]])
    path: list[int] = []
    node = -1
    for index, (token, parent) in enumerate(zip(drafted, parents, strict=True)):  # parents stand before children
        if parent == node and token == targets[node + 1]:
            path.append(index)
            node = index
    return Accepted(path, [*(drafted[index] for index in path), targets[node + 1]])


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


@dataclass(frozen=True)
class Step:
    """What a verify step found. taps: [accepted + 1, T, H], rows of the positions that stay in the cache.
    logits: [accepted + 1, V], the rows that chose `accepted.tokens`. rule: the one that was followed."""

    accepted: Accepted
    taps: Tensor | None
    logits: Tensor
    rule: AcceptRule = "exact"


def verify(
    model: Qwen3,
    cache: KVCache,
    newest: int,
    draft: Draft,
    sampling: SamplingParams,
    taps: Sequence[int] = (),
    accept_rule: AcceptRule = "exact",
) -> Step:
    """Verifies `draft` after the token `newest`, which the cache does not hold yet. Afterwards the cache holds `newest`
    and the accepted tokens; if anything raises, it is as before."""
    start = cache.length
    try:
        drafted = draft.tokens.to(model.device)  # a draft made on the device goes straight into the step
        tokens = torch.cat((torch.tensor([newest], dtype=drafted.dtype, device=model.device), drafted)).long()
        depth, mask = torch.arange(len(tokens)), None
        if draft.parents is not None:
            depth, mask = tree_layout(draft.parents)
            mask = mask.to(model.device)
        positions = (start + depth).to(model.device)
        hidden = model.forward(tokens, positions, cache, mask, taps)
        logits = model.logits(hidden.last)
        rule = rule_for(draft, sampling, accept_rule)
        if rule == "rejection":
            emitted = accept_by_rejection(draft, logits, positions + 1, sampling)
            accepted = Accepted(list(range(len(emitted) - 1)), emitted)
        else:
            targets = sample(logits, positions + 1, sampling)
            parents = None if draft.parents is None else draft.parents.tolist()
            accepted = accept(draft.tokens.tolist(), parents, targets.tolist())
        rows = [0, *(index + 1 for index in accepted.path)]
        cache.keep(start, rows)
    except BaseException:
        cache.truncate(start)
        raise
    return Step(accepted, None if hidden.taps is None else hidden.taps[rows], logits[rows], rule)
