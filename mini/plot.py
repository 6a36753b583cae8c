"""Draw the loss curve of a training log.

    python -m specd.mini.plot OUT/log.jsonl loss_curve.png       # needs matplotlib, which specd itself does not

The line is the weighted cross-entropy of answer tokens (nats), a mean over 100 steps, against tokens seen; dotted lines
are where a leg began.
"""

import argparse
import json
from pathlib import Path


def read_log(path: Path) -> tuple[list[float], list[float], list[float]]:
    """(millions of tokens, losses, tokens at which a leg began after the first) of a log.jsonl, or of several one after
    the other: a training that went on from weights counts its own tokens from 0."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    points, starts, seen, before = list[tuple[float, float]](), list[float](), 0.0, 0.0
    for r in rows:
        if r.get("event") == "start" and seen:
            before = before if r.get("step", 1) else seen
            starts.append(seen)
        seen = before + r["tokens"] if "tokens" in r else seen
        if "loss" in r and r["tokens"] > 0:
            points.append((seen, r["loss"]))
    return [p[0] for p in points], [p[1] for p in points], starts


def plot(path: Path, out: Path) -> None:
    import matplotlib  # type: ignore[import-not-found,unused-ignore]

    matplotlib.use("Agg")
    from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]

    tokens, losses, starts = read_log(path)
    figure, axes = pyplot.subplots(figsize=(7, 3.5), dpi=110)
    axes.semilogy(tokens, losses, linewidth=1)
    for x in starts:
        axes.axvline(x, color="gray", linestyle=":", linewidth=1)
    axes.set_xlabel("million tokens")
    axes.set_ylabel("loss (nats per answer token, weighted)")
    axes.grid(alpha=0.3, which="both")
    figure.tight_layout()
    figure.savefig(out)


def main() -> None:
    p = argparse.ArgumentParser(prog="python -m specd.mini.plot", description=(__doc__ or "").split("\n")[0])
    p.add_argument("log", type=Path)
    p.add_argument("out", type=Path)
    args = p.parse_args()
    plot(args.log, args.out)


if __name__ == "__main__":
    main()
