"""A drafter's passes of fixed shape draft what its passes one by one draft, and leave the same context behind."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import tokens_of

from specd.engine import SamplingParams, Sequence, generate
from specd.engine.config import EngineConfig, model_config
from specd.engine.errors import OutOfMemory
from specd.engine.model import Qwen3
from specd.engine.ops import TorchOps
from specd.engine.propose.dflash import DFlashContext, DFlashProposer, load_dflash
from specd.engine.propose.dflash_model import DFlashDrafter
from specd.engine.propose.dflash_step import DFlashStep
from specd.engine.static_step import StaticStep
from specd.engine.weights import load_weights

FOLDER = Path(__file__).parents[2] / "fixtures" / "dflash"
PROMPT = [1, 5, 326, 6, 344, 7, 314, 3, 165, 117, 28, 72, 27, 326, 50, 90, 3, 198, 32, 160, 31, 314, 68, 143, 190, 3]
NEVER: frozenset[int] = frozenset()
KINDS = {"greedy": SamplingParams(), "sampled": SamplingParams(temperature=0.8, seed=11)}


def target(ops: str, kv_tokens: int = 1024) -> Qwen3:
    config = model_config(FOLDER / "target")
    weights = load_weights(FOLDER / "target", config, device=torch.device("cpu"), dtype=torch.float32)
    model = Qwen3(config, weights, engine=EngineConfig(page_size=16, prefill_chunk=16, kv_tokens=kv_tokens))
    if ops == "torch":
        model.ops = TorchOps()
    return model


@pytest.fixture(scope="module", params=["native", "torch"])
def drafter(request: pytest.FixtureRequest) -> DFlashDrafter:
    out = load_dflash(FOLDER / "draft_full", target(request.param))
    if request.param == "torch":
        out.ops = TorchOps()
    return out


@pytest.fixture(scope="module")
def steps(drafter: DFlashDrafter) -> DFlashStep:
    return DFlashStep(drafter)


def contents(context: DFlashContext) -> list[torch.Tensor]:
    slots = context.cache.slots(0, list(range(context.rows)))
    return [part[slots].clone() for layer in context.cache.pool.layers for part in layer]


def same(a: DFlashContext, b: DFlashContext) -> bool:
    return (a.length, a.rows, len(a.pages)) == (b.length, b.rows, len(b.pages)) and all(
        torch.equal(x, y) for x, y in zip(contents(a), contents(b), strict=True)
    )


def taps(drafter: DFlashDrafter, n: int, seed: int) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(n, len(drafter.config.target_layer_ids), drafter.config.hidden_size, generator=draw)


@settings(deadline=None, max_examples=25)
@given(
    known=st.integers(0, 70), hole=st.integers(0, 5), taken=st.integers(0, 64), gap=st.integers(0, 3),
    anchor=st.integers(0, 300), seed=st.integers(0, 1000),
)  # fmt: skip
def test_one_pass_takes_in_and_drafts_what_two_do(
    drafter: DFlashDrafter, steps: DFlashStep, known: int, hole: int, taken: int, gap: int, anchor: int, seed: int
) -> None:
    """known positions, some missing, then `taken` new ones, then perhaps missing ones before the block."""
    one, two = drafter.new_context(), drafter.new_context()
    position = known + hole if taken else known
    start = position + taken + gap
    fresh = taps(drafter, taken, seed + 1)
    for context in (one, two):
        drafter.ingest(context, 0, taps(drafter, known, seed))
    if taken:
        drafter.ingest(one, position, fresh)
    expected = drafter.logits(drafter.block(one, anchor, start, drafter.config.block_size)[1:]).argmax(-1).tolist()
    assert steps.draft(two, position, fresh if taken else None, anchor, start) == expected
    assert same(one, two)
    one.free()
    two.free()


@settings(deadline=None, max_examples=15)
@given(known=st.integers(0, 40), taken=st.integers(1, 300), back=st.integers(0, 10), seed=st.integers(0, 1000))
def test_rows_are_taken_in_as_ever(
    drafter: DFlashDrafter, steps: DFlashStep, known: int, taken: int, back: int, seed: int
) -> None:
    one, two = drafter.new_context(), drafter.new_context()
    for context in (one, two):
        drafter.ingest(context, 0, taps(drafter, known, seed))
    position, fresh = max(0, known - back), taps(drafter, taken, seed + 1)
    drafter.ingest(one, position, fresh)
    steps.take_in(two, position, fresh)
    assert same(one, two)
    one.free()
    two.free()


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("clip", [None, 70])
def test_a_job_drafts_and_emits_the_same_by_passes_of_fixed_shape(
    drafter: DFlashDrafter, steps: DFlashStep, kind: str, clip: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target's own steps too, which bring the taps."""
    model = drafter.model

    def job() -> tuple[list[int], list[tuple[int, int]]]:
        proposer = DFlashProposer(drafter, clip_at=clip)
        events = list(
            generate(model, PROMPT, sampling=KINDS[kind], stop_ids=NEVER, max_tokens=60, speculative=proposer)
        )
        records = [event.record for event in events if hasattr(event, "record")]
        proposer.close()
        return tokens_of(events), [(record.drafted, record.accepted) for record in records]

    plain = tokens_of(generate(model, PROMPT, sampling=KINDS[kind], stop_ids=NEVER, max_tokens=60))
    expected = job()
    monkeypatch.setattr(drafter, "steps", steps)
    monkeypatch.setattr(model, "steps", StaticStep(model, drafter.config.target_layer_ids))
    assert job() == expected
    assert expected[0] == plain
    assert sum(accepted for _, accepted in expected[1]) > 10
    assert drafter.pool.free_pages == drafter.pool.pages


def test_a_full_pool_costs_drafts_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    drafter = load_dflash(FOLDER / "draft_full", target("native", kv_tokens=64))
    drafter.steps = DFlashStep(drafter)
    hold = drafter.new_context()
    while drafter.pool.free_pages > 1:
        drafter.ingest(hold, hold.length, taps(drafter, 16, 1))
    context = drafter.new_context()
    with pytest.raises(OutOfMemory):
        drafter.steps.draft(context, 0, taps(drafter, 20, 2), 5, 20)
    assert context.rows == 0
    assert drafter.pool.free_pages == 1
    proposer = DFlashProposer(drafter)
    assert proposer.propose(Sequence(PROMPT[:20], 20), 7).size == 0 or drafter.pool.free_pages == 1
    hold.free()
    context.free()
    proposer.close()
    assert drafter.pool.free_pages == drafter.pool.pages


def test_drafters_with_windows_have_no_such_passes() -> None:
    with pytest.raises(ValueError, match="two-way attention to everything"):
        DFlashStep(load_dflash(FOLDER / "draft_swa", target("native")))
