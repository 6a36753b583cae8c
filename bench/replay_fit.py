"""Fit the worth of the edit proposer's guesses: the weights in `engine/propose/edit_weights.py`.

bench/replay_fit.py --corpus edits.jsonl --tokenizer DIR [--rounds 3] [--half 0] --output weights.py

Replays the corpus, and wherever the copy is lost asks of every guess how many of its tokens the answer would have
accepted. For each kind of guess, the share of CAP tokens is fitted by a logistic regression with a little L2, as
fractional responses are (Papke and Wooldridge 1996). Each round replays with the weights of the one before and fits
on all rounds' guesses, so that the guesses that better weights lead to are in the data too. Refusals and time lost
may only count against a guess: what the few examples say otherwise makes a wrong guess stay. Judge by the other half
of the corpus: --half 0 or 1 fits on one half of the edits only.
"""

import argparse
import hashlib
import sys
from dataclasses import dataclass
from math import log1p
from pathlib import Path

import torch
from replay import replay
from replay_cases import Case, build_case, read_edits
from replay_proposers import PROPOSERS

from specd.engine.propose import edit_cursor, edit_guess
from specd.engine.propose.edit import EditProposer
from specd.engine.propose.edit_guess import Guess
from specd.engine.propose.edit_weights import CAP, FEATURES, WEIGHTS, Weights
from specd.engine.tokenizer import Tokenizer

COMMON = ("votes", "refused", "disagrees")
AT_MOST = {"steps": 0.0, "refused": -0.5, "disagrees": -0.3}
MOST_GUESSES = 20  # of one step that are looked at


@dataclass(frozen=True)
class Seen:
    """A guess's features with the common ones behind them, and the tokens that it would have won."""

    kind: str
    features: tuple[float, ...]
    won: int


def watch(case: Case, tokenizer: Tokenizer, name: str) -> list[Seen]:
    """Replay a case with proposer `name` and judge every guess on the way."""
    seen: list[Seen] = []
    proposer = PROPOSERS[name](case, tokenizer, 128)
    assert isinstance(proposer, EditProposer)
    cursor, find = proposer.state.cursor, edit_cursor.find_guesses

    def find_and_judge(*arguments: object) -> list[Guess]:
        guesses: list[Guess] = find(*arguments)  # type: ignore[arg-type]
        lost, row = cursor.lost, arguments[4]
        assert lost is not None
        assert isinstance(row, list)
        ahead = case.answer[len(row) - len(case.prompt) :][:CAP]
        line = row[max(len(case.prompt), len(row) - edit_cursor.CONTEXT) :]
        for guess in guesses[:MOST_GUESSES]:
            tokens, disagrees = guess.tokens, 0.0
            if tokens is None:
                plan = cursor._plan_of(guess, line)
                plan.grow(CAP)
                tokens, disagrees = plan.tokens, float(not plan.agrees)
            pairs = zip(tokens, ahead, strict=False)
            won = next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(tokens), len(ahead)))
            common = (guess.backing, log1p(lost.refused.get(guess.key, 0)), disagrees)
            seen.append(Seen(guess.kind, (*guess.features, *common), CAP if won == len(ahead) else won))
        return guesses

    edit_cursor.find_guesses = find_and_judge  # type: ignore[assignment]
    try:
        replay(case, proposer, 128)
    finally:
        edit_cursor.find_guesses = find
    return seen


def fit(seen: list[Seen], kind: str) -> Weights:
    """The weights of one kind of guess; those in force where there are no examples."""
    rows = [row for row in seen if row.kind == kind]
    if not rows:
        return WEIGHTS[kind]
    names = (*FEATURES[kind], *COMMON)
    x = torch.tensor([(*row.features, 1.0) for row in rows], dtype=torch.float64)
    y = torch.tensor([row.won / CAP for row in rows], dtype=torch.float64)
    most = torch.tensor([*(AT_MOST.get(name, torch.inf) for name in names), torch.inf], dtype=torch.float64)
    free = torch.zeros(x.shape[1], dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([free], max_iter=200, line_search_fn="strong_wolfe")

    def bounded() -> torch.Tensor:
        return torch.where(most.isinf(), free, most.nan_to_num(posinf=0.0) - torch.nn.functional.softplus(free))

    def loss() -> torch.Tensor:
        search.zero_grad()
        weights = bounded()
        value = torch.nn.functional.binary_cross_entropy_with_logits(x @ weights, y, reduction="sum")
        value = value + weights[:-1].square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    search.step(loss)  # type: ignore[no-untyped-call]
    *features, votes, refused, disagrees, bias = [round(value, 2) for value in bounded().tolist()]
    return Weights(bias, tuple(features), votes, refused, disagrees)


def module(weights: dict[str, Weights]) -> str:
    """The text of edit_weights.py: its head as it is, the weights anew."""
    head = (Path(__file__).parents[1] / "engine" / "propose" / "edit_weights.py").read_text(encoding="utf-8")
    lines = [head[: head.index("WEIGHTS: dict")] + "WEIGHTS: dict[str, Weights] = {"]
    for kind, row in weights.items():
        values = f"{row.bias}, {row.features}, {row.votes}, {row.refused}, {row.disagrees}"
        lines.append(f'    "{kind}": Weights({values}),')
    return "\n".join([*lines, "}", ""])


def in_half(id: str, half: int | None) -> bool:
    """Edits are halved by a hash of their id."""
    return half is None or hashlib.md5(id.encode()).digest()[0] % 2 == half


def main() -> int:
    parser = argparse.ArgumentParser(description="Fit the worth of the edit proposer's guesses.")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--tokenizer", required=True, help="folder with tokenizer.json")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, required=True, help="where the new edit_weights.py goes")
    parser.add_argument("--half", type=int, choices=(0, 1), help="fit on this half of the edits only")
    options = parser.parse_args()
    tokenizer = Tokenizer(options.tokenizer)
    edits = [edit for edit in read_edits(options.corpus) if in_half(edit.get("id", ""), options.half)]
    seen: list[Seen] = []
    for number in range(options.rounds):
        for edit in edits:
            case = build_case(edit, tokenizer, "region")
            seen += watch(case, tokenizer, "edit")
            if in_half(case.id + "*", 0):  # names must be guessed without a word about them too
                seen += watch(case, tokenizer, "edit-nopairs")
        edit_guess.WEIGHTS.update({kind: fit(seen, kind) for kind in FEATURES})
        print(f"round {number + 1}: {len(seen)} guesses", file=sys.stderr)
    options.output.write_text(module(edit_guess.WEIGHTS), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
