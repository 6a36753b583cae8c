"""Edits and free text by every proposer and by the policy: tokens per step, tokens a second, speed-up over plain.

    python bench/edits.py [--model DIR] [--dflash DIR] [--draft DIR] [--temperature T] [--only NAMES] [--repeats N]

Within one run each prompt is decoded plainly and by every contender, one after the other; speed-ups are ratios of those
times (decode only, drafting included). With --repeats the fastest of some runs counts: what else the machine does only
ever adds time. Outputs must be equal, or the run fails. The costs that the policy weighs are measured at the start, on
this machine. A draft model has rows only where --draft names one, DFlash only where --dflash names a drafter or the
model is the bundled one; the foot of the table says what had none.
"""

import argparse
import json
from collections.abc import Callable
from typing import Any

import torch
from arguments import Parser, model, out_file, positive, temperature
from edit_cases import Case, build_cases

from specd.engine import (
    Acceptance,
    Adaptive,
    EngineError,
    Finished,
    Loaded,
    ModelError,
    NgramProposer,
    Proposer,
    SamplingParams,
    StepDone,
    StepPolicy,
    Summary,
    generate,
    load,
)
from specd.engine.config import model_config
from specd.engine.costs import measure
from specd.engine.load import resolve
from specd.engine.priors import BRANCHES, EDITS, FREE
from specd.engine.propose.dflash import DFlashDrafter, DFlashProposer, DFlashTreeProposer, load_dflash
from specd.engine.propose.dflash_config import dflash_config
from specd.engine.propose.draft_model import DraftModelProposer, load_draft_model
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.ngram_tree import LONGEST, LONGEST_FREE, NgramBranches
from specd.engine.propose.tree import TreeProposer
from specd.mini import dflash_path, weights_path

KINDS = ("rename", "edit", "free")
NEW = "new text"  # those of the edits that write any
SUMS = (*KINDS, "all", NEW)
PLAIN = (
    "plain",
    "ngram k=7",
    "ngram k=15",
    "ngram k=31",
    "ngram tree 15",
    "ngram tree 31",
    "edit k=16",
    "edit k=32",
    "edit k=64",
)
DFLASH = ("dflash", "dflash tree 15", "dflash tree 31", "ngram+dflash 31", "policy without dflash")
DRAFT = ("draft model k=3", "draft model k=7")
POLICIES = ("policy without trees", "policy")
Speculation = Proposer | StepPolicy | None
Factory = Callable[[Case], Speculation]


def known(dflash: object, draft: object) -> list[str]:
    """The contenders' names, in the table's order, where there is a DFlash drafter and a draft model or not."""
    return [*PLAIN, *(DFLASH if dflash else ()), *(DRAFT if draft else ()), *POLICIES]


def contenders(loaded: Loaded, options: argparse.Namespace, sampling: SamplingParams) -> dict[str, Factory]:
    """A fresh proposer or policy for a case, by name, of those in options.only. Raises ModelError."""
    tokenizer, ends = loaded.tokenizer, tuple(sorted(loaded.stop_ids))[:1]

    def ngram(case: Case, k: int) -> NgramProposer:
        return NgramProposer(k=k, seeds=[tokenizer.encode(text) for text in case.texts])

    def edit(case: Case, k: int) -> EditProposer:
        return EditProposer(tokenizer, case.predicted, case.pairs, max_k=k, end_ids=ends)

    out: dict[str, Factory] = {"plain": lambda case: None}
    for k in (7, 15, 31):
        out[f"ngram k={k}"] = lambda case, k=k: ngram(case, k)  # type: ignore[misc]

    def branches(case: Case, depth: int) -> NgramBranches:
        longest = LONGEST if case.predicted else LONGEST_FREE
        return NgramBranches(depth, [tokenizer.encode(text) for text in case.texts], longest=longest)

    for budget in (15, 31):
        out[f"ngram tree {budget}"] = lambda case, budget=budget: TreeProposer([branches(case, budget)], budget=budget)  # type: ignore[misc]
    for k in (16, 32, 64):
        out[f"edit k={k}"] = lambda case, k=k: edit(case, k)  # type: ignore[misc]
    dflash = load_dflash(options.dflash, loaded.model) if options.dflash else None
    if dflash is not None:
        out["dflash"] = lambda case: DFlashProposer(dflash)
        for budget in (15, 31):
            out[f"dflash tree {budget}"] = lambda case, budget=budget: DFlashTreeProposer(  # type: ignore[misc]
                DFlashProposer(dflash), budget
            )
        out["ngram+dflash 31"] = lambda case: TreeProposer([branches(case, 31), DFlashProposer(dflash)], budget=31)
    if options.draft:
        draft = load_draft_model(options.draft, loaded)
        for k in (3, 7):
            out[f"draft model k={k}"] = lambda case, k=k: DraftModelProposer(  # type: ignore[misc]
                draft, k=k, target=loaded.model, sampling=sampling
            )
    costs, branching = measure(loaded.model), Acceptance(BRANCHES)
    edits, free = Acceptance(EDITS), Acceptance(FREE)

    def policy(case: Case, trees: bool, drafter: DFlashDrafter | None) -> Adaptive:
        has_tree = trees and bool(case.predicted)  # as the daemon drafts
        lookup = TreeProposer([branches(case, 31)], acceptance=branching) if has_tree else ngram(case, 31)
        proposers: list[Proposer] = [edit(case, 127), lookup]
        if drafter is not None:
            proposers.append(DFlashProposer(drafter))
        return Adaptive(proposers, costs, edits if case.predicted else free)

    out["policy without dflash"] = lambda case: policy(case, True, None)
    out["policy without trees"] = lambda case: policy(case, False, dflash)
    out["policy"] = lambda case: policy(case, True, dflash)
    return {name: out[name] for name in known(dflash, options.draft) if name == "plain" or name in options.only}


def run(loaded: Loaded, case: Case, speculative: Speculation, sampling: SamplingParams) -> tuple[list[int], Summary]:
    tokens: list[int] = []
    stops = loaded.stop_ids if case.stops else frozenset[int]()
    for event in generate(
        loaded.model, case.ids, sampling=sampling, stop_ids=stops, speculative=speculative,
        max_tokens=4 * len(case.ids) if case.stops else 200,
    ):  # fmt: skip
        if isinstance(event, StepDone):
            tokens += event.tokens
        elif isinstance(event, Finished):
            return tokens, event.stats
    raise RuntimeError("the generation did not finish")


def add_up(runs: list[tuple[Case, Summary]], plain: dict[str, Summary], kind: str) -> dict[str, Any]:
    """Sums over the cases of a kind, or of another of SUMS."""
    chosen = [
        (case, stats) for case, stats in runs if kind in (case.kind, "all") or (kind == NEW and case.has_new_text)
    ]
    emitted = sum(stats.emitted for _, stats in chosen)
    seconds = sum(stats.seconds_decode for _, stats in chosen)
    plain_rate = sum(plain[case.name].emitted for case, _ in chosen) / sum(
        plain[case.name].seconds_decode for case, _ in chosen
    )
    by: dict[str, dict[str, int]] = {}
    for _, stats in chosen:
        for name, own in stats.by_proposer.items():
            sums = by.setdefault(name, {"steps": 0, "drafted": 0, "accepted": 0})
            for key in sums:
                sums[key] += getattr(own, key)
    return {
        "tokens": emitted,
        "tokens_per_step": emitted / sum(stats.steps for _, stats in chosen),
        "accepted_share": sum(stats.accepted for _, stats in chosen) / emitted,
        "draft_ms": 1e3 * sum(stats.seconds_draft for _, stats in chosen) / sum(stats.steps for _, stats in chosen),
        "tokens_per_second": emitted / seconds,
        "speedup": emitted / seconds / plain_rate,
        "by_proposer": by,
    }


def arguments(parser: Parser) -> argparse.Namespace:
    """The command line, checked: model, dflash and draft are folders (or None), only is a list of known names."""
    parser.add_argument("--model", type=model, default=str(weights_path()), help="model folder (the bundled model)")
    parser.add_argument("--dflash", help="its DFlash drafter (the bundled model's, where that is the model)")
    parser.add_argument("--draft", type=model, help="a draft model with the same tokenizer (none)")
    parser.add_argument("--form", default="region", choices=["region", "chat"], help="form of the prompts (region)")
    parser.add_argument("--temperature", type=temperature, default=0.0, help="0 is greedy (0)")
    parser.add_argument("--only", help="names of contenders, separated by commas (all)")
    parser.add_argument(
        "--repeats", type=positive, default=1, help="runs of each, in turns, of which the fastest counts (1)"
    )
    parser.add_argument("--json", type=out_file, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    if options.dflash is None and options.model == weights_path().resolve() and dflash_path().is_dir():
        options.dflash = str(dflash_path())
    try:
        options.dflash = resolve(options.dflash) if options.dflash else None
        if options.dflash:
            dflash_config(options.dflash, model_config(options.model))
    except ModelError as error:
        parser.error(f"argument --dflash: {error}")
    names = known(options.dflash, options.draft)
    options.only = [name.strip() for name in options.only.split(",")] if options.only else names
    if unknown := [name for name in options.only if name not in names]:
        parser.error(f"argument --only: no contender {', '.join(map(repr, unknown))}; known are: {', '.join(names)}")
    return options


def main() -> None:
    parser = Parser(description=__doc__.splitlines()[0])
    options = arguments(parser)
    sampling = SamplingParams(temperature=options.temperature, seed=1)
    try:
        loaded = load(options.model)
        rows = contenders(loaded, options, sampling)
    except EngineError as error:
        parser.error(str(error))
    cases = build_cases(loaded, options.form)
    run(loaded, cases[0], None, sampling)  # warm
    results: dict[str, list[tuple[Case, Summary]]] = {name: [] for name in rows}
    for case in cases:
        expected: list[int] | None = None
        best: dict[str, Summary] = {}
        for name, factory in [*rows.items()] * options.repeats:
            tokens, stats = run(loaded, case, factory(case), sampling)
            expected = tokens if expected is None else expected
            if tokens != expected:
                raise SystemExit(f"{name} changed the output of: {case.name}")
            best[name] = min(stats, best.get(name, stats), key=lambda stats: stats.seconds_decode)
        for name, stats in best.items():
            results[name].append((case, stats))
    plain = {case.name: stats for case, stats in results["plain"]}
    report = {name: {kind: add_up(runs, plain, kind) for kind in SUMS} for name, runs in results.items()}
    print(f"{len(cases)} prompts, {sum(s.emitted for s in plain.values())} tokens; outputs equal plain decoding's")
    print(f"{'':22}" + "".join(f"{kind:>27}" for kind in SUMS))
    print(f"{'':22}" + f"{'tok/step':>9}{'tok/s':>9}{'x plain':>9}" * len(SUMS))
    for name, kinds in report.items():
        figures = [kinds[kind] for kind in SUMS]
        cells = (f"{f['tokens_per_step']:>9.2f}{f['tokens_per_second']:>9.0f}{f['speedup']:>9.2f}" for f in figures)
        print(f"{name:22}" + "".join(cells))
    for what, given, option in (("DFlash", options.dflash, "--dflash"), ("draft model", options.draft, "--draft")):
        if not given:
            print(f"no row of a {what}: none was named with {option}")
    if options.json:
        head = {"model": options.model.name, "device": str(loaded.model.device), "torch": torch.__version__}
        head |= {"threads": str(torch.get_num_threads()), "temperature": str(options.temperature)}
        head |= {"repeats": str(options.repeats)}
        options.json.write_text(json.dumps(head | {"results": report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
