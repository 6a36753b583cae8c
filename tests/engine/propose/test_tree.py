"""Trees from several guesses: what is in them, which nodes get a place, and that they are worth it."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specd.engine import Acceptance, Committed, Draft, NgramProposer, Proposer, Sequence
from specd.engine.choice import accept
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.prefix_tree import PrefixTree
from specd.engine.propose.tree import Continuation, TreeProposer

TOKENS = st.lists(st.integers(0, 3), min_size=1, max_size=8)
GUESSES = st.lists(st.tuples(TOKENS, st.sampled_from(["a", "b"]), st.integers(0, 2)), min_size=1, max_size=6)


def paths_of(draft: Draft) -> list[tuple[int, ...]]:
    """The path from the root to each node."""
    paths: list[tuple[int, ...]] = []
    parents = range(-1, draft.size - 1) if draft.parents is None else draft.parents.tolist()
    for token, parent in zip(draft.tokens.tolist(), parents, strict=True):
        assert -1 <= parent < len(paths)
        paths.append((*paths[parent], token) if parent >= 0 else (token,))
    return paths


def taught(seed: int) -> Acceptance:
    """An acceptance that has seen something or other."""
    draw, acceptance = random.Random(seed), Acceptance()
    for _ in range(draw.randint(0, 40)):
        depth = draw.randint(1, 8)
        name = draw.choice(["a/0", "b/0", "a/1", "b/1", "a/2"])
        acceptance.record(name, draw.randint(0, 2), depth, draw.randint(0, depth))
    return acceptance


@given(GUESSES, st.integers(1, 20), st.integers(1, 8), st.integers(0, 99))
def test_it_holds_beginnings_of_the_guesses_each_once_up_to_the_budget(
    guesses: list[tuple[list[int], str, int]], budget: int, depth: int, seed: int
) -> None:
    tree = PrefixTree(taught(seed), depth)
    for tokens, name, evidence in guesses:
        tree.add(tokens, name, evidence)
    draft = tree.best(budget, evidence=2)
    paths = paths_of(draft)
    possible = {tuple(tokens[:length]) for tokens, _, _ in guesses for length in range(1, min(len(tokens), depth) + 1)}
    assert len(set(paths)) == len(paths) == min(budget, len(possible))
    assert set(paths) <= possible
    assert draft.evidence == 2
    is_chain = all(len(path) == place for place, path in enumerate(paths, start=1))
    assert (draft.parents is None) == is_chain
    # cutting a tree leaves a tree, of the nodes with the greatest chance
    for k in range(1, draft.size):
        assert paths_of(draft.cut(k)) == paths[:k]


@given(GUESSES, st.integers(1, 12), st.integers(0, 99))
def test_by_what_was_learnt_no_chain_of_the_same_size_promises_more(
    guesses: list[tuple[list[int], str, int]], budget: int, seed: int
) -> None:
    acceptance = taught(seed)
    tree = PrefixTree(acceptance, 8)
    for tokens, name, evidence in guesses:
        tree.add(tokens, name, evidence)
    children: dict[int, list[int]] = {}
    _, parents, chances = zip(*tree.nodes(), strict=True)
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
        assert parent < 0 or chances[node] <= chances[parent] <= 1
    chosen = sum(sorted(chances, reverse=True)[:budget])
    tokens, name, evidence = guesses[0]
    assert chosen >= sum(acceptance.survival(f"{name}/0", evidence, min(len(tokens), budget))) - 1e-9
    for leaf in range(len(parents)):
        path = [leaf]
        while parents[path[0]] >= 0:
            path.insert(0, parents[path[0]])
        assert chosen >= sum(chances[node] for node in path[:budget]) - 1e-9


class Fixed:
    """A source whose guesses are given."""

    name, max_k = "fixed", 100

    def __init__(self, guesses: Callable[[int], list[list[int]]]) -> None:
        self.guesses, self.observed, self.length = guesses, 0, -1

    def continuations(self, seq: Sequence, k: int) -> list[Continuation]:
        return [Continuation(tokens[:k]) for tokens in self.guesses(len(seq))]

    def observe(self, seq: Sequence, committed: Committed) -> None:
        self.observed += 1

    def truncate(self, length: int) -> None:
        self.length = length


def play(proposer: Proposer, truth: list[int], prompt: int, k: int) -> int:
    """Steps that a perfect target takes to emit the truth from `prompt` on."""
    seq, steps = Sequence(truth[:prompt], prompt), 0
    proposer.observe(seq, Committed([]))
    while len(seq) < len(truth):
        draft = proposer.propose(seq, k)
        assert draft.size <= k
        ahead = [*truth[len(seq) :], *[-1] * (k + 1)]
        parents = None if draft.parents is None else draft.parents.tolist()
        depth = [0, *(len(path) for path in paths_of(draft))]
        found = accept(draft.tokens.tolist(), parents, [ahead[place] for place in depth])
        emitted = [token for token in found.tokens if token >= 0]
        seq.tokens.extend(emitted)
        proposer.observe(seq, Committed(emitted, proposer.name, draft.size, len(emitted) - 1))
        steps += 1
    assert seq.tokens == truth
    return steps


def test_it_learns_which_branch_is_right() -> None:
    truth = [place % 200 for place in range(2000)]
    wrong_first = Fixed(lambda at: [[999] * 8, truth[at : at + 8], [888] * 8])
    proposer = TreeProposer([wrong_first], 8)
    first = play(proposer, truth[:400], 1, 8)
    later = play(proposer, truth[400:800], 1, 8)
    assert later < first
    draft = proposer.propose(Sequence(truth[:800], 1), 8)
    assert len(longest := max(paths_of(draft), key=len)) >= 6
    assert list(longest) == truth[800 : 800 + len(longest)]


def test_one_guess_is_a_chain_and_none_is_no_draft() -> None:
    proposer = TreeProposer([Fixed(lambda at: [[1, 2, 3]])], 5)
    draft = proposer.propose(Sequence([0], 1), 9)
    assert (draft.tokens.tolist(), draft.parents) == ([1, 2, 3], None)
    assert TreeProposer([Fixed(lambda at: [])]).propose(Sequence([0], 1), 9).size == 0
    assert proposer.propose(Sequence([0], 1), 0).size == 0
    assert proposer.propose(Sequence([0], 1), 2).tokens.tolist() == [1, 2]
    with pytest.raises(ValueError, match="source"):
        TreeProposer([])
    with pytest.raises(ValueError, match="budget"):
        TreeProposer([Fixed(lambda at: [])], 0)


class Drafts:
    """A proposer whose draft is given."""

    max_k = 100

    def __init__(self, name: str, draft: Draft, taps: tuple[int, ...] = ()) -> None:
        self.name, self.draft, self.seen, self.length = name, draft, [], -1  # type: ignore[var-annotated]
        if taps:
            self.tap_layers = taps

    def propose(self, seq: Sequence, k: int) -> Draft:
        return self.draft.cut(k)

    def observe(self, seq: Sequence, committed: Committed) -> None:
        self.seen.append(committed)

    def truncate(self, length: int) -> None:
        self.length = length


def ints(values: list[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def test_drafts_of_proposers_are_merged_trees_among_them() -> None:
    chain = Drafts("chain", Draft.chain([1, 2, 3], evidence=4))
    tree = Drafts("tree", Draft(ints([1, 5, 2, 9]), ints([-1, 0, 0, 2])), (1, 2))
    both = TreeProposer([chain, tree], 10)
    assert (both.name, both.tap_layers) == ("chain+tree-tree", (1, 2))
    draft = both.propose(Sequence([0], 1), 10)
    assert set(paths_of(draft)) == {(1,), (1, 2), (1, 2, 3), (1, 5), (1, 2, 9)}
    assert draft.evidence == 4
    committed = Committed([1], "someone", 1, 1)
    both.observe(Sequence([0, 1], 1), committed)
    both.truncate(1)
    assert chain.seen == tree.seen == [committed]
    assert chain.length == tree.length == 1
    with pytest.raises(ValueError, match="tap different layers"):
        _ = TreeProposer([tree, Drafts("other", chain.draft, (3,))]).tap_layers


def test_what_two_sources_agree_on_has_the_better_ones_chance() -> None:
    acceptance = Acceptance({("poor/0", 0): 0.9, ("good/0", 0): 0.05}, default=0.9)
    tree = PrefixTree(acceptance, 8)
    tree.add([1, 2, 3], "poor", 0)
    tree.add([1, 2, 4], "good", 0)
    chances = [chance for _, _, chance in tree.nodes()]
    assert chances[:2] == acceptance.survival("good/0", 0, 2)
    assert chances[2] == acceptance.survival("poor/0", 0, 3)[2]


def text_like(draw: random.Random, words: int) -> list[int]:
    """Tokens with the habits of code: common words, phrases that come again with changes."""
    out: list[int] = []
    phrases = [[draw.randrange(60) for _ in range(draw.randint(3, 12))] for _ in range(12)]
    while len(out) < words:
        phrase = list(draw.choice(phrases))
        if draw.random() < 0.4:
            phrase[draw.randrange(len(phrase))] = draw.randrange(200)
        out += phrase
    return out


@pytest.mark.parametrize("k", [3, 7, 15, 31])
def test_a_tree_takes_no_more_steps_than_a_chain_of_the_same_size(k: int) -> None:
    chain = tree = 0
    for seed in range(6):
        truth = text_like(random.Random(seed), 900)
        chain += play(NgramProposer(k), truth, 300, k)
        tree += play(TreeProposer([NgramBranches(k)], k), truth, 300, k)
    assert tree < chain


@pytest.mark.parametrize("k", [7, 15, 31])
def test_over_real_edits_too(edit_corpus: Path, qwen_tokenizer_folder: Path, k: int, bench_path: Any) -> None:
    from replay_cases import build_case, read_edits

    from specd.engine.tokenizer import Tokenizer

    tokenizer = Tokenizer(qwen_tokenizer_folder)
    chain = tree = 0
    for edit in read_edits(edit_corpus)[::15]:
        case = build_case(edit, tokenizer, "region")
        truth = case.prompt + case.answer
        chain += play(NgramProposer(k), truth, len(case.prompt), k)
        tree += play(TreeProposer([NgramBranches(k)], k), truth, len(case.prompt), k)
    assert tree < chain


@pytest.fixture
def bench_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "bench"))


def test_learnt_chances_agree_with_the_survival_they_come_from() -> None:
    acceptance = Acceptance({("a/0", 0): 0.2, ("a/1", 0): 0.7}, default=0.5)
    tree = PrefixTree(acceptance, 4)
    tree.add([1, 2, 3], "a", 0)
    tree.add([1, 5, 6], "a", 0)
    survival = acceptance.survival("a/0", 0, 4)
    chances = [chance for _, _, chance in tree.nodes()]
    assert chances[:3] == survival[:3]
    alternative = survival[0] * acceptance.survival("a/1", 0, 1)[0]
    assert chances[3] == pytest.approx(alternative)
    assert chances[4] == pytest.approx(alternative * survival[1] / survival[0])
    tree.teach([1, 5, 7])
    assert acceptance.survival("a/1", 0, 1)[0] > 0.4  # the second branch was right once
