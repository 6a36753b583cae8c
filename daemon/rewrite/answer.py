"""Skeleton: the signatures others import; the bodies follow."""

from dataclasses import dataclass, field


@dataclass
class AnswerReport:
    think: bool = False
    prose: str = ""
    fence: bool = False
    closed: bool = False  # the body's end is certain
    omissions: list[str] = field(default_factory=list)
    declined: str | None = None


class AnswerFilter:
    report: AnswerReport

    def __init__(self, original: str, *, tag: str = "", language: str | None = None) -> None:
        raise NotImplementedError

    def push(self, text: str) -> str:
        raise NotImplementedError

    def finish(self) -> str:
        raise NotImplementedError
