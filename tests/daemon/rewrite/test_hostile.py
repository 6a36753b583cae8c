"""Random files and hostile answers through the whole rewrite: over a thousand of them, each checked for every promise.

The texts come from `random.Random(seed)`, since a thousand of them must be quick; a seed that fails is the example.
"""

import random

import pytest

from specd.daemon.rewrite.hunks import apply_hunks
from specd.daemon.rewrite.lines import BOM, content, line_end, split_lines
from specd.daemon.rewrite.prompt import build_prompt
from specd.daemon.rewrite.region import select_region
from specd.daemon.rewrite.stream import RewriteStream

SEEDS = 1500
LINES = [
    "def f(x):", "    return x", "\treturn x", "}", "end", "", "  ", "x = 1  ", "class A:", "    pass", "```",
    "```julia", "~~~", "<think>", "</think>", "# ...", "// rest of the code unchanged", "...", "é😀 = 'ß'",
    "a\x0cb", "a\u2028b",
    "\x85", "\x00", "<|im_end|>", "def f(x):\treturn", BOM, "'''", "%s %d \\n", "\ud800",
]  # fmt: skip
JUNK = [
    "```\n", "```python\n", "````\n", "~~~\n", "<think>\n", "</think>", "Sure, here it is:\n", "I cannot do that.\n",
    "\n", "\r", "\r\n", "# ... rest unchanged\n", "// ... existing code ...\n", "...\n", "\x00", BOM, "   ```\n",
    "`" * 50,
    "x" * 500 + "\n", "\u2028", "<|im_end|>\n",
]  # fmt: skip


def some_file(rng: random.Random) -> str:
    ends = rng.choice([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n"], ["\n", "\r\n", "\r"]])
    lines = [
        rng.choice(LINES) if rng.random() < 0.6 else f"value_{rng.randrange(60)} = g()"
        for _ in range(rng.randrange(30))
    ]
    text = "".join(line + rng.choice(ends) for line in lines)
    if rng.random() < 0.3:
        text = text.rstrip("\r\n")
    return (BOM if rng.random() < 0.1 else "") + text


def some_answer(rng: random.Random, predicted: str) -> str:
    """The predicted answer with lines dropped, doubled, moved, changed, and junk thrown in; sometimes only junk."""
    lines = [line + "\n" for line in predicted.split("\n")] if rng.random() < 0.9 else []
    for _ in range(rng.randrange(8)):
        at, size = rng.randrange(len(lines) + 1), rng.randrange(1, 8)
        action = rng.randrange(6)
        if action == 0:
            del lines[at : at + size]
        elif action == 1:
            lines[at:at] = lines[at : at + size]
        elif action == 2:
            cut = lines[at : at + size]
            del lines[at : at + size]
            to = rng.randrange(len(lines) + 1)
            lines[to:to] = cut
        elif action == 3:
            lines[at : at + 1] = [
                rng.choice(["    ", "\t", ""]) + line.strip() + rng.choice([" ", "!", ""]) + "\n"
                for line in lines[at : at + 1]
            ]
        elif action == 4:
            lines[at:at] = [rng.choice(JUNK)]
        else:
            lines[at:at] = [rng.choice(LINES) + "\n"]
    return "".join(lines)[: rng.choice([10_000, 10_000, 10_000, rng.randrange(1, 400)])]


@pytest.mark.parametrize("block", range(10))
def test_no_answer_harms_a_file(block: int) -> None:
    kinds = set()
    for seed in range(block, SEEDS, 10):
        rng = random.Random(seed)
        kinds.add(check(rng))
    assert kinds >= {"done", "truncated", "declined"}


def check(rng: random.Random) -> str:
    text = some_file(rng)
    lines = split_lines(text)
    if lines and rng.random() < 0.7:
        start = rng.randrange(len(lines))
        region = select_region(text, lines=(start, rng.randrange(start, len(lines)) + 1))
    else:
        region = select_region(text)
    prompt = build_prompt(
        rng.choice(["chat", "region"]),
        path=None,
        language=rng.choice([None, "python", "julia"]),
        text=text,
        region=region,
        instruction=rng.choice(["do it", "remove blank lines"]),
    )
    answer = some_answer(rng, prompt.predicted)
    stream = RewriteStream(text, region, prompt)
    hunks, at, complete = [], 0, rng.random() < 0.8
    while at < len(answer):
        size = rng.choice([1, 2, 5, 17, 400])
        hunks += stream.push(answer[at : at + size])
        at += size
    last, outcome = stream.finish(complete=complete)
    hunks += last
    old = text[region.start : region.end]
    new = apply_hunks(old, hunks)

    assert outcome.text == text[: region.start] + new + text[region.end :], "text outside the region is untouched"
    assert (outcome.message == "") == (outcome.kind == "done")
    assert outcome.kind != "unchanged" or outcome.text == text
    assert complete or outcome.kind == "truncated" or outcome.report.omissions or "zero" in outcome.message
    assert new.startswith(BOM) or not old.startswith(BOM), "the byte order mark stays"
    assert {line_end(line) for line in split_lines(new.lstrip(BOM))} <= {line_end(line) for line in lines} | {"\n"}
    if not prompt.exact and old.lstrip(BOM) and new.lstrip(BOM).strip(" \t\r\n"):
        assert bool(line_end(split_lines(new)[-1])) == bool(line_end(split_lines(old)[-1])), "the final line end stays"
    changed = {at for hunk in hunks for at in range(hunk.start_line, hunk.end_line)}
    kept = [line for at, line in enumerate(split_lines(old)) if at not in changed]
    rest = iter(split_lines(new))
    assert all(line in rest for line in kept), "lines outside of hunks keep their bytes and their order"
    if outcome.report.declined is not None:
        assert outcome.text == text
    said = {content(line).strip() for line in split_lines(old.lstrip(BOM))}
    assert not any(
        content(line).strip() in set(outcome.report.omissions) - said for line in split_lines(new.lstrip(BOM))
    )
    return outcome.kind


@pytest.mark.parametrize(
    "line", ["x", "`", " ", "```" + " " * (10**6 - 4) + "`", "{", "# .", "<think>", "A b c ", "\t", "~", "("]
)
def test_a_line_of_a_million_characters_is_a_line(line: str) -> None:
    long = line * (10**6 // len(line))
    text = f"first\n{long}\nlast\n"
    region = select_region(text)
    prompt = build_prompt("chat", path=None, language="python", text=text, region=region, instruction="x")
    for answer in (prompt.predicted, prompt.predicted.replace("first", "second"), long, f"{long}\nfirst\n```\n{long}y"):
        stream = RewriteStream(text, region, prompt)
        hunks = [hunk for at in range(0, len(answer), 4096) for hunk in stream.push(answer[at : at + 4096])]
        last, outcome = stream.finish(complete=True)
        assert outcome.text == apply_hunks(text, hunks + last)
