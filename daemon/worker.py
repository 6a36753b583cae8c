"""The engine as the daemon sees it: loads a model, asks it, prepares prompts. The only file of this room that imports
specd.engine, and it does so when a model is first loaded, not before: torch takes seconds to import.

All methods of EngineModel but `status` run on the scheduler's thread, and `load_model` on a loader's.
"""

import contextlib
import gc
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specd.daemon.errors import EngineFailed
from specd.daemon.generation import Asked, Ended, Prefilled, Stepped
from specd.daemon.models import ModelKey
from specd.daemon.prefix import PrefixStore, common_prefix
from specd.daemon.protocol import Sampling
from specd.daemon.rewrite.prompt import Prompt, PromptForm
from specd.daemon.settings import Settings

if TYPE_CHECKING:
    from specd.engine import Loaded, Proposer, SamplingParams
    from specd.engine.kv_cache import KVCache


def bundled_folder() -> Path:
    """Folder of the model that comes with specd."""
    from specd.mini import weights_path

    return weights_path()


def load_model(key: ModelKey, settings: Settings, progress: Callable[[float, str], None]) -> "EngineModel":
    """Load the model and warm what its first job would otherwise wait for. Raises EngineFailed."""
    progress(0.0, "starting torch")
    with _engine_errors():
        import torch

        from specd import engine
        from specd.engine.propose import edit  # noqa: F401  (what jobs need is there before the first one)

        if settings.threads:
            torch.set_num_threads(settings.threads)
        loaded = engine.load(key.path, device=key.device, dtype=key.dtype, progress=progress)
        model = EngineModel(loaded, prompt_form(loaded.path), settings.cache_memory * 2**20)
        progress(1.0, "warming up")
        model.warm_up()
        return model


def prompt_form(folder: Path) -> PromptForm:
    """The form of prompt that the model was made for: specd.json says so, else the general one. Raises EngineFailed."""
    path = folder / "specd.json"
    try:
        form = json.loads(path.read_text(encoding="utf-8"))["prompt"]
    except FileNotFoundError:
        return "chat"
    except (OSError, ValueError, KeyError, TypeError):
        form = None
    if form == "region":
        return "region"
    if form == "chat":
        return "chat"
    raise EngineFailed(
        f'{path} must be {{"prompt": "chat"}} or {{"prompt": "region"}}; correct it, or remove it for "chat".'
    )


class EngineModel:
    """A loaded model with its kept prompts. Implements generation.Model."""

    def __init__(self, loaded: "Loaded", form: PromptForm, cache_bytes: int) -> None:
        self.name = (
            loaded.path.name if form == "chat" else "bundled" if loaded.path == bundled_folder() else loaded.path.name
        )
        self.form: PromptForm = form
        self.window = loaded.model.config.max_positions
        self._loaded = loaded
        self._kept: PrefixStore[KVCache] = PrefixStore(cache_bytes // loaded.model.pool.bytes_per_page)

    def count(self, text: str) -> int:
        """How many tokens `text` has."""
        return len(self._loaded.tokenizer.encode(text))

    def warm_up(self) -> None:
        """Make first use of what is slow the first time: the chat template, the thread pool, the kernels."""
        ids = self._loaded.tokenizer.chat([{"role": "user", "content": "x"}])
        from specd import engine

        for _ in engine.generate(self._loaded.model, ids, tokenizer=self._loaded.tokenizer, max_tokens=2):
            pass

    def generate(self, asked: Asked) -> Iterator[Prefilled | Stepped | Ended | None]:
        """One step of the engine a `next()`. Closing it cancels; the prompt's KV cache is kept either way."""
        from specd import engine

        loaded = self._loaded
        with _engine_errors():
            ids = loaded.tokenizer.chat(asked.prompt.messages)
            room = self.window - len(ids)
            if room < 1:
                raise EngineFailed(
                    f"the prompt has {len(ids):,} tokens and the model's window {self.window:,}; rewrite less."
                )
            max_tokens = min(asked.max_tokens, room)
            cache = self._cache_for(ids, max_tokens)
            steps = engine.generate(
                loaded.model,
                ids,
                tokenizer=loaded.tokenizer,
                sampling=_sampling(asked.sampling),
                stop_ids=loaded.stop_ids,
                max_tokens=max_tokens,
                speculative=self._proposer(asked),
                cache=cache,
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
                self._kept.put(ids, cache)

    def prepare(self, prompts: tuple[Prompt, Prompt]) -> Iterator[Prefilled | None]:
        """Prefill what the prompts' tokens have in common at their beginning, and keep it."""
        import time

        from specd import engine

        with _engine_errors():
            first, second = (self._loaded.tokenizer.chat(prompt.messages) for prompt in prompts)
            ids = first[: common_prefix(first, second) + 1]  # prefill leaves the last token out
            cache = self._cache_for(ids, 0)
            reused, began = cache.length, time.monotonic()
            try:
                for _ in engine.prefill(self._loaded.model, ids, cache):
                    yield None
            finally:
                length = cache.length
                self._kept.put(ids, cache)
            yield Prefilled(reused, length - reused, time.monotonic() - began)

    def unload(self) -> None:
        """Give the memory back."""
        import torch

        self._kept.clear()
        del self._loaded, self._kept
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def status(self) -> dict[str, Any]:
        """For `specd status`. May be called from any thread."""
        try:
            model, kept = self._loaded.model, self._kept
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
                "kept_tokens": kept.tokens,
                "kept_bytes": kept.pages * pool.bytes_per_page,
                "limit_bytes": kept.max_pages * pool.bytes_per_page,
                "pool_tokens": pool.pages * pool.page_size,
                "free_tokens": pool.free_pages * pool.page_size,
            },
        }

    def _cache_for(self, ids: list[int], more: int) -> "KVCache":
        """A cache with the longest kept beginning of `ids`, and room in the pool for the rest and `more` tokens."""
        model = self._loaded.model
        cache = self._kept.take(ids) or model.new_cache()
        needed = -(-(len(ids) + more - cache.length) // model.pool.page_size) + 1
        while model.pool.free_pages < needed and self._kept.drop_oldest():
            pass
        return cache

    def _proposer(self, asked: Asked) -> "Proposer | None":
        from specd import engine

        k, tokenizer = asked.speculation.k, self._loaded.tokenizer
        if k == 0:
            return None
        if asked.speculation.proposer == "ngram":
            return engine.NgramProposer(k=k or 15, seeds=[tokenizer.encode(text) for text in asked.draft_texts])
        ends = tuple(sorted(self._loaded.stop_ids))[:1]
        from specd.engine.propose.edit import EditProposer

        return EditProposer(tokenizer, asked.prompt.predicted, asked.pairs, max_k=k or 128, end_ids=ends)


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
