"""The engine as the daemon sees it: loads a model, asks it, prepares prompts. Only this package imports specd.engine
and torch, and it does so when a model is first loaded, not before: torch takes seconds to import.

All methods of EngineModel but `status` run on the scheduler's thread, and `load_model` on a loader's.
"""

import gc
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from specd.daemon.generation import Asked, Ended, Prefilled, Stepped
from specd.daemon.model_folder import prompt_form
from specd.daemon.models import ModelKey
from specd.daemon.protocol import Sampling, Speculation
from specd.daemon.rewrite.prompt import Prompt, PromptForm
from specd.daemon.settings import Settings
from specd.daemon.worker.devices import accelerators, check_device, engine_errors
from specd.daemon.worker.drafting import Drafting, accept_rule, close_all, sampling_params

if TYPE_CHECKING:
    from specd.engine import Kept, Loaded, PrefixCache, Proposer

__all__ = ["EngineModel", "accelerators", "load_model"]


def load_model(key: ModelKey, settings: Settings, progress: Callable[[float, str], None]) -> "EngineModel":
    """Load the model, its drafters, and what its first job would otherwise wait for. Raises EngineFailed."""
    progress(0.0, "starting torch")
    with engine_errors():
        import torch

        from specd import engine
        from specd.engine.propose import dflash, draft_model, edit, ngram_tree  # noqa: F401  (so that no job waits)

        if settings.threads:
            torch.set_num_threads(settings.threads)
        check_device(key.device)

        def weights(fraction: float, message: str) -> None:
            progress(0.1 + 0.8 * fraction, message)

        loaded = engine.load(key.path, device=key.device, dtype=key.dtype, progress=weights)
        progress(0.9, "loading the drafters")
        with engine_errors("the draft model (--draft)"):
            draft = draft_model.load_draft_model(key.draft, loaded) if key.draft else None
        with engine_errors("the DFlash drafter (--dflash)"):
            block = dflash.load_dflash(key.dflash, loaded.model) if key.dflash else None
        progress(0.95, "measuring its steps")
        loaded.tokenizer.chat([{"role": "user", "content": "x"}])  # reads the chat template
        return EngineModel(loaded, Drafting(loaded, draft, block), prompt_form(loaded.path), settings.cache_memory)


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
        with engine_errors():
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
                sampling=sampling_params(asked.sampling),
                stop_ids=loaded.stop_ids,
                max_tokens=max_tokens,
                speculative=speculative,
                accept=accept_rule(asked.speculation),
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

        with engine_errors():
            first, second = (self._loaded.tokenizer.chat(prompt.messages) for prompt in prompts)
            ids = first[: common_prefix(first, second)]
            kept = self._take(ids, 0)
            proposers = tuple(self._drafting.models(Speculation(), sampling_params(Sampling()), kept.states))
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
                close_all(proposers)

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
        close_all(proposers)
