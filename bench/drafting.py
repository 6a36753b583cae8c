"""What drafting itself costs: CPU time of the edit proposer a step, by whether the copy holds, and its construction.

    python bench/drafting.py [--tokenizer DIR] [--corpus FILE.jsonl] [--tokens 6000] [-k 32,128] [--repeats 5] [--json]

A perfect target emits an edited text of about --tokens tokens: this repository's own sources with a rename, with
scattered changes, with its lines shuffled, or something unrelated; with --corpus also that corpus's regions, one after
the other, and what became of them. A step is `propose` and `observe`. It is *diverged* if it had to guess where the
copy goes on (or had nothing to draft), else *in sync*, whatever it ended with. Times are CPU time of the thread; each
case is replayed --repeats times, and of each step (the steps are the same every time) the fastest counts, so that
what else the machine does stays out. Nothing is averaged away: percentiles are over steps.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from replay import percentile
from replay_cases import changed_span, read_edits

from specd.engine import ModelError
from specd.engine.draft import Committed, Sequence
from specd.engine.propose.edit import LASTING, EditProposer
from specd.engine.tokenizer import Tokenizer
from specd.mini import weights_path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Case:
    """`after` is written where `before` was expected; the prompt shows `shown` and then asks."""

    name: str
    before: str
    after: str
    shown: str
    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Timing:
    """Milliseconds. `first`: the step that reads the prompt."""

    build: float
    first: float
    sync: list[float]
    diverged: list[float]
    tokens: int


def own_text(tokenizer: Tokenizer, tokens: int) -> str:
    """Whole lines of this repository's engine, about so many tokens of them."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "engine").glob("*.py")))
    lines = text.splitlines(keepends=True)
    taken = 0
    while lines and tokens > 0:
        tokens -= len(tokenizer.encode(lines[taken % len(lines)]))
        taken += 1
    return "".join(lines[at % len(lines)] for at in range(taken))


def scattered(text: str, draw: random.Random) -> str:
    """Every tenth line or so changed: a word replaced, a line inserted, deleted, or indented."""
    out: list[str] = []
    for line in text.splitlines(keepends=True):
        match draw.randrange(40):
            case 0:
                words = line.split(" ")
                words[draw.randrange(len(words))] = f"changed_{draw.randrange(9)}"
                out += [" ".join(words).rstrip("\n") + "\n"]
            case 1:
                out += [line, f"    log.debug('at %d', {draw.randrange(99)})\n"]
            case 2:
                pass
            case 3:
                out += ["    " + line]
            case _:
                out += [line]
    return "".join(out)


def own_cases(tokenizer: Tokenizer, tokens: int) -> list[Case]:
    text, draw = own_text(tokenizer, tokens), random.Random(0)
    renamed = text.replace("self", "this").replace("tokens", "symbols")
    shuffled = text.splitlines(keepends=True)
    draw.shuffle(shuffled)
    other = "".join(f"zq{draw.random():.6f} lorem {draw.choice('abc')} ipsum\n" for _ in range(tokens // 30))
    return [
        Case("copy", text, text, text),
        Case("rename, named", text, renamed, text, (("self", "this"), ("tokens", "symbols"))),
        Case("rename, learnt", text, renamed, text),
        Case("scattered", text, scattered(text, draw), text),
        Case("shuffled lines", text, "".join(shuffled[: len(shuffled) // 3]), text),
        Case("unrelated", text, other, text),
    ]


def corpus_cases(tokenizer: Tokenizer, corpus: Path, tokens: int) -> list[Case]:
    """The corpus's regions in its order, joined to texts of about `tokens` tokens. Raises OSError, ValueError."""
    cases: list[Case] = []
    before, after, count = "", "", 0
    for edit in read_edits(corpus):
        old, new = (edit[key].splitlines(keepends=True) for key in ("before", "after"))
        a0, a1, b0, b1 = changed_span(old, new)
        before, after = before + "".join(old[a0:a1]), after + "".join(new[b0:b1])
        count += len(tokenizer.encode("".join(old[a0:a1])))
        if count >= tokens:
            cases.append(Case("corpus", before, after, before))
            before, after, count = "", "", 0
    return cases


def run(case: Case, tokenizer: Tokenizer, k: int) -> tuple[float, list[float], list[bool], int]:
    """(seconds of construction, of each step, whether it was diverged, tokens emitted)."""
    prompt = tokenizer.encode(f"```\n{case.shown}```\n\nChange it.\n")
    answer = tokenizer.encode(f"```\n{case.after}```")
    began = time.thread_time()
    proposer = EditProposer(tokenizer, f"```\n{case.before}```", case.pairs, max_k=k, known=prompt)
    build = time.thread_time() - began
    seq = Sequence(list(prompt), len(prompt))
    seconds: list[float] = []
    diverged: list[bool] = []
    done = 0
    while done < len(answer):
        began = time.thread_time()
        draft = proposer.propose(seq, k)
        spent = time.thread_time() - began
        drafted = draft.tokens.tolist()
        accepted = 0
        while accepted < len(drafted) and answer[done + accepted : done + accepted + 1] == [drafted[accepted]]:
            accepted += 1
        emitted = answer[done : done + accepted + 1]
        seq.tokens.extend(emitted)
        done += len(emitted)
        began = time.thread_time()
        proposer.observe(seq, Committed(emitted, proposer.name, len(drafted), accepted))
        seconds.append(spent + time.thread_time() - began)
        diverged.append(not drafted or draft.evidence > len(LASTING))
    return build, seconds, diverged, len(answer)


def measure(case: Case, tokenizer: Tokenizer, k: int, repeats: int) -> Timing:
    """The fastest of `repeats` replays, step by step."""
    runs = [run(case, tokenizer, k) for _ in range(repeats)]
    fastest = [min(times) * 1e3 for times in zip(*(seconds for _, seconds, _, _ in runs), strict=True)]
    kinds = runs[0][2]
    rest = list(zip(fastest, kinds, strict=True))[1:]
    build = min(run[0] for run in runs) * 1e3
    sync, diverged = ([time for time, lost in rest if lost is which] for which in (False, True))
    return Timing(build, fastest[0] if fastest else 0.0, sync, diverged, runs[0][3])


def summary(timings: list[Timing]) -> dict[str, float]:
    """One row of the table: milliseconds, and steps of each kind."""
    sync, diverged = [t for each in timings for t in each.sync], [t for each in timings for t in each.diverged]
    return {
        "build_ms": max(each.build for each in timings),
        "first_ms": max(each.first for each in timings),
        "tokens_per_step": sum(each.tokens for each in timings) / (len(sync) + len(diverged) + len(timings)),
        "sync_steps": len(sync),
        "sync_ms_p50": percentile(sync, 0.5),
        "sync_ms_p95": percentile(sync, 0.95),
        "diverged_steps": len(diverged),
        "diverged_ms_p50": percentile(diverged, 0.5),
        "diverged_ms_p95": percentile(diverged, 0.95),
    }


def table(rows: dict[str, dict[str, float]]) -> str:
    columns = next(iter(rows.values())).keys()
    lines = ["  ".join(["case".ljust(22), *(column.rjust(15) for column in columns)])]
    for name, row in rows.items():
        cells = (f"{row[c]:15d}" if c.endswith("steps") else f"{row[c]:15.3f}" for c in columns)
        lines.append("  ".join([name.ljust(22), *cells]))
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    doc = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--tokenizer", default=str(weights_path()), help="folder with tokenizer.json (bundled model's)")
    parser.add_argument("--corpus", type=Path, help="JSON Lines with before and after: its regions as a further case")
    parser.add_argument("--tokens", type=int, default=6000, help="length of the text (6000)")
    parser.add_argument("-k", default="32,128", help="most tokens drafted a step, one or several (32,128)")
    parser.add_argument("--repeats", type=int, default=5, help="replays of which the fastest counts (5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    try:
        widths = [int(k) for k in options.k.split(",")]
    except ValueError:
        parser.error(f"-k takes numbers such as 32,128, not {options.k}")
    if min(*widths, options.tokens, options.repeats) < 1:
        parser.error("-k, --tokens and --repeats must be 1 or more")
    torch.set_num_threads(1)
    makers: list[Callable[[Tokenizer], list[Case]]] = [lambda tokenizer: own_cases(tokenizer, options.tokens)]
    if options.corpus is not None:
        makers.append(lambda tokenizer: corpus_cases(tokenizer, options.corpus, options.tokens))
    try:
        tokenizer = Tokenizer(options.tokenizer)
        cases = [case for maker in makers for case in maker(tokenizer)]
    except (OSError, ValueError, ModelError) as error:
        print(f"drafting: {error}", file=sys.stderr)
        return 2
    rows: dict[str, dict[str, float]] = {}
    for k in widths:
        for name in dict.fromkeys(case.name for case in cases):
            timings = [measure(case, tokenizer, k, options.repeats) for case in cases if case.name == name]
            rows[f"{name}, k={k}"] = summary(timings)
    result: dict[str, Any] = {"tokens": options.tokens, "repeats": options.repeats, "cases": rows}
    print(json.dumps(result) if options.json else table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
