"""A draft model: right when it is the target itself, harmless when it is not, and its cache never runs ahead."""

from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
import torch
from drafters import ENGINE, NEVER
from scripted import assert_fresh, run, tokens_of

from specd.engine import (
    Choice,
    Loaded,
    ModelError,
    NgramProposer,
    Proposer,
    SamplingParams,
    Sequence,
    StepDone,
    StepRecord,
    generate,
    load,
)
from specd.engine.kv_cache import KVCache
from specd.engine.model import Hidden
from specd.engine.policy import PLAIN
from specd.engine.propose.draft_model import DraftModelProposer, load_draft_model
from specd.engine.sampling import AcceptRule, probabilities

Maker = Callable[..., Path]
PROMPT = list(b"the model that drafts is the model that judges")
SAMPLED = SamplingParams(temperature=0.9, top_p=0.95, seed=3)


@pytest.mark.parametrize("accept", ["exact", "rejection"])
@pytest.mark.parametrize("sampling", [SamplingParams(), SamplingParams(temperature=1.3, seed=-4), SAMPLED])
def test_the_target_as_its_own_draft_is_accepted_whole(
    loaded: Loaded, sampling: SamplingParams, accept: AcceptRule
) -> None:
    twin = load(loaded.path, engine=ENGINE)
    drafter = DraftModelProposer(twin.model, 7, target=loaded.model, sampling=sampling, accept=accept)
    tokens, stats = run(
        generate(
            loaded.model, PROMPT, sampling=sampling, accept=accept, speculative=drafter, max_tokens=504, stop_ids=NEVER
        )
    )
    assert (len(tokens), stats.steps) == (504, 63)
    assert stats.accepted == stats.drafted == 63 * 7
    if accept == "exact":
        plain, _ = run(generate(loaded.model, PROMPT, sampling=sampling, max_tokens=504, stop_ids=NEVER))
        assert tokens == plain


@pytest.mark.parametrize("sampling", [SamplingParams(), SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("k", [1, 3, 15])
def test_a_model_that_errs_changes_nothing_and_its_cache_holds_committed_tokens_only(
    loaded: Loaded, near: Loaded, k: int, sampling: SamplingParams
) -> None:
    plain, _ = run(generate(loaded.model, PROMPT, sampling=sampling, max_tokens=80, stop_ids=NEVER))
    drafter = DraftModelProposer(near.model, k, target=loaded.model, sampling=sampling)
    out: list[int] = []
    accepted: set[int] = set()
    for event in generate(loaded.model, PROMPT, sampling=sampling, speculative=drafter, max_tokens=80, stop_ids=NEVER):
        if isinstance(event, StepDone):
            out += event.tokens
            accepted.add(event.record.accepted)
            held = drafter.context.cache.length
            assert len(PROMPT) + len(out) - (2 if event.record.drafted else 3) <= held < len(PROMPT) + len(out)
            assert_fresh(near.model, drafter.context.cache, (PROMPT + out)[:held])
    assert out == plain
    assert min(accepted) < k == max(accepted)  # both refusals and full acceptance were seen
    drafter.close()
    assert near.model.pool.free_pages == near.model.pool.pages


def test_after_full_acceptance_the_last_draft_is_fed_with_the_bonus_token(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = load(loaded.path, engine=ENGINE).model
    fed: list[int] = []
    forward = twin.forward

    def spy(tokens: torch.Tensor, positions: torch.Tensor, cache: KVCache) -> Hidden:
        fed.append(len(tokens))
        return forward(tokens, positions, cache)

    monkeypatch.setattr(twin, "forward", spy)
    prompt = PROMPT[:20]  # a chunk of 16 and the rest
    run(
        generate(
            loaded.model, prompt, speculative=DraftModelProposer(twin, 3, target=loaded.model), max_tokens=12,
            stop_ids=NEVER,
        )
    )  # fmt: skip
    assert fed == [16, 4, 1, 1, 2, 1, 1, 2, 1, 1]


class Turns:
    """Proposers take turns; None is a plain step."""

    def __init__(self, *turns: Proposer | None) -> None:
        self.turns, self.step = turns, 0

    @property
    def proposers(self) -> tuple[Proposer, ...]:
        return tuple(turn for turn in self.turns if turn is not None)

    def choose(self, seq: Sequence, limit: int) -> Choice:
        turn = self.turns[self.step % len(self.turns)]
        self.step += 1
        return PLAIN if turn is None or limit < 1 else Choice(turn.name, turn.propose(seq, min(limit, turn.max_k)))

    def record(self, record: StepRecord) -> None:
        pass


def test_it_catches_up_with_what_others_drafted(loaded: Loaded) -> None:
    twin = load(loaded.path, engine=ENGINE).model
    plain, _ = run(generate(loaded.model, PROMPT, max_tokens=200, stop_ids=NEVER))
    drafter = DraftModelProposer(twin, 4, target=loaded.model)
    policy = Turns(drafter, NgramProposer(k=30, seeds=[PROMPT + plain]), None, None, drafter)
    tokens, stats = run(generate(loaded.model, PROMPT, speculative=policy, max_tokens=200, stop_ids=NEVER))
    assert tokens == plain
    own = stats.by_proposer["draft_model"]
    assert own.accepted == own.drafted >= 30


def test_it_drafts_up_to_its_own_contexts_end_and_then_nothing(tiny_folder: Maker, loaded: Loaded) -> None:
    short = load(tiny_folder(21, max_position_embeddings=64), engine=ENGINE).model
    drafter = DraftModelProposer(short, 7, target=loaded.model)
    out, ends = list(PROMPT), []
    for event in generate(loaded.model, PROMPT, speculative=drafter, max_tokens=60, stop_ids=NEVER):
        if isinstance(event, StepDone):
            if event.record.drafted:
                ends.append(len(out) + event.record.drafted)
            assert event.record.accepted == event.record.drafted
            out += event.tokens
    assert ends == [53, 61, 65]  # the last draft needs no position of its own: 64 tokens are read to guess the 65th
    assert out[len(PROMPT) :] == tokens_of(generate(loaded.model, PROMPT, max_tokens=60, stop_ids=NEVER))
    assert drafter.propose(Sequence(out, len(PROMPT)), 7).size == 0


def test_another_vocabulary_is_refused_and_another_padding_is_not(tiny_folder: Maker, loaded: Loaded) -> None:
    padded = load(tiny_folder(5, vocab_size=300))
    assert (
        DraftModelProposer(padded.model, target=loaded.model).propose(Sequence(list(PROMPT), len(PROMPT)), 2).size == 2
    )
    assert load_draft_model(padded.path, loaded).vocab_limit == loaded.model.vocab_limit
    folder = tiny_folder(5)
    tiny.write_tokenizer(folder, [*tiny.SPECIAL, "<|extra|>"])
    larger = load(folder)
    with pytest.raises(ModelError, match=r"knows 261 tokens and the model 260.*same family"):
        DraftModelProposer(larger.model, target=loaded.model)
    with pytest.raises(ModelError, match="same family"):
        load_draft_model(folder, loaded)
    tiny.write_tokenizer(folder, [*tiny.SPECIAL[:3], "<|other|>"])
    load_draft_model(folder, loaded)  # special tokens stand for no bytes: their names do not matter
    text = (
        (folder / "tokenizer.json").read_text().replace('"a"', '"\x00"').replace('"b"', '"a"').replace('"\x00"', '"b"')
    )
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(ModelError, match=r"token \d+ is another one there"):
        load_draft_model(folder, loaded)


def test_ids_of_the_padding_in_a_prompt_do_no_harm(tiny_folder: Maker, loaded: Loaded) -> None:
    narrow = load(tiny_folder(6, vocab_size=260)).model
    drafter = DraftModelProposer(narrow, 3, target=loaded.model)
    prompt = [*PROMPT, 271]  # the target's own matrix has that row
    plain = tokens_of(generate(loaded.model, prompt, max_tokens=20, stop_ids=NEVER))
    assert tokens_of(generate(loaded.model, prompt, max_tokens=20, stop_ids=NEVER, speculative=drafter)) == plain


def test_for_the_rejection_rule_a_draft_has_its_law_and_noise_of_its_own(loaded: Loaded) -> None:
    twin = load(loaded.path, engine=ENGINE).model
    hot = SamplingParams(temperature=3.0, seed=8)
    seq = Sequence(list(PROMPT), len(PROMPT))
    same = DraftModelProposer(twin, 12, target=loaded.model, sampling=hot).propose(seq, 12)
    own = DraftModelProposer(twin, 12, target=loaded.model, sampling=hot, accept="rejection").propose(seq, 12)
    plain = tokens_of(generate(loaded.model, PROMPT, sampling=hot, max_tokens=12, stop_ids=NEVER))
    assert same.probs is None
    assert same.tokens.tolist() == plain
    assert own.tokens.tolist() != plain
    assert own.probs is not None
    cache = loaded.model.new_cache()
    every = torch.tensor(PROMPT + own.tokens.tolist()[:-1])
    hidden = loaded.model.forward(every, torch.arange(len(every)), cache).last[len(PROMPT) - 1 :]
    assert torch.equal(own.probs, probabilities(loaded.model.logits(hidden), hot))
    greedy = DraftModelProposer(twin, 3, target=loaded.model, accept="rejection").propose(seq, 3)
    assert greedy.probs is None
