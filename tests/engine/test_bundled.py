"""The bundled model under every proposer: a real edit, written right, and the same tokens whoever drafted."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from drafters import NEVER, AtMost
from scripted import assert_fresh, run, tokens_of

from specd.daemon.rewrite.prompt import region_answer, region_message
from specd.engine import Acceptance, Adaptive, Loaded, NgramProposer, Proposer, SamplingParams, generate, load
from specd.engine.costs import measure
from specd.engine.priors import EDITS
from specd.engine.propose.dflash import DFlashDrafter, DFlashProposer, DFlashTreeProposer, load_dflash
from specd.engine.propose.draft_model import DraftModelProposer
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.suffix import SuffixProposer
from specd.engine.propose.tree import TreeProposer

CODE = """function area_of(shapes)
    total = 0.0
    for shape in shapes
        total += shape.width * shape.height
    end
    return total
end"""
INSTRUCTION = "rename total to sum_of_areas"
LENGTHS = (0, 1, 3, 7, 15, 31)
SAMPLED = SamplingParams(temperature=0.8, top_p=0.95, seed=3)


@pytest.fixture(scope="module")
def loaded(bundled_folder: Path) -> Loaded:
    return load(bundled_folder)


@pytest.fixture(scope="module")
def drafter(bundled_folder: Path, loaded: Loaded) -> DFlashDrafter:
    return load_dflash(bundled_folder / "dflash", loaded.model)


@pytest.fixture(scope="module")
def prompt(loaded: Loaded) -> list[int]:
    return loaded.tokenizer.chat([{"role": "user", "content": region_message("julia", CODE, INSTRUCTION)}])


def edit(loaded: Loaded) -> EditProposer:
    return EditProposer(loaded.tokenizer, region_answer("julia", CODE), [("total", "sum_of_areas")])


def branches() -> NgramBranches:
    return NgramBranches(31)


Build = Callable[[Loaded, DFlashDrafter], Proposer]
PROPOSERS: dict[str, Build] = {
    "ngram": lambda loaded, drafter: NgramProposer(31),
    "suffix": lambda loaded, drafter: SuffixProposer(31),
    "edit": lambda loaded, drafter: edit(loaded),
    "draft model": lambda loaded, drafter: DraftModelProposer(loaded.model, 31, target=loaded.model),
    "dflash": lambda loaded, drafter: DFlashProposer(drafter),
    "ngram tree": lambda loaded, drafter: TreeProposer([branches()]),
    "dflash tree": lambda loaded, drafter: DFlashTreeProposer(DFlashProposer(drafter)),
    "ngram and dflash tree": lambda loaded, drafter: TreeProposer([branches(), DFlashProposer(drafter)]),
}


def test_it_renames_and_stops(loaded: Loaded, prompt: list[int]) -> None:
    answer = tokens_of(generate(loaded.model, prompt, speculative=edit(loaded), max_tokens=400))
    assert loaded.tokenizer.decode(answer[:-1]) == region_answer("julia", CODE.replace("total", "sum_of_areas"))
    assert answer[-1] in loaded.stop_ids


@pytest.mark.parametrize("sampling", [SamplingParams(), SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("build", PROPOSERS.values(), ids=PROPOSERS)
def test_the_output_is_plain_decodings_for_every_proposer_and_draft_length(
    loaded: Loaded, drafter: DFlashDrafter, prompt: list[int], build: Build, sampling: SamplingParams
) -> None:
    job = partial(generate, loaded.model, prompt, sampling=sampling, stop_ids=NEVER, max_tokens=48)
    plain = tokens_of(job())
    most = 0.0
    for k in LENGTHS:
        cache = loaded.model.new_cache()
        tokens, stats = run(job(speculative=AtMost(build(loaded, drafter), k), cache=cache))
        assert tokens == plain
        assert_fresh(loaded.model, cache, prompt + tokens[:-1])
        cache.free()
        most = max(most, stats.emitted / stats.steps)
    assert most > 2.0  # on an edit every one of them is of use


@pytest.mark.parametrize("sampling", [SamplingParams(), SAMPLED], ids=["greedy", "sampled"])
def test_the_policy_over_all_of_them_writes_what_plain_decoding_writes(
    loaded: Loaded, drafter: DFlashDrafter, prompt: list[int], sampling: SamplingParams
) -> None:
    job = partial(generate, loaded.model, prompt, sampling=sampling, max_tokens=150)
    plain = tokens_of(job())
    costs, acceptance = measure(loaded.model, (1, 8, 32, 128), budget=0.3), Acceptance(EDITS)
    for _ in range(3):
        proposers = [edit(loaded), TreeProposer([branches()]), DFlashProposer(drafter)]
        tokens, stats = run(job(speculative=Adaptive(proposers, costs, acceptance)))
        assert tokens == plain
        assert stats.steps < len(plain)
