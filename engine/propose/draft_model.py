"""A smaller model of the same vocabulary drafts a chain, token by token, on its own cache: speculative decoding as
first described (Leviathan, Kalman and Matias, arXiv 2211.17192).

    draft = load_draft_model("Qwen/Qwen3-0.6B", loaded)                       # once
    generate(loaded.model, ids, speculative=DraftModelProposer(draft, target=loaded.model))   # a proposer a job

Its cache always holds a prefix of what was committed once a step is over, found by comparing tokens and not by counting
what was accepted. So nothing needs to be told to it: after full acceptance the last draft, which was never fed, goes in
with the bonus token; where other proposers drafted, or a prompt is new, what is missing goes in before the next draft.
"""

import logging
from pathlib import Path

import torch
from torch import Tensor

from specd.engine.config import EngineConfig
from specd.engine.draft import EMPTY, Committed, Draft, Sequence
from specd.engine.errors import ModelError, OutOfMemory
from specd.engine.kv_cache import KVCache
from specd.engine.load import Loaded, load
from specd.engine.model import Qwen3
from specd.engine.propose.draft_chain import LENGTHS, DraftChain, capture
from specd.engine.sampling import DRAFT, TARGET, AcceptRule, SamplingParams, draw, probabilities

log = logging.getLogger(__name__)


def load_draft_model(name: str | Path, target: Loaded, *, dtype: str = "auto") -> Qwen3:
    """A draft model for `target`, on its device. Raises ModelError where any token id stands for other bytes."""
    pool = EngineConfig(kv_tokens=target.model.engine.kv_tokens, prefill_chunk=target.model.engine.prefill_chunk)
    loaded = load(name, device=str(target.model.device), dtype=dtype, engine=pool, steps=False)
    check_vocabulary(loaded.model, target.model)
    own, other = loaded.tokenizer, target.tokenizer
    for token in range(own.vocab_size):
        if own.token_bytes(token) != other.token_bytes(token) or (token in own.special_ids) != (
            token in other.special_ids
        ):
            raise ModelError(
                f"{loaded.path.name} cannot draft for {target.path.name}: token {token} is another one there. "
                "Name a draft model of the same family."
            )
    if loaded.model.is_capturable:
        try:
            loaded.model.chain = capture(loaded.model)
        except RuntimeError as error:  # drafts are a help, never a reason not to start
            log.warning("the draft model runs without graphs, more slowly: %s", error)
    return loaded.model


def check_vocabulary(draft: Qwen3, target: Qwen3) -> None:
    """Raises ModelError where the tokenizers' sizes differ. How far either model pads its matrices does not matter."""
    if draft.vocab_limit != target.vocab_limit:
        raise ModelError(
            f"the draft model knows {draft.vocab_limit} tokens and the model {target.vocab_limit}: "
            "they must share a tokenizer. Name a draft model of the same family."
        )


class DraftContext:
    """What the draft model has read: tokens, and their keys and values. The newest may be uncommitted drafts."""

    def __init__(self, cache: KVCache, tokens: list[int]) -> None:
        self.cache = cache
        if cache.length != len(tokens):
            raise ValueError(f"the cache holds {cache.length} positions, not {len(tokens)}")
        self._tokens = tokens
        self._fed: list[Tensor] = []  # drafts after them, [1] int64 each, still on the device
        self._matched: tuple[list[int], int] = ([], 0)  # a row, and how many of its first tokens are the same here

    @property
    def tokens(self) -> list[int]:
        """One for each position in the cache. Waits for the device where drafts were fed since."""
        if self._fed:
            fed, self._fed = self._fed, []
            self._tokens.extend(torch.cat(fed).tolist())
        return self._tokens

    def fed(self, tokens: list[int]) -> None:
        """The cache has grown by these."""
        self._tokens.extend(tokens)

    def fed_draft(self, token: Tensor) -> None:
        """The cache has grown by this drafted token, [1]."""
        self._fed.append(token)

    def match(self, tokens: list[int]) -> None:
        """Forgets everything from the first token on that is not the same in `tokens`, a row that only grows: what was
        compared with it before is not compared again."""
        own = self.tokens
        row, known = self._matched
        start, same = (known if row is tokens else 0), min(len(own), len(tokens))
        if own[start:same] != tokens[start:same]:
            same = next(place for place in range(start, same) if own[place] != tokens[place])
        self.truncate(same)
        self._matched = tokens, len(own)  # all that is left

    def truncate(self, length: int) -> None:
        """Forgets the positions >= length, and all drafts whose keys and values never arrived."""
        length = min(length, len(self.tokens), self.cache.length)
        del self.tokens[length:]
        self.cache.truncate(length)
        row, known = self._matched
        self._matched = row, min(known, length)

    def fork(self, length: int) -> "DraftContext":
        """A second context with the first `length` positions, or as many as there are; whole pages are shared."""
        length = min(length, len(self.tokens), self.cache.length)
        return DraftContext(self.cache.fork(length), self.tokens[:length])

    def free(self) -> None:
        """Gives the cache's pages back. Idempotent; the context is empty and may be used again."""
        self._fed.clear()
        self._tokens.clear()
        self._matched = [], 0
        self.cache.free()

    def __del__(self) -> None:
        self.cache.free()


class DraftModelProposer:
    """The drafts of one job, or of several one after the other. Its pages go back with `close`, or with it."""

    name = "draft_model"

    def __init__(
        self,
        draft: Qwen3,
        k: int = 7,
        *,
        target: Qwen3,
        sampling: SamplingParams | None = None,
        accept: AcceptRule = "exact",
        context: DraftContext | None = None,
    ) -> None:
        """sampling, accept: those of the `generate` it drafts for. Others cost acceptance, and where it is a source of
        a tree, `exact` under `rejection` would cost the law too, so `generate` refuses that.

        With `exact` a draft is the draft model's own choice under the target's noise, which makes the two agree most
        often; with `rejection` it is drawn with noise of its own, and comes with the law it was drawn from. context:
        what is known of the prompt's beginning; the proposer owns it from now on. Raises ModelError where the
        vocabularies differ.
        """
        if k < 1:
            raise ValueError(f"k must be 1 or more, not {k}")
        check_vocabulary(draft, target)
        self.max_k = k
        self.draft = draft
        self.context = context or DraftContext(draft.new_cache(), [])
        self._sampling = sampling or SamplingParams()
        self._gives_law = accept == "rejection" and not self._sampling.greedy
        self._is_full = False

    @property
    def knows_noise(self) -> bool:
        """Whether its drafts are drawn with the noise that the target draws with, and so tell of the target's draws."""
        return not self._gives_law and not self._sampling.greedy

    def propose(self, seq: Sequence, k: int) -> Draft:
        """A chain of at most k tokens [k] int32 on the draft model's device; shorter at its context's end.

        Where the draft model's page pool is full nothing is drafted, and a warning says so once.
        """
        self.context.match(seq.tokens)
        room = self.context.cache.max_positions - len(seq) + 1  # the last draft is not fed
        k = min(k, self.max_k, room)
        if k < 1:
            return EMPTY
        try:
            return self._chain(seq, k)
        except OutOfMemory as error:
            self.context.match(seq.tokens)
            self._warn(error)
            return EMPTY
        except BaseException:
            self.context.match(seq.tokens)
            raise

    def observe(self, seq: Sequence, committed: Committed) -> None:
        """Forget the drafts that were not committed. Nothing is fed: the next draft catches up."""
        self.context.match(seq.tokens)

    def feed(self, seq: Sequence, length: int) -> None:
        """Read the first `length` tokens now, so that no draft has to: for prompts that are prepared ahead of a job.

        Where the draft model's context or its page pool ends, the rest stays unread."""
        self.context.match(seq.tokens)
        try:
            self._read(seq, min(length, self.context.cache.max_positions))
        except OutOfMemory as error:
            self.context.match(seq.tokens)
            self._warn(error)

    def truncate(self, length: int) -> None:
        """Forget all positions >= length."""
        self.context.truncate(length)

    def fork(self, length: int) -> DraftContext:
        """A second context with the positions below `length`, as far as they were fed, to be kept with a fork of the
        target's cache."""
        return self.context.fork(length)

    def close(self) -> None:
        """Give the pages back. Idempotent; the proposer may still be used."""
        self.context.free()

    @torch.inference_mode()
    def _chain(self, seq: Sequence, k: int) -> Draft:
        """k chained steps; no step's token leaves the device."""
        model, params = self.draft, self._sampling
        self.context.truncate(len(seq) - 1)  # the newest token is read at any rate
        if model.chain is not None and not self._gives_law:
            return self._chain_at_once(model.chain, seq, k)
        self.context.cache.reserve(len(seq) + k - 1 - self.context.cache.length)  # no page is asked for on the way
        positions = torch.arange(len(seq), len(seq) + k, device=model.device)  # of the drafts
        last = self._catch_up(seq)
        tokens: list[Tensor] = []
        laws: list[Tensor] = []
        for number in range(k):
            if number:
                last = model.forward(tokens[-1], positions[number - 1 : number], self.context.cache).last
                self.context.fed_draft(tokens[-1])
            logits = model.logits(last)
            at = positions[number : number + 1]
            tokens.append(draw(logits, at, params, stream=DRAFT if self._gives_law else TARGET))
            if self._gives_law:
                laws.append(probabilities(logits, params))
        return Draft(torch.cat(tokens).int(), probs=torch.cat(laws) if laws else None)

    def _chain_at_once(self, chain: DraftChain, seq: Sequence, k: int) -> Draft:
        """By passes of fixed shape, which may have fewer steps than k."""
        context, top = self.context, self.draft.config.vocab_size - 1
        missing, tokens = seq.tokens[context.cache.length :], list[int]()
        while len(tokens) < k:
            part = chain.draft(
                context.cache, [min(token, top) for token in missing], min(k - len(tokens), LENGTHS[-1]), self._sampling
            )
            context.fed([*missing, *part[:-1]])
            tokens += part
            missing = part[-1:]
        return Draft.chain(tokens)

    def _catch_up(self, seq: Sequence) -> Tensor:
        """Feeds all committed tokens that are missing, the newest among them. -> [1, H], the newest one's row."""
        last = self._read(seq, len(seq))
        assert last is not None  # the newest token is always missing
        return last

    @torch.inference_mode()
    def _read(self, seq: Sequence, length: int) -> Tensor | None:
        """Feeds what is missing of the first `length` tokens, on the grid of prefill chunks. -> [1, H], the last."""
        model, context = self.draft, self.context
        chunk, last = model.engine.prefill_chunk, None
        while (start := context.cache.length) < length:
            end = min(start - start % chunk + chunk, length)
            ids = seq.tokens[start:end]
            # A prompt may hold ids of the target's padding, which mean nothing to either model.
            tokens = torch.tensor(ids, device=model.device).clamp(max=model.config.vocab_size - 1)
            last = model.forward(tokens, torch.arange(start, end, device=model.device), context.cache).last[-1:]
            context.fed(ids)
        return last

    def _warn(self, error: OutOfMemory) -> None:
        if not self._is_full:
            self._is_full = True
            log.warning("the draft model drafts less: its own cache is full (%s)", error)
