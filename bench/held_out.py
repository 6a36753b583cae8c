"""Edits of repositories that the bundled model never saw: tokens per step of lookup, of DFlash, and of the policy.

    python bench/held_out.py --items DATA/eval.jsonl.xz [--count N] [--costs bench/results/h200.json] [--json FILE]

The model and its drafter compute all that they do on this machine; what the policy weighs, and the times of the table,
are what --costs says of a GPU: milliseconds of a step by its rows, and of a DFlash block. So tokens per step are the
model's own, and `x plain` is what they would come to at those costs, with drafts of text (lookup, edit) counted as they
took here. Items: specd.mini.evaluate makes them (mini/README.md). Outputs must be equal, or the run fails.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

from arguments import Parser, out_file, positive
from host_target import KnownCosts

from specd.daemon.rewrite.pairs import read_pairs
from specd.engine import (
    Acceptance,
    Adaptive,
    Loaded,
    NgramProposer,
    Proposer,
    StepDone,
    StepPolicy,
    generate,
    load,
)
from specd.engine.priors import BRANCHES, EDITS
from specd.engine.propose.dflash import DFlashDrafter, DFlashProposer, load_dflash
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.tree import TreeProposer
from specd.engine.stats import StepRecord
from specd.mini import dflash_path, weights_path
from specd.mini.evaluate import Item, encoded, read_items
from specd.mini.tokenizer import FastEncoder

GROUPS = {
    "renames": ("rename", "rename_hard", "rename_several"),
    "new text": ("insert", "add_parameter", "annotate", "comment", "decorate", "wrap"),
    "other edits": ("literal", "set_value", "delete", "delete_function", "replace_line", "negate"),
}
LONGEST = 1024  # tokens of an answer
Speculation = Proposer | StepPolicy | None
Factory = Callable[[str, str], Speculation]  # the region and the instruction -> who drafts


def chosen(path: Path, count: int) -> list[tuple[str, Item, list[int], int]]:
    """(group, item, its prompt, tokens of its answer), `count` of each group and evenly of its kinds."""
    items, draw = read_items(path), Random(11)
    pairs = encoded(items, FastEncoder(weights_path() / "tokenizer.json"))
    found = []
    for group, kinds in GROUPS.items():
        for kind in kinds:
            fitting = [
                (group, item, prompt, len(answer))
                for item, (prompt, answer) in zip(items, pairs, strict=True)
                if item.edit.kind == kind and item.group == "held out" and len(answer) <= LONGEST
            ]
            found += draw.sample(fitting, min(len(fitting), -(-count // len(kinds))))
    return found


def contenders(loaded: Loaded, drafter: DFlashDrafter, costs: Callable[[], KnownCosts]) -> dict[str, Factory]:
    """costs: makes a table for a policy of its own."""
    tokenizer, ends = loaded.tokenizer, tuple(sorted(loaded.stop_ids))[:1]

    def policy(with_dflash: bool) -> Factory:
        table, lessons, branching = costs(), Acceptance(EDITS), Acceptance(BRANCHES)

        def made(region: str, instruction: str) -> Adaptive:
            edit = EditProposer(tokenizer, region, read_pairs(instruction), max_k=127, end_ids=ends)
            lookup = TreeProposer([NgramBranches(31, [tokenizer.encode(region)])], acceptance=branching)
            proposers: list[Proposer] = [edit, lookup]
            return Adaptive(proposers + [DFlashProposer(drafter)] * with_dflash, table, lessons)

        return made

    return {
        "plain": lambda region, instruction: None,
        "ngram k=15": lambda region, instruction: NgramProposer(k=15, seeds=[tokenizer.encode(region)]),
        "dflash": lambda region, instruction: DFlashProposer(drafter),
        "policy without dflash": policy(False),
        "policy": policy(True),
    }


def decode(
    loaded: Loaded, prompt: list[int], most: int, speculative: Speculation
) -> tuple[list[int], list[StepRecord]]:
    tokens: list[int] = []
    records: list[StepRecord] = []
    for event in generate(loaded.model, prompt, stop_ids=loaded.stop_ids, max_tokens=most, speculative=speculative):
        if isinstance(event, StepDone):
            tokens += event.tokens
            records.append(event.record)
    return tokens, records


def seconds_of(record: StepRecord, costs: KnownCosts) -> float:
    """What a step takes at the given costs."""
    drafting = costs.draft("dflash") if record.proposer == "dflash" else record.seconds_draft
    return costs.verify(record.drafted + 1) + drafting


def main() -> None:
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=Path, required=True, help="items of specd.mini.evaluate (eval.jsonl.xz)")
    parser.add_argument("--count", type=positive, default=60, help="items of each group (60)")
    parser.add_argument("--costs", type=Path, default=Path(__file__).parent / "results" / "h200.json")
    parser.add_argument("--json", type=out_file, metavar="FILE", help="write the figures")
    options: argparse.Namespace = parser.parse_args()
    told = json.loads(options.costs.read_text(encoding="utf-8"))
    step_ms = {int(rows): float(ms) for rows, ms in told["step_ms"].items()}

    def costs() -> KnownCosts:
        return KnownCosts(step_ms, float(told["dflash_ms"]) / 1e3)

    loaded, table = load(weights_path()), costs()
    rows = contenders(loaded, load_dflash(dflash_path(), loaded.model), costs)
    sums: dict[str, dict[str, list[float]]] = {name: {} for name in rows}  # tokens, steps, seconds
    for group, item, prompt, length in chosen(options.items, options.count):
        expected: list[int] | None = None
        for name, factory in rows.items():
            drafts = factory(item.edit.before, item.edit.instruction)
            tokens, records = decode(loaded, prompt, length + 64, drafts)
            if expected is not None and tokens != expected:
                raise SystemExit(f"{name} changed the output of an item of {item.edit.kind}")
            expected = tokens
            for key in (group, "all"):
                cell = sums[name].setdefault(key, [0.0, 0.0, 0.0])
                cell[0] += len(tokens)
                cell[1] += len(records)
                cell[2] += sum(seconds_of(record, table) for record in records)
    report = {
        name: {
            key: {
                "tokens_per_step": tokens / steps,
                "x_plain": tokens / seconds / (sums["plain"][key][0] / sums["plain"][key][2]),
            }
            for key, (tokens, steps, seconds) in cells.items()
        }
        for name, cells in sums.items()
    }
    print(f"{'':22}" + "".join(f"{key:>20}" for key in report["plain"]))
    print(f"{'':22}" + f"{'tok/step':>11}{'x plain':>9}" * len(report["plain"]))
    for name, kinds in report.items():
        print(f"{name:22}" + "".join(f"{f['tokens_per_step']:>11.2f}{f['x_plain']:>9.2f}" for f in kinds.values()))
    if options.json:
        head = {
            "costs": f"{told['gpu']}, shape {told['shape']}, commit {told['commit']}",
            "items_a_group": options.count,
        }
        options.json.write_text(json.dumps(head | {"results": report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
