"""What a guess is worth, from what can be seen of it: fitted weights.

One fractional logistic regression for each kind of guess: share of CAP tokens that are accepted, on the features that the guess's
maker lists in this order. Fitted by `bench/replay_fit.py` on a development corpus of edits; two halves of it give weights that judge
each other's edits as well as their own. Features are counts under log1p, shares, and 0 or 1.
"""

from dataclasses import dataclass

CAP = 32  # accepted tokens beyond it are worth no more


@dataclass(frozen=True)
class Weights:
    """`features` in the order of FEATURES; `votes`: log1p of the gain of another kind of guess that goes on alike; `refused`: log1p
    of times refused; `disagrees`: the tokens written do not lead there."""

    bias: float
    features: tuple[float, ...] = ()
    votes: float = 0.0
    refused: float = 0.0
    disagrees: float = 0.0


FEATURES: dict[str, tuple[str, ...]] = {
    "match": ("bits", "share", "forward", "backward", "is behind", "partial", "covers", "line end", "anchored", "steps", "said", "depth"),
    "line": ("length", "many", "forward", "backward", "is behind", "same indent", "said"),
    "phrase": ("depth", "count", "share", "steps"),
    "unruled": (),
    "undo": ("length",),
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
    "match": Weights(-2.49, (0.56, 1.38, -0.74, -0.55, -0.88, 0.5, -0.32, 0.45, 1.33, -0.25, 0.18, -0.23), 0.42, -0.07, -3.62),
    "line": Weights(-2.23, (0.2, -1.02, -0.03, -0.09, -0.58, 1.21, -0.49), 0.65, -1.04, -2.35),
    "phrase": Weights(-6.3, (0.95, -0.04, 0.57, 0.04), 0.9, -0.06, -1.2),
    "unruled": Weights(1.95, (), -0.29, 0.0, 0.0),
    "undo": Weights(-1.06, (0.28,), 0.34, 0.0, 0.0),
    "rule rest": Weights(-1.36, (0.0, 0.79, 0.09), 1.1, -1.01, -1.09),
    "word": Weights(-6.39, (-0.39, 0.87, 2.05, 1.16, 0.89, 0.5, 0.72), 0.66, -0.72, 0.0),
    "affix": Weights(-3.7, (-1.2, 2.07, -0.89, 0.03, -0.53), 2.84, -0.05, -0.26),
    "mark": Weights(-3.69, (-0.76,), 0.81, 0.55, -0.89),
    "named": Weights(-1.82, (0.29, -0.47, -0.79), 0.09, -0.9, -2.49),
    "resume": Weights(-6.63, (1.09, -0.42, 1.37, -1.34, 1.38, 0.0), 2.38, 0.37, -1.3),
    "back": Weights(-7.72, (1.11, -0.33, 1.71, 0.82, -0.76, 1.14), 0.73, -0.2, -0.93),
    "item": Weights(-5.14, (-0.45, -0.55, 0.34, 0.11), 1.63, -1.27, -1.25),
    "here": Weights(-5.76, (0.77, -0.19, -0.31, -0.49, 0.68, 1.76), 1.93, -0.02, -0.68),
    "next": Weights(-3.16, (0.28, 0.26, -1.08, -0.7, -0.12, -1.53), 1.3, 0.26, -1.57),
    "next but one": Weights(-4.32, (-0.47, 1.41, -0.2, -0.51, -0.23, 0.19), 1.08, 0.65, -1.3),
    "next of many": Weights(-1.16, (-0.05, 0.27, -0.05, -0.49, -1.41, 1.46), 1.29, -0.08, -0.85),
    "paragraph": Weights(-2.57, (-0.7, 0.0, -0.04, -0.52, -0.1, -0.33), 1.29, 0.48, -0.52),
    "recall1": Weights(-3.42, (0.0, 0.0, 0.0, -0.17), 0.0, 0.0, 0.0),
    "recall2": Weights(-3.26, (0.0, -0.44, 1.59, -0.26), 0.0, 0.0, 0.0),
    "recall3": Weights(-2.59, (-0.0, -0.41, 1.19, -0.11), 0.0, 0.0, 0.0),
    "recall4": Weights(-1.79, (0.0, -0.91, 0.7, -0.17), 0.0, 0.0, 0.0),
    "recall5": Weights(-5.33, (2.0, -0.44, 0.68, -0.04), 0.0, 0.0, 0.0),
}
