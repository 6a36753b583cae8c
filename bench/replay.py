"""Replay real edits: how many tokens each proposer gets through a verify step of a perfect greedy target, and what it
costs.

bench/replay.py --corpus edits.jsonl --tokenizer DIR --proposer edit -k 128

The prompt is the whole file and the instruction in the chat template; the target emits the edited region, a closing
fence and its end token. Every forward pass counts as a step, the prefill too: a draft of the answer's beginning rides
on it (--plain-prefill: it does not, and the first step emits one token). The proposer and the rule of acceptance are
the engine's own. Figures are of tokens, so they are the same on every machine; drafting times are processor time of
the drafting thread on this machine, `propose` and `observe` together.
"""

import json
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import torch
from arguments import Parser, positive
from replay_cases import Case, Scope, build_case, read_edits
from replay_proposers import PROPOSERS

from specd.engine.choice import accept
from specd.engine.draft import EMPTY, Committed, Proposer, Sequence
from specd.engine.errors import EngineError
from specd.engine.tokenizer import Tokenizer
from specd.engine.verify import tree_layout

NOTHING = -1  # behind the end token the target has no choice
KINDS = ("rename", "signature", "refactor", "fix", "feature", "docs", "delete", "move")


@dataclass(frozen=True)
class Step:
    """One verify step: tokens drafted, accepted of those, emitted in all; seconds of drafting."""

    drafted: int
    accepted: int
    emitted: int
    seconds: float


@dataclass(frozen=True)
class Run:
    """One edit replayed. The prefill counts as a step; a draft rides on it as on any other."""

    id: str
    kind: str
    names_new: bool
    steps: list[Step]
    seconds_start: float  # building the proposer and showing it the prompt

    @property
    def tokens(self) -> int:
        return sum(step.emitted for step in self.steps)


def replay(case: Case, proposer: Proposer | None, k: int, *, plain_prefill: bool = False) -> list[Step]:
    """Emit the case's answer step by step. `proposer` None drafts nothing; `plain_prefill`: neither does the first
    step."""
    answer = case.answer
    seq = Sequence(list(case.prompt), len(case.prompt))
    steps: list[Step] = []
    done = 0
    while done < len(answer):
        began = time.thread_time()
        draft = EMPTY
        if proposer is not None and (done or not plain_prefill):
            draft = proposer.propose(seq, k)
        seconds = time.thread_time() - began
        drafted = draft.tokens.tolist()
        parents = None if draft.parents is None else draft.parents.tolist()
        depth = range(len(drafted) + 1) if draft.parents is None else tree_layout(draft.parents)[0].tolist()
        target = [answer[done + place] if done + place < len(answer) else NOTHING for place in depth]
        emitted = [token for token in accept(drafted, parents, target).tokens if token != NOTHING]
        accepted = len(emitted) - 1
        seq.tokens.extend(emitted)
        done += len(emitted)
        began = time.thread_time()
        if proposer is not None:
            proposer.observe(seq, Committed(emitted, proposer.name, len(drafted), accepted))
        seconds += time.thread_time() - began
        steps.append(Step(len(drafted), accepted, len(emitted), seconds))
    return steps


_tokenizer: Tokenizer | None = None


def _load(directory: str) -> Tokenizer:
    global _tokenizer
    if _tokenizer is None:
        torch.set_num_threads(1)
        _tokenizer = Tokenizer(directory)
    return _tokenizer


def run_edit(edit: dict[str, Any], directory: str, name: str, k: int, scope: Scope, plain_prefill: bool = False) -> Run:
    """Replay one line of the corpus (in a worker process: the tokenizer is loaded once in each)."""
    tokenizer = _load(directory)
    case = build_case(edit, tokenizer, scope)
    began = time.thread_time()
    proposer = PROPOSERS[name](case, tokenizer, k)
    seconds = time.thread_time() - began
    return Run(case.id, case.kind, case.names_new, replay(case, proposer, k, plain_prefill=plain_prefill), seconds)


def percentile(values: list[float], share: float) -> float:
    """Nearest-rank percentile; 0 for no values."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))] if ranked else 0.0


def summarise(runs: list[Run], alpha: float) -> dict[str, float]:
    """Tokens per step (mean over edits, and all tokens by all steps), drafted and rejected a step, milliseconds of
    drafting.

    With alpha > 0 a step costs 1 + alpha x drafted, and both figures are tokens per cost of a step without drafts.
    """
    cost = [sum(1 + alpha * step.drafted for step in run.steps) for run in runs]
    steps = [step for run in runs for step in run.steps]
    times = [step.seconds * 1e3 for run in runs for step in run.steps[1:]]  # the first one reads the prompt
    count = max(len(steps), 1)
    return {
        "edits": len(runs),
        "mean": sum(run.tokens / c for run, c in zip(runs, cost, strict=True)) / max(len(runs), 1),
        "aggregate": sum(run.tokens for run in runs) / max(sum(cost), 1e-9),
        "drafted": sum(step.drafted for step in steps) / count,
        "rejected": sum(step.drafted - step.accepted for step in steps) / count,
        "draft_ms_p50": percentile(times, 0.5),
        "draft_ms_p95": percentile(times, 0.95),
    }


def report(runs: list[Run], alpha: float = 0.0) -> dict[str, Any]:
    """The object that --json prints. `noinstr`: renames whose instruction does not name the new name."""
    kinds = [kind for kind in KINDS if any(run.kind == kind for run in runs)]
    kinds += sorted({run.kind for run in runs} - set(KINDS))
    by_kind = {kind: summarise([run for run in runs if run.kind == kind], alpha) for kind in kinds}
    unnamed = [run for run in runs if run.kind == "rename" and not run.names_new]
    return {"by_kind": by_kind, "noinstr": summarise(unnamed, alpha), "all": summarise(runs, alpha)}


def run_corpus(
    edits: list[dict[str, Any]],
    directory: str,
    name: str,
    k: int,
    scope: Scope,
    jobs: int = 2,
    plain_prefill: bool = False,
) -> list[Run]:
    """Replay every edit, in `jobs` processes."""
    arguments = (edits, repeat(directory), repeat(name), repeat(k), repeat(scope), repeat(plain_prefill))
    if jobs <= 1:
        return list(map(run_edit, *arguments))
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(run_edit, *arguments, chunksize=4))


def table(result: dict[str, Any]) -> Iterable[str]:
    """The report as lines of text."""
    columns = ("edits", "mean", "aggregate", "drafted", "rejected", "draft_ms_p50", "draft_ms_p95")
    yield " ".join(["kind".ljust(10), *(column.rjust(12) for column in columns)])
    for kind, row in [*result["by_kind"].items(), ("noinstr", result["noinstr"]), ("all", result["all"])]:
        cells = (f"{row[c]:12d}" if c == "edits" else f"{row[c]:12.{3 if 'ms' in c else 1}f}" for c in columns)
        yield " ".join([kind.ljust(10), *cells])


def main(argv: list[str] | None = None) -> int:
    parser = Parser(description="Tokens per verify step of a perfect target over a corpus of edits.")
    parser.add_argument("--corpus", type=Path, required=True, help="JSON Lines: kind, instruction, before, after")
    parser.add_argument("--tokenizer", required=True, help="folder with tokenizer.json")
    parser.add_argument("--proposer", choices=sorted(PROPOSERS), default="edit")
    parser.add_argument("-k", type=int, default=32, help="most tokens drafted a step (default 32)")
    parser.add_argument("--scope", choices=("region", "file"), default="region")
    parser.add_argument("--plain-prefill", action="store_true", help="no draft rides on the prefill")
    parser.add_argument("--alpha", type=float, default=0.0, help="cost of a drafted token, in steps (default 0)")
    parser.add_argument("--jobs", type=positive, default=min(2, os.cpu_count() or 1), help="processes (default 2)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    if options.k < 1:
        parser.error(f"-k must be 1 or more, not {options.k}; --proposer plain drafts nothing")
    if not 0.0 <= options.alpha < float("inf"):
        parser.error(f"--alpha must be 0 or more, not {options.alpha}")
    try:
        Tokenizer(options.tokenizer).chat([{"role": "user", "content": "a"}])
    except (EngineError, OSError, ValueError) as error:
        parser.error(f"argument --tokenizer: {error}")
    try:
        edits = read_edits(options.corpus)
        if not edits:
            raise ValueError(f"no edits in {options.corpus}")
    except (OSError, ValueError) as error:
        print(f"replay: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    runs = run_corpus(
        *(edits, options.tokenizer, options.proposer, options.k, options.scope, options.jobs, options.plain_prefill)
    )
    result = report(runs, options.alpha)
    print(json.dumps(result) if options.json else "\n".join(table(result)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
