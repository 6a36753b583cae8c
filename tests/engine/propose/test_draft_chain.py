"""A draft model's chains as passes of fixed shape are the chains that it makes step by step."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drafters import ENGINE, NEVER, PARAMS, PROMPT, a_little_off
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import tokens_of

from specd.engine import Loaded, Sequence, StepDone, generate, load
from specd.engine.propose.draft_chain import DraftChain
from specd.engine.propose.draft_model import DraftModelProposer

Maker = Callable[..., Path]


@pytest.fixture(scope="module")
def chained(near: Loaded) -> Iterator[DraftChain]:
    chain = DraftChain(near.model)
    yield chain
    near.model.chain = None


@settings(deadline=None, max_examples=25)
@given(length=st.integers(1, 50), known=st.integers(0, 50), k=st.integers(1, 33), name=st.sampled_from(sorted(PARAMS)))
def test_a_chain_is_the_one_of_single_steps_and_leaves_the_same_context(
    loaded: Loaded, near: Loaded, chained: DraftChain, length: int, known: int, k: int, name: str
) -> None:
    seq = Sequence(PROMPT[:length], length)
    drafts, contexts = [], []
    for chain in (None, chained):
        near.model.chain = chain
        proposer = DraftModelProposer(near.model, k, target=loaded.model, sampling=PARAMS[name])
        proposer.feed(seq, min(known, length))
        drafts.append(proposer.propose(seq, k).tokens.tolist())
        contexts.append(
            (proposer.context.cache.length, list(proposer.context.tokens), len(proposer.context.cache.pages))
        )
        proposer.close()
    near.model.chain = None
    assert drafts[0] == drafts[1]
    assert contexts[0] == contexts[1]
    assert len(drafts[0]) == k


@pytest.mark.parametrize("name", sorted(PARAMS))
@pytest.mark.parametrize("k", [1, 4, 20])
def test_jobs_emit_the_same_and_accept_as_much(
    loaded: Loaded, near: Loaded, chained: DraftChain, name: str, k: int
) -> None:
    found = []
    for chain in (None, chained):
        near.model.chain = chain
        proposer = DraftModelProposer(near.model, k, target=loaded.model, sampling=PARAMS[name])
        job = generate(loaded.model, PROMPT, sampling=PARAMS[name], stop_ids=NEVER, max_tokens=60, speculative=proposer)
        events = list(job)
        proposer.close()
        steps = [(e.record.drafted, e.record.accepted) for e in events if isinstance(e, StepDone)]
        found.append((tokens_of(events), steps))
    near.model.chain = None
    assert found[0] == found[1]
    assert sum(accepted for _, accepted in found[0][1]) > 5
    assert near.model.pool.free_pages == near.model.pool.pages


def test_at_the_context_end_a_chain_is_as_long_as_it_may_be(tiny_folder: Maker) -> None:
    loaded = load(tiny_folder(21, max_position_embeddings=96), engine=ENGINE)
    near = load(a_little_off(tiny_folder(21, max_position_embeddings=96), 1), engine=ENGINE)
    plain = tokens_of(generate(loaded.model, PROMPT, stop_ids=NEVER))
    near.model.chain = DraftChain(near.model)
    proposer = DraftModelProposer(near.model, 7, target=loaded.model)
    assert tokens_of(generate(loaded.model, PROMPT, stop_ids=NEVER, speculative=proposer)) == plain
    proposer.close()
    assert near.model.pool.free_pages == near.model.pool.pages
