"""Speculation changes nothing: every proposer, draft length and shape of draft, down to ties of one bit; and however a
job ends, every cache holds what a fresh prefill of the committed tokens would leave there."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from scripted import VOCAB, Scripted, ScriptedTree, assert_fresh, run, tokens_of
from torch import Tensor

from specd.engine import (
    Choice,
    Committed,
    Draft,
    EngineConfig,
    EngineError,
    Event,
    Finished,
    Loaded,
    NgramProposer,
    Proposer,
    SamplingParams,
    StepDone,
    StepRecord,
    generate,
    load,
)
from specd.engine import Sequence as Row
from specd.engine.kv_cache import KVCache
from specd.engine.model import Hidden
from specd.engine.ops import TorchOps
from specd.engine.policy import PLAIN
from specd.engine.propose.draft_model import DraftModelProposer
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.suffix import SuffixProposer
from specd.engine.propose.tree import TreeProposer

Maker = Callable[..., Path]
NEVER: frozenset[int] = frozenset()
ENGINE = EngineConfig(page_size=16, prefill_chunk=16)
PROMPT = list(b"a draft may guess, a draft may err, a draft may never tell")
PARAMS = {"greedy": SamplingParams(), "sampled": SamplingParams(temperature=0.9, top_k=50, top_p=0.97, seed=5)}
LENGTHS = (0, 1, 3, 7, 15, 31)


def make(folder: Path, ops: str) -> Loaded:
    loaded = load(folder, engine=ENGINE)
    if ops == "torch":
        loaded.model.ops = TorchOps()
    elif loaded.model.ops.name != "native":
        pytest.skip("the native kernels are off, or there is no C compiler")
    return loaded


@pytest.fixture(scope="module", params=["native", "torch"])
def loaded(tiny_folder: Maker, request: pytest.FixtureRequest) -> Loaded:
    return make(tiny_folder(51), request.param)


@pytest.fixture(scope="module")
def near(loaded: Loaded, tiny_folder: Maker) -> Loaded:
    """A draft model: the same weights, a little off."""
    folder = tiny_folder(51)
    noise = torch.Generator().manual_seed(2)
    tensors = load_file(folder / "model.safetensors")
    moved = {name: t + 0.05 * torch.randn(t.shape, generator=noise) * t.std() for name, t in tensors.items()}
    save_file(moved, str(folder / "model.safetensors"), {"format": "pt"})
    return make(folder, loaded.model.ops.name)


class AtMost:
    """Always the one proposer, with drafts of at most k tokens; with k = 0 it only watches."""

    def __init__(self, proposer: Proposer, k: int) -> None:
        self.proposers, self.k = (proposer,), k

    def choose(self, seq: Row, limit: int) -> Choice:
        k = min(self.k, limit)
        return Choice(self.proposers[0].name, self.proposers[0].propose(seq, k)) if k else PLAIN

    def record(self, record: StepRecord) -> None:
        assert record.drafted <= self.k


def misread(tokens: list[int], seed: int) -> list[int]:
    """The tokens with every tenth replaced, left out or doubled."""
    draw, out = random.Random(seed), list[int]()
    for token in tokens:
        out += draw.choice([[draw.randrange(256)], [], [token, token]]) if draw.random() < 0.1 else [token]
    return out


Build = Callable[[Loaded, Loaded, list[int], SamplingParams], Proposer]


def edit(loaded: Loaded, near: Loaded, plain: list[int], sampling: SamplingParams) -> EditProposer:
    text = bytes(token for token in plain if token < 256).decode("latin-1")
    return EditProposer(loaded.tokenizer, text[: len(text) // 2] + " and so on " + text[len(text) // 2 :])


def draft_model(loaded: Loaded, near: Loaded, plain: list[int], sampling: SamplingParams) -> DraftModelProposer:
    return DraftModelProposer(near.model, 31, target=loaded.model, sampling=sampling)


def branches(plain: list[int]) -> NgramBranches:
    return NgramBranches(31, seeds=[misread(PROMPT + plain, 3), misread(PROMPT + plain, 4), misread(plain, 5)])


class Trees:
    """A proposer that offers trees, under the name that draws them."""

    def __init__(self, inner: EditProposer) -> None:
        self.inner, self.name, self.max_k = inner, "edit-tree", 31

    def propose(self, seq: Row, k: int) -> Draft:
        return self.inner.propose_tree(seq, k)

    def observe(self, seq: Row, committed: Committed) -> None:
        self.inner.observe(seq, committed)

    def truncate(self, length: int) -> None:
        self.inner.truncate(length)


PROPOSERS: dict[str, Build] = {
    "ngram": lambda loaded, near, plain, sampling: NgramProposer(31, seeds=[misread(PROMPT + plain, 1)]),
    "suffix": lambda loaded, near, plain, sampling: SuffixProposer(31),
    "edit": edit,
    "draft model": draft_model,
    "script": lambda loaded, near, plain, sampling: Scripted(PROMPT + plain + [0] * 40, lambda step: step * 7 % 33),
    "script tree": lambda loaded, near, plain, sampling: ScriptedTree(PROMPT + plain + [0] * 40, 6, 0.8),
    "ngram tree": lambda loaded, near, plain, sampling: TreeProposer([branches(plain)]),
    "edit tree": lambda *given: Trees(edit(*given)),
    "ngram and draft model tree": lambda *given: TreeProposer([branches(given[2]), draft_model(*given)]),
}


@pytest.mark.parametrize("sampling", PARAMS.values(), ids=PARAMS)
@pytest.mark.parametrize("build", PROPOSERS.values(), ids=PROPOSERS)
def test_the_output_is_plain_decodings_for_every_proposer_and_draft_length(
    loaded: Loaded, near: Loaded, build: Build, sampling: SamplingParams
) -> None:
    job = partial(generate, loaded.model, PROMPT, sampling=sampling, stop_ids=NEVER)
    plain = tokens_of(job(max_tokens=60))
    for k in LENGTHS:
        cache = loaded.model.new_cache()
        proposer = build(loaded, near, plain, sampling)
        count = 60 if loaded.model.ops.name == "native" else k + 6  # the definitions in torch are slow
        tokens, stats = run(job(speculative=AtMost(proposer, k), cache=cache, max_tokens=count))
        assert tokens == plain[:count]
        assert_fresh(loaded.model, cache, PROMPT + tokens[:-1])
        cache.free()
        assert k or not stats.drafted
        if k == 31 and proposer.name not in ("suffix", "edit", "edit-tree"):
            assert stats.accepted > 5  # some drafts were right: the drafts are a test of something


@settings(deadline=None, max_examples=12)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=12), st.integers(1, 12), st.integers(1, 40), st.booleans())
def test_any_pattern_of_acceptance_gives_the_same_output_and_is_counted_right(
    loaded: Loaded, pattern: list[int], k: int, budget: int, sampled: bool
) -> None:
    sampling = PARAMS["sampled" if sampled else "greedy"]
    job = partial(generate, loaded.model, PROMPT, sampling=sampling, stop_ids=NEVER)
    plain = tokens_of(job(max_tokens=budget))
    script = Scripted(PROMPT + plain, lambda step: pattern[step % len(pattern)])
    cache = loaded.model.new_cache()
    tokens, stats = run(job(max_tokens=budget, speculative=AtMost(script, k), cache=cache))
    assert tokens == plain
    assert_fresh(loaded.model, cache, (PROMPT + plain)[:-1])
    cache.free()
    left, step, accepted, steps = budget, 0, 0, 0
    while left:
        drafted = min(k, left - 1)
        held = min(drafted, pattern[step % len(pattern)]) if drafted else 0
        step += drafted > 0
        left, accepted, steps = left - held - 1, accepted + held, steps + 1
    assert (stats.accepted, stats.steps, stats.tokens) == (accepted, steps, budget)


class Reordered:
    """Operations whose products of several rows add up in another order than those of one row: a bit may differ."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if len(x) == 1:
            return self._inner.linear(x, weight, bias)  # type: ignore[no-any-return]
        half = x.shape[1] // 2
        left, right = x[:, :half].contiguous(), x[:, half:].contiguous()
        out = self._inner.linear(left, weight[:, :half].contiguous()) + self._inner.linear(
            right, weight[:, half:].contiguous()
        )
        return out if bias is None else out + bias  # type: ignore[no-any-return]


def with_twins(folder: Path, seed: int) -> Path:
    """Every second vocabulary row of the head is the one before it but for single last bits, while their embeddings
    have nothing in common: which of the two a step emits is a matter of one bit, and then all that follows."""
    head = (tensors := load_file(folder / "model.safetensors"))["lm_head.weight"]
    draw = torch.Generator().manual_seed(seed)
    twin = head[0::2].clone()
    direction = torch.where(torch.rand(twin.shape, generator=draw) < 0.5, torch.inf, -torch.inf)
    moved = torch.rand(twin.shape, generator=draw) < 0.3
    head[1::2] = torch.where(moved, torch.nextafter(twin, direction), twin)
    save_file(tensors, str(folder / "model.safetensors"), {"format": "pt"})
    return folder


@pytest.mark.parametrize("shape", ["chain", "tree"])
@pytest.mark.parametrize("ops", ["native", "torch"])
def test_near_ties_are_decided_alike_by_one_row_and_by_many(tiny_folder: Maker, ops: str, shape: str) -> None:
    seen_by_the_fixture = 0
    for seed in range(3 if ops == "native" else 1):
        model = make(with_twins(tiny_folder(seed, tie_word_embeddings=False), seed), ops).model
        job = partial(generate, model, PROMPT, max_tokens=30, stop_ids=NEVER)

        def script(plain: list[int], pattern: int = seed) -> Scripted:
            truth = PROMPT + plain + [0] * 40
            return Scripted(truth, lambda step: step % 6) if shape == "chain" else ScriptedTree(truth, pattern, 0.9)

        plain = tokens_of(job())
        assert len({token // 2 for token in plain}) > 8
        assert tokens_of(job(speculative=script(plain))) == plain
        model.ops = Reordered(model.ops)
        plain = tokens_of(job())
        with pytest.MonkeyPatch.context() as patch:  # this script goes on where the truth is left
            patch.setattr(Scripted, "ahead", lambda self, seq: self.truth[len(seq) :])
            seen_by_the_fixture += tokens_of(job(speculative=script(plain))) != plain
    assert seen_by_the_fixture > 0  # one bit between one row and many, and the outputs part


# --- endings ----------------------------------------------------------------------------------------------------------

SPECULATIVE = ("script", "script tree", "ngram tree", "draft model", "ngram and draft model tree")


class Job:
    """A job on a cache of its own, its proposer, and what it committed so far."""

    def __init__(self, loaded: Loaded, near: Loaded, name: str, plain: list[int], **options: Any) -> None:
        self.loaded, self.near, self.name = loaded, near, name
        self.plain = plain
        self.proposer = PROPOSERS[name](loaded, near, plain, SamplingParams())
        self.cache = loaded.model.new_cache()
        self.committed: list[int] = []
        self.options = options

    def events(self) -> Iterator[Event]:
        for event in generate(
            self.loaded.model, PROMPT, cache=self.cache, speculative=AtMost(self.proposer, 9), **self.options
        ):
            if isinstance(event, StepDone):
                self.committed += event.tokens
            yield event

    def check(self) -> None:
        """Every cache is a fresh prefill's, nothing is lost, and the engine goes on as if nothing had happened."""
        row = PROMPT + self.committed
        assert self.committed == self.plain[: len(self.committed)]
        assert_fresh(self.loaded.model, self.cache, row[:-1])
        for part in (self.proposer, *getattr(self.proposer, "sources", ())):
            if isinstance(part, DraftModelProposer):
                held = part.context.cache
                assert_fresh(self.near.model, held, row[: held.length])
                part.close()
        rest = self.plain[len(self.committed) :]
        again = generate(self.loaded.model, row, cache=self.cache, max_tokens=len(rest) or 1, stop_ids=NEVER)
        assert tokens_of(again)[: len(rest)] == rest
        self.cache.free()
        for model in (self.loaded.model, self.near.model):
            assert model.pool.free_pages == model.pool.pages


@pytest.fixture(scope="module")
def plain(loaded: Loaded) -> list[int]:
    return tokens_of(generate(loaded.model, PROMPT, max_tokens=40, stop_ids=NEVER))


@pytest.mark.parametrize("name", SPECULATIVE)
def test_a_stop_id_inside_an_accepted_run(loaded: Loaded, near: Loaded, plain: list[int], name: str) -> None:
    for stop in sorted(set(plain))[:6]:
        job = Job(loaded, near, name, plain, max_tokens=40, stop_ids=frozenset({stop}))
        *_, last = job.events()
        assert isinstance(last, Finished)
        assert last.reason == "stop"
        assert job.committed == plain[: plain.index(stop) + 1]
        assert last.stats.accepted <= last.stats.tokens == len(job.committed)
        job.check()


@pytest.mark.parametrize("name", SPECULATIVE)
def test_a_stop_string(loaded: Loaded, near: Loaded, plain: list[int], name: str) -> None:
    text = loaded.tokenizer.decode(plain)
    for at in (5, 11, 17):
        stop = text[at : at + 2]
        job = Job(
            loaded, near, name, plain, max_tokens=40, stop_ids=NEVER, stop_strings=[stop], tokenizer=loaded.tokenizer
        )
        events = list(job.events())
        last = events[-1]
        assert isinstance(last, Finished)
        said = "".join(event.text for event in events if isinstance(event, StepDone)) + last.text_tail
        assert (last.reason, said) == ("stop", text[: text.index(stop)])
        job.check()


@pytest.mark.parametrize("name", SPECULATIVE)
def test_the_budgets_end(loaded: Loaded, near: Loaded, plain: list[int], name: str) -> None:
    for budget in (1, 2, 13):
        job = Job(loaded, near, name, plain, max_tokens=budget, stop_ids=NEVER)
        *_, last = job.events()
        assert isinstance(last, Finished)
        assert (last.reason, len(job.committed)) == ("length", budget)
        job.check()


@pytest.mark.parametrize("name", SPECULATIVE)
def test_a_cancel_at_any_event(loaded: Loaded, near: Loaded, plain: list[int], name: str) -> None:
    for after in (1, 3, 6, 9):  # events: chunks of the prefill, its end, steps
        job = Job(loaded, near, name, plain, max_tokens=40, stop_ids=NEVER)
        events = job.events()
        for _ in range(after):
            next(events)
        events.close()  # type: ignore[attr-defined]
        if job.committed:
            job.check()
        else:
            assert_fresh(loaded.model, job.cache, PROMPT[: job.cache.length])
            job.cache.free()


class Boom(Exception):
    pass


@pytest.mark.parametrize("name", SPECULATIVE)
def test_a_proposer_that_raises_before_or_after_it_drafted(
    loaded: Loaded, near: Loaded, plain: list[int], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_late in (False, True):
        job = Job(loaded, near, name, plain, max_tokens=40, stop_ids=NEVER)
        propose, calls = job.proposer.propose, 0

        def raising(seq: Row, k: int, propose: Any = propose, is_late: bool = is_late) -> Draft:
            nonlocal calls
            calls += 1
            if calls == 3:
                if is_late:
                    propose(seq, k)
                raise Boom
            return propose(seq, k)  # type: ignore[no-any-return]

        monkeypatch.setattr(job.proposer, "propose", raising)
        with pytest.raises(Boom):
            list(job.events())
        assert job.committed
        job.check()


@pytest.mark.parametrize("error", [Boom, RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("name", SPECULATIVE)
def test_a_verify_step_that_raises(
    loaded: Loaded,
    near: Loaded,
    plain: list[int],
    name: str,
    error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(loaded, near, name, plain, max_tokens=40, stop_ids=NEVER)
    forward, calls = loaded.model.forward, 0

    def raising(
        tokens: Tensor, positions: Tensor, cache: KVCache, mask: Tensor | None = None, taps: Sequence[int] = ()
    ) -> Hidden:
        nonlocal calls
        hidden = forward(tokens, positions, cache, mask, taps)
        calls += 1
        if calls == 7:
            raise error("in a step")
        return hidden

    with monkeypatch.context() as patch:
        patch.setattr(loaded.model, "forward", raising)
        with pytest.raises(EngineError if error is RuntimeError else error):
            list(job.events())
    assert job.committed
    job.check()


def test_the_vocabularys_padding_is_never_drawn(tiny_folder: Maker) -> None:
    model = load(tiny_folder(52), engine=ENGINE).model
    assert (model.vocab_limit, model.config.vocab_size) == (VOCAB, tiny.CONFIG["vocab_size"])
    model.weights.embedding[VOCAB:] *= 50
    hidden = model.forward(torch.tensor(PROMPT), torch.arange(len(PROMPT)), model.new_cache()).last
    assert (hidden @ model.weights.head.T).argmax(dim=-1).max() >= VOCAB  # the padding would win
    for params in (SamplingParams(), SamplingParams(5.0), SamplingParams(1.0, top_k=3), SamplingParams(1.0, top_p=0.5)):
        options = {"sampling": params, "max_tokens": 40, "stop_ids": NEVER, "logprobs": True}
        assert max(tokens_of(generate(model, PROMPT, **options))) < VOCAB  # type: ignore[arg-type]
