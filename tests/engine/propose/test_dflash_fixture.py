"""The DFlash drafter against numbers that the published reference code produced (tests/fixtures/dflash).

SPECD_DFLASH_FIXTURE names another folder of the same layout; nothing below knows a size, a tap or a variant.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from specd.engine import Finished, StepDone, generate
from specd.engine.choice import accept
from specd.engine.config import EngineConfig, model_config
from specd.engine.draft import EMPTY, Committed, Draft, Sequence
from specd.engine.errors import ModelError
from specd.engine.kernels.cpu import CpuKernels
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3
from specd.engine.ops import TorchOps
from specd.engine.propose.dflash import DFlashContext, DFlashProposer, load_dflash
from specd.engine.sampling import SamplingParams
from specd.engine.verify import verify
from specd.engine.weights import load_weights

FOLDER = Path(os.environ.get("SPECD_DFLASH_FIXTURE") or Path(__file__).parents[2] / "fixtures" / "dflash")
VARIANTS: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))["variants"]
TOLERANCE = 1e-4  # of hidden rows, whose sizes are about 1..10
GREEDY = SamplingParams()


def architecture(variant: str) -> str:
    config = json.loads((FOLDER / VARIANTS[variant]["draft_dir"] / "config.json").read_text(encoding="utf-8"))
    return str(config["architectures"][0])


READ = [variant for variant in VARIANTS if architecture(variant) == "DFlashDraftModel"]
OTHERS = [variant for variant in VARIANTS if variant not in READ]
RUNS = [(variant, run) for variant in READ for run in VARIANTS[variant]["runs"]]
CASES = [(*case, policy) for case in RUNS for policy in VARIANTS[case[0]]["runs"][case[1]]["policies"]]


@dataclass(frozen=True)
class Case:
    """One recorded generation, the pair of models it was made with, and its arrays."""

    model: Qwen3
    drafter: Any
    run: dict[str, Any]
    arrays: dict[str, Tensor]

    @property
    def prompt(self) -> list[int]:
        return list(self.run["prompt_ids"])

    @property
    def end(self) -> int:
        return len(self.prompt) + int(self.run["max_new_tokens"])

    def steps(self, policy: str) -> list[dict[str, Any]]:
        return list(self.run["policies"][policy]["steps"])

    def proposer(self, policy: str) -> DFlashProposer:
        return DFlashProposer(self.drafter, clip_at=self.end if policy == "clipped_block" else None)


def target(folder: Path) -> Qwen3:
    config = model_config(folder)
    weights = load_weights(folder, config, device=torch.device("cpu"), dtype=torch.float32)
    return Qwen3(config, weights, engine=EngineConfig(page_size=16, prefill_chunk=16, kv_tokens=4096))


@pytest.fixture(params=["native", "torch"])
def case(request: pytest.FixtureRequest) -> Any:
    """Makes a Case of (variant, run), on the compiled kernels and on torch alone."""

    def make(variant: str, run: str) -> Case:
        model = target(FOLDER / VARIANTS[variant]["target_dir"])
        drafter = load_dflash(FOLDER / VARIANTS[variant]["draft_dir"], model)
        if request.param == "torch":
            model.ops = drafter.ops = TorchOps()
        elif not isinstance(model.ops, CpuKernels):
            pytest.skip("no C compiler here: the native kernels cannot be built")
        with safe_open(str(FOLDER / "expected.safetensors"), framework="pt") as file:
            prefix = f"{variant}/{run}/"
            arrays = {key.removeprefix(prefix): file.get_tensor(key) for key in file.keys() if key.startswith(prefix)}  # noqa: SIM118
        return Case(model, drafter, VARIANTS[variant]["runs"][run], arrays)

    return make


def near(found: Tensor, expected: Tensor, what: str) -> None:
    assert found.shape == expected.shape, what
    error = float((found - expected).abs().max())
    assert error < TOLERANCE, f"{what}: largest error {error:.2e}"


def forward(model: Qwen3, cache: KVCache, tokens: list[int], taps: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Logits [n, V] and taps [n, K, H] of tokens after the cache's length."""
    positions = torch.arange(cache.length, cache.length + len(tokens))
    hidden = model.forward(torch.tensor(tokens), positions, cache, taps=taps)
    assert hidden.taps is not None
    return model.logits(hidden.last), hidden.taps


def cached(context: DFlashContext, layer: int) -> tuple[Tensor, Tensor]:
    """A drafter layer's keys and values [G, length, D]."""
    slots = context.cache.slots(0, list(range(context.rows)))
    k, v = (cache[slots].transpose(0, 1) for cache in context.cache.pool.layers[layer])
    return k, v


@pytest.mark.parametrize(("variant", "run", "policy"), CASES)
def test_every_block_on_the_recorded_tokens_gives_the_references_numbers_and_drafts(
    case: Any, variant: str, run: str, policy: str
) -> None:
    c: Case = case(variant, run)
    # Hidden rows were recorded under full_block where a variant has it.
    recorded = "full_block" if "full_block" in c.run["policies"] else "clipped_block"
    arrays = c.arrays if policy == recorded else {}
    cache, context, layers = c.model.new_cache(), c.drafter.new_context(), c.drafter.config.target_layer_ids
    last_layer_tapped = c.model.config.num_layers - 1 in layers  # recorded after the final norm, tapped before it
    logits, taps = forward(c.model, cache, c.prompt, layers)
    tokens = c.prompt
    for name, found in (
        ("prefill_last_logits", logits[-1]),
        ("taps", taps.flatten(1)),
        ("ctx_features", c.drafter.features(taps)),
    ):
        if name in arrays and not (name == "taps" and last_layer_tapped):
            near(found, arrays[name], name)
    compared = 0
    for number, step in enumerate(c.steps(policy)):
        at = f"step{number}/"
        start, anchor, drafts = step["start"], step["anchor"], step["drafts"]
        assert len(tokens) == start
        assert context.length == step["draft_cache_len_before"]
        assert len(taps) == step["ctx_new"]
        for layer in range(c.drafter.config.num_layers):
            for name, found in zip("kv", cached(context, layer), strict=True):
                if f"{at}draft_cache_{name}{layer}" in arrays:
                    near(found, arrays[f"{at}draft_cache_{name}{layer}"], f"{at}draft_cache_{name}{layer}")
        if f"{at}ctx_features_new" in arrays:
            near(c.drafter.features(taps), arrays[f"{at}ctx_features_new"], f"{at}ctx_features_new")
        c.drafter.ingest(context, context.length, taps)
        hidden = c.drafter.block(context, anchor, start, len(drafts) + 1)
        if f"{at}hidden" in arrays:
            near(hidden, arrays[f"{at}hidden"], f"{at}hidden")
            compared += 1
        logits = c.drafter.logits(hidden[1:])
        if f"{at}draft_logits" in arrays:
            near(logits, arrays[f"{at}draft_logits"], f"{at}draft_logits")
        assert logits.argmax(-1).tolist() == drafts
        assert context.length == start
        logits, taps = forward(c.model, cache, [anchor, *drafts], layers)
        if f"{at}target_logits" in arrays:
            near(logits, arrays[f"{at}target_logits"], f"{at}target_logits")
        count = step["accepted"]
        assert logits.argmax(-1).tolist()[: count + 1] == step["posterior"][: count + 1]
        assert accept(drafts, None, logits.argmax(-1).tolist()).tokens == step["emitted"]
        cache.truncate(start + count + 1)
        taps = taps[: count + 1]
        tokens = [*tokens, anchor, *drafts[:count]]
    assert compared or policy != recorded or not any("hidden" in name for name in c.arrays)


@pytest.mark.parametrize(("variant", "run", "policy"), CASES)
def test_proposer_and_verify_take_the_references_steps(case: Any, variant: str, run: str, policy: str) -> None:
    c: Case = case(variant, run)
    proposer = c.proposer(policy)
    cache = c.model.new_cache()
    logits, taps = forward(c.model, cache, c.prompt, proposer.tap_layers)
    seq = Sequence(c.prompt, len(c.prompt))
    proposer.observe(seq, Committed([], taps=taps))
    seq.tokens.append(int(logits[-1].argmax()))
    for step in c.steps(policy):
        start = len(seq) - 1
        assert (start, seq.tokens[-1]) == (step["start"], step["anchor"])
        draft = proposer.propose(seq, proposer.max_k)
        assert draft.tokens.tolist() == step["drafts"]
        found = verify(c.model, cache, seq.tokens[-1], draft, GREEDY, proposer.tap_layers)
        assert len(found.accepted.path) == step["accepted"]
        assert found.accepted.tokens == step["emitted"]
        seq.tokens.extend(found.accepted.tokens)
        proposer.observe(
            seq, Committed(found.accepted.tokens, "dflash", draft.size, step["accepted"], found.taps, start)
        )
    wanted = c.run["output_ids"]
    assert seq.tokens[: len(wanted)] == wanted


class FirstTokenPlain:
    """The reference drafts after its prefill's token. The engine may draft before it: here its first step is plain."""

    def __init__(self, proposer: DFlashProposer) -> None:
        self.proposer = proposer
        self.drafts: list[list[int]] = []
        self.tap_layers, self.name, self.max_k = proposer.tap_layers, proposer.name, proposer.max_k

    def propose(self, seq: Sequence, k: int) -> Draft:
        if k < 1 or len(seq) == seq.prompt_length:
            return EMPTY
        draft = self.proposer.propose(seq, k)
        self.drafts.append(draft.tokens.tolist())
        return draft

    def observe(self, seq: Sequence, committed: Committed) -> None:
        self.proposer.observe(seq, committed)

    def truncate(self, length: int) -> None:
        self.proposer.truncate(length)


@pytest.mark.parametrize(("variant", "run", "policy"), CASES)
def test_generate_emits_the_references_output_by_the_references_steps(
    case: Any, variant: str, run: str, policy: str
) -> None:
    c: Case = case(variant, run)
    recorder = FirstTokenPlain(c.proposer(policy))
    stops = frozenset(c.run.get("stop_token_ids") or ())
    budget = c.run["max_new_tokens"]
    events = list(generate(c.model, c.prompt, stop_ids=stops, max_tokens=budget, speculative=recorder))
    steps = [event for event in events if isinstance(event, StepDone)]
    assert c.prompt + [token for step in steps for token in step.tokens] == c.run["output_ids"]
    assert c.run.get("plain_greedy_ids", c.run["output_ids"]) == c.run["output_ids"]
    assert isinstance(events[-1], Finished)
    used = 1  # the first token is the prefill's in the reference
    drafted = iter(recorder.drafts)
    for number, expected in enumerate(c.steps(policy)[: len(steps) - 1], start=1):
        left = budget - used
        k = min(len(expected["drafts"]), left - 1)  # the engine verifies no draft that could not be emitted
        assert (next(drafted) if k else []) == expected["drafts"][:k]
        emitted = expected["emitted"][: min(expected["accepted"], k) + 1]
        stop = next((place for place, token in enumerate(emitted) if token in stops), len(emitted) - 1)
        assert steps[number].tokens == emitted[: stop + 1]
        assert steps[number].record.accepted == min(expected["accepted"], k, stop + 1)
        used += stop + 1
    assert next(drafted, None) is None


def test_look_alikes_are_refused_by_name(tmp_path: Path) -> None:
    model = target(FOLDER / VARIANTS[READ[0]]["target_dir"])
    for variant in OTHERS:
        with pytest.raises(ModelError, match=architecture(variant)):
            load_dflash(FOLDER / VARIANTS[variant]["draft_dir"], model)
    config = json.loads((FOLDER / VARIANTS[READ[0]]["draft_dir"] / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["DFlash2DraftModel"]}))
    with pytest.raises(ModelError, match="DFlash2DraftModel is DFlash 2"):
        load_dflash(tmp_path, model)


def test_the_fixture_covers_something() -> None:
    assert CASES, f"{FOLDER} has no variant of DFlash's own architecture"
