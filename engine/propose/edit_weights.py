"""What a guess is worth, from what can be seen of it: fitted weights.

One fractional logistic regression for each kind of guess: the share of CAP tokens that are accepted, on the features
that the guess's maker lists in this order. Fitted by `bench/replay_fit.py` on a development corpus of edits; weights
of either half of it do as well on the other. Features are counts under log or log1p, shares, and 0 or 1.
"""

from dataclasses import dataclass

CAP = 32  # accepted tokens beyond it are worth no more


@dataclass(frozen=True)
class Weights:
    """`features` in the order of FEATURES; `votes`: log1p of the gain of another kind of guess that goes on alike;
    `refused`: log1p of times refused; `disagrees`: the tokens written do not lead there."""

    bias: float
    features: tuple[float, ...] = ()
    votes: float = 0.0
    refused: float = 0.0
    disagrees: float = 0.0


FEATURES: dict[str, tuple[str, ...]] = {
    "match": (
        "bits",
        "share",
        "forward",
        "backward",
        "is behind",
        "partial",
        "covers",
        "line end",
        "anchored",
        "steps",
        "said",
        "depth",
    ),
    "line": ("length", "many", "forward", "backward", "is behind", "same indent", "said"),
    "phrase": ("depth", "count", "share", "steps"),
    "unruled": (),
    "undo": ("begun", "separated"),
    "rule rest": ("cut", "wordy", "steps"),
    "word": ("passed", "known", "likeness", "middle", "steps", "length", "again"),
    "affix": ("known", "joint", "short", "again", "middle"),
    "mark": ("blank",),
    "named": ("length", "rank", "known"),
    "resume": ("line over", "steps", "context", "whole", "wordy", "newest"),
    "back": ("line over", "steps", "context", "whole", "wordy", "newest"),
    "item": ("wordy", "lines", "known", "steps"),
    "here": ("likeness", "blank", "lines", "indented", "steps", "said"),
    "next": ("likeness", "blank", "lines", "indented", "steps", "said"),
    "next but one": ("likeness", "blank", "lines", "indented", "steps", "said"),
    "next of many": ("likeness", "blank", "lines", "indented", "steps", "said"),
    "paragraph": ("likeness", "blank", "lines", "indented", "steps", "said"),
    "recall1": ("depth", "count", "share", "steps"),
    "recall2": ("depth", "count", "share", "steps"),
    "recall3": ("depth", "count", "share", "steps"),
    "recall4": ("depth", "count", "share", "steps"),
    "recall5": ("depth", "count", "share", "steps"),
}

WEIGHTS: dict[str, Weights] = {
    "match": Weights(
        -2.53, (0.57, 1.4, -0.75, -0.54, -0.94, 0.51, -0.32, 0.47, 1.32, -0.22, 0.18, -0.27), 0.43, -0.5, -3.62
    ),
    "line": Weights(-2.21, (0.19, -0.99, -0.04, -0.06, -0.67, 1.19, -0.52), 0.66, -0.84, -2.26),
    "phrase": Weights(-6.17, (0.96, -0.05, 0.52, -0.0), 0.87, -0.5, -1.18),
    "unruled": Weights(1.05, (), -0.0, -0.5, -0.3),
    "undo": Weights(-2.97, (1.66, -0.57), 0.62, -0.5, -1.03),
    "rule rest": Weights(-1.12, (0.0, 0.75, -0.0), 1.05, -0.99, -1.19),
    "word": Weights(-6.37, (-0.44, 0.71, 1.98, 1.19, -0.0, 0.63, 0.72), 0.72, -0.5, -0.3),
    "affix": Weights(-3.69, (-1.24, 2.09, -0.88, 0.04, -0.56), 2.8, -0.5, -0.3),
    "mark": Weights(-3.73, (-0.72,), 0.79, -0.5, -0.86),
    "named": Weights(-1.85, (0.3, -0.46, -0.78), 0.06, -0.88, -2.48),
    "resume": Weights(-6.95, (1.24, -0.0, 1.17, -1.18, 1.46, 0.0), 2.41, -0.5, -1.49),
    "back": Weights(-7.47, (1.0, -0.44, 1.87, 0.62, -0.78, 1.11), 0.47, -0.5, -1.02),
    "item": Weights(-5.06, (-0.48, -0.5, 0.39, -0.0), 1.63, -1.13, -1.26),
    "here": Weights(-4.22, (0.85, -0.54, 0.63, -0.48, -0.0, 1.76), 1.83, -0.5, -0.67),
    "next": Weights(-3.13, (0.3, 0.25, -0.8, -0.78, -0.1, -1.51), 1.24, -0.5, -1.66),
    "next but one": Weights(-4.39, (-0.64, 1.38, -0.11, -0.5, -0.2, 0.16), 1.09, -0.5, -1.34),
    "next of many": Weights(-1.0, (-0.16, 0.2, -0.06, -0.39, -1.44, 1.51), 1.27, -0.5, -0.79),
    "paragraph": Weights(-2.7, (-0.71, -0.0, 0.15, -0.47, -0.16, -0.47), 1.32, -0.5, -0.47),
    "recall1": Weights(-3.42, (0.0, 0.0, -0.0, -0.17), 0.0, -0.5, -0.3),
    "recall2": Weights(-3.15, (-0.0, -0.45, 1.53, -0.28), 0.0, -0.5, -0.3),
    "recall3": Weights(-2.61, (-0.0, -0.4, 1.18, -0.1), 0.0, -0.5, -0.3),
    "recall4": Weights(-1.86, (-0.0, -0.89, 0.8, -0.18), 0.0, -0.5, -0.3),
    "recall5": Weights(-5.34, (1.97, -0.42, 0.72, -0.05), 0.0, -0.5, -0.3),
}
