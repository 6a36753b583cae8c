"""What a step costs on this machine: a verify step of M rows against one of one row.

    python bench/steps.py [--model DIR] [--context N] [--rows 1,2,4,...] [--json FILE]

Medians over repeats within one run; the ratios are what to compare between machines. On a GPU steps run as graphs of
fixed widths. Beside them the cost table that a policy measures at load, from which it chooses widths.
"""

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from arguments import Parser, model, out_file, positive, positives, whole

from specd.engine import Draft, EngineError, Loaded, SamplingParams, load
from specd.engine.config import model_config
from specd.engine.costs import measure
from specd.mini import weights_path

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def median_ms(run: Callable[[], object], repeats: int) -> float:
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def step_ms(loaded: Loaded, context: int, rows: int, repeats: int) -> float:
    """Milliseconds of a forward of `rows` rows after `context` tokens, head and argmax included."""
    model, cache = loaded.model, loaded.model.new_cache()
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(4, model.vocab_limit, (context + rows,), generator=draw).to(model.device)
    newest = tokens[context].item()
    places = torch.arange(context + rows, device=model.device)
    for start in range(0, context, 256):
        end = min(start + 256, context)
        model.forward(tokens[start:end], places[start:end], cache)

    drafted = Draft.chain(tokens[context + 1 :].tolist())

    def step() -> object:
        if model.steps is not None and model.steps.takes(rows, ()):
            model.steps.step(cache, int(newest), drafted, SamplingParams())
            cache.truncate(context)
            return None
        hidden = model.forward(tokens[context:], places[context:], cache)
        chosen = model.logits(hidden.last).argmax(-1).tolist()
        cache.truncate(context)
        return chosen

    try:
        return median_ms(step, repeats)
    finally:
        cache.free()


def main() -> None:
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=model, default=str(weights_path()), help="model folder (the bundled model)")
    parser.add_argument("--context", type=whole, default=1000, help="tokens before the step (1000)")
    parser.add_argument("--rows", type=positives, default=",".join(map(str, ROWS)), help="widths to time")
    parser.add_argument(
        "--repeats", type=positive, default=20, help="steps of each width, of which the median counts (20)"
    )
    parser.add_argument("--json", type=out_file, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    rows: list[int] = options.rows
    if options.context + max(rows) > (most := model_config(options.model).max_positions):
        parser.error(f"--context {options.context} and --rows {max(rows)} exceed the model's context of {most} tokens")

    try:
        loaded = load(options.model)
    except EngineError as error:
        parser.error(str(error))
    ms = {row: step_ms(loaded, options.context, row, options.repeats) for row in rows}
    costs = measure(loaded.model)
    result: dict[str, Any] = {
        "model": options.model.name,
        "device": str(loaded.model.device),
        "ops": loaded.model.ops.name,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "context": options.context,
        "step_ms": ms,
        "costs_ms": {row: seconds * 1e3 for row, seconds in costs.as_dict().items()},
        "costs_stepped": costs.stepped,
    }
    print(f"{'rows':>6} {'ms':>9} {'of 1 row':>9} {'ms/row':>9}")
    for row, value in ms.items():
        print(f"{row:>6} {value:>9.2f} {value / ms[rows[0]]:>9.2f} {value / row:>9.3f}")
    kind = "of the width above" if costs.stepped else "between its neighbours'"
    print(f"cost table, 256 tokens before the step (other numbers of rows cost {kind}):")
    print("  ".join(f"{row}: {seconds * 1e3:.2f}" for row, seconds in costs.as_dict().items()), "ms")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
