"""What the host does between two steps of the device, part by part, in microseconds, over replayed edits.

    python bench/host.py --corpus edits.jsonl --tokenizer DIR [--edits N] [--only SETUPS] [--json FILE]

The loop, the proposers, the policy, the steps' inputs and records are the engine's own. The device's passes are not
computed: a script says what they would (the edit's own tokens), so that any machine can run this. Not in it, since it
takes a GPU: the launch of a graph and the wait for it, nor what is done between the two, while the device works: that
is `hidden_us`. Costs that the policy weighs are an H200's, measured before.

Every setup runs twice: once with nothing but the device's calls timed, which gives `host_us` (mean, and percentiles
over jobs); and once with each part timed, which costs a microsecond or two a call and gives the parts. Setups: plain
(no drafts), ngram (chains of 15), policy (edits and lookup trees, as the daemon drafts), dflash (those and a DFlash
drafter, whose blocks are the script's with one token in ten wrong). Only steps are counted, no prompts.
"""

import argparse
import json
import platform
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from h200 import commit
from host_clock import CLOCKS, DEVICE, HIDDEN, Clock
from host_target import KnownCosts, ScriptedDrafts, ScriptedStep
from replay_cases import Case, build_case, read_edits
from shapes import SMALL, random_drafter, random_model

from specd.daemon.rewrite.pairs import read_pairs
from specd.engine import (
    Acceptance,
    Adaptive,
    Choice,
    EngineConfig,
    NgramProposer,
    PrefillDone,
    Proposer,
    Sequence,
    StepDone,
    StepPolicy,
    generate,
    job,
)
from specd.engine.foresight import Foresight
from specd.engine.kv_cache import KVCache
from specd.engine.load import GPU_CHUNK
from specd.engine.policy import Fixed
from specd.engine.prefill import PrefillProgress
from specd.engine.priors import BRANCHES, EDITS
from specd.engine.propose.dflash import DFlashProposer
from specd.engine.propose.dflash_model import DFlashDrafter
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.tree import TreeProposer
from specd.engine.static_step import StaticStep
from specd.engine.stats import Summary
from specd.engine.step_inputs import StepInputs
from specd.engine.tokenizer import TextStream, Tokenizer

ROOT = Path(__file__).parents[1]
AWAY = frozenset({DEVICE, HIDDEN})
SETUPS = ("plain", "ngram", "policy", "dflash")
# replay_costs_ms of h200.json at 77a186b, so that what is measured here can be compared with what was before
H200_MS = {1: 3.09, 2: 3.20, 4: 3.23, 8: 3.28, 16: 3.47, 32: 3.78, 64: 4.32, 128: 6.71}
LONGEST = 16384  # tokens of prompt and answer
Speculation = Proposer | StepPolicy | None


class Bench:
    """The scripted target, its drafter, the cases, and what the policies of all jobs share."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.tokenizer = Tokenizer(options.tokenizer)
        engine = EngineConfig(kv_tokens=3 * LONGEST, prefill_chunk=GPU_CHUNK)
        self.model = random_model(SMALL, torch.device("cpu"), torch.float32, engine=engine)
        self.drafter: DFlashDrafter = random_drafter(self.model)
        self.steps = ScriptedStep(self.model, self.drafter.config.target_layer_ids)
        self.model.steps = self.steps
        self.drafter.steps = self.blocks = ScriptedDrafts(self.drafter, self.steps)
        self.cases = [case for case in _cases(options, self.tokenizer) if len(case.prompt + case.answer) <= LONGEST]
        self.has_text, self.clock = not options.no_text, options.clock
        self.reset()
        self.chosen = self.foreseen = 0  # steps' drafts, and those of them that were there when they were asked for
        take = Foresight.take

        def counted(ahead: Foresight, seq: Sequence, limit: int) -> Choice | None:
            found = take(ahead, seq, limit)
            self.chosen, self.foreseen = self.chosen + 1, self.foreseen + (found is not None)
            return found

        Foresight.take = counted  # type: ignore[method-assign]

    def reset(self) -> None:
        """Nothing is learnt yet."""
        self.costs = KnownCosts(H200_MS)
        self.acceptance, self.branching = Acceptance(EDITS), Acceptance(BRANCHES)

    def speculation(self, setup: str, case: Case) -> Speculation:
        if setup == "plain":
            return None
        if setup == "ngram":
            return NgramProposer(15, [self.tokenizer.encode(case.predicted)])
        pairs, ends = read_pairs(case.instruction), (case.end_token,)
        edit = EditProposer(self.tokenizer, case.predicted, pairs, max_k=127, end_ids=ends, known=case.prompt)
        seeds = [self.tokenizer.encode(case.predicted)]
        lookup = TreeProposer([NgramBranches(31, seeds)], 31, acceptance=self.branching)
        more = [DFlashProposer(self.drafter)] if setup == "dflash" else []
        return Adaptive([edit, lookup, *more], self.costs, self.acceptance)

    def replay(self, case: Case, speculative: Speculation, clock: Clock) -> tuple[int, int, dict[str, float]]:
        """-> steps, tokens, and seconds by part of the steps of one edit. Raises RuntimeError for any other output."""
        self.steps.script = [*case.prompt, *case.answer]
        events = generate(
            self.model, case.prompt, stop_ids=frozenset(case.answer[-1:]), max_tokens=len(case.answer),
            speculative=speculative, tokenizer=self.tokenizer if self.has_text else None,
        )  # fmt: skip
        out, steps = list[int](), 0
        for event in events:
            if isinstance(event, StepDone):
                out += event.tokens
                steps += 1
            elif isinstance(event, PrefillProgress | PrefillDone):
                clock.start()
        spent = clock.stop()
        if out != case.answer:
            raise RuntimeError(f"the replay left the edit {case.id!r}")
        return steps, len(out), spent


def _cases(options: argparse.Namespace, tokenizer: Tokenizer) -> Iterator[Case]:
    """As bench/h200.py takes them: renames first, then every second of the others; evenly thinned."""
    edits = read_edits(options.corpus)
    edits.sort(key=lambda edit: edit["kind"] != "rename")
    for number in range(options.edits):
        yield build_case(edits[number * len(edits) // options.edits], tokenizer, "region")


def parts_of(bench: Bench, speculative: Speculation) -> list[tuple[object, str, str]]:
    """Which call counts as which part."""
    policy = speculative if isinstance(speculative, StepPolicy) else Fixed(speculative)
    out: list[tuple[object, str, str]] = [
        *((job, name, "verify") for name in ("launch", "land", "verify")),
        (job, "cut", "finish rules"),
        *((StaticStep, name, "step: begin and commit") for name in ("begin", "end")),
        (StepInputs, "write", "step: inputs"),
        (StepInputs, "write_tree", "step: inputs"),
        *((KVCache, name, "cache") for name in ("hold", "advance", "truncate", "keep")),
        (TextStream, "push", "text"),
        (Summary, "add", "statistics"),
    ]
    for proposer in policy.proposers:
        out += [(proposer, "propose", f"propose: {proposer.name}"), (proposer, "observe", f"observe: {proposer.name}")]
    if isinstance(speculative, Adaptive):
        out += [(speculative, "choose", "policy: choose"), (speculative, "_learn", "policy: learn")]
        out += [(speculative, "record", "policy: record")]
    return out


def measure(bench: Bench, setup: str, repeats: int) -> dict[str, Any]:
    """The figures of one setup; of some repeats, each edit's fastest counts."""
    blocks = [(bench.blocks, name, DEVICE) for name in ("launch", "wait")]
    clock, totals, parts = Clock(bench.clock), list[tuple[int, int, float, float]](), dict[str, float]()
    bench.chosen = bench.foreseen = 0
    for is_by_part in (False, True):
        best: list[tuple[int, int, dict[str, float]] | None] = [None] * len(bench.cases)
        for _ in range(repeats):
            bench.reset()
            for number, case in enumerate(bench.cases):
                speculative = bench.speculation(setup, case)
                more = parts_of(bench, speculative) if is_by_part else []
                with clock.timed(blocks + more, bench.steps):
                    found = bench.replay(case, speculative, clock)
                known = best[number]
                if known is None or _host(found[2]) / found[0] < _host(known[2]) / known[0]:
                    best[number] = found
        runs = [run for run in best if run is not None]
        if is_by_part:
            steps = sum(run[0] for run in runs)
            names = {name for run in runs for name in run[2]} - AWAY
            parts = {name: sum(run[2].get(name, 0.0) for run in runs) / steps * 1e6 for name in names}
        else:
            totals = [(steps, tokens, _host(spent), spent.get(HIDDEN, 0.0)) for steps, tokens, spent in runs]
    steps = sum(total[0] for total in totals)
    by_job = sorted(host / count * 1e6 for count, _, host, _ in totals)
    return {
        "host_us": sum(total[2] for total in totals) / steps * 1e6,
        "host_us_p50_of_jobs": statistics.median(by_job),
        "host_us_p90_of_jobs": by_job[len(by_job) * 9 // 10],
        "hidden_us": sum(total[3] for total in totals) / steps * 1e6,
        "foreseen": bench.foreseen / bench.chosen,
        "steps": steps,
        "tokens_a_step": sum(total[1] for total in totals) / steps,
        "parts_us": dict(sorted(parts.items(), key=lambda item: -item[1])),
        "parts_sum_us": sum(parts.values()),
    }


def _host(spent: dict[str, float]) -> float:
    return sum(seconds for part, seconds in spent.items() if part not in AWAY)


def processor() -> str:
    """The CPU's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def table(results: dict[str, Any]) -> Iterator[str]:
    for setup, found in results["setups"].items():
        half, nine = found["host_us_p50_of_jobs"], found["host_us_p90_of_jobs"]
        jobs = f"half of the jobs below {half:.0f}, 9 of 10 below {nine:.0f}"
        yield f"{setup}: {found['host_us']:.0f} us a step on the host, {found['hidden_us']:.0f} hidden; {jobs}"
        share = f"{found['foreseen']:.1%} of their drafts foreseen"
        yield f"   {found['steps']} steps of {found['tokens_a_step']:.1f} tokens, {share}"
        yield "   " + ", ".join(f"{name} {us:.1f}" for name, us in found["parts_us"].items())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog=__doc__.split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--corpus", type=Path, required=True, help="edits to replay, JSON Lines")
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with Qwen3's tokenizer.json")
    parser.add_argument("--edits", type=int, default=60, help="edits to replay (60)")
    parser.add_argument("--only", default=",".join(SETUPS), help="setups to measure")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each edit, of which the fastest counts (3)")
    parser.add_argument("--no-text", action="store_true", help="tokens only, as in bench/h200.py: no text deltas")
    parser.add_argument(
        "--clock", choices=sorted(CLOCKS), default="cpu", help="the thread's own time, or the wall's (cpu)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name]
    if unknown := set(names) - set(SETUPS):
        parser.error(f"unknown setups: {', '.join(sorted(unknown))}; there are {', '.join(SETUPS)}")
    if options.edits < 1 or options.repeats < 1:
        parser.error("--edits and --repeats must be 1 or more")
    torch.set_num_threads(1)
    bench = Bench(options)
    results: dict[str, Any] = {
        "commit": commit(),
        "cpu": processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "note": "device passes are a script, not computed; graph launches and waits are not in it",
        "edits": len(bench.cases),
        "text": bench.has_text,
        "clock": bench.clock,
        "setups": {name: measure(bench, name, options.repeats) for name in names},
    }
    print("\n".join(table(results)))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
