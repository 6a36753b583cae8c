"""Fitted weights of the guesses: what each is worth, from what can be seen of it.

Fractional logistic regressions of accepted tokens (counted up to CAP) on the features that `edit_find.py` gives each kind of guess,
fitted on the development corpus; the two halves give the same picture when one judges the other.
"""

from math import exp

CAP = 16  # accepted tokens beyond it are worth no more

WEIGHTS: dict[str, dict[str, float]] = {
    "affix": {"disagrees": -0.281, "refused": -0.596, "bias": -3.408},
    "here": {"disagrees": -1.347, "refused": 0.064, "bias": -2.598},
    "item": {"disagrees": -1.35, "refused": -0.76, "bias": -4.09},
    "line": {"back": 0.145, "chars": 0.532, "disagrees": -2.452, "fwd": -0.12, "isback": -1.414, "many": -0.873, "refused": -0.608, "bias": -0.31},
    "match": {"back": -0.217, "bits": 1.243, "covers": 0.095, "depth": -0.311, "disagrees": -3.637, "fwd": -0.292, "isback": -0.947, "nl": 0.256, "partial": 0.715, "refused": -0.482, "share": 1.332, "bias": -4.301},
    "next": {"disagrees": -2.986, "refused": -1.181, "bias": -1.189},
    "next2": {"disagrees": -2.149, "refused": -0.216, "bias": -2.507},
    "ngram1": {"bias": -3.092},
    "ngram2": {"bias": -2.009},
    "ngram3": {"bias": -1.594},
    "ngram4": {"bias": -1.006},
    "ngram5": {"depth": 1.61, "bias": -3.718},
    "resume": {"disagrees": -1.259, "newline": 1.008, "refused": 0.777, "steps": -0.332, "bias": -4.507},
    "unruled": {"bias": 1.748},
    "word": {"disagrees": -0.403, "passed": 0.293, "refused": -0.061, "bias": -1.267},
    "word1": {"disagrees": -0.581, "refused": -0.042, "bias": -3.426},
}


def worth(kind: str, features: dict[str, float]) -> float:
    """Tokens, up to CAP, that a guess of this kind is expected to win."""
    weights = WEIGHTS[kind]
    z = weights["bias"]
    for name, value in features.items():
        z += weights.get(name, 0.0) * value
    return CAP / (1.0 + exp(-z))
