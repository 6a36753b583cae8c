"""The policy: decides by expected tokens per second, learns, follows costs, and can be replayed."""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from interrupting import Interrupting

from specd.engine import (
    Acceptance,
    Adaptive,
    Committed,
    CostTable,
    Draft,
    Finished,
    NgramProposer,
    Sequence,
    StepDone,
    StepRecord,
    generate,
    load,
)
from specd.engine.adaptive import matched
from specd.engine.costs import measure, tightened

FLAT = {1: 1.0, 2: 1.0, 8: 1.02, 16: 1.03, 32: 1.05, 64: 1.1, 128: 1.2}  # a GPU's shape
STEEP = {1: 1.0, 2: 1.3, 4: 1.6, 8: 2.2, 16: 3.4, 32: 6.0, 64: 11.0, 128: 21.0}  # a CPU's


class Scripted:
    """Drafts k tokens of which the first `right` are 1, as all of the truth is; the others are wrong."""

    def __init__(self, name: str, right: int, evidence: int = 0) -> None:
        self.name, self.right, self.evidence, self.calls = name, right, evidence, 0
        self.max_k = 127

    def propose(self, seq: Sequence, k: int) -> Draft:
        self.calls += 1
        return Draft.chain([1 if place < self.right else 0 for place in range(k)], self.evidence)

    def observe(self, seq: Sequence, committed: Committed) -> None:
        pass

    def truncate(self, length: int) -> None:
        pass


def play(policy: Adaptive, steps: int, costs: CostTable | None = None) -> list[tuple[str | None, int]]:
    """Runs steps of a target that emits 1 for ever, each as long as `costs` says; -> (proposer, k) of each."""
    seq, out = Sequence([1, 1], 1), []
    for _ in range(steps):
        choice = policy.choose(seq, 200)
        drafted = choice.draft.tokens.tolist()
        accepted = matched(choice.draft, [1] * 200)
        seconds = 0.0 if costs is None else costs.verify(len(drafted) + 1)
        seq.tokens.extend([1] * (accepted + 1))
        policy.record(StepRecord(choice.proposer, len(drafted), accepted, accepted + 1, 0.0, seconds))
        out.append((choice.proposer, len(drafted)))
    return out


def frozen(verify: dict[int, float], **draft: float) -> CostTable:
    return CostTable(verify, draft, frozen=True)


def test_drafts_grow_long_where_rows_are_cheap_and_stay_short_where_they_are_not() -> None:
    flat = play(Adaptive([Scripted("copy", 127)], frozen(FLAT)), 60)
    assert flat[-1] == ("copy", 127)
    steep = play(Adaptive([Scripted("copy", 5)], frozen(STEEP)), 60)
    assert 1 <= steep[-1][1] <= 7


def test_a_useless_proposer_is_given_up_and_seldom_tried_again() -> None:
    proposer = Scripted("useless", 0)
    choices = play(Adaptive([proposer], frozen(STEEP, useless=0.03)), 300)
    assert sum(size > 0 for _, size in choices[20:]) <= 6
    assert proposer.calls < 60


class Bush(Scripted):
    """Drafts a root's k children, of which the first is right: one token deep, however wide."""

    def propose(self, seq: Sequence, k: int) -> Draft:
        chain = super().propose(seq, k)
        return Draft(chain.tokens, torch.full((k,), -1, dtype=torch.int32), evidence=self.evidence)


def test_a_tree_is_charged_for_all_its_rows() -> None:
    wide, narrow = Bush("wide", 1), Scripted("narrow", 1)
    wide.max_k, narrow.max_k = 127, 1
    choices = play(Adaptive([wide, narrow], frozen(STEEP)), 40)
    assert {name for name, _ in choices[10:]} == {"narrow"}


@pytest.mark.parametrize(("cost", "chosen"), [(0.0, 20), (0.25, 20), (50.0, 0)])
def test_the_better_proposer_wins_unless_it_is_too_dear(cost: float, chosen: int) -> None:
    policy = Adaptive([Scripted("near", 2), Scripted("far", 12)], frozen(FLAT, far=cost))
    assert [name for name, _ in play(policy, 80)[-20:]].count("far") in (chosen, chosen - 1)


def test_kinds_of_evidence_are_learnt_apart() -> None:
    acceptance = Acceptance()
    for _ in range(50):
        acceptance.record("ngram", 1, 8, 0)
        acceptance.record("ngram", 3, 8, 8)
    assert acceptance.survival("ngram", 1, 1)[0] < 0.3
    assert acceptance.survival("ngram", 3, 8)[7] > 0.8
    assert acceptance.survival("other", 1, 1) == [0.7]


@given(st.lists(st.tuples(st.integers(1, 130), st.integers(0, 130)), max_size=60), st.integers(0, 140))
def test_survival_is_a_falling_curve_of_probabilities(steps: list[tuple[int, int]], depth: int) -> None:
    acceptance = Acceptance()
    for drafted, accepted in steps:
        acceptance.record("p", 0, drafted, min(drafted, accepted))
    curve = acceptance.survival("p", 0, depth)
    assert len(curve) == depth
    assert all(0.0 <= b <= a <= 1.0 for a, b in zip([1.0, *curve], curve, strict=False))


def test_an_interrupt_leaves_no_expectation_that_is_too_short_or_old() -> None:
    """The jobs of a model share it: the next one must not run into what the last one left half done."""
    source, fresh = inspect.getsourcefile(Acceptance), Acceptance()
    fresh.record("a", 0, 9, 3)

    def follows(frame: FrameType) -> bool:
        return frame.f_code.co_filename == source and frame.f_code.co_name in ("survival", "expected")

    at, is_through = 0, False
    while not is_through:
        at, learnt = at + 1, Acceptance()
        learnt.expected("a", 0, 4)
        learnt.record("a", 0, 9, 3)
        with Interrupting(at, follows) as tried:
            learnt.expected("a", 0, 100)
        is_through = tried.is_through
        assert learnt.expected("a", 0, 100)[:101] == fresh.expected("a", 0, 100)[:101]
    assert at > 10


def test_decisions_can_be_replayed() -> None:
    def run() -> list[tuple[str | None, int]]:
        policy = Adaptive([Scripted("near", 3), Scripted("far", 9, 2)], frozen(STEEP, far=0.2))
        return play(policy, 120)

    assert run() == run()


def test_a_cost_table_is_a_step_function_and_follows_what_it_sees() -> None:
    table = CostTable({1: 1.0, 4: 2.0, 16: 3.0})
    assert [table.verify(rows) for rows in (1, 2, 4, 5, 16, 32)] == [1.0, 2.0, 2.0, 3.0, 3.0, 6.0]
    between = CostTable({1: 1.0, 4: 2.0, 16: 3.0}, stepped=False)
    assert [between.verify(rows) for rows in (1, 4, 10, 16, 32)] == [1.0, 2.0, 2.5, 3.0, 6.0]
    for _ in range(100):
        table.saw_verify(4, 5.0)
    assert table.verify(4) == pytest.approx(5.0, rel=0.01)
    assert table.verify(16) >= table.verify(4) >= table.verify(1)
    table.saw_verify(4, 500.0)  # a stall
    assert table.verify(4) < 6.0
    fixed = frozen({1: 1.0, 2: 2.0})
    fixed.saw_verify(2, 1.5)
    fixed.saw_draft("x", 1.0)
    assert (fixed.verify(2), fixed.draft("x")) == (2.0, 0.0)
    with pytest.raises(ValueError, match="one row"):
        CostTable({2: 1.0})


@given(st.lists(st.floats(0.5, 50.0), min_size=4, max_size=4))
def test_measured_costs_bound_each_other(seconds: list[float]) -> None:
    widths = (1, 2, 8, 64)
    one, two, eight, most = tight = tightened(widths, seconds)
    assert one <= two <= eight <= most
    assert all(a <= b for a, b in zip(tight, seconds, strict=True))
    assert two <= 2 * one
    assert eight <= 4 * two
    assert most <= 8 * eight


def test_a_bad_moment_at_load_does_not_shut_out_a_width_for_good() -> None:
    true = frozen(FLAT)
    noisy = CostTable({width: cost * (1 if width < 16 else 40) for width, cost in FLAT.items()})
    policy = Adaptive([Scripted("copy", 127)], noisy)
    early, late = play(policy, 5, true), play(policy, 300, true)
    assert all(k < 15 for _, k in early)
    assert late[-1][1] >= 63
    assert noisy.verify(64) == pytest.approx(true.verify(64), rel=0.25)


def test_costs_are_measured_on_the_model_and_leave_no_trace(tiny_folder: Callable[..., Path]) -> None:
    model = load(tiny_folder(21)).model
    table = measure(model, (1, 2, 8, 64))
    assert list(table.as_dict()) == [1, 2, 8, 64]
    assert all(b >= a > 0 for a, b in zip(table.as_dict().values(), list(table.as_dict().values())[1:], strict=False))
    assert model.pool.free_pages == model.pool.pages


def test_the_policy_changes_no_output(tiny_folder: Callable[..., Path]) -> None:
    model = load(tiny_folder(22)).model
    prompt = list(b"abcabcabcabc abc")

    def run(policy: Adaptive | None) -> tuple[list[int], Finished]:
        *events, last = generate(model, prompt, max_tokens=150, speculative=policy)
        assert isinstance(last, Finished)
        return [token for event in events if isinstance(event, StepDone) for token in event.tokens], last

    plain, _ = run(None)
    policy = Adaptive([NgramProposer(k=31), Scripted("wrong", 0)], frozen(FLAT))
    output, last = run(policy)
    assert output == plain
    assert last.stats.steps < 150
