"""Whether counts come from a law: Pearson's chi-square test."""

import torch


def p_value(counts: torch.Tensor, law: torch.Tensor) -> float:
    """The chance of counts [n] at least this far from n draws of `law` [n]; 0 where an impossible outcome was seen.

    Outcomes that are expected fewer than 5 times are taken together, as the test's approximation needs.
    """
    total = float(counts.sum())
    expected = law.double() / law.double().sum() * total
    if bool((counts[law == 0] > 0).any()):
        return 0.0
    rare = expected < 5
    seen = torch.cat((counts[~rare].double(), counts[rare].double().sum().view(1)))
    expected = torch.cat((expected[~rare], expected[rare].sum().view(1)))
    if expected[-1] < 5:  # too rare even together
        seen, expected = seen[:-1], expected[:-1]
    freedom = len(seen) - 1
    assert freedom > 0, "nothing to compare"
    statistic = ((seen - expected).square() / expected).sum()
    return float(torch.special.gammaincc(torch.tensor(freedom / 2).double(), statistic / 2))


def counted(outcomes: torch.Tensor, n: int) -> torch.Tensor:
    """How often each of 0..n-1 occurs."""
    return torch.bincount(outcomes.flatten(), minlength=n)
