"""The engine as the daemon sees it: loads a model, asks it, prepares prompts. Only this package imports specd.engine
and torch, and it does so when a model is first loaded, not before: torch takes seconds to import.

All methods of EngineModel but `status` run on the scheduler's thread, and `load_model` on a loader's.
"""

import gc
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from specd.daemon.generation import Asked, Ended, Prefilled, Stepped, Waits
from specd.daemon.model_folder import prompt_form
from specd.daemon.models import ModelKey
from specd.daemon.protocol import Sampling, Speculation
from specd.daemon.rewrite.prompt import Prompt, PromptForm
from specd.daemon.settings import Settings
from specd.daemon.worker.devices import accelerators, check_device, engine_errors
from specd.daemon.worker.drafting import Drafting, accept_rule, close_all, sampling_params
from specd.daemon.worker.prompts import Prompts

if TYPE_CHECKING:
    from specd.engine import Loaded

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

        drafters = [name for name in (key.draft, key.dflash) if name]
        loaded = engine.load(key.path, device=key.device, dtype=key.dtype, progress=weights, drafters=drafters)
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
        self.name = loaded.path.name
        self.form: PromptForm = form
        self.window = loaded.model.config.max_positions
        self._loaded = loaded
        self._drafting = drafting
        self._prompts = Prompts(loaded.model, cache_mib * 2**20)

    def count(self, text: str) -> int:
        """How many tokens `text` has."""
        return len(self._loaded.tokenizer.encode(text))

    def generate(self, asked: Asked) -> Generator[Prefilled | Stepped | Ended | Waits | None, None, None]:
        """One step of the engine a `next()`. Closing it cancels; what is in the KV cache of the prompt is kept."""
        from specd import engine

        loaded = self._loaded
        with engine_errors():
            ids = loaded.tokenizer.chat(asked.prompt.messages)
            max_tokens = min(asked.max_tokens, self.window - len(ids))
            yield from self._prompts.await_others(ids, takes_over=True)
            kept = self._prompts.take(ids, max_tokens)
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
            reading = self._prompts.begin(ids)
            try:
                for event in steps:
                    match event:
                        case engine.PrefillDone(reused, new, seconds):
                            self._prompts.share(ids, kept, proposers)
                            self._prompts.end(reading)
                            yield Prefilled(reused, new, seconds)
                        case engine.StepDone(_, text, record):
                            yield Stepped(text, record.proposer, record.drafted, record.accepted, record.emitted)
                        case engine.Finished(reason, tail, _):
                            yield Ended(reason, tail)
                        case _:
                            yield None
            finally:
                steps.close()
                self._prompts.end(reading)
                self._prompts.put(ids, kept, proposers)
                close_all(proposers)

    def prepare(self, prompts: tuple[Prompt, Prompt]) -> Iterator[Prefilled | Waits | None]:
        """Prefill what the prompts' tokens have in common at their beginning, and keep it."""
        from specd import engine
        from specd.engine.prefix import common_prefix

        with engine_errors():
            first, second = (self._loaded.tokenizer.chat(prompt.messages) for prompt in prompts)
            ids = first[: common_prefix(first, second)]
            is_read = False
            while not is_read:  # a rewrite may take over in the middle; what it has read is there afterwards
                yield from self._prompts.await_others(ids, takes_over=False)
                kept = self._prompts.take(ids, 0)
                proposers = tuple(self._drafting.models(Speculation(), sampling_params(Sampling()), kept.states))
                steps = engine.prepare(self._loaded.model, ids, self._prompts.kept, proposers, kept)
                reading = self._prompts.begin(ids, steps)
                try:
                    for event in steps:
                        match event:
                            case engine.PrefillDone(reused, new, seconds):
                                yield Prefilled(reused, new, seconds)
                            case _:
                                yield None
                finally:
                    steps.close()
                    is_read = self._prompts.end(reading)
                    close_all(proposers)

    def unload(self) -> None:
        """Give the memory back."""
        import torch

        self._prompts.kept.clear()
        del self._loaded, self._prompts, self._drafting
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def status(self) -> dict[str, Any]:
        """For `specd status`. May be called from any thread."""
        try:
            model, prefix = self._loaded.model, self._prompts.kept
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
