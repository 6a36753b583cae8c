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
    "inside": (),
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
        -2.69, (0.59, 1.33, -0.69, -0.49, -1.02, 0.55, -0.28, 0.48, 1.26, -0.18, 0.04, -0.23), 0.4, -0.5, -3.78
    ),
    "line": Weights(-2.23, (0.21, -0.79, -0.11, -0.02, -0.81, 0.91, -0.51), 0.7, -0.5, -2.39),
    "phrase": Weights(-6.4, (1.0, 0.01, 0.68, -0.0), 0.88, -0.5, -1.23),
    "unruled": Weights(0.97, (), 0.05, -0.5, -0.3),
    "inside": Weights(1.5, (), 0.0, -1.5, 0.0),  # set by hand: too rare in the corpus
    "undo": Weights(-3.14, (1.53, -0.6), 0.92, -0.5, -1.01),
    "rule rest": Weights(-1.27, (0.0, 0.57, -0.0), 1.31, -0.5, -1.03),
    "word": Weights(-6.56, (-0.41, 0.48, 1.99, 1.05, -0.0, 0.77, 0.78), 0.74, -0.5, -0.3),
    "affix": Weights(-4.21, (-0.84, 2.5, -0.79, 0.21, -0.62), 2.97, -0.5, -0.3),
    "mark": Weights(-3.22, (-1.04,), 1.23, -0.5, -1.21),
    "named": Weights(-2.08, (0.47, -0.6, -0.46), 0.28, -0.55, -2.68),
    "resume": Weights(-6.76, (1.14, -0.0, 0.97, -0.82, 1.42, 0.0), 2.41, -0.5, -1.45),
    "back": Weights(-7.67, (1.2, -0.3, 1.36, 1.07, -0.58, 1.05), 1.08, -0.5, -0.96),
    "item": Weights(-4.83, (-0.77, -0.74, 0.38, -0.0), 1.59, -1.27, -1.34),
    "here": Weights(-4.75, (0.78, -0.35, 0.74, -0.48, -0.0, 1.63), 2.09, -0.5, -0.78),
    "next": Weights(-3.58, (0.42, -0.01, -0.64, -0.62, -0.0, -1.47), 1.43, -0.5, -1.78),
    "next but one": Weights(-4.5, (-0.9, 1.33, 0.04, -0.43, -0.22, -0.2), 1.19, -0.5, -1.41),
    "next of many": Weights(-0.9, (-0.18, 0.36, 0.09, -0.44, -1.43, 1.11), 0.88, -0.5, -0.81),
    "paragraph": Weights(-3.19, (-0.74, 0.0, 0.28, -0.48, -0.0, -0.51), 1.33, -0.5, -0.48),
    "recall1": Weights(-3.41, (0.0, 0.0, 0.0, -0.17), 0.0, -0.5, -0.3),
    "recall2": Weights(-3.19, (0.0, -0.35, 1.54, -0.26), 0.0, -0.5, -0.3),
    "recall3": Weights(-2.47, (-0.0, -0.36, 0.94, -0.06), 0.0, -0.5, -0.3),
    "recall4": Weights(-1.84, (0.0, -0.85, 0.73, -0.24), 0.0, -0.5, -0.3),
    "recall5": Weights(-4.79, (1.73, -0.45, 0.6, -0.0), 0.0, -0.5, -0.3),
}
