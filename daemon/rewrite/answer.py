"""From what a model says to the code in it: `AnswerFilter` passes on the one code block of an answer, line by line.

Dropped and reported: a leading think block, prose before and after, the outer fence. Nothing else is altered: a fence
or a `<think>` inside the block is the user's text. An answer without a fence is held to its end and passed on only if
it is made of the original's lines; else it is a message ("declined"), as is an answer without any code, or one whose
block holds a refusal or a patch (`instead.py`).

Every decision is made on whole lines, so it does not depend on how the text was cut into pieces.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from specd.daemon.rewrite.instead import PATCH_TAGS, is_patch, is_refusal, is_sentence, refuses
from specd.daemon.rewrite.lines import BOM, LineBuffer, is_blank, normalise
from specd.daemon.rewrite.omission import is_omission

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SHORT = 3  # lines: a region so short may be rewritten without one line staying
_ALIKE = 0.6  # share of words and signs that a short region and an answer without a fence have in common


@dataclass
class AnswerReport:
    """What the filter saw.

    think: a think block was dropped; prose: what was said around the code; preface: what of it came before; fence: the
    code was in a fence; closed: the end of the code is certain (its fence was closed, and no further fence could be the
    true end); omissions: lines of the code that stand for lines left out; patch: the block was a patch, of which
    nothing was passed on; declined: what was said, where it holds no code.
    """

    think: bool = False
    prose: str = ""
    preface: str = ""
    fence: bool = False
    closed: bool = False
    omissions: list[str] = field(default_factory=list)
    patch: bool = False
    declined: str | None = None


@dataclass(frozen=True)
class _Fence:
    indent: int
    marks: str
    info: str


class AnswerFilter:
    """Takes an answer in pieces, gives the code in it back in whole lines (LF).

    original: the region, as the model read it or as the file has it. tag: what the answer's fence should be tagged
    with; an answer with another tag, or none, is as good. language: for `is_omission`.
    """

    def __init__(self, original: str, *, tag: str = "", language: str | None = None) -> None:
        self.report = AnswerReport()
        self._original = normalise(original.lstrip(BOM))
        self._known = {line.strip() for line in self._original.split("\n") if not is_blank(line)}
        self._language = language if language is not None else tag or None
        self._buffer = LineBuffer()
        self._before: list[str] = []
        self._thought: list[str] = []
        self._thinking = False
        self._fence: _Fence | None = None
        self._depth = 0  # fences open inside the code
        self._after: list[str] | None = None  # None: the code has not ended
        self._blocks_after = 0
        self._code: list[str] = []  # its first lines that are not blank
        self._held: list[str] = []  # its first line, while it may be a patch's
        self._is_plain = any(line.startswith(("@@ -", "+++ ")) for line in self._known)  # no patch, or one that is due
        self._has_known = False  # the code has a line that the original has

    def push(self, text: str) -> str:
        """The next piece of the answer; returns the lines of code that it completes."""
        return "".join(code for line in self._buffer.push(text) if (code := self._read(line)) is not None)

    def finish(self) -> str:
        """The end of the answer; returns the last of the code and completes the report."""
        last = [code for line in self._last_lines() if (code := self._read(line)) is not None]
        report = self.report
        if self._fence is None:
            code = "".join(self._unfenced())
        else:
            code = self._release() + "".join(last)
            if self._after is None:
                code = code.removesuffix("\n")  # broken off: no more than was said
        report.prose = "\n".join([*self._before, *(self._after or [])]).strip()
        report.preface = "\n".join(self._before).strip() if report.fence else report.prose
        if report.fence and not self._has_known:
            self._decline()
        return code

    def _last_lines(self) -> list[str]:
        """The last line; as two where the closing fence stands right behind the code, as in no line of the original."""
        lines = self._buffer.finish()
        if not lines or self._fence is None or self._after is not None or self._depth:
            return lines
        marks, line = self._fence.marks, lines[0].rstrip()
        code = line.removesuffix(marks)
        if code == line or is_blank(code) or code.endswith(marks[0]) or any(k.endswith(marks) for k in self._known):
            return lines
        return [code, marks]

    def _decline(self) -> None:
        """An answer with none of the original's lines in it: is it no code, or an example of something else?"""
        report = self.report
        if report.patch:
            report.declined = "\n".join(self._code)
        elif not self._known:
            return
        elif report.prose and (not self._code or refuses(report.prose)):
            report.declined = report.prose
        elif len(self._code) <= _SHORT < len(self._known) and is_refusal(self._code):
            report.declined = "\n".join(line.strip() for line in self._code)

    @property
    def has_ended(self) -> bool:
        """The fence was closed, and the code in it is of the original's kind. A further fence may still prove to be
        the true end, where the text is such that it can hold one.
        """
        return self.report.fence and self.report.closed and (self._has_known or not self._known)

    def _read(self, line: str) -> str | None:
        if self._fence is None:
            self._read_before(line)
            return None
        if self._after is not None:
            self._read_after(line)
            return None
        fence = _fence_in(line)
        if fence and self._may_close(fence):
            if not fence.info and not self._depth:
                self._after = []
                self.report.closed = True
                return None
            self._depth += 1 if fence.info else -1
        self._code += [line] if not is_blank(line) and len(self._code) <= _SHORT else []
        if self._is_patch(line):
            return None
        if line.strip() in self._known:
            self._has_known = True
        elif is_omission(line, language=self._language):
            self.report.omissions.append(line.strip())
        return self._release() + line + "\n"

    def _is_patch(self, line: str) -> bool:
        """Whether `line` is of a patch, or held since it may be: the first two lines of the code tell."""
        if self._is_plain or self.report.patch or (is_blank(line) and not self._held) or self._fence is None:
            return self.report.patch
        first, second = (self._held[0], line) if self._held else (line, None)
        tag = "".join(self._fence.info.split()[:1]).lower()
        told = (tag in PATCH_TAGS or first.strip() not in self._known) and is_patch(first, second, tag=tag)
        self.report.patch, self._is_plain = told is True, told is False
        self._held += [line] if told is None else []
        return told is not False

    def _release(self) -> str:
        """The line that was held, unless it is a patch's."""
        held, self._held = self._held, []
        return "" if self.report.patch else "".join(line + "\n" for line in held)

    def _may_close(self, fence: _Fence) -> bool:
        opening = self._fence
        return opening is not None and fence.marks.startswith(opening.marks) and fence.indent <= opening.indent

    def _read_before(self, line: str) -> None:
        if not self._thinking and not any(self._before) and line.lstrip().startswith("<think>"):
            self.report.think = self._thinking = True
        if self._thinking:
            self._thought.append(line)
            _, end, line = line.partition("</think>")
            if not end:
                return
            self._thinking = False
        self._fence = _fence_in(line)
        if self._fence:
            self.report.fence = True
        elif self._before or not is_blank(line):
            self._before.append(line)

    def _read_after(self, line: str) -> None:
        """A further block begins with an info string; a bare fence may be the code's true end, so then none is sure."""
        fence = _fence_in(line)
        if fence and self._may_close(fence):
            if not self._blocks_after and not fence.info:
                self.report.closed = False
            self._blocks_after += 1
        if self._after is not None:
            self._after.append(line)

    def _unfenced(self) -> list[str]:
        """The code of an answer without a fence: all but sentences around it, if it is made of the original's lines."""
        lines = self._before
        if self._thought and self._original.lstrip().startswith("<think>"):
            lines = [*self._thought, *lines]
        first, last = self._without_sentences(lines)
        code = lines[first:last]
        if not self._is_made_of_original(code):
            self.report.declined = "\n".join(lines).strip()
            self._before = []
            return []
        self._before = [*lines[:first], *lines[last:]]
        self.report.closed = True
        self.report.omissions = [
            line.strip()
            for line in code
            if line.strip() not in self._known and is_omission(line, language=self._language)
        ]
        return [line + "\n" for line in code]

    def _without_sentences(self, lines: list[str]) -> tuple[int, int]:
        """[first, last) without the first and the last paragraph where that is a sentence and not the original's."""
        first, last = 0, len(lines)
        while first < last and is_blank(lines[last - 1]):
            last -= 1
        gaps = [at for at in range(first, last) if is_blank(lines[at])]
        if gaps and self._is_sentence(lines[: gaps[0]]):
            first = gaps[0] + 1
        elif last - first > 1 and self._is_sentence(lines[:1]) and lines[0].rstrip().endswith(":"):
            first = 1
        if gaps and gaps[-1] > first and self._is_sentence(lines[gaps[-1] + 1 : last]):
            last = gaps[-1]
        return first, last

    def _is_sentence(self, lines: list[str]) -> bool:
        return is_sentence(lines) and not any(line.strip() in self._known for line in lines)

    def _is_made_of_original(self, lines: list[str]) -> bool:
        written = [line.strip() for line in lines if not is_blank(line)]
        known = sum(line in self._known for line in written)
        if known and known * 2 >= len(written):
            return True
        if not written or len(self._known) > _SHORT or len(written) > 2 * _SHORT:
            return False
        old, new = Counter(_TOKEN.findall(self._original)), Counter(_TOKEN.findall("\n".join(lines)))
        return 2 * (old & new).total() >= _ALIKE * (old + new).total()


def _fence_in(line: str) -> _Fence | None:
    found = _FENCE.match(line)
    return _Fence(len(found["indent"]), found["marks"], found["info"].strip()) if found else None
