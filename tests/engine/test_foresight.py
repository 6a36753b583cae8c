"""Drafts made while the device works: the same ones, whatever was foreseen, and nothing of what did not come."""

import contextlib
import gc
import inspect
import weakref
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

import pytest
from following import train
from interrupting import Interrupting
from scripted import Scripted, assert_fresh, run, tokens_of

from specd.engine import (
    Acceptance,
    Adaptive,
    Choice,
    Committed,
    CostTable,
    Draft,
    EngineConfig,
    Sequence,
    StepDone,
    foresight,
    generate,
    load,
)
from specd.engine.choice import accept
from specd.engine.foresight import Foresight
from specd.engine.model import Qwen3
from specd.engine.ops import StaticOps
from specd.engine.propose import ngram_tree, tree
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.tree import TreeProposer
from specd.engine.static_step import StaticStep
from specd.engine.tokenizer import Tokenizer

Maker = Callable[..., Path]
NEVER: frozenset[int] = frozenset()
ENGINE = EngineConfig(page_size=8, prefill_chunk=32, kv_tokens=2048)
COSTS = {1: 1.0, 2: 1.0, 4: 1.01, 8: 1.02, 16: 1.05, 32: 1.1, 64: 1.2, 128: 1.3}
CODE = (Path(__file__).parents[2] / "engine" / "stats.py").read_text()
AFTER = {
    "unchanged": CODE,
    "renamed": CODE.replace("record", "entry").replace("Summary", "RunningTotals"),
    "inserted": CODE.replace("    steps: int = 0\n", "    steps: int = 0\n    waits: int = 0\n"),
    "shortened": "".join(line for number, line in enumerate(CODE.splitlines(True)) if number % 9),
    "moved": CODE[len(CODE) // 2 :] + CODE[: len(CODE) // 2],
    "other": "\n".join(f"def step_{n}(total):\n    return total * {n} + seconds" for n in range(40)),
}


class Dear(Scripted):
    """Nobody can branch it, and nobody need: it costs so much that it is asked last."""

    name = "dear"
    max_k = 15


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return train(tmp_path_factory.mktemp("bpe"), "behind")


@pytest.fixture
def is_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All outcomes are tried, however long that takes."""
    monkeypatch.setattr(foresight, "_SHARE", 1e9)
    monkeypatch.setattr(foresight, "_MOST", 1000)


def replayed(
    tokenizer: Tokenizer, after: str, is_ahead: bool, dear: bool = False
) -> tuple[list[Any], list[object], int]:
    """The drafts of all steps of an edit; what the policy and its proposers have learnt; steps that were foreseen."""
    prompt, end = tokenizer.encode(f"```\n{CODE}```\nEdit it.\n"), 0
    answer = [*tokenizer.encode(f"```\n{after}```"), end]
    edit = EditProposer(tokenizer, f"```\n{CODE}```", [("record", "entry")], max_k=127, end_ids=(end,))
    branches, learnt, branching = NgramBranches(31, [tokenizer.encode(CODE)]), Acceptance(), Acceptance()
    lookup = TreeProposer([branches], 31, acceptance=branching)
    others = [Dear([*prompt, *answer], lambda step: step % 7)] if dear else []
    policy = Adaptive([edit, lookup, *others], CostTable(dict(COSTS), {"dear": 0.3}, frozen=True), learnt)
    seq, ahead, drafts, met, done = Sequence(list(prompt), len(prompt)), Foresight(policy), list[Any](), 0, 0
    while done < len(answer):
        choice = ahead.take(seq, 200) or policy.choose(seq, 200)
        draft = choice.draft
        parents = None if draft.parents is None else draft.parents.tolist()
        drafts.append((choice.proposer, draft.tokens.tolist(), parents, draft.evidence, draft.chances))
        policy.meanwhile(seq)
        lookup.meanwhile(seq)
        if is_ahead:
            ahead.look(seq, draft, 0.0, frozenset({end}), lambda length: 200, lambda: True)
        count = draft.size + 1
        targets = dict(enumerate([*answer[done:], *[-1] * count]))
        depths = [0]
        for index in range(draft.size):
            depths.append(1 + (index if parents is None else depths[parents[index] + 1]))
        emitted = [t for t in accept(drafts[-1][1], parents, [targets[at] for at in depths]).tokens if t >= 0]
        seq.tokens.extend(emitted)
        done += len(emitted)
        met += is_ahead and ahead.meet(emitted)
        for proposer in policy.proposers:
            proposer.observe(seq, Committed(emitted, choice.proposer, draft.size, len(emitted) - 1))
    state = [policy.state.asked, policy.state.start, policy.state.lessons]
    index = branches._index
    index.truncate(branches._base + len(prompt))
    known = [learnt._counts, branching._counts, index.tokens, index._latest, index._previous]
    rules = [(rule.pattern, rule.text, rule.left) for rule in edit.state.cursor.rules]
    return drafts, [state[0], state[1], len(state[2]), known, rules, edit.state.followed], met


@pytest.mark.usefixtures("is_patient")
@pytest.mark.parametrize("dear", [False, True])
@pytest.mark.parametrize("kind", list(AFTER))
def test_drafts_and_what_is_learnt_are_the_same_with_and_without(tokenizer: Tokenizer, kind: str, dear: bool) -> None:
    expected, known, _ = replayed(tokenizer, AFTER[kind], False, dear)
    drafts, learnt, met = replayed(tokenizer, AFTER[kind], True, dear)
    assert drafts == expected
    assert learnt == known
    if kind == "unchanged":  # not the fence, which nobody could foresee, nor the end
        assert met >= len(drafts) - 3
    assert met < len(drafts)


def test_what_did_not_come_leaves_a_proposer_as_it_was(tokenizer: Tokenizer) -> None:
    prompt = tokenizer.encode(f"```\n{CODE}```\n")
    answer = tokenizer.encode(f"```\n{AFTER['renamed']}")
    one, other = (EditProposer(tokenizer, f"```\n{CODE}```") for _ in range(2))
    seq = Sequence(prompt, len(prompt))
    for token in answer:
        drafts = [proposer.propose(seq, 40).tokens.tolist() for proposer in (one, other)]
        assert drafts[0] == drafts[1]
        for wrong in ([7, 8, 9], drafts[0], [*drafts[0][:5], 3]):
            own, one.state = one.state, one.branch()
            one.propose(Sequence([*seq.tokens, *wrong, *wrong], seq.prompt_length), 90)
            one.state = own
        seq.tokens.append(token)


class Failing(NgramBranches):
    """Fails in the call with this number for a row that has not come."""

    def __init__(self, truth: list[int], fails: int) -> None:
        super().__init__(15, [truth])
        self.real, self.left = 0, fails

    def continuations(self, seq: Sequence, k: int) -> list[tree.Continuation]:
        found = super().continuations(seq, k)
        if len(seq) > self.real:
            self.left -= 1
            if not self.left:
                raise ValueError("a proposer's own fault")
        return found

    def meanwhile(self, seq: Sequence) -> None:
        self.real = len(seq)
        super().meanwhile(seq)


PROMPT = list(b"what comes next, what comes next, and what comes after what comes next")


@pytest.fixture
def model(tiny_folder: Maker, monkeypatch: pytest.MonkeyPatch, is_patient: None) -> Qwen3:
    model = load(tiny_folder(51), engine=ENGINE).model
    assert isinstance(model.ops, StaticOps)
    model.steps = StaticStep(model)
    monkeypatch.setattr(model.steps, "is_busy", lambda: True)
    return model


def lookup(truth: list[int], source: NgramBranches | None = None) -> Adaptive:
    return Adaptive(
        [TreeProposer([source or NgramBranches(15, [truth])], 15)], CostTable(dict(COSTS), frozen=True), Acceptance()
    )


def test_a_job_takes_what_was_made_ahead_and_emits_the_same(model: Qwen3, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = tokens_of(generate(model, PROMPT, max_tokens=60, stop_ids=NEVER))
    taken: list[Choice | None] = []
    take = Foresight.take

    def counted(self: Foresight, seq: Sequence, limit: int) -> Choice | None:
        taken.append(take(self, seq, limit))
        return taken[-1]

    monkeypatch.setattr(Foresight, "take", counted)
    out, stats = run(generate(model, PROMPT, max_tokens=60, stop_ids=NEVER, speculative=lookup(truth)))
    assert out == truth
    assert stats.steps == len(taken)
    assert taken[0] is not None  # made while the prompt was read
    assert any(taken[1:])


@pytest.mark.parametrize("fails", [1, 2, 5])
def test_a_fault_in_what_did_not_come_ends_the_job_and_leaves_all_as_told(model: Qwen3, fails: int) -> None:
    truth = tokens_of(generate(model, PROMPT, max_tokens=60, stop_ids=NEVER))
    cache, source, out = model.new_cache(), Failing(truth[::2] + truth, fails), list[int]()
    events = generate(model, PROMPT, max_tokens=60, stop_ids=NEVER, speculative=lookup(truth, source), cache=cache)
    with pytest.raises(ValueError, match="own fault"):
        out.extend(token for event in events if isinstance(event, StepDone) for token in event.tokens)
    assert out == truth[: len(out)]
    assert_fresh(model, cache, [*PROMPT, *out][:-1] if out else PROMPT[:-1])
    assert source._index.tokens[source._base :] == [*PROMPT, *out][: source.state]
    cache.free()


def test_an_interrupt_anywhere_in_it_leaves_all_as_told(model: Qwen3) -> None:
    files = {inspect.getsourcefile(module) for module in (foresight, tree, ngram_tree)}

    def follows(frame: FrameType) -> bool:
        return frame.f_code.co_filename in files and frame.f_code.co_name not in ("truncate", "<genexpr>")

    truth = tokens_of(generate(model, PROMPT, max_tokens=30, stop_ids=NEVER))
    total, at = 1, 0
    while at < total:
        at += 19
        source = NgramBranches(15, [truth[::2] + truth])
        policy = lookup(truth, source)
        cache, told = model.new_cache(), list[int]()
        events = generate(model, PROMPT, max_tokens=30, stop_ids=NEVER, speculative=policy, cache=cache)
        with contextlib.closing(events), Interrupting(at, follows) as tried:
            for event in events:
                told += event.tokens if isinstance(event, StepDone) else []
        total = tried.lines if tried.is_through else total + 19
        assert told == truth[: len(told)]
        assert_fresh(model, cache, [*PROMPT, *told][:-1] if told else PROMPT[: cache.length])
        assert source._index.tokens[source._base :] == [*PROMPT, *told][: source.state]
        cache.free()
    assert at > 1000


def test_nothing_is_foreseen_where_the_device_is_done_or_somebody_cannot_branch(tokenizer: Tokenizer) -> None:
    class Never(Scripted):
        def propose(self, seq: Sequence, k: int) -> Draft:
            assert len(seq) == 3
            return super().propose(seq, k)

    seq, script = Sequence([1, 2, 3], 3), Never(list(range(1, 300)), lambda step: 9)
    for proposers in ([script], [NgramBranches(15), script]):
        policy = Adaptive([p if p is script else TreeProposer([p]) for p in proposers], CostTable(dict(COSTS)))  # type: ignore[list-item]
        ahead = Foresight(policy)
        draft = policy.choose(seq, 100).draft
        ahead.look(seq, draft, 0.0, NEVER, lambda length: 100, lambda: False)
        ahead.look(seq, draft, 0.0, NEVER, lambda length: 100, lambda: True)
        assert not ahead.meet([4, 5])
        assert ahead.take(seq, 100) is None


@pytest.mark.usefixtures("is_patient")
def test_what_an_earlier_step_could_have_emitted_is_not_met_later() -> None:
    """Not every step is looked beyond: the device may be done by then, or the step run in one piece."""
    branches, row = NgramBranches(15), [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]
    seq, learnt = Sequence(row, 4), Acceptance()
    policy = Adaptive([TreeProposer([branches], acceptance=learnt)], CostTable(dict(COSTS), frozen=True))
    ahead = Foresight(policy)
    draft = policy.choose(seq, 100).draft
    ahead.look(seq, draft, 0.0, NEVER, lambda length: 100, lambda: True)
    foreseen = next(iter(ahead._ready))
    for tokens in ([9], foreseen):  # the second step says what the first one might have said
        seq.tokens.extend(tokens)
        assert not ahead.meet(tokens)
        assert ahead.take(seq, 100) is None
    assert policy.state.start == 10
    policy.choose(seq, 100)
    policy.conclude(seq)
    for proposer in policy.proposers:
        proposer.conclude(seq)  # type: ignore[attr-defined]
    assert branches._index.tokens == seq.tokens
    assert {name for name, _ in learnt._counts} == {"ngram/0"}
    assert all(sum(counts.refused) == 1.0 for counts in learnt._counts.values())  # by what came, 9, and not as foreseen


def test_no_outcome_is_begun_that_would_take_longer_than_the_step(tokenizer: Tokenizer) -> None:
    costs = {1: 1e-3, 16: 1e-3}
    seq = Sequence(tokenizer.encode(CODE), 0)
    policy = Adaptive([TreeProposer([NgramBranches(15)])], CostTable(costs, {"ngram-tree": 1e-6}, frozen=True))
    ahead = Foresight(policy)
    draft = policy.choose(seq, 100).draft
    assert draft.size
    for launched, takes, some in ((0.0, 0.0, False), (1e9, 0.0, True), (1e9, 1e9, False), (1e9, 1e-9, True)):
        ahead._takes = takes
        ahead.look(seq, draft, launched, NEVER, lambda length: 100, lambda: True)
        assert ahead.is_ready == some
    ahead._takes = 10.0  # a stall counts for a while, not for good
    for _ in range(200):
        ahead.look(seq, draft, perf_counter(), NEVER, lambda length: 100, lambda: True)
    assert ahead._takes < 1e-3


def test_a_job_that_is_over_holds_on_to_nobody(model: Qwen3) -> None:
    """Drafters give back what they hold when they go, and a collector may come much later."""
    gc.disable()
    try:
        policy = lookup(PROMPT)
        gone = weakref.ref(policy.proposers[0])
        for options in ({}, {"stop_ids": NEVER}):
            tokens_of(generate(model, PROMPT, max_tokens=20, speculative=policy, **options))
        del policy
        assert gone() is None
    finally:
        gc.enable()
