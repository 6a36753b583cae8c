"""One rewrite from end to end: the model's answer in pieces in, safe hunks and one outcome out.

`RewriteStream` joins the answer filter and the hunks, so that whoever drives a model (or replays one) needs this object
alone. It applies nothing itself.
"""

import copy
from dataclasses import dataclass
from typing import Literal

from specd.daemon.rewrite.answer import AnswerFilter, AnswerReport
from specd.daemon.rewrite.hunks import Hunk, HunkStream
from specd.daemon.rewrite.lines import common_line_end, is_blank, shortened
from specd.daemon.rewrite.prompt import Prompt
from specd.daemon.rewrite.region import Region
from specd.daemon.rewrite.tree import is_whole_at

_SAID = 400  # characters of a refusal that a message repeats


@dataclass(frozen=True)
class Outcome:
    """How a rewrite ended.

    kind: "done" (the hunks are the whole rewrite), "unchanged" (the answer is the region as it was), "declined" (no
    code, or code with gaps: nothing was applied from there on), "truncated" (the answer broke off: the rest is as
    before). message: for the user; empty when done. text: the whole file with the hunks applied that were given out.
    said: what the model wrote beside the code; where it was not heard to its end, what came before the code.
    says_unchanged: the message says that nothing was changed.
    """

    kind: Literal["done", "unchanged", "declined", "truncated"]
    message: str
    text: str
    report: AnswerReport
    said: str
    says_unchanged: bool = False


class RewriteStream:
    """Rewrites `region` of the file text `text` by the answer to `prompt`."""

    def __init__(self, text: str, region: Region, prompt: Prompt, *, language: str | None = None) -> None:
        original = text[region.start : region.end]
        language = language or prompt.tag or None
        self._text, self._region, self._language = text, region, language
        self._ended: tuple[str, int] | None = None  # the whole file if the answer ends here, and where its region ends
        self._is_over: bool | None = None
        self._has_code = False  # a line that is not blank
        self._answer = AnswerFilter(original, tag=prompt.tag, language=language)
        self._hunks = HunkStream(
            original, indent=prompt.indent, eol=common_line_end(text), exact=prompt.exact, language=language
        )

    def push(self, text: str) -> list[Hunk]:
        """The next piece of the answer; returns the hunks that are safe now, in lines of the region."""
        code = self._answer.push(text)
        self._has_code = self._has_code or not is_blank(code)
        return self._hunks.push(code)

    @property
    def is_over(self) -> bool:
        """Whether nothing that the model may go on to say can belong to the code: its fence was closed where the
        language has no place for one. The answer is then complete. False where that cannot be told.
        """
        if self._is_over is None and self.ended is not None and self._ended is not None:
            self._is_over = is_whole_at(self._language, *self._ended)
        return bool(self._is_over)

    @property
    def ended(self) -> str | None:
        """The whole file if the answer ends here, which `is_over` parses; None while its fence is open."""
        if self._ended is None and self._answer.has_ended and self._is_over is None:
            hunks = copy.deepcopy(self._hunks)
            hunks.finish(complete=True)
            if hunks.halted is not None:
                self._is_over = False
                return None
            region = hunks.result
            whole = self._text[: self._region.start] + region + self._text[self._region.end :]
            self._ended = whole, self._region.start + len(region)
        return self._ended[0] if self._ended is not None else None

    def finish(self, *, complete: bool) -> tuple[list[Hunk], Outcome]:
        """The end of the answer. complete: the model stopped by itself, so neither a limit nor the user cut it off.

        The closing fence must have been passed to `push`: an answer without it counts as broken off, unless all of the
        region was accounted for.
        """
        tail = self._answer.finish()
        report = self._answer.report
        if complete and tail and not tail.endswith("\n"):
            tail += "\n"  # a last line that the model ended is whole
        is_empty = is_blank(tail) and not self._has_code and not is_blank(self._text)
        if is_empty and self._region.kind == "file" and report.declined is None:
            report.declined = ""  # nobody means to empty a file
        sure = complete and report.closed and report.declined is None
        hunks = self._hunks.push(tail) + self._hunks.finish(complete=sure)
        said = report.preface if self._is_over else report.prose
        unusable = self._unusable() if complete and not self._hunks.halted else None
        if unusable is not None:
            return hunks, Outcome("declined", unusable, self._whole(), report, said, says_unchanged=True)
        kind, message = self._end(complete, sure)
        return hunks, Outcome(kind, message, self._whole(), report, said)

    def _unusable(self) -> str | None:
        """What is said of an answer that is neither code nor words; None if it is one of them."""
        report = self._answer.report
        if report.patch:
            return "the model answered with a patch in place of the code: nothing changed; try it again"
        if report.declined is not None and not report.declined.split():
            return "the model answered no code: nothing changed"
        return None

    def _end(self, complete: bool, sure: bool) -> tuple[Literal["done", "unchanged", "declined", "truncated"], str]:
        report, stream = self._answer.report, self._hunks
        changed = stream.result != self._text[self._region.start : self._region.end]
        if stream.halted:
            return "declined", f"{stream.halted}; {self._as_before()}"
        if complete and report.declined is not None:
            return "declined", f"the model declined: {shortened(' '.join(report.declined.split()), _SAID)}"
        if sure or (complete and report.fence and stream.kept_from is None and not stream.unplaced):
            return ("done", "") if changed else ("unchanged", "the model changed nothing")
        return "truncated", f"the answer broke off; {self._as_before()}"

    def _as_before(self) -> str:
        kept_from = self._hunks.kept_from
        if kept_from is None:
            return "what was not finished is as before"
        first, last = self._region.start_line + kept_from + 1, self._region.end_line
        return f"line {last} is as before" if first == last else f"lines {first}-{last} are as before"

    def _whole(self) -> str:
        return self._text[: self._region.start] + self._hunks.result + self._text[self._region.end :]
