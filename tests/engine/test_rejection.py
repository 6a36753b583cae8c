"""The rejection rule keeps the target's law, whatever the drafts' law; where it does not apply, the exact rule acts."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from law import counted, p_value
from scripted import Scripted, ScriptedTree, assert_fresh, run, tokens_of
from torch import Tensor

from specd.engine import (
    Adaptive,
    CostTable,
    Draft,
    EngineConfig,
    Loaded,
    NonFiniteLogits,
    SamplingParams,
    StepDone,
    generate,
    load,
)
from specd.engine.propose.draft_model import DraftModelProposer
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.tree import TreeProposer
from specd.engine.rejection import accept_by_rejection
from specd.engine.sampling import ACCEPT, DRAFT, RESIDUAL, AcceptRule, draw, probabilities

Maker = Callable[..., Path]
VOCAB, LENGTH = 3, 3  # 27 sequences
NEVER: frozenset[int] = frozenset()
PROMPT = list(b"any law of drafts, one law of tokens")


def chain_logits(seed: int) -> Tensor:
    """[V, V]: the next token's logits after each token."""
    return torch.randn(VOCAB, VOCAB, generator=torch.Generator().manual_seed(seed)) * 1.3


TARGET_LOGITS = chain_logits(1)
HOT = {"plain": SamplingParams(0.9), "cut": SamplingParams(1.1, top_p=0.8)}


def with_seed(params: SamplingParams, seed: int) -> SamplingParams:
    return SamplingParams(params.temperature, params.top_k, params.top_p, params.min_p, seed)


def sequence_law(params: SamplingParams) -> Tensor:
    """[V^LENGTH]: chance of each sequence that starts after token 0."""
    step = probabilities(TARGET_LOGITS, params).double()
    law = step[0]
    for _ in range(LENGTH - 1):
        law = (law[:, None] * step.repeat(len(law) // VOCAB, 1)).flatten()
    return law


def sequences(params: SamplingParams, k: int, draft_logits: Tensor | None, told: Tensor | None = None) -> Tensor:
    """The sequences, as numbers, that steps of k drafts give with 600 seeds. draft_logits None: drafts that are no
    draws. told: the law that the drafts claim to be drawn from, where they lie."""
    found = []
    laws = None if draft_logits is None else probabilities(draft_logits if told is None else told, params)
    for seed in range(600):
        sampling = with_seed(params, seed)
        out = [0]
        while len(out) <= LENGTH:
            start, drafted = len(out), list[int]()
            for place in range(k):
                before = [*out, *drafted][-1]
                if draft_logits is None:
                    drafted.append((before + place) % VOCAB)
                else:
                    at = torch.tensor([start + place])
                    drafted.append(int(draw(draft_logits[before : before + 1], at, sampling, stream=DRAFT)))
            read = [out[-1], *drafted]
            draft = Draft(
                torch.tensor(drafted, dtype=torch.int32), probs=None if laws is None else laws[torch.tensor(read[:-1])]
            )
            out += accept_by_rejection(draft, TARGET_LOGITS[torch.tensor(read)], torch.arange(k + 1) + start, sampling)
        found.append(sum(token * VOCAB ** (LENGTH - 1 - place) for place, token in enumerate(out[1 : LENGTH + 1])))
    return counted(torch.tensor(found), VOCAB**LENGTH)


@pytest.mark.parametrize("params", HOT.values(), ids=HOT)
@pytest.mark.parametrize("k", [1, 3])
def test_sampled_drafts_of_another_law_leave_the_targets_law(params: SamplingParams, k: int) -> None:
    assert p_value(sequences(params, k, chain_logits(2)), sequence_law(params)) > 1e-3


@pytest.mark.parametrize("params", HOT.values(), ids=HOT)
def test_drafts_that_are_no_draws_leave_the_targets_law(params: SamplingParams) -> None:
    assert p_value(sequences(params, 2, None), sequence_law(params)) > 1e-3


def test_the_check_sees_a_draft_law_that_is_not_the_one_drawn_from() -> None:
    lies = sequences(HOT["plain"], 2, chain_logits(2), told=chain_logits(2) * 0.3)
    assert p_value(lies, sequence_law(HOT["plain"])) < 1e-6


def one_step(p: Tensor, q: Tensor, stream: int) -> Tensor:
    """How often each token came first in 1000 steps of one draft, drawn from q with the noise of `stream`."""
    params, first = SamplingParams(1.0), []
    for position in range(1000):
        at = torch.tensor([position, position + 1])
        x = draw(q.log(), at[:1], params, stream=stream)
        first.append(accept_by_rejection(Draft(x.int(), probs=q), p.log().expand(2, -1), at, params)[0])
    return counted(torch.tensor(first), p.shape[1])


# Laws for which a draft that shares its noise with the acceptance, or with the residual, shows most.
SHARED = {ACCEPT: ([0.1, 0.9], [0.5, 0.5]), RESIDUAL: ([0.01, 0.69, 0.3], [0.5, 0.45, 0.05])}


@pytest.mark.parametrize("stream", SHARED)
def test_noise_that_is_used_twice_breaks_the_law_and_a_stream_of_its_own_does_not(stream: int) -> None:
    p, q = (torch.tensor([law]) for law in SHARED[stream])
    assert p_value(one_step(p, q, DRAFT), p[0]) > 1e-3
    assert p_value(one_step(p, q, stream), p[0]) < 1e-6


def test_a_drafted_token_passes_as_often_as_the_laws_overlap() -> None:
    params, rows = SamplingParams(1.0), 1500
    p, q = torch.tensor([[0.5, 0.3, 0.1, 0.1]]), torch.tensor([[0.1, 0.3, 0.4, 0.2]])
    passed = 0
    for position in range(rows):
        at = torch.tensor([position, position + 1])
        x = draw(q.log(), at[:1], params, stream=DRAFT)
        tokens = accept_by_rejection(Draft(x.int(), probs=q), p.log().expand(2, -1), at, params)
        passed += len(tokens) - 1
        assert len(tokens) == 2 or tokens != x.tolist() or p[0, x] >= q[0, x]
    assert p_value(torch.tensor([passed, rows - passed]), torch.tensor([0.6, 0.4])) > 1e-3  # the sum of min(p, q)


@given(st.integers(0, 10**6), st.integers(0, VOCAB - 1), st.integers(0, 2**40))
def test_a_refused_point_draft_is_never_what_comes_instead(position: int, token: int, seed: int) -> None:
    logits = TARGET_LOGITS[:2].clone()
    params = SamplingParams(2.0, seed=seed)
    tokens = accept_by_rejection(Draft.chain([token]), logits, torch.tensor([position, position + 1]), params)
    assert (tokens[0] == token) == (len(tokens) == 2)


@given(st.integers(0, 2**40), st.integers(1, 5))
def test_tokens_that_top_k_excludes_are_never_emitted(seed: int, k: int) -> None:
    params = SamplingParams(1.0, top_k=2, seed=seed)
    logits = torch.randn(k + 1, 9, generator=torch.Generator().manual_seed(seed))
    law = probabilities(logits, params)
    drafted = torch.randint(0, 9, (k,), generator=torch.Generator().manual_seed(seed + 1)).int()
    tokens = accept_by_rejection(Draft(drafted, probs=torch.full((k, 9), 1 / 9)), logits, torch.arange(k + 1), params)
    assert all(law[row, token] > 0 for row, token in enumerate(tokens))


def test_a_draft_law_that_is_everywhere_above_the_targets_still_gives_a_token_of_it() -> None:
    """No law is, but rounding can make p - q vanish everywhere."""
    logits = torch.tensor([[0.0, 1.0, -math.inf], [0.0, 1.0, -math.inf]])
    params = SamplingParams(1.0)
    claimed = probabilities(logits[:1], params) * 1.5
    seen = set()
    for position in range(200):
        tokens = accept_by_rejection(
            Draft(torch.tensor([1], dtype=torch.int32), probs=claimed), logits, torch.tensor([position, 1]), params
        )
        seen.add((len(tokens), tokens[0]))
    assert {length for length, _ in seen} == {1, 2}
    assert {token for _, token in seen} == {0, 1}


def test_laws_that_are_none_are_refused() -> None:
    params, logits = SamplingParams(1.0), torch.zeros(2, 5)
    at = torch.arange(2)
    draft = Draft(torch.tensor([1], dtype=torch.int32), probs=torch.full((1, 5), 0.2))
    for bad in (math.nan, math.inf):
        broken = logits.clone()
        broken[1, 2] = bad
        with pytest.raises(NonFiniteLogits):
            accept_by_rejection(draft, broken, at, params)
    with pytest.raises(NonFiniteLogits):
        accept_by_rejection(Draft(draft.tokens, probs=torch.full((1, 5), math.nan)), logits, at, params)
    with pytest.raises(ValueError, match=r"\(1, 4\).*\(1, 5\)"):
        accept_by_rejection(Draft(draft.tokens, probs=torch.full((1, 4), 0.25)), logits, at, params)


@pytest.fixture(scope="module")
def loaded(tiny_folder: Maker) -> Loaded:
    return load(tiny_folder(31), engine=EngineConfig(page_size=16, prefill_chunk=64))


@pytest.fixture(scope="module")
def other(tiny_folder: Maker) -> Loaded:
    return load(tiny_folder(32), engine=EngineConfig(page_size=16, prefill_chunk=64))


def test_a_models_tokens_keep_their_law_whoever_drafts(loaded: Loaded, other: Loaded) -> None:
    params = SamplingParams(3.0, top_k=3)
    counts = []
    accepted = drafted = 0
    for seed in range(500):
        sampling = with_seed(params, seed)
        drafter = DraftModelProposer(other.model, 2, target=loaded.model, sampling=sampling, accept="rejection")
        tokens, stats = run(
            generate(
                loaded.model, PROMPT, sampling=sampling, accept="rejection", speculative=drafter, max_tokens=2,
                stop_ids=NEVER,
            )
        )  # fmt: skip
        counts.append(tokens)
        accepted, drafted = accepted + stats.accepted, drafted + stats.drafted
    first = law_after(loaded, PROMPT, params)
    law, seen = [], []
    for a in first.nonzero()[:, 0].tolist():
        second = law_after(loaded, [*PROMPT, a], params)
        for b in second.nonzero()[:, 0].tolist():
            law.append(float(first[a] * second[b]))
            seen.append(sum(pair == [a, b] for pair in counts))
    assert sum(seen) == 500
    assert p_value(torch.tensor(seen), torch.tensor(law)) > 1e-3
    assert p_value(torch.tensor(seen), torch.tensor(law).roll(1)) < 1e-6
    assert 0 < accepted < drafted


def law_after(loaded: Loaded, ids: list[int], params: SamplingParams) -> Tensor:
    cache = loaded.model.new_cache()
    hidden = loaded.model.forward(torch.tensor(ids), torch.arange(len(ids)), cache)
    cache.free()
    return probabilities(loaded.model.logits(hidden.last[-1:]), params)[0]


def rules(loaded: Loaded, speculative: object, sampling: SamplingParams) -> tuple[list[int], set[str]]:
    events = list(
        generate(
            loaded.model, PROMPT, sampling=sampling, accept="rejection", max_tokens=60, stop_ids=NEVER,
            speculative=speculative,  # type: ignore[arg-type]
        )
    )  # fmt: skip
    return tokens_of(events), {event.record.rule for event in events if isinstance(event, StepDone)}


def test_trees_greedy_steps_and_steps_without_a_draft_go_by_the_exact_rule_and_say_so(loaded: Loaded) -> None:
    hot = SamplingParams(1.0, seed=2)
    plain = tokens_of(generate(loaded.model, PROMPT, sampling=hot, max_tokens=60, stop_ids=NEVER))
    greedy = tokens_of(generate(loaded.model, PROMPT, max_tokens=60, stop_ids=NEVER))
    assert rules(loaded, None, hot) == (plain, {"exact"})
    assert rules(loaded, ScriptedTree(PROMPT + plain, 3), hot) == (plain, {"exact"})
    assert rules(loaded, Scripted(PROMPT + greedy, lambda step: step % 4), SamplingParams()) == (greedy, {"exact"})


def test_a_sampled_chain_goes_by_the_rejection_rule_and_leaves_the_cache_clean(loaded: Loaded, other: Loaded) -> None:
    hot = SamplingParams(1.5, seed=2)
    drafter = DraftModelProposer(other.model, 4, target=loaded.model, sampling=hot, accept="rejection")
    cache = loaded.model.new_cache()
    out: list[int] = []
    for event in generate(
        loaded.model, PROMPT, sampling=hot, accept="rejection", speculative=drafter, cache=cache, max_tokens=40,
        stop_ids=NEVER,
    ):  # fmt: skip
        if isinstance(event, StepDone):
            out += event.tokens
            assert event.record.rule == ("rejection" if event.record.drafted else "exact")
            assert_fresh(loaded.model, cache, (PROMPT + out)[:-1])
            held = drafter.context.cache
            assert_fresh(other.model, held, (PROMPT + out)[: held.length])
    assert len(out) == 40
    cache.free()


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_tree_with_drafts_of_the_targets_own_noise_is_refused_under_rejection(
    loaded: Loaded, other: Loaded, is_nested: bool
) -> None:
    """Whether such a draft is a chain depends on what the target is going to draw."""
    hot = SamplingParams(1.5, seed=2)

    def tree(rule: AcceptRule, drafts_for: SamplingParams = hot) -> TreeProposer:
        drafter = DraftModelProposer(other.model, 4, target=loaded.model, sampling=drafts_for, accept=rule)
        inner = TreeProposer([NgramBranches(5), drafter], 7)
        return TreeProposer([inner], 7) if is_nested else inner

    with pytest.raises(ValueError, match="accept='rejection' too"):
        rules(loaded, tree("exact"), hot)
    with pytest.raises(ValueError, match="accept='rejection' too"):
        rules(loaded, Adaptive([tree("exact")], CostTable({1: 1.0, 8: 1.1}, frozen=True)), hot)
    plain = tokens_of(generate(loaded.model, PROMPT, sampling=hot, max_tokens=20, stop_ids=NEVER))
    exact = generate(loaded.model, PROMPT, sampling=hot, max_tokens=20, stop_ids=NEVER, speculative=tree("exact"))
    assert tokens_of(exact) == plain
    assert len(rules(loaded, tree("rejection"), hot)[0]) == 60
    assert len(rules(loaded, tree("exact", SamplingParams()), hot)[0]) == 60  # its drafts are no draws
    greedy = tokens_of(generate(loaded.model, PROMPT, max_tokens=60, stop_ids=NEVER))
    assert rules(loaded, tree("exact"), SamplingParams()) == (greedy, {"exact"})


def test_an_unknown_rule_is_refused(loaded: Loaded) -> None:
    with pytest.raises(ValueError, match="exact or rejection"):
        next(generate(loaded.model, PROMPT, accept="typical"))  # type: ignore[arg-type]


@pytest.mark.parametrize("has_law", [True, False])
def test_the_device_is_waited_for_once(monkeypatch: pytest.MonkeyPatch, has_law: bool) -> None:
    """On the meta device reading a value raises, but for the answer, which is put in its place here."""
    reads: list[tuple[int, ...]] = []

    def answer(tensor: Tensor) -> list[int]:
        reads.append(tuple(tensor.shape))
        return [1, 7, 1, 5, 6, 8]  # one accepted, then 7; the law is one; what was drafted

    monkeypatch.setattr(Tensor, "tolist", answer)
    draft = Draft(
        torch.empty(3, dtype=torch.int32, device="meta"), probs=torch.empty(3, 9, device="meta") if has_law else None
    )
    logits, positions = torch.empty(4, 9, device="meta"), torch.empty(4, dtype=torch.int64, device="meta")
    params = SamplingParams(0.8, top_k=5, top_p=0.9, min_p=0.01)
    assert accept_by_rejection(draft, logits, positions, params) == [5, 7]
    assert reads == [(6,)]
