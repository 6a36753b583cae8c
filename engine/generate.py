"""`generate`, the engine's public function: prefill, then draft, verify, commit until a finish rule hits.

A plain generator: one verify step per next(), so a caller can interleave jobs step by step, and close() is a cancel.
However it ends, the caches are at the last committed length, or given back where the generator made them.
"""

from collections.abc import Generator
from collections.abc import Sequence as Tokens

import torch

from specd.engine.draft import Proposer
from specd.engine.errors import ContextOverflow, EngineError, OutOfMemory
from specd.engine.events import Event
from specd.engine.finish import FinishRules
from specd.engine.job import Job
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3
from specd.engine.policy import Fixed, StepPolicy
from specd.engine.sampling import AcceptRule, SamplingParams
from specd.engine.tokenizer import Tokenizer


def generate(
    model: Qwen3,
    ids: Tokens[int],
    *,
    tokenizer: Tokenizer | None = None,
    sampling: SamplingParams | None = None,
    stop_ids: frozenset[int] | None = None,
    stop_strings: Tokens[str] = (),
    max_tokens: int | None = None,
    speculative: Proposer | StepPolicy | None = None,
    accept: AcceptRule = "exact",
    cache: KVCache | None = None,
    logprobs: bool = False,
) -> Generator[Event, None, None]:
    """Generates after the prompt `ids`, one verify step per StepDone, and ends with Finished.

    tokenizer: needed for text and for stop strings. stop_ids: None takes the model's. max_tokens: None runs to the
    context's end. speculative: a proposer, or a policy that chooses among several; the output does not depend on it.
    accept: `rejection` judges sampled drafts by the rule of rejection.py, which keeps the output's law, not its tokens;
    a draft model that is a source of a tree must draft for that rule too, else ValueError.
    cache: holds some first tokens of ids already, and afterwards all committed tokens but the newest; without one, a
    fresh cache is used and given back. Raises EngineError (ContextOverflow, OutOfMemory, NonFiniteLogits).
    """
    room = model.config.max_positions - len(ids)
    if not ids:
        raise ValueError("the prompt is empty")
    if not 0 <= min(ids) <= max(ids) < model.config.vocab_size:
        raise ValueError(f"the prompt holds ids outside 0..{model.config.vocab_size - 1}")
    if room < 1:
        raise ContextOverflow(
            f"the prompt has {len(ids)} tokens: no room to answer in a context of {model.config.max_positions}"
        )
    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"max_tokens must be 1 or more, not {max_tokens}")
    if stop_strings and tokenizer is None:
        raise ValueError("stop strings need a tokenizer")
    if accept not in ("exact", "rejection"):
        raise ValueError(f"accept must be exact or rejection, not {accept!r}")
    params = sampling or SamplingParams()
    policy = speculative if isinstance(speculative, StepPolicy) else Fixed(speculative)
    if accept == "rejection" and not params.greedy:
        _check_rejection(policy)
    budget = room if max_tokens is None else min(max_tokens, room)
    rules = FinishRules(
        model.config.stop_ids if stop_ids is None else stop_ids,
        tuple(stop_strings),
        budget,
        context_full=budget == room,
    )
    own = cache is None
    held = model.new_cache() if cache is None else cache
    try:
        yield from Job(model, list(ids), tokenizer, params, rules, policy, held, logprobs, accept).run()
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(
            "the device is out of memory; nothing was changed, try again or use a smaller model"
        ) from error
    except RuntimeError as error:
        raise EngineError(f"the engine failed in a step: {error}") from error
    finally:
        if own:
            held.free()


def _check_rejection(policy: StepPolicy) -> None:
    """Raises ValueError where a tree's shape may depend on the noise that the target draws with: whether a draft is a
    chain or a tree then says what the target is going to draw, and neither rule is right for that."""
    for proposer in policy.proposers:
        if any(_knows_noise(source) for source in getattr(proposer, "sources", ())):
            raise ValueError(
                f"{proposer.name} cannot be judged by rejection: a source of it drafts with the noise that the target "
                "draws with. Make that DraftModelProposer with accept='rejection' too."
            )


def _knows_noise(proposer: object) -> bool:
    inside = getattr(proposer, "sources", ())
    return getattr(proposer, "knows_noise", False) or any(_knows_noise(source) for source in inside)
