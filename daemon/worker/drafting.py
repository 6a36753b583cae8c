"""Who drafts for a job: the proposers that it asked for, or the policy over all there are."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from specd.daemon.errors import UsageError
from specd.daemon.generation import Asked
from specd.daemon.protocol import Sampling, Speculation

if TYPE_CHECKING:
    from specd.engine import Acceptance, CostTable, Loaded, Proposer, SamplingParams, StepPolicy
    from specd.engine.model import Qwen3
    from specd.engine.prefix import DrafterState
    from specd.engine.propose.dflash import DFlashDrafter
    from specd.engine.sampling import AcceptRule

LONGEST = 127  # drafted tokens a step: 128 rows cost little more than 64, and more than that is seldom right


class Drafting:
    """What drafts for one model, and what was learnt of its costs and its luck, over all jobs."""

    def __init__(self, loaded: "Loaded", draft: "Qwen3 | None", block: "DFlashDrafter | None") -> None:
        from specd import engine
        from specd.engine import costs, priors

        self._loaded = loaded
        self._draft = draft
        self._block = block
        self._costs: CostTable = costs.measure(loaded.model, budget=0.6)
        self._edits: Acceptance = engine.Acceptance(priors.EDITS)
        self._free: Acceptance = engine.Acceptance(priors.FREE)
        self._branching: Acceptance = engine.Acceptance(priors.BRANCHES)
        self._encode = lru_cache(maxsize=16)(loaded.tokenizer.encode)  # texts to draft from seldom change

    def speculative(
        self, asked: Asked, states: "dict[str, DrafterState]", prompt: Sequence[int] = ()
    ) -> "tuple[Proposer | StepPolicy | None, tuple[Proposer, ...]]":
        """What `generate` is given, and the proposers in it. States that a proposer takes over leave `states`."""
        from specd import engine
        from specd.engine.propose.edit import EditProposer
        from specd.engine.propose.ngram_tree import NgramBranches
        from specd.engine.propose.tree import TreeProposer

        how, tokenizer = asked.speculation, self._loaded.tokenizer
        if how.k == 0:
            return None, ()
        if how.proposer in ("draft_model", "dflash"):
            chosen = self._insisted(how, sampling_params(asked.sampling), states)
            return chosen, (chosen,)
        longest = min(how.k or LONGEST, LONGEST)
        ends = tuple(sorted(self._loaded.stop_ids))[:1]
        predicted = asked.prompt.predicted
        edit = EditProposer(tokenizer, predicted, asked.pairs, max_k=longest, end_ids=ends, known=prompt)
        if how.proposer == "edit":
            return edit, (edit,)
        seeds = [self._encode(text) for text in asked.draft_texts]
        if how.proposer == "ngram":
            ngram = engine.NgramProposer(k=how.k or 15, seeds=seeds)
            return ngram, (ngram,)
        budget = min(longest, 31)
        lookup: Proposer = engine.NgramProposer(k=budget, seeds=seeds)
        if predicted:  # an edit goes on in one of several ways; what free text repeats, it repeats as it stands
            lookup = TreeProposer([NgramBranches(budget, seeds)], budget, acceptance=self._branching)
        proposers: tuple[Proposer, ...] = (edit, lookup, *self.models(how, sampling_params(asked.sampling), states))
        return engine.Adaptive(proposers, self._costs, self._edits if predicted else self._free), proposers

    def _insisted(self, how: Speculation, sampling: "SamplingParams", states: "dict[str, DrafterState]") -> "Proposer":
        """The one proposer that is a model and that the request insists on. Raises UsageError if there is none."""
        chosen: Proposer | None = None
        for proposer in self.models(how, sampling, states):
            if proposer.name == how.proposer:
                chosen = proposer
            else:
                close_all((proposer,))
        if chosen is None:
            option = "--dflash DRAFTER" if how.proposer == "dflash" else "--draft MODEL"
            raise UsageError(f"no {how.proposer} drafter was loaded; name one with {option}.")
        chosen.max_k = min(chosen.max_k, how.k or LONGEST)
        return chosen

    def models(
        self, how: Speculation, sampling: "SamplingParams", states: "dict[str, DrafterState]"
    ) -> "Iterator[Proposer]":
        """The proposers that are models themselves, with what `states` holds of the prompt."""
        from specd.engine.propose.dflash import DFlashContext, DFlashProposer
        from specd.engine.propose.draft_model import DraftContext, DraftModelProposer

        if self._block is not None:
            known = states.pop(DFlashProposer.name, None)
            yield DFlashProposer(self._block, context=known if isinstance(known, DFlashContext) else None)
        if self._draft is not None:
            known = states.pop(DraftModelProposer.name, None)
            context = known if isinstance(known, DraftContext) else None
            k = min(how.k or 7, LONGEST)
            yield DraftModelProposer(
                self._draft,
                k=k,
                target=self._loaded.model,
                sampling=sampling,
                accept=accept_rule(how),
                context=context,
            )


def close_all(proposers: "tuple[Proposer, ...]") -> None:
    for proposer in proposers:
        if hasattr(proposer, "close"):
            proposer.close()


def accept_rule(how: Speculation) -> "AcceptRule":
    return "rejection" if how.sample_drafts else "exact"


def sampling_params(sampling: Sampling) -> "SamplingParams":
    from specd import engine

    return engine.SamplingParams(
        temperature=sampling.temperature or 0.0,
        top_k=sampling.top_k or 0,
        top_p=1.0 if sampling.top_p is None else sampling.top_p,
        min_p=sampling.min_p or 0.0,
        seed=sampling.seed or 0,
    )
