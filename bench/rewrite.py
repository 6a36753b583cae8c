"""What a rewrite costs beside the model, and how good its hunks are.

    python bench/rewrite.py [--edits FILE] [--lines N]

First table: microseconds a line to feed an answer of N, N/2, N/4 and N/8 lines through `RewriteStream` in pieces of
eight characters, for answers that are easy, large and hostile. Linear time is the same figure in each row. Second
table: prompt, region and guard of a file of N lines. Third: region, guard and the prompt of a general model, at first
and again, for files up to and beyond what is parsed, and for one that no parser gets through.

With `--edits` (JSON Lines with before, after, language, instruction, as in ../shared/edits/corpus.jsonl) also: how many
lines the streamed hunks change, as a multiple of the fewest possible, how many lines of the answer a hunk waits for,
and how many hunks wait for the end.
"""

import argparse
import functools
import json
import random
import string
import time
from collections.abc import Callable
from pathlib import Path

from specd.daemon.rewrite.diff import changed_blocks
from specd.daemon.rewrite.guard import check
from specd.daemon.rewrite.hunks import HunkStream
from specd.daemon.rewrite.lines import split_lines
from specd.daemon.rewrite.prompt import build_prompt, fenced
from specd.daemon.rewrite.region import Region, select_region
from specd.daemon.rewrite.stream import RewriteStream

PIECE = 8


def code(count: int) -> list[str]:
    """Lines as a file has them: functions of eight lines that repeat brackets, blank lines and a few statements."""
    block = [
        "def f{0}(x):",
        "    y = g{0}(x, 1)",
        "    if y:",
        "        return y",
        "    z = y + {0}",
        "    return z",
        "",
        "",
    ]
    return [block[at % 8].format(at // 8) for at in range(count)]


def edits(rng: random.Random) -> dict[str, Callable[[list[str]], list[str]]]:
    """What is done to the lines, by name; the answer is the result."""
    return {
        "no change": lambda lines: lines,
        "one line in ten": lambda lines: [x + " # new" if at % 10 == 4 else x for at, x in enumerate(lines)],
        "every line": lambda lines: [x.replace("y", "value") + " #" for x in lines],
        "every second line": lambda lines: [x + " #" if at % 2 else x for at, x in enumerate(lines)],
        "first half deleted": lambda lines: lines[len(lines) // 2 :],
        "halves swapped": lambda lines: lines[len(lines) // 2 :] + lines[: len(lines) // 2],
        "reversed": lambda lines: lines[::-1],
        "shuffled": lambda lines: rng.sample(lines, len(lines)),
        "each line twice": lambda lines: [x for x in lines for _ in range(2)],
        "random deletions": lambda lines: [x for x in lines if rng.random() < 0.8],
        "one line, again and again": lambda lines: ["    return z"] * len(lines),
        "two lines at random": lambda lines: [rng.choice(["    return z", ""]) for _ in lines],
        "another text": lambda lines: [f"other {at}" for at in range(len(lines))],
        "omission lines": lambda lines: [x if at % 40 else "# ... existing code ..." for at, x in enumerate(lines)],
        "fences": lambda lines: [x if at % 3 else "```" for at, x in enumerate(lines)],
    }


def cost(lines: list[str], new: list[str]) -> float:
    """Seconds to feed the answer `new` for the file `lines`."""
    text = "".join(line + "\n" for line in lines)
    region = select_region(text)
    prompt = build_prompt("region", path=None, language="python", text=text, region=region, instruction="x")
    answer = fenced("python", "".join(line + "\n" for line in new))
    pieces = [answer[at : at + PIECE] for at in range(0, len(answer), PIECE)]
    stream = RewriteStream(text, region, prompt)
    began = time.perf_counter()
    for piece in pieces:
        stream.push(piece)
    stream.finish(complete=True)
    return time.perf_counter() - began


def report_time(count: int) -> None:
    sizes = [count // 8, count // 4, count // 2, count]
    print(f"microseconds a line of the answer, for {', '.join(map(str, sizes))} lines")
    for name in edits(random.Random(0)):
        row = []
        for size in sizes:
            lines = code(size)
            new = edits(random.Random(0))[name](lines)
            row.append(1e6 * min(cost(lines, new) for _ in range(3)) / max(1, len(new)))
        print(f"  {name:26}" + "".join(f"{value:9.1f}" for value in row))
    same = ["x"] * count
    for name, new in (("equal lines, one deleted", same[1:]), ("equal lines, half deleted", same[: count // 2])):
        print(f"  {name:26}{1e6 * cost(same, new) / count:36.1f}")


def report_once(count: int) -> None:
    text = "".join(line + "\n" for line in code(count))
    whole = select_region(text)

    def prompt() -> object:
        return build_prompt(
            "chat", path="a.py", language="python", text=text, region=region, instruction="x", budget=9000, count=len
        )

    print(f"milliseconds for a file of {count} lines")
    began = time.perf_counter()
    region = select_region(text, at=count // 2, language="python")
    print(f"  region (first parse)     {1e3 * (time.perf_counter() - began):8.1f}")
    for name, call in (
        ("region", lambda: select_region(text, at=count // 2, language="python")),
        ("prompt, file cut to fit", prompt),
        ("guard", lambda: check("python", text, text.replace("g1(", "h1("))),
    ):
        began = time.perf_counter()
        call()
        print(f"  {name:25}{1e3 * (time.perf_counter() - began):8.1f}")
    assert whole.end_line == count


def report_large() -> None:
    """First and later calls: a text is parsed once."""
    print("milliseconds, first and again          region            guard           prompt")
    line = "".join(line + "\n" for line in code(8))
    noise = random.Random(1)
    wild = "".join(noise.choice(string.printable) for _ in range(256 * 1024))
    files = {f"{size} KiB of code": ("python", line * (size * 1024 // len(line))) for size in (100, 500, 1024, 6144)}
    for name, (language, text) in {**files, "256 KiB of random signs": ("javascript", wild)}.items():
        at = len(split_lines(text)) // 2
        new = text.replace("return", "yield", 1)
        region = select_region(text, lines=(at, at + 8))

        def prompt(text: str = text, region: Region = region) -> object:
            return build_prompt(
                "chat", path="a", language=None, text=text, region=region, instruction="x", budget=32768, count=_guess
            )

        calls: list[Callable[[], object]] = [
            functools.partial(select_region, text, at=at, language=language),
            functools.partial(check, language, text, new),
            prompt,
        ]
        row = f"  {name:28}"
        for call in calls:
            for _ in range(2):
                began = time.perf_counter()
                call()
                row += f"{1e3 * (time.perf_counter() - began):9.1f}"
        print(row)


def _guess(text: str) -> int:
    return len(text) // 3


def report_edits(path: Path) -> None:
    mine = fewest = waited = streamed = late = 0
    corpus = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for edit in corpus:
        old, new = split_lines(edit["before"]), split_lines(edit["after"])
        fewest += sum(a1 - a0 + b1 - b0 for a0, a1, b0, b1 in changed_blocks(old, new))
        stream, shift = HunkStream(edit["before"]), 0
        for count, line in enumerate(new, 1):
            for hunk in stream.push(line):
                shift -= hunk.dropped
                waited += count - (hunk.end_line + shift)
                streamed += 1
                mine += len(hunk.old_lines) + len(hunk.new_lines)
        at_end = stream.finish(complete=True)
        late += len(at_end)
        mine += sum(len(hunk.old_lines) + len(hunk.new_lines) for hunk in at_end)
        assert stream.result == edit["after"] or stream.halted
    print(f"hunks of {len(corpus)} edits")
    print(f"  lines changed, of the fewest possible   {mine / fewest:8.3f}")
    print(f"  lines of the answer that a hunk waits   {waited / max(1, streamed):8.2f}")
    print(f"  hunks that wait for the end             {late:8} of {streamed + late}")


def main() -> None:
    parser = argparse.ArgumentParser(description="what a rewrite costs beside the model, and how good its hunks are")
    parser.add_argument("--edits", type=Path, help="edits to replay, JSON Lines (../shared/edits/corpus.jsonl)")
    parser.add_argument("--lines", type=int, default=4000, help="lines of the largest file (4000)")
    arguments = parser.parse_args()
    report_time(arguments.lines)
    report_once(arguments.lines)
    report_large()
    if arguments.edits:
        report_edits(arguments.edits)


if __name__ == "__main__":
    main()
