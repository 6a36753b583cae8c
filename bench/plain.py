"""Plain decoding here against transformers.generate: the same weights, the same prompt, the rename of a whole file.

    python bench/plain.py [--model DIR] [--tokens N] [--rounds N] [--json FILE]

Both run greedily in float32 on as many threads, in turns, N tokens of the answer; the figures are medians over the
rounds, of the whole call and of its decoding alone (one token's call taken off). The tokens must be the same.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from edit_cases import build_cases
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from specd.engine import StepDone, generate, load
from specd.mini import weights_path

Decode = Callable[[int], list[int]]


def seconds(decode: Decode, count: int) -> float:
    start = time.perf_counter()
    decode(count)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=str(weights_path()), help="model folder (the bundled model)")
    parser.add_argument("--tokens", type=int, default=200, help="tokens of the answer to decode (200)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (5)")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    options = parser.parse_args()
    disable_progress_bar()
    loaded = load(options.model)
    other = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    ids = build_cases(loaded, "region")[0].ids

    def ours(count: int) -> list[int]:
        events = generate(loaded.model, ids, max_tokens=count)
        return [token for event in events if isinstance(event, StepDone) for token in event.tokens]

    def theirs(count: int) -> list[int]:
        prompt = torch.tensor([ids])
        out = other.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=False, eos_token_id=None
        )
        return out[0, len(ids) :].tolist()  # type: ignore[no-any-return]

    if ours(options.tokens) != theirs(options.tokens):
        raise SystemExit("the two do not write the same tokens")
    names: dict[str, Decode] = {"specd": ours, "transformers": theirs}
    whole: dict[str, list[float]] = {name: [] for name in names}
    first: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name, decode in names.items():
            first[name].append(seconds(decode, 1))
            whole[name].append(seconds(decode, options.tokens))
    report: dict[str, dict[str, float]] = {}
    for name in names:
        decoding = statistics.median(w - f for w, f in zip(whole[name], first[name], strict=True))
        report[name] = {
            "tokens_per_second": options.tokens / statistics.median(whole[name]),
            "decode_tokens_per_second": (options.tokens - 1) / decoding,
            "first_token_ms": 1e3 * statistics.median(first[name]),
        }
    ratios = {key: report["specd"][key] / report["transformers"][key] for key in report["specd"]}
    print(f"{len(ids)} tokens of prompt, {options.tokens} of answer; both write the same tokens")
    for name, figures in {**report, "specd / transformers": ratios}.items():
        print(f"{name:22}" + "".join(f"{value:10.2f} {key}" for key, value in figures.items()))
    if options.json:
        head = {"model": Path(options.model).name, "threads": torch.get_num_threads(), "torch": torch.__version__}
        Path(options.json).write_text(json.dumps({**head, **report, "ratios": ratios}, indent=1) + "\n")


if __name__ == "__main__":
    main()
