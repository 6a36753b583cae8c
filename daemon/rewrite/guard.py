"""Skeleton: the signatures others import; the bodies follow."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GuardReport:
    """ok: nothing to report. guard = "refuse" refuses `broke_syntax` only; the rest is told."""

    ok: bool
    broke_syntax: bool
    lost: list[str]
    duplicated: list[str]
    message: str


def check(language: str | None, before: str, after: str, *, instruction: str = "") -> GuardReport:
    """Compares two whole texts of the file, before and after."""
    raise NotImplementedError
