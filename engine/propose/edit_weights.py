"""What a guess is worth, from what can be seen of it: fitted weights.

One fractional logistic regression for each kind of guess: share of CAP tokens that are accepted, on the features that
the guess's maker lists in this order. Fitted by `bench/replay_fit.py` on a development corpus of edits; two halves of
it give weights that judge each other's edits as well as their own. Features are counts under log1p, shares, and 0 or
1.
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
    "match": Weights(
        -2.44, (0.53, 1.34, -0.73, -0.51, -0.96, 0.44, -0.35, 0.27, 1.01, -0.26, 0.26, -0.18), 0.45, -0.17, -2.75
    ),
    "line": Weights(-2.32, (0.2, -0.99, -0.02, -0.11, -0.53, 1.22, -0.44), 0.66, -0.53, -1.49),
    "unruled": Weights(2.63, (), -0.47, 0.0, 0.0),
    "undo": Weights(-0.85, (0.11,), 0.16, 0.0, 0.0),
    "rule rest": Weights(-1.53, (0.0, 0.46, 0.03), 0.65, -0.53, -0.55),
    "word": Weights(-5.9, (-0.26, 0.81, 1.77, 1.0, 0.51, 0.44, 0.69), 0.67, -0.23, 0.0),
    "affix": Weights(-3.78, (-0.91, 1.14, -0.21, -0.0, -0.17), 2.47, 0.0, -0.1),
    "mark": Weights(-3.8, (-0.39,), 0.49, 0.19, -0.39),
    "named": Weights(-2.04, (0.37, -0.41, -0.99), 0.15, -0.23, -1.55),
    "resume": Weights(-6.17, (0.53, -0.34, 0.92, -0.43, 0.88, 0.0), 2.25, 0.27, -0.76),
    "back": Weights(-5.99, (0.28, -0.48, 1.36, 0.47, -0.39, 0.62), 0.42, -0.03, -0.4),
    "item": Weights(-5.18, (-0.31, -0.33, 0.29, -0.07), 1.56, -0.68, -0.61),
    "here": Weights(-4.57, (0.32, -0.09, -0.14, -0.32, 0.55, 0.88), 1.41, -0.23, -0.43),
    "next": Weights(-3.12, (0.39, 0.1, -0.84, -0.48, -0.22, -0.99), 1.28, -0.01, -1.03),
    "next but one": Weights(-4.34, (-0.02, 1.13, -0.15, -0.33, -0.25, 0.16), 1.09, 0.03, -0.77),
    "next of many": Weights(-1.45, (-0.05, -0.41, 0.04, -0.1, -1.34, 0.59), 1.63, -0.01, -0.43),
    "paragraph": Weights(-2.02, (-0.16, 0.0, -0.13, -0.25, -0.37, -0.25), 1.1, -0.06, -0.25),
    "recall1": Weights(-3.48, (0.0, 0.0, 0.0, -0.14), 0.0, 0.0, 0.0),
    "recall2": Weights(-3.04, (-0.0, -0.45, 1.41, -0.29), 0.0, 0.0, 0.0),
    "recall3": Weights(-2.43, (-0.0, -0.46, 0.88, -0.08), 0.0, 0.0, 0.0),
    "recall4": Weights(-1.57, (0.0, -0.94, 0.43, -0.3), 0.0, 0.0, 0.0),
    "recall5": Weights(-5.02, (1.92, -0.48, 0.49, 0.0), 0.0, 0.0, 0.0),
}
