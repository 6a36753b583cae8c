"""Edit-aware drafting: what an edit costs in verify steps, and that no text makes it raise, loop or draft too much."""

import math
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from following import Walk, train, walk
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specd.engine import Committed, Sequence
from specd.engine.choice import accept
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.edit_source import MOST_BYTES, Source
from specd.engine.propose.edit_text import TokenText
from specd.engine.tokenizer import Tokenizer

ENGINE = Path(__file__).parents[3] / "engine"
CODE = (ENGINE / "stats.py").read_text()


@pytest.fixture(scope="module", params=["behind", "before"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return train(tmp_path_factory.mktemp("bpe"), request.param)


def edit(
    tokenizer: Tokenizer,
    before: str,
    after: str,
    k: int = 32,
    pairs: tuple[tuple[str, str], ...] = (),
    asked: str = "Edit it.",
) -> Walk:
    """The walk of a rewrite of `before` whose answer is `after`."""
    prompt = tokenizer.encode(f"```\n{before}```\nEdit it.\n")
    end = tokenizer.token_id("<|end|>")
    assert end is not None
    proposer = EditProposer(tokenizer, f"```\n{before}```", pairs, max_k=k, end_ids=(end,))
    return walk(proposer, prompt, [*tokenizer.encode(f"```\n{after}```"), end], k)


def least(walked: Walk, k: int) -> int:
    """Steps if every draft held."""
    return math.ceil(walked.emitted / (k + 1))


def test_an_unchanged_text_takes_no_step_more_than_its_length(tokenizer: Tokenizer) -> None:
    for k in (1, 7, 32, 128):
        walked = edit(tokenizer, CODE, CODE, k)
        assert len(walked.steps) == least(walked, k)


def test_a_rename_that_the_instruction_names_costs_no_step(tokenizer: Tokenizer) -> None:
    walked = edit(tokenizer, CODE, CODE.replace("record", "entry"), pairs=(("record", "entry"),))
    assert CODE.count("record") > 5
    assert len(walked.steps) <= least(walked, 32) + 1  # a plural that is no whole word


def test_a_rename_is_paid_for_at_its_first_place_only(tokenizer: Tokenizer) -> None:
    text = "".join(f"row_{n} = compute(total, {n}) + total\n" for n in range(60))
    walked = edit(tokenizer, text, text.replace("total", "whole_sum"))
    new_name = len(tokenizer.encode("whole_sum"))
    assert len(walked.steps) <= least(walked, 32) + new_name + 1


def test_a_name_that_grows_at_its_beginning_is_completed_from_the_old_one(tokenizer: Tokenizer) -> None:
    text = "".join(f"row_{n} = compute(total, {n}) + total\n" for n in range(60))
    walked = edit(tokenizer, text, text.replace("total", "new_total"))
    assert len(walked.steps) <= least(walked, 32) + len(tokenizer.encode("new_")) + 3


INSIDE = "".join(
    f"def foo{n}(foo, foobar, barfoo):\n    x = foo + foobar + foo_{n}\n    return foo.foo(foofoo)\n\n"
    for n in range(20)
)


@pytest.mark.parametrize(
    "pairs",
    [(("foo", "foofoo"),), (("foo", "f"),), (("foo", "bar"), ("bar", "foo"))],
    ids=["longer", "shorter", "swap"],
)
def test_a_rename_inside_longer_words_is_paid_for_once(
    tokenizer: Tokenizer, pairs: tuple[tuple[str, str], ...]
) -> None:
    names = dict(pairs)
    after = re.sub("|".join(names), lambda found: names[found[0]], INSIDE)
    walked = edit(tokenizer, INSIDE, after, pairs=pairs)
    assert len(walked.steps) <= least(walked, 32) + 4


def test_words_that_kept_their_name_before_are_left_alone(tokenizer: Tokenizer) -> None:
    before = "foobar = 1\n" + "foobaz(foobar, footer)\n" * 20
    after = before.replace("foobaz", "barbaz").replace("footer", "barter")
    walked = edit(tokenizer, before, after, pairs=(("foo", "bar"),))
    assert len(walked.steps) <= least(walked, 32) + 3


@pytest.mark.parametrize("change", ["insert", "delete", "replace"])
def test_the_copy_goes_on_behind_a_changed_line(tokenizer: Tokenizer, change: str) -> None:
    lines = CODE.splitlines(keepends=True)
    new = "    zebra = quokka(9)\n"
    changed = {
        "insert": [*lines[:20], new, *lines[20:]],
        "delete": lines[:20] + lines[24:],
        "replace": [*lines[:20], new, *lines[21:]],
    }
    walked = edit(tokenizer, CODE, "".join(changed[change]))
    novel = 0 if change == "delete" else len(tokenizer.encode(new))
    assert len(walked.steps) <= least(walked, 32) + novel + 3


def test_moved_code_is_followed_into_its_new_indentation(tokenizer: Tokenizer) -> None:
    body = "".join(f"        value_{n} = self.table[{n}] + offset_{n}\n" for n in range(40))
    before = f"class Table:\n    def fill(self):\n{body}\n\nclass Other:\n    pass\n"
    moved = "".join(line[4:] for line in body.splitlines(keepends=True))
    walked = edit(
        tokenizer, before, f"def fill(self):\n{moved}\n\nclass Table:\n    pass\n\n\nclass Other:\n    pass\n"
    )
    assert len(walked.steps) <= least(walked, 32) + 25


def test_an_argument_put_first_in_every_call_is_learnt(tokenizer: Tokenizer) -> None:
    text = "".join(f"result_{n} = convert(value_{n}, {n})\n" for n in range(50))
    walked = edit(tokenizer, text, text.replace("convert(", "convert(context, "))
    assert len(walked.steps) <= least(walked, 32) + 10


def test_evidence_tells_a_long_copy_from_a_guess(tokenizer: Tokenizer) -> None:
    prompt = tokenizer.encode(CODE)
    answer = tokenizer.encode(CODE.replace("tokens: int", "zebra: quokka", 1))
    proposer, seq = EditProposer(tokenizer, CODE), Sequence(list(prompt), len(prompt))
    assert proposer.propose(seq, 8).evidence == 0
    seen = []
    for begin in range(0, len(answer), 8):
        seq.tokens.extend(answer[begin : begin + 8])
        proposer.observe(seq, Committed(answer[begin : begin + 8]))
        seen.append(proposer.propose(seq, 8).evidence)
    assert max(seen) > 3
    assert {1, 2, 3} <= set(seen)


def test_the_same_text_in_other_tokens_is_no_divergence(tokenizer: Tokenizer) -> None:
    at = CODE.index("class Summary")
    letters = [token for letter in "class Summary" for token in tokenizer.encode(letter)]
    answer = tokenizer.encode(CODE[:at]) + letters + tokenizer.encode(CODE[at + len("class Summary") :])
    proposer, seq = EditProposer(tokenizer, CODE), Sequence([1, 2], 2)
    for token in answer:
        assert proposer.propose(seq, 8).evidence <= 3  # a copy, never a guess
        seq.tokens.append(token)
        proposer.observe(seq, Committed([token]))


# -- never harmful --

PARTS = st.sampled_from(
    [
        *("def f(a):\n", "    return a\n", "\r\n", "\n\n\n", "\t", "\f", " " * 7, "a" * 50, "-" * 30, "foo", "foo_bar"),
        *(
            "fooBar",
            "(",
            ")",
            "0x1F",
            "`",
            "```",
            "<|end|>",
            "\x00",
            "\u00a0",
            "\u2028",
            "é",
            "e\u0301",
            "🙂",
            "日本語",
        ),
        *("👩\u200d👧", "שלום", "\u202e", "\ud800"),
    ]
)
TEXTS = st.lists(PARTS, max_size=25).map("".join)


def outputs(tokenizer: Tokenizer, text: str, other: str) -> list[int]:
    return tokenizer.encode(
        text.encode("utf-8", "replace").decode("utf-8") + other.encode("utf-8", "replace").decode("utf-8")
    )


@settings(deadline=None)
@given(text=TEXTS)
@example(text="one two three():\n       \r\nfour\n")
def test_a_unit_begins_with_a_token_and_a_lexeme(tokenizer: Tokenizer, text: str) -> None:
    source = Source(text, TokenText(tokenizer))
    assert set(source.unit_starts) <= source.token_at.keys()
    assert [source.starts[lexeme] for lexeme in source.unit_lexemes] == [*source.unit_starts, len(source.text)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(before=TEXTS, kept=TEXTS, added=TEXTS, pairs=st.lists(st.tuples(TEXTS, TEXTS), max_size=3), k=st.integers(1, 64))
def test_any_text_is_followed_without_raising(
    tokenizer: Tokenizer, before: str, kept: str, added: str, pairs: list[tuple[str, str]], k: int
) -> None:
    answer = outputs(tokenizer, before[: len(before) // 2] + added, before[len(before) // 2 :] + kept)
    proposer = EditProposer(tokenizer, before, pairs, max_k=k, end_ids=(0,))
    walked = walk(proposer, tokenizer.encode("edit\n"), answer or [5], k)
    assert walked.emitted == len(answer or [5])


@settings(deadline=None)
@given(
    before=TEXTS,
    rows=st.lists(st.lists(st.integers(0, 1499), min_size=1, max_size=20), max_size=12),
    seed=st.integers(0, 9),
)
def test_any_tokens_are_followed_whoever_drafted_them(
    tokenizer: Tokenizer, before: str, rows: list[list[int]], seed: int
) -> None:
    draw = random.Random(seed)
    proposer, seq = EditProposer(tokenizer, before, end_ids=(0,)), Sequence([1, 2, 3], 3)
    for row in rows:
        if draw.random() < 0.7:
            draft = (proposer.propose_tree if draw.random() < 0.5 else proposer.propose)(seq, draw.randint(0, 40))
            assert draft.size <= 40
            if draft.size and draft.parents is None:
                row = draft.tokens.tolist()[: draw.randint(0, 6)] + row
        seq.tokens.extend(row)
        if draw.random() < 0.8:
            proposer.observe(seq, Committed(row))


@settings(deadline=None)
@given(before=TEXTS, after=TEXTS.filter(bool), at=st.floats(0, 0.99), k=st.integers(1, 40))
def test_a_truncated_proposer_drafts_what_a_fresh_one_does(
    tokenizer: Tokenizer, before: str, after: str, at: float, k: int
) -> None:
    prompt, answer = tokenizer.encode("change\n"), outputs(tokenizer, after, before)
    proposer, seq = EditProposer(tokenizer, before), Sequence(list(prompt), len(prompt))
    for token in answer:
        proposer.propose(seq, k)
        seq.tokens.append(token)
        proposer.observe(seq, Committed([token]))
        proposer.meanwhile(seq)
    length = len(prompt) + int(at * len(answer))
    proposer.truncate(length)
    proposer.truncate(length)
    del seq.tokens[length:]
    fresh = EditProposer(tokenizer, before)
    assert proposer.propose(seq, k).tokens.tolist() == fresh.propose(seq, k).tokens.tolist()


@settings(deadline=None)
@given(
    before=TEXTS,
    after=TEXTS.filter(bool),
    ask=st.sampled_from(["propose", "propose_tree", "continuations"]),
    k=st.integers(1, 40),
    stride=st.integers(1, 4),
)
def test_who_asks_twice_is_told_the_same(
    tokenizer: Tokenizer, before: str, after: str, ask: str, k: int, stride: int
) -> None:
    answer = outputs(tokenizer, before[: len(before) // 2] + after, before)
    prompt = tokenizer.encode("zebra quokka zebra\n" * 20)
    once, twice = (EditProposer(tokenizer, before) for _ in range(2))
    seq = Sequence(list(prompt), len(prompt))

    def asked(proposer: EditProposer) -> object:
        found = getattr(proposer, ask)(seq, k)
        if isinstance(found, list):
            return found
        return found.tokens.tolist(), found.evidence, None if found.parents is None else found.parents.tolist()

    for begin in range(0, len(answer), stride):
        first = asked(once)
        assert asked(twice) == first
        assert asked(twice) == first
        seq.tokens.extend(answer[begin : begin + stride])
        for proposer in (once, twice):
            proposer.observe(seq, Committed(answer[begin : begin + stride]))


class Work:
    """A tokenizer that counts the bytes it is given, and (`with`) the bytecodes that run meanwhile."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.done = 0

    def encode(self, text: str) -> list[int]:
        self.done += len(text)
        return self._tokenizer.encode(text)

    def token_bytes(self, token: int) -> bytes:
        return self._tokenizer.token_bytes(token)

    def _count(self, frame: FrameType, event: str, _: object) -> Callable[..., object]:
        frame.f_trace_opcodes = True
        self.done += 1
        return self._count

    def __enter__(self) -> None:
        self.done = 0
        self._before = sys.gettrace()
        sys.settrace(self._count)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)


def most_work(tokenizer: Tokenizer, word: str, count: int) -> int:
    """Work of the dearest step, of some that leave a line of so many words and find back to it."""
    line = word * count
    work = Work(tokenizer)
    proposer = EditProposer(work, line, [("beta", "b")])
    prompt = tokenizer.encode(line)
    seq, most = Sequence(list(prompt), len(prompt)), 0
    proposer.propose(seq, 16)
    for token in tokenizer.encode(word * 3 + f"b {word * 2}, c, {word}" * 3 + "zebra" + word * 9):
        seq.tokens.append(token)
        with work:
            proposer.observe(seq, Committed([token]))
            proposer.propose(seq, 16)
        most = max(most, work.done)
    return most


@pytest.mark.parametrize("word", ["a ", "alpha beta ", "x", "1,", "=", '{"k":1},'])
def test_a_step_on_a_long_line_costs_what_one_on_a_shorter_line_does(tokenizer: Tokenizer, word: str) -> None:
    short, long = most_work(tokenizer, word, 4_000), most_work(tokenizer, word, 16_000)
    assert long < 1.5 * short
    assert long < 60_000  # bytecodes and bytes; a millisecond or two


@pytest.mark.parametrize("text", ["", "\n", "x", "word " * 200_000, "x = 1\n" * 170_000, "()" * 500_000])
def test_empty_and_huge_texts_are_drafted_from_as_far_as_an_answer_can_reach(tokenizer: Tokenizer, text: str) -> None:
    proposer = EditProposer(tokenizer, text, max_k=64, end_ids=(7,))
    prompt = tokenizer.encode("edit\n")
    seq = Sequence(list(prompt), len(prompt))
    assert proposer.propose(seq, 64).tokens.tolist() == [*tokenizer.encode(text[:MOST_BYTES]), 7][:64]
    for token in tokenizer.encode("something else entirely\n" * 5):
        seq.tokens.append(token)
        proposer.observe(seq, Committed([token]))
        assert proposer.propose(seq, 64).size <= 64


# -- trees --


def test_a_tree_holds_the_best_guess_and_others_within_its_budget(tokenizer: Tokenizer) -> None:
    lines = CODE.splitlines(keepends=True)
    answer = tokenizer.encode("".join([*lines[:20], "    zebra = tokens\n", *lines[20:]]))
    prompt = tokenizer.encode(CODE)
    chains, trees = EditProposer(tokenizer, CODE), EditProposer(tokenizer, CODE)
    seq, done, branched = Sequence(list(prompt), len(prompt)), 0, 0
    while done < len(answer):
        chain, tree = chains.propose(seq, 32), trees.propose_tree(seq, 32)
        parents = [] if tree.parents is None else tree.parents.tolist()
        assert tree.size <= 32
        assert all(-1 <= parent < node for node, parent in enumerate(parents))
        branched += len(set(parents)) < len(parents)
        target = [answer[done], *[-1] * 32][: chain.size + 1]
        token = accept(chain.tokens.tolist(), None, target).tokens[0]
        seq.tokens.append(token)
        done += 1
        for proposer in (chains, trees):
            proposer.observe(seq, Committed([token]))
    assert branched > 0


def test_the_branch_that_the_target_took_is_the_one_that_is_followed(tokenizer: Tokenizer) -> None:
    text = "".join(f"row_{n} = compute(total, {n})\n" for n in range(30))
    prompt = tokenizer.encode(text)
    lines = text.splitlines(keepends=True)
    answer = tokenizer.encode("".join([*lines[:5], "zebra = 1\n", *lines[9:]]))
    proposer, seq, done, steps = EditProposer(tokenizer, text), Sequence(list(prompt), len(prompt)), 0, 0
    while done < len(answer):
        draft = proposer.propose_tree(seq, 32)
        drafted = draft.tokens.tolist()
        parents = None if draft.parents is None else draft.parents.tolist()
        depth = [0] * len(drafted)
        for node in range(len(drafted)):
            above = node - 1 if parents is None else parents[node]
            depth[node] = depth[above] + 1 if above >= 0 else 1
        target = [(answer[done:] + [-1] * 64)[d] for d in [0, *depth]]
        emitted = [token for token in accept(drafted, parents, target).tokens if token >= 0]
        seq.tokens.extend(emitted)
        done += len(emitted)
        steps += 1
        proposer.observe(seq, Committed(emitted))
    assert steps <= math.ceil(len(answer) / 33) + len(tokenizer.encode("zebra = 1\n")) + 2
