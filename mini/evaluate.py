"""Greedy exact match of whole answers on repositories that training never saw, by kind and length.

    python -m specd.mini.evaluate make --data DATA [--edits ../shared/edits/corpus.jsonl]     # DATA/eval.jsonl.xz
    python -m specd.mini.evaluate run --data DATA --model DIR --out DIR/eval.json             # on a GPU, teacher-forced
    python -m specd.mini.evaluate run --data DATA --model DIR --engine --limit 200            # on a CPU, through
    specd.engine

An answer counts when every token is the most likely one given the right ones before it: that is exactly when greedy
decoding
gives the answer. Lengths are in answer tokens. Nothing of the items is trained on, their repositories included.
"""

import argparse
import json
import lzma
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from specd.mini.corpus import read_files
from specd.mini.edits import KINDS, LANGUAGES, Edit, EditMaker, identifier_pool
from specd.mini.inputs import need, need_device, need_same_tokenizer
from specd.mini.packing import Encode, Packer, encode_edit, row_count
from specd.mini.realedits import real_items
from specd.mini.tokenizer import FastEncoder

# (name, fewest and most answer tokens, shortest and longest region in characters)
LENGTHS = (("<256", 0, 256, 60, 640), ("256-1024", 256, 1024, 640, 2700), ("1024-3000", 1024, 3000, 2600, 8200))
MOST_TOKENS = 6700

# Items of a kind in each length; 300 or more in all for the kinds that the project promises figures for.
COUNTS: dict[str, tuple[int, int, int]] = dict.fromkeys(KINDS, (40, 40, 20))
COUNTS |= {"rename": (300, 300, 300), "rename_plain": (150, 150, 0), "rename_unseen": (150, 150, 0)}
COUNTS |= dict.fromkeys(
    (
        "rename_hard",
        "rename_several",
        "rename_style",
        "literal",
        "set_value",
        "insert",
        "delete",
        "delete_function",
        "add_parameter",
        "case_change",
    ),
    (130, 120, 50),
)
COUNTS |= {"absent": (60, 60, 30), "unable": (60, 60, 30)}


@dataclass(frozen=True)
class Item:
    """An edit to ask for. `length` is the bucket's name; `group` is "held out" or the name of another set."""

    edit: Edit
    length: str
    group: str = "held out"


def bucket(tokens: int) -> str:
    return next((name for name, low, high, _, _ in LENGTHS if low <= tokens < high), ">=3000")


def make_items(data: Path, seed: int, share: float = 1.0) -> list[Item]:
    files = read_files(data / "hold.jsonl.xz")
    encode = FastEncoder(data / "tokenizer.json")
    maker = EditMaker(files, identifier_pool(files, Random(seed)), seed, scrambled_share=0)
    items: list[Item] = []
    for kind, counts in COUNTS.items():
        for (name, low, high, shortest, longest), count in zip(LENGTHS, counts, strict=True):
            wanted, tries, made = round(count * share), 0, 0
            while made < wanted and tries < 30 * wanted:
                tries += 1
                edit = maker.make(kind, sizes=((1.0, longest),), shortest=shortest)
                prompt, answer = encode_edit(edit, encode, edit.language)
                if low <= len(answer) < high and len(prompt) + len(answer) <= MOST_TOKENS:
                    items.append(Item(edit, name))
                    made += 1
    return items


def write_items(path: Path, items: Iterable[Item]) -> None:
    text = "".join(json.dumps(asdict(i), ensure_ascii=False) + "\n" for i in items)
    path.write_bytes(lzma.compress(text.encode(), preset=6))


def read_items(path: Path) -> list[Item]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Item(Edit(**r["edit"]), r["length"], r["group"]) for r in rows]


def encoded(items: Sequence[Item], encode: Encode) -> list[tuple[list[int], list[int]]]:
    """(prompt, answer) ids; every second item has a language tag, as in training most have."""
    return [encode_edit(item.edit, encode, item.edit.language if i % 2 else "") for i, item in enumerate(items)]


def teacher_forced(model: Any, documents: Sequence[tuple[list[int], list[int]]], pack: int) -> list[int]:
    """For each document the number of answer tokens that are not the model's choice. `model` is a MiniModel."""
    import torch

    device = model.embedding.device
    wrong = [0] * len(documents)
    order = sorted(range(len(documents)), key=lambda i: len(documents[i][0]) + len(documents[i][1]))
    packer, inside = Packer(pack), list[tuple[int, int, int]]()

    def flush() -> None:
        nonlocal packer, inside
        p = packer.pack()
        tokens, bounds, rows, labels, positions = (
            torch.from_numpy(x).to(device) for x in (p.tokens, p.bounds, p.rows, p.labels, p.positions)
        )
        longest = int((p.bounds[1:] - p.bounds[:-1]).max())
        with torch.no_grad():
            x = model(tokens, positions, bounds, longest)[0][rows.long()]
            chosen = torch.cat([model.logits(part).argmax(-1) for part in x.split(16_384)])
        misses = (chosen != labels).cpu()
        for i, a, b in inside:
            wrong[i] = int(misses[a:b].sum())
        packer, inside = Packer(pack), []

    for i in order:
        prompt, answer = documents[i]
        if len(prompt) + len(answer) > pack or len(answer) > row_count(pack):
            wrong[i] = -1
            continue
        if not packer.fits(prompt, answer):
            flush()
        inside.append((i, *packer.add(prompt, answer)))
    if inside:
        flush()
    return wrong


def by_engine(folder: Path, documents: Sequence[tuple[list[int], list[int]]]) -> list[int]:
    """Like teacher_forced (0 or 1), by decoding with specd.engine and its n-gram proposer."""
    from specd.engine import Finished, NgramProposer, StepDone, generate, load

    loaded = load(folder)
    wrong = []
    for prompt, answer in documents:
        out: list[int] = []
        for event in generate(
            loaded.model, prompt, stop_ids=loaded.stop_ids, max_tokens=len(answer) + 32, speculative=NgramProposer()
        ):
            if isinstance(event, StepDone):
                out += event.tokens
            elif isinstance(event, Finished):
                break
        wrong.append(int([t for t in out if t not in loaded.stop_ids] != answer[:-1]))
    return wrong


def table(items: Sequence[Item], wrong: Sequence[int]) -> dict[str, dict[str, list[int]]]:
    """{group/kind: {length: [right, all]}}, with rows and columns for all together and per language."""
    out: dict[str, dict[str, list[int]]] = {}
    for item, misses in zip(items, wrong, strict=True):
        names = [item.edit.kind] if item.group == "held out" else [f"{item.group}: {item.edit.kind}"]
        if item.group == "held out" and item.edit.kind in KINDS:
            names += ["ALL", f"language: {item.edit.language}"]
            if item.edit.kind == "rename":
                names.append(f"rename in {item.edit.language}")
        for name in names:
            for length in (item.length, "all"):
                cell = out.setdefault(name, {}).setdefault(length, [0, 0])
                cell[0] += misses == 0
                cell[1] += 1
    return out


def markdown(rows: dict[str, dict[str, list[int]]]) -> str:
    """The table of a model card."""
    lengths = [x[0] for x in LENGTHS] + ["all"]
    lines = ["| kind | " + " | ".join(lengths) + " |", "|---" * (len(lengths) + 1) + "|"]
    for name, cells in rows.items():
        shown = [f"{100 * cells[k][0] / cells[k][1]:.1f} % of {cells[k][1]}" if k in cells else "-" for k in lengths]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def run(args: argparse.Namespace) -> None:
    need(args.data / "eval.jsonl.xz", args.model / "model.safetensors")
    need_same_tokenizer(args.model, args.data)
    need_device("cpu" if args.engine else args.device)
    items = read_items(args.data / "eval.jsonl.xz")
    if args.limit:
        Random(3).shuffle(items)
        items = items[: args.limit]
    documents = encoded(items, FastEncoder(args.data / "tokenizer.json"))
    begin = time.monotonic()
    if args.engine:
        wrong = by_engine(args.model, documents)
    else:
        import torch

        from specd.mini.checkpoint import load_model

        is_cuda = args.device == "cuda"
        model = load_model(args.model, args.device, torch.bfloat16 if is_cuda else torch.float32).requires_grad_(False)
        wrong = teacher_forced(model, documents, 65_536 if is_cuda else 8192)
    rows = table(items, wrong)
    print(markdown(rows))
    tokens = sum(len(a) for _, a in documents)
    print(f"{len(items)} items, {tokens} answer tokens, {sum(w > 0 for w in wrong)} wrong answers, "
          f"{sum(w for w in wrong if w > 0)} wrong tokens, {time.monotonic() - begin:.1f} s")  # fmt: skip
    if args.out:
        args.out.write_text(json.dumps({"rows": rows, "wrong": wrong}) + "\n")


def main() -> None:
    p = argparse.ArgumentParser(
        prog="python -m specd.mini.evaluate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = p.add_subparsers(required=True, dest="command")
    make = commands.add_parser("make", help="make the items")
    make.add_argument("--data", type=Path, required=True)
    make.add_argument(
        "--edits", type=Path, help="corpus.jsonl of the shared edit corpus, to add its renames and new parameters"
    )
    make.add_argument("--share", type=float, default=1.0, help="part of the full number of items")
    make.add_argument("--seed", type=int, default=20261129)
    go = commands.add_parser("run", help="score a model")
    go.add_argument("--data", type=Path, required=True)
    go.add_argument("--model", type=Path, required=True)
    go.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    go.add_argument("--engine", action="store_true", help="decode with specd.engine instead of teacher forcing")
    go.add_argument("--limit", type=int, help="a random part of the items")
    go.add_argument("--out", type=Path, help="JSON file for the table")
    args = p.parse_args()
    if args.command == "run":
        run(args)
        return
    need(args.data / "hold.jsonl.xz", args.data / "tokenizer.json", *([args.edits] if args.edits else []))
    items = make_items(args.data, args.seed, args.share)
    if args.edits:
        encode = FastEncoder(args.data / "tokenizer.json")
        for edit, group in real_items(args.edits):
            prompt, answer = encode_edit(edit, encode, edit.language)
            if len(prompt) + len(answer) <= MOST_TOKENS:
                items.append(Item(edit, bucket(len(answer)), group))
    write_items(args.data / "eval.jsonl.xz", items)
    languages = {x: sum(i.edit.language == x for i in items) for x in LANGUAGES}
    print(f"{len(items)} items;", ", ".join(f"{k} {v}" for k, v in languages.items()))


if __name__ == "__main__":
    main()
