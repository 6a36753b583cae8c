"""Every proposer there is, made for tests that must hold for all of them, and models for them to draft for."""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_dflash
import torch
from safetensors.torch import load_file, save_file
from scripted import Scripted, ScriptedTree

from specd.engine import (
    Choice,
    Committed,
    Draft,
    EngineConfig,
    Loaded,
    NgramProposer,
    Proposer,
    SamplingParams,
    StepRecord,
    load,
)
from specd.engine import Sequence as Row
from specd.engine.ops import TorchOps
from specd.engine.policy import PLAIN
from specd.engine.propose.dflash import DFlashProposer, DFlashTreeProposer, load_dflash
from specd.engine.propose.draft_model import DraftModelProposer
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.suffix import SuffixProposer
from specd.engine.propose.tree import TreeProposer

NEVER: frozenset[int] = frozenset()
ENGINE = EngineConfig(page_size=16, prefill_chunk=16)
PROMPT = list(b"a draft may guess, a draft may err, a draft may never tell")
PARAMS = {"greedy": SamplingParams(), "sampled": SamplingParams(temperature=0.9, top_k=50, top_p=0.97, seed=5)}


def make(folder: Path, ops: str) -> Loaded:
    loaded = load(folder, engine=ENGINE)
    if ops == "torch":
        loaded.model.ops = TorchOps()
    elif loaded.model.ops.name != "native":
        pytest.skip("the native kernels are off, or there is no C compiler")
    return loaded


def a_little_off(folder: Path, seed: int = 2) -> Path:
    """Moves all weights in the folder a little: a draft model that is right often, not always."""
    noise = torch.Generator().manual_seed(seed)
    tensors = load_file(folder / "model.safetensors")
    moved = {name: t + 0.05 * torch.randn(t.shape, generator=noise) * t.std() for name, t in tensors.items()}
    save_file(moved, str(folder / "model.safetensors"), {"format": "pt"})
    return folder


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


def dflash(loaded: Loaded, near: Loaded, plain: list[int], sampling: SamplingParams) -> DFlashProposer:
    """A drafter with random weights: hardly ever right, and tapping the target at every step."""
    with tempfile.TemporaryDirectory() as folder:
        return DFlashProposer(load_dflash(tiny_dflash.write(Path(folder), 3), loaded.model))


PROPOSERS: dict[str, Build] = {
    "ngram": lambda loaded, near, plain, sampling: NgramProposer(31, seeds=[misread(PROMPT + plain, 1)]),
    "suffix": lambda loaded, near, plain, sampling: SuffixProposer(31),
    "edit": edit,
    "draft model": draft_model,
    "dflash": dflash,
    "script": lambda loaded, near, plain, sampling: Scripted(PROMPT + plain + [0] * 40, lambda step: step * 7 % 33),
    "script tree": lambda loaded, near, plain, sampling: ScriptedTree(PROMPT + plain + [0] * 40, 6, 0.8),
    "ngram tree": lambda loaded, near, plain, sampling: TreeProposer([branches(plain)]),
    "edit tree": lambda *given: Trees(edit(*given)),
    "dflash tree": lambda *given: DFlashTreeProposer(dflash(*given)),
    "ngram and dflash tree": lambda *given: TreeProposer([branches(given[2]), dflash(*given)]),
    "ngram and draft model tree": lambda *given: TreeProposer([branches(given[2]), draft_model(*given)]),
}
