"""The target that computes everything and answers with an edit: it emits the edit, whatever drafts, and nothing else
changes; and bench/h200.py keeps going after a section that fails."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import h200
from h200_steps import Bench
from replay_target import ReplayTarget, replay_edit

from specd.engine import NgramProposer, SamplingParams, StepDone, generate, load
from specd.engine.model import Qwen3
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.tree import TreeProposer
from specd.engine.static_step import StaticStep

PROMPT = list(b"total = 0\nfor item in items:\n    total += item\nreturn total\n")
ANSWER = [*b"amount = 0\nfor item in items:\n    amount += item\nreturn amount\n", 258]


@pytest.fixture(scope="module")
def model(tiny_folder: Callable[..., Path]) -> Qwen3:
    return load(tiny_folder(31)).model


def plain(model: Qwen3) -> list[int]:
    events = generate(model, PROMPT, sampling=SamplingParams(), stop_ids=frozenset(), max_tokens=20)
    return [token for event in events if isinstance(event, StepDone) for token in event.tokens]


@pytest.mark.parametrize("proposer", ["nobody", "chain", "tree"])
def test_a_replay_emits_the_edit_whoever_drafts(model: Qwen3, proposer: str) -> None:
    before = plain(model)
    target = ReplayTarget(model)
    model.steps = StaticStep(model, override=target.override)
    made: dict[str, Any] = {"nobody": None, "chain": NgramProposer(k=7), "tree": TreeProposer([NgramBranches(15)], 15)}
    try:
        done = replay_edit(model, target, PROMPT, ANSWER, made[proposer], lambda: 0.0)
        assert plain(model) == before  # nothing is forced outside
    finally:
        model.steps = None
    assert done.tokens == len(ANSWER)
    assert len(done.records) == len(ANSWER) if proposer == "nobody" else len(done.records) < len(ANSWER)


def test_a_model_that_leaves_the_edit_is_told(model: Qwen3) -> None:
    """Without the override in its steps the target answers with its own tokens."""
    with pytest.raises(RuntimeError, match=r"the replay left the edit at token \d+ of \d+"):
        replay_edit(model, ReplayTarget(model), PROMPT, ANSWER, None, lambda: 0.0)


def test_an_answer_beyond_the_context_is_refused(model: Qwen3) -> None:
    with (
        pytest.raises(ValueError, match="the model's context 2048"),
        ReplayTarget(model).answering(2040, [1] * 9),
    ):
        pass


def test_a_section_that_fails_is_told_and_the_next_one_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(bench: Bench) -> dict[str, Any]:
        raise OSError("no such device")

    def fine(bench: Bench) -> dict[str, Any]:
        return {"step_ms": {"1": 2.5}}

    monkeypatch.setattr(h200, "SECTIONS", {"broken": (broken, 5), "fine": (fine, 5)})
    bench = Bench(argparse.Namespace(device="cpu"))
    results: dict[str, Any] = {}
    for name in ("broken", "fine"):
        h200.run_section(name, bench, results)
    assert results["failed"] == ["broken: OSError: no such device"]
    assert "Traceback" in capsys.readouterr().out
    assert [line for line in h200.table(results) if line.startswith("step_ms")] == [f"{'step_ms':24} 1: 2.5"]


def test_a_random_model_has_near_ties_and_a_section_measures_it() -> None:
    bench = Bench(
        argparse.Namespace(device="cpu", shape="small", context=40, far=60, corpus=None, tokenizer=None, edits=0)
    )
    results: dict[str, Any] = {}
    for name in ("build", "capture", "plain"):
        h200.run_section(name, bench, results)
    assert "failed" not in results
    assert results["plain_tok_s"] > 0
    head = bench.model.weights.head
    even, odd = head[:1000:2], head[1:1000:2]
    assert torch.all((even - odd).norm(dim=1) < 0.05 * even.norm(dim=1))
