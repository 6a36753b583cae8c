"""The classic rule for sampled drafts: the output keeps the target's law, though not the tokens of a plain run.

A drafted token x, sampled from q, is accepted with probability min(1, p(x) / q(x)); at the first refusal a token is
drawn from max(p - q, 0), renormalised, and after full acceptance from p (Leviathan, Kalman and Matias, arXiv
2211.17192; Chen et al., arXiv 2302.01318). p is the target's law at the request's temperature, top-k, min-p and top-p;
q is `Draft.probs`, or one-hot where the token was not drawn at random.

The rule needs three independent sources of chance, which are three streams of sampling.py's counter: what the draft was
sampled with, the acceptances, the residual. It holds only where neither q nor the draft's length depends on a drawn
token that is still to be judged: a policy may look at what was committed, never at the draft itself.
Trees are judged by the exact rule, which keeps the law too and is the best possible one for drafts that are one-hot.
Whether a draft is a tree must therefore not depend on the noise that the target draws with: `generate` sees to it.
"""

import torch
from torch import Tensor

from specd.engine.draft import Draft
from specd.engine.errors import NonFiniteLogits
from specd.engine.sampling import (
    ACCEPT,
    RESIDUAL,
    AcceptRule,
    SamplingParams,
    counter_bits,
    draw,
    gumbel,
    probabilities,
    uniform,
)


def rule_for(draft: Draft, params: SamplingParams, wanted: AcceptRule) -> AcceptRule:
    """The rule that a step goes by: `rejection` only where it was asked for and differs, for a sampled chain."""
    is_chain = draft.parents is None and draft.size > 0
    return "rejection" if wanted == "rejection" and is_chain and not params.greedy else "exact"


@torch.inference_mode()
def accept_by_rejection(draft: Draft, logits: Tensor, positions: Tensor, params: SamplingParams) -> list[int]:
    """The accepted ones of a chain of k drafted tokens, and the token after them. All but that stays on the device.

    logits [k+1, V] float32 and positions [k+1] int64: the target's rows after the newest token and after each drafted
    one, and the positions of the tokens they predict. Raises NonFiniteLogits, ValueError where q's size is not p's.
    """
    k, vocab, device = draft.size, logits.shape[-1], logits.device
    if draft.probs is not None and draft.probs.shape != (k, vocab):
        raise ValueError(f"draft probabilities are {tuple(draft.probs.shape)}, the target's {(k, vocab)}")
    drafted = draft.tokens.to(device).long()
    p = probabilities(logits, params).double()
    q = torch.zeros_like(p)  # row k, where nothing was drafted, stays 0: what is left of p there is p
    if draft.probs is None:
        q[:k].scatter_(-1, drafted[:, None], 1.0)
    else:
        q[:k] = draft.probs.to(device)
    at = drafted[:, None]
    chance = uniform(counter_bits(params.seed, ACCEPT, positions[:k], torch.zeros_like(drafted)))
    # u q < p is u < p / q without a division; u < 1 strictly, so p = q always accepts.
    passed = chance * q[:k].gather(-1, at)[:, 0] < p[:k].gather(-1, at)[:, 0]
    count = passed.long().cumprod(dim=0).sum().view(1)  # the leading run
    law, drawn = p[count], q[count]
    residual = (law - drawn).clamp(min=0.0)
    residual = torch.where(residual.sum(dim=-1, keepdim=True) > 0, residual, law)  # p = q but for rounding
    ids = torch.arange(vocab, dtype=torch.int32, device=device)[None, :]
    noise = gumbel(counter_bits(params.seed, RESIDUAL, positions[count][:, None], ids))
    refused = (residual.log() + noise).argmax(dim=-1)
    bonus = draw(logits[k:], positions[k:], params)  # with the noise of plain decoding
    last = torch.where(count < k, refused, bonus)
    is_law = torch.isfinite(p).all() & torch.isfinite(q).all()
    found = torch.cat((count, last, is_law.view(1).long(), drafted)).tolist()  # the one wait for the device
    if not found[2]:
        raise NonFiniteLogits("the model, or its draft model, produced NaN or infinite logits: try float32")
    return [*found[3 : 3 + found[0]], found[1]]
