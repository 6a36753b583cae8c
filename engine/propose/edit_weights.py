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
    "unruled": (),
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
        -3.17, (0.75, 1.27, -0.67, -0.54, -0.81, 0.46, -0.33, 0.09, 1.05, -0.15, 0.02, -0.25), 0.52, -0.21, -2.84
    ),
    "line": Weights(-2.55, (0.22, -1.06, 0.04, -0.08, -0.53, 1.2, -0.54), 0.81, -0.55, -1.76),
    "unruled": Weights(4.78, (), -1.17, 0.0, 0.0),
    "rule rest": Weights(-1.73, (0.0, 0.53, 0.27), 0.0, -0.27, -0.36),
    "word": Weights(-5.57, (-0.7, 0.71, 1.93, 0.83, 0.16, 0.27, 0.84), 0.76, -0.25, 0.0),
    "affix": Weights(-4.3, (-0.92, 1.13, -0.19, 0.13, 0.35), 2.44, 0.03, -0.08),
    "mark": Weights(-3.58, (-0.43,), 1.4, -0.02, -0.44),
    "named": Weights(-2.13, (0.39, -0.41, -1.0), 0.3, -0.29, -1.54),
    "resume": Weights(-6.3, (0.09, -0.25, 1.18, -0.47, 1.01, 0.0), 2.25, -0.02, -0.83),
    "back": Weights(-6.25, (0.14, -0.34, 1.53, 0.2, -0.19, 0.47), 0.36, -0.02, -0.44),
    "item": Weights(-5.11, (-0.35, -0.25, 0.29, -0.22), 1.73, -0.24, -0.59),
    "here": Weights(-4.51, (0.32, -0.08, -0.13, -0.4, 0.61, 0.88), 1.08, -0.27, -0.49),
    "next": Weights(-3.42, (0.58, -0.23, -0.71, -0.38, -0.2, -1.06), 1.59, 0.11, -1.09),
    "next but one": Weights(-4.28, (-0.02, 0.89, -0.12, -0.33, -0.24, -0.04), 1.04, -0.08, -0.75),
    "next of many": Weights(-1.7, (0.32, -0.36, 1.11, -0.58, -1.58, 0.38), 1.2, -0.06, -0.88),
    "paragraph": Weights(-0.86, (-0.24, -0.0, 0.18, -0.46, -0.53, -0.52), 0.65, -0.01, -0.46),
    "recall1": Weights(-3.49, (0.0, 0.0, 0.0, -0.13), 0.0, 0.0, 0.0),
    "recall2": Weights(-2.77, (-0.0, -0.59, 1.41, -0.32), 0.0, 0.0, 0.0),
    "recall3": Weights(-2.56, (0.0, -0.4, 0.97, -0.05), 0.0, 0.0, 0.0),
    "recall4": Weights(-1.57, (-0.0, -0.9, 0.33, -0.15), 0.0, 0.0, 0.0),
    "recall5": Weights(-5.28, (1.99, -0.43, 0.45, 0.09), 0.0, 0.0, 0.0),
}
