"""The sections of bench/h200.py about jobs: equal output, replayed edits, drafts, prefill, load; and transformers."""

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from h200_checks import check_proposers, check_rows
from h200_folder import written
from h200_steps import Bench, matrices, seconds_of
from replay_cases import Case, build_case, read_edits
from replay_target import NOTE, Replayed, replay_edit
from shapes import random_drafter, to_transformers

from specd.daemon.rewrite.pairs import read_pairs
from specd.engine import Acceptance, Adaptive, load
from specd.engine.costs import CostTable, measure
from specd.engine.prefill import prefill as prefill_chunks
from specd.engine.priors import BRANCHES, EDITS
from specd.engine.propose.dflash_step import DFlashStep, capture
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.tree import TreeProposer
from specd.engine.static_step import Kind, StaticStep
from specd.engine.tokenizer import Tokenizer


def equality(bench: Bench) -> dict[str, Any]:
    """Speculative against plain output, and rows against rows, to the bit. Nothing is forced here."""
    return {"equal": check_proposers(bench.model, bench.tokens(300, 2)) | check_rows(bench.model, bench.tokens(600))}


def replay(bench: Bench) -> dict[str, Any]:
    """Real edits by the policy of the daemon without model drafters: edit drafts and lookup trees."""
    if bench.options.corpus is None or bench.options.tokenizer is None or bench.target is None:
        return {"replay": "needs --corpus and --tokenizer"}
    tokenizer, costs = Tokenizer(bench.options.tokenizer), measure(bench.model)
    edits = read_edits(bench.options.corpus)
    edits.sort(key=lambda edit: edit["kind"] != "rename")
    renames = sum(edit["kind"] == "rename" for edit in edits)
    order = [*range(renames), *range(renames, len(edits), 2), *range(renames + 1, len(edits), 2)]
    acceptance, branching = Acceptance(EDITS), Acceptance(BRANCHES)
    done: list[tuple[str, Replayed]] = []
    limit = 25.0
    cases = [build_case(edits[number], tokenizer, "region") for number in order[: bench.options.edits]]
    cases = [case for case in cases if len(case.prompt) + len(case.answer) <= 16384]
    policies = [_policy(case, tokenizer, costs, acceptance, branching) for case in cases]
    began = time.perf_counter()
    waiting = waited_for(bench.steps)
    for case, policy in zip(cases, policies, strict=True):  # made before, so that the device is not idle between two
        if time.perf_counter() - began > limit:
            break
        done.append((case.kind, replay_edit(bench.model, bench.target, case.prompt, case.answer, policy, waiting)))
    rename = [run for kind, run in done if kind == "rename"]
    runs = [run for _, run in done]
    out = {f"replay_{name}_tok_s": _rate(group) for name, group in (("rename", rename), ("all", runs)) if group}
    records = [record for run in runs for record in run.records]
    device = sum(run.seconds_device for run in runs)
    return out | {
        "replay_note": NOTE,
        "replay_edits": len(runs),
        "replay_renames": len(rename),
        "replay_tok_step": sum(run.tokens for run in runs) / len(records),
        "replay_rename_tok_step": sum(run.tokens for run in rename) / max(1, sum(len(run.records) for run in rename)),
        "replay_drafted": statistics.mean(record.drafted for record in records),
        "replay_draft_ms": statistics.mean(record.seconds_draft for record in records) * 1e3,
        "replay_verify_ms": statistics.mean(record.seconds_verify for record in records) * 1e3,
        # From a record's arrival to the next launch's call, and what a launch costs beyond its graph.
        "host_ms": (sum(run.seconds for run in runs) - device) / len(records) * 1e3 + bench.launch_ms,
        "replay_device_ms": device / len(records) * 1e3,
        "replay_prefill_s": sum(run.seconds_prefill for run in runs) / len(runs),
        "replay_costs_ms": {str(rows): seconds * 1e3 for rows, seconds in costs.as_dict().items()},
    }


def _policy(
    case: Case, tokenizer: Tokenizer, costs: CostTable, acceptance: Acceptance, branching: Acceptance
) -> Adaptive:
    pairs, ends = read_pairs(case.instruction), (case.end_token,)
    edit = EditProposer(tokenizer, case.predicted, pairs, max_k=127, end_ids=ends, known=case.prompt)
    lookup = TreeProposer([NgramBranches(31, [tokenizer.encode(case.predicted)])], 31, acceptance=branching)
    return Adaptive([edit, lookup], costs, acceptance)


def _rate(runs: list[Replayed]) -> float:
    return sum(run.tokens for run in runs) / sum(run.seconds for run in runs)


def waited_for(steps: StaticStep) -> Callable[[], float]:
    """-> what tells the seconds since the last call between steps' launches and the ends of their waits."""
    launch, wait, spent = steps.launch, steps.wait, [0.0, 0.0]

    def timed_launch(width: int, kind: Kind) -> None:
        spent[1] = time.perf_counter()
        launch(width, kind)

    def timed_wait() -> None:
        wait()
        spent[0] += time.perf_counter() - spent[1]

    def take() -> float:
        seconds, spent[0] = spent[0], 0.0
        return seconds

    steps.launch, steps.wait = timed_launch, timed_wait  # type: ignore[method-assign]
    return take


def dflash(bench: Bench) -> dict[str, Any]:
    """The drafter's pass over a block, head and 8 accepted rows included, after the context: as a graph and without."""
    drafter = random_drafter(bench.model)
    context = drafter.new_context()
    c = drafter.config
    taps = torch.randn(512, len(c.target_layer_ids), c.hidden_size, device=bench.device, dtype=bench.dtype)

    def eager() -> torch.Tensor:
        drafter.ingest(context, context.length - 8, taps[:8])
        return drafter.logits(drafter.block(context, 5, context.length, c.block_size)[1:]).argmax(dim=-1)

    for start in range(0, bench.options.context, 512):
        drafter.ingest(context, start, taps)
    expected = eager().tolist()
    out: dict[str, Any] = {"dflash_eager_ms": bench.device_ms(eager, 10)}
    begin = context.length - 8
    if bench.is_gpu:
        capture(drafter)
    else:
        drafter.steps = DFlashStep(drafter)
    steps = drafter.steps
    assert steps is not None

    def whole() -> list[int]:
        return steps.draft(context, begin, taps[:8], 5, begin + 8)

    found = whole()
    out["dflash_same_drafts"] = f"{sum(a == b for a, b in zip(found, expected, strict=True))} of {len(found)}"
    out["dflash_ms"] = bench.device_ms(lambda: steps.launch(16, True))
    out["dflash_wall_ms"] = statistics.median(seconds_of(whole) for _ in range(30)) * 1e3
    steps.take_in(context, begin, taps)
    out["dflash_take_in_512_ms"] = bench.device_ms(lambda: steps.launch(512, False))
    if bench.step_ms:
        out["dflash_of_a_step"] = out["dflash_ms"] / bench.step_ms[1, "chain"]
    context.free()
    return out


def prefill(bench: Bench) -> dict[str, Any]:
    """2048 tokens into an empty cache, chunk by chunk as a job does it."""
    ids, seconds, chunks = bench.tokens(2049, 3), [], []
    for _ in range(4):
        cache = bench.model.new_cache()
        began = last = time.perf_counter()
        for _ in prefill_chunks(bench.model, ids, cache):
            now = time.perf_counter()
            chunks.append(now - last)
            last = now
        seconds.append(last - began)
        cache.free()
    best = min(seconds)
    flops = 2 * 2048 * (sum(t.numel() for t in matrices(bench.model)) - bench.model.weights.head.numel())
    rate = flops / best / 1e12
    return {
        "prefill_2k_ms": best * 1e3,
        "prefill_tflops": rate,
        "prefill_of_peak": rate / bench.matrix_tflops if bench.matrix_tflops else 0.0,
        "prefill_chunk_ms": statistics.median(chunks) * 1e3,
    }


def transformers(bench: Bench) -> dict[str, Any]:
    """transformers' generate on the same weights, plain and with prompt lookup; how far its logits are from ours."""
    theirs: Any = to_transformers(bench.model)
    ids = torch.tensor([bench.tokens(bench.options.context, 1)], device=bench.device)
    count = 24 if bench.is_gpu else 4
    out: dict[str, Any] = {}
    with torch.inference_mode():
        short = ids[:, :256]
        expected = theirs(short).logits[0, -8:, : bench.model.vocab_limit].float()
        cache = bench.model.new_cache()
        last = bench.model.forward(short[0], torch.arange(256, device=bench.device), cache).last[-8:]
        found = bench.model.logits(last)
        cache.free()
        out["logits_error"] = float((found - expected).norm() / expected.norm())
        for key, extra in (("transformers_tok_s", {}), ("transformers_lookup_tok_s", {"prompt_lookup_num_tokens": 10})):
            theirs.generate(ids, max_new_tokens=4, min_new_tokens=4, do_sample=False, **extra)
            bench.synchronize()
            once = seconds_of(lambda e=extra: _sync_after(bench, theirs, ids, 1, e))  # type: ignore[misc]
            long = seconds_of(lambda e=extra: _sync_after(bench, theirs, ids, 1 + count, e))  # type: ignore[misc]
            out[key] = count / (long - once)
    return out


def _sync_after(bench: Bench, theirs: Any, ids: torch.Tensor, count: int, extra: dict[str, Any]) -> None:
    theirs.generate(ids, max_new_tokens=count, min_new_tokens=count, do_sample=False, **extra)
    bench.synchronize()


def load_from_disk(bench: Bench) -> dict[str, Any]:
    """The same weights from a folder on the local disk to a model whose steps are captured. Last: the model goes."""
    if bench.options.tokenizer is None:
        return {"load": "needs --tokenizer"}
    with written(bench.model, bench.options.tokenizer) as folder:
        bench.model = None  # type: ignore[assignment]
        bench.target = None
        gc.collect()
        if bench.is_gpu:
            torch.cuda.empty_cache()
        marks: list[tuple[float, str]] = []
        began = time.perf_counter()
        loaded = load(folder, device=str(bench.device), progress=lambda f, w: marks.append((time.perf_counter(), w)))
        bench.synchronize()
        seconds = time.perf_counter() - began
        read = next((at for at, words in marks if words.startswith("capturing")), time.perf_counter()) - began
        kv_tokens = loaded.model.engine.kv_tokens
    return {"load_s": seconds, "load_weights_s": read, "load_kv_tokens": kv_tokens}
