"""Skeleton: model text in, hunks and one outcome out. The one object the worker needs: filter, indentation, hunks."""

from dataclasses import dataclass
from typing import Literal

from specd.daemon.rewrite.answer import AnswerReport
from specd.daemon.rewrite.hunks import Hunk
from specd.daemon.rewrite.prompt import Prompt
from specd.daemon.rewrite.region import Region


@dataclass(frozen=True)
class Outcome:
    """done: apply it. unchanged, declined: nothing more to apply. truncated: the tail is as before."""

    kind: Literal["done", "unchanged", "declined", "truncated"]
    message: str  # for the user; empty when done
    text: str  # the whole file text with the emitted hunks applied
    report: AnswerReport


class RewriteStream:
    def __init__(self, text: str, region: Region, prompt: Prompt, *, language: str | None = None) -> None:
        raise NotImplementedError

    def push(self, text: str) -> list[Hunk]:
        raise NotImplementedError

    def finish(self, *, complete: bool) -> tuple[list[Hunk], Outcome]:
        """complete: the model stopped by itself (not the token limit, not a cancel)."""
        raise NotImplementedError
