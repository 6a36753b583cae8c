"""The engine as the daemon sees it: loads a model, asks it, prepares prompts. The only file of this room that imports
specd.engine and torch, and it does so when a model is first loaded, not before: torch takes seconds to import.

All methods of EngineModel but `status` run on the scheduler's thread, and `load_model` on a loader's.
"""

import contextlib
import gc
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from specd.daemon.errors import EngineFailed
from specd.daemon.generation import Asked, Ended, Prefilled, Stepped
from specd.daemon.model_folder import prompt_form
from specd.daemon.models import ModelKey
from specd.daemon.protocol import Sampling, Speculation
from specd.daemon.rewrite.prompt import Prompt, PromptForm
from specd.daemon.settings import Settings

if TYPE_CHECKING:
    from specd.engine import Acceptance, CostTable, Kept, Loaded, PrefixCache, Proposer, SamplingParams, StepPolicy
    from specd.engine.model import Qwen3
    from specd.engine.prefix import DrafterState
    from specd.engine.propose.dflash import DFlashDrafter
    from specd.engine.sampling import AcceptRule

LONGEST = 127  # drafted tokens a step: 128 rows cost little more than 64, and more than that is seldom right


def load_model(key: ModelKey, settings: Settings, progress: Callable[[float, str], None]) -> "EngineModel":
    """Load the model, its drafters, and what its first job would otherwise wait for. Raises EngineFailed."""
    progress(0.0, "starting torch")
    with _engine_errors():
        import torch

        from specd import engine
        from specd.engine.propose import dflash, draft_model, edit, ngram_tree  # noqa: F401  (so that no job waits)

        if settings.threads:
            torch.set_num_threads(settings.threads)
        _check_device(key.device)

        def weights(fraction: float, message: str) -> None:
            progress(0.1 + 0.8 * fraction, message)

        loaded = engine.load(key.path, device=key.device, dtype=key.dtype, progress=weights)
        progress(0.9, "loading the drafters")
        draft = draft_model.load_draft_model(key.draft, loaded) if key.draft else None
        block = dflash.load_dflash(key.dflash, loaded.model) if key.dflash else None
        progress(0.95, "measuring its steps")
        loaded.tokenizer.chat([{"role": "user", "content": "x"}])  # reads the chat template
        return EngineModel(loaded, Drafting(loaded, draft, block), prompt_form(loaded.path), settings.cache_memory)


class Drafting:
    """What drafts for one model, and what was learnt of its costs and its luck, over all jobs."""

    def __init__(self, loaded: "Loaded", draft: "Qwen3 | None", block: "DFlashDrafter | None") -> None:
        from specd import engine
        from specd.engine import costs, policy
        from specd.engine.propose import tree

        self._loaded = loaded
        self._draft = draft
        self._block = block
        self._costs: CostTable = costs.measure(loaded.model, budget=0.6)
        self._acceptance: Acceptance = engine.Acceptance(policy.PRIORS)
        self._branching: Acceptance = engine.Acceptance(tree.PRIORS)
        self._encode = lru_cache(maxsize=16)(loaded.tokenizer.encode)  # texts to draft from seldom change

    def speculative(
        self, asked: Asked, states: "dict[str, DrafterState]", prompt: Sequence[int] = ()
    ) -> "tuple[Proposer | StepPolicy | None, tuple[Proposer, ...]]":
        """What `generate` is given, and the proposers in it. States that a proposer takes over leave `states`."""
        from specd import engine
        from specd.engine.propose.edit import EditProposer
        from specd.engine.propose.ngram_tree import NgramBranches
        from specd.engine.propose.tree import TreeProposer

        how, tokenizer = asked.speculation, self._loaded.tokenizer
        if how.k == 0:
            return None, ()
        if how.proposer in ("draft_model", "dflash"):
            chosen = self._insisted(how, _sampling(asked.sampling), states)
            return chosen, (chosen,)
        longest = min(how.k or LONGEST, LONGEST)
        ends = tuple(sorted(self._loaded.stop_ids))[:1]
        predicted = asked.prompt.predicted
        edit = EditProposer(tokenizer, predicted, asked.pairs, max_k=longest, end_ids=ends, known=prompt)
        if how.proposer == "edit":
            return edit, (edit,)
        seeds = [self._encode(text) for text in asked.draft_texts]
        if how.proposer == "ngram":
            ngram = engine.NgramProposer(k=how.k or 15, seeds=seeds)
            return ngram, (ngram,)
        budget = min(longest, 31)
        lookup = TreeProposer([NgramBranches(budget, seeds)], budget, acceptance=self._branching)
        proposers: tuple[Proposer, ...] = (edit, lookup, *self.models(how, _sampling(asked.sampling), states))
        return engine.Adaptive(proposers, self._costs, self._acceptance), proposers

    def _insisted(self, how: Speculation, sampling: "SamplingParams", states: "dict[str, DrafterState]") -> "Proposer":
        """The one proposer that is a model and that the request insists on. Raises EngineFailed if there is none."""
        chosen: Proposer | None = None
        for proposer in self.models(how, sampling, states):
            if proposer.name == how.proposer:
                chosen = proposer
            else:
                _close((proposer,))
        if chosen is None:
            option = "--dflash DRAFTER" if how.proposer == "dflash" else "--draft MODEL"
            raise EngineFailed(f"no {how.proposer} drafter was loaded; name one with {option}.")
        chosen.max_k = min(chosen.max_k, how.k or LONGEST)
        return chosen

    def models(
        self, how: Speculation, sampling: "SamplingParams", states: "dict[str, DrafterState]"
    ) -> "Iterator[Proposer]":
        """The proposers that are models themselves, with what `states` holds of the prompt."""
        from specd.engine.propose.dflash import DFlashContext, DFlashProposer
        from specd.engine.propose.draft_model import DraftContext, DraftModelProposer

        if self._block is not None:
            known = states.pop(DFlashProposer.name, None)
            yield DFlashProposer(self._block, context=known if isinstance(known, DFlashContext) else None)
        if self._draft is not None:
            known = states.pop(DraftModelProposer.name, None)
            context = known if isinstance(known, DraftContext) else None
            k = min(how.k or 7, LONGEST)
            yield DraftModelProposer(
                self._draft,
                k=k,
                target=self._loaded.model,
                sampling=sampling,
                accept=_accept(how),
                context=context,
            )


class EngineModel:
    """A loaded model with its kept prompts. Implements generation.Model."""

    def __init__(self, loaded: "Loaded", drafting: Drafting, form: PromptForm, cache_mib: int) -> None:
        from specd import engine

        self.name = loaded.path.name
        self.form: PromptForm = form
        self.window = loaded.model.config.max_positions
        self._loaded = loaded
        self._drafting = drafting
        self._prefix: PrefixCache = engine.PrefixCache(loaded.model, cache_mib * 2**20)

    def count(self, text: str) -> int:
        """How many tokens `text` has."""
        return len(self._loaded.tokenizer.encode(text))

    def generate(self, asked: Asked) -> Generator[Prefilled | Stepped | Ended | None, None, None]:
        """One step of the engine a `next()`. Closing it cancels; what is in the KV cache of the prompt is kept."""
        from specd import engine

        loaded = self._loaded
        with _engine_errors():
            ids = loaded.tokenizer.chat(asked.prompt.messages)
            max_tokens = min(asked.max_tokens, self.window - len(ids))
            kept = self._take(ids, max_tokens)
            try:
                speculative, proposers = self._drafting.speculative(asked, kept.states, ids)
            except BaseException:
                kept.free()
                raise
            steps = engine.generate(
                loaded.model,
                ids,
                tokenizer=loaded.tokenizer,
                sampling=_sampling(asked.sampling),
                stop_ids=loaded.stop_ids,
                max_tokens=max_tokens,
                speculative=speculative,
                accept=_accept(asked.speculation),
                cache=kept.cache,
            )
            try:
                for event in steps:
                    match event:
                        case engine.PrefillDone(reused, new, seconds):
                            yield Prefilled(reused, new, seconds)
                        case engine.StepDone(_, text, record):
                            yield Stepped(text, record.proposer, record.drafted, record.accepted, record.emitted)
                        case engine.Finished(reason, tail, _):
                            yield Ended(reason, tail)
                        case _:
                            yield None
            finally:
                steps.close()
                self._keep(ids, kept, proposers)

    def prepare(self, prompts: tuple[Prompt, Prompt]) -> Iterator[Prefilled | None]:
        """Prefill what the prompts' tokens have in common at their beginning, and keep it."""
        from specd import engine
        from specd.engine.prefix import common_prefix

        with _engine_errors():
            first, second = (self._loaded.tokenizer.chat(prompt.messages) for prompt in prompts)
            ids = first[: common_prefix(first, second)]
            kept = self._take(ids, 0)
            proposers = tuple(self._drafting.models(Speculation(), _sampling(Sampling()), kept.states))
            steps = engine.prepare(self._loaded.model, ids, self._prefix, proposers, kept)
            try:
                for event in steps:
                    match event:
                        case engine.PrefillDone(reused, new, seconds):
                            yield Prefilled(reused, new, seconds)
                        case _:
                            yield None
            finally:
                steps.close()
                _close(proposers)

    def unload(self) -> None:
        """Give the memory back."""
        import torch

        self._prefix.clear()
        del self._loaded, self._prefix, self._drafting
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def status(self) -> dict[str, Any]:
        """For `specd status`. May be called from any thread."""
        try:
            model, prefix = self._loaded.model, self._prefix
        except AttributeError:  # unloaded meanwhile
            return {}
        pool = model.pool
        return {
            "name": self.name,
            "device": str(model.device),
            "dtype": str(model.dtype).removeprefix("torch."),
            "window": self.window,
            "prompt_form": self.form,
            "cache": {
                "kept_tokens": prefix.tokens,
                "kept_bytes": prefix.bytes,
                "limit_bytes": prefix.max_bytes,
                "pool_tokens": pool.pages * pool.page_size,
                "free_tokens": pool.free_pages * pool.page_size,
            },
        }

    def _take(self, ids: Sequence[int], more: int) -> "Kept":
        """What is kept of `ids`, and room in the pool for the rest of them and `more` tokens."""
        kept = self._prefix.take(ids)
        self._prefix.make_room(-(-(len(ids) + more - kept.cache.length) // self._loaded.model.pool.page_size) + 1)
        return kept

    def _keep(self, ids: Sequence[int], kept: "Kept", proposers: "tuple[Proposer, ...]") -> None:
        from specd.engine.prefix import states_of

        for state in kept.states.values():  # of drafters that this job did not have
            state.free()
        kept.states = states_of(proposers, min(kept.cache.length, len(ids)))
        self._prefix.put(ids, kept)
        _close(proposers)


def accelerators() -> list[tuple[str, str, int, int]]:
    """(name, model, free bytes, all bytes) of each GPU that torch can use."""
    try:
        import torch
    except ImportError:
        return []
    indices = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    return [(f"cuda:{at}", torch.cuda.get_device_name(at), *torch.cuda.mem_get_info(at)) for at in indices]


def _check_device(name: str) -> None:
    """Raises EngineFailed for a device that torch knows and this machine, or this torch, has not."""
    import torch

    kind, _, index = name.partition(":")
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        is_there = int(index) < count if index.isdigit() else count > 0
    elif kind == "mps":
        is_there = torch.backends.mps.is_available()
    else:
        return
    if not is_there:
        raise EngineFailed(
            f"torch {torch.__version__} finds no device {name} here; set device to auto or cpu, or see `specd doctor`."
        )


def _close(proposers: "tuple[Proposer, ...]") -> None:
    for proposer in proposers:
        if hasattr(proposer, "close"):
            proposer.close()


def _accept(how: Speculation) -> "AcceptRule":
    return "rejection" if how.sample_drafts else "exact"


def _sampling(sampling: Sampling) -> "SamplingParams":
    from specd import engine

    return engine.SamplingParams(
        temperature=sampling.temperature or 0.0,
        top_k=sampling.top_k or 0,
        top_p=1.0 if sampling.top_p is None else sampling.top_p,
        min_p=sampling.min_p or 0.0,
        seed=sampling.seed or 0,
    )


@contextlib.contextmanager
def _engine_errors() -> Iterator[None]:
    """The engine's errors, whose messages are for the user, as this room's."""
    try:
        from specd.engine import EngineError
    except ImportError as error:
        raise EngineFailed(
            f"the engine cannot start: {error}. Install specd again; `specd doctor` tells more."
        ) from error
    try:
        yield
    except EngineError as error:
        raise EngineFailed(str(error)) from error
