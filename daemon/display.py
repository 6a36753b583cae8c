"""What the user sees of an edit: the progress line, the diff, the statistics line. Pure text but for `Progress`."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from specd.daemon.events import Event, HunkReady, Loading, Progress, Queued, Summary
from specd.daemon.rewrite.lines import split_lines

_CONTEXT = 3  # unchanged lines shown around a change, as in every unified diff


class ProgressLine:
    """One line that is written over again, on a terminal only."""

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._name = name
        self._shown = ""
        self._is_terminal = self._stream.isatty()

    def say(self, text: str) -> None:
        """Show `text` in place of what was shown."""
        if self._is_terminal and text != self._shown:
            width = _width() - 1
            self._stream.write(f"\r\x1b[K{f'{self._name}: {text}'[:width]}")
            self._stream.flush()
            self._shown = text

    def show(self, event: Event) -> None:
        """Show what an event tells of the way."""
        text = progress_text(event)
        if text:
            self.say(text)

    def clear(self) -> None:
        """Leave the line empty, for what is printed next."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = ""


def progress_text(event: Event) -> str:
    """An event on the way in a few words; empty for those that say nothing to the user."""
    match event:
        case Queued(position):
            return f"waiting, {position} in the queue"
        case Loading(fraction, message):
            return f"loading the model, {100 * fraction:.0f} % ({message})"
        case Progress(tokens, steps, rate, fraction):
            per_step = tokens / steps if steps else 0.0
            return f"{100 * fraction:3.0f} % · {tokens} tokens · {rate:.0f} tokens/s · {per_step:.1f} tokens/step"
        case _:
            return ""


def statistics(name: str, summary: Summary) -> str:
    """E.g. `shapes.jl: 9 lines in 6 hunks · 412 tokens in 0.61 s · 17.2 tokens/step · 94 % drafted`."""
    lines = f"{summary.lines} line{'s' * (summary.lines != 1)}"
    hunks = f"{summary.hunks} hunk{'s' * (summary.hunks != 1)}"
    return f"{name}: {lines} in {hunks} · {speed(summary)}"


def speed(summary: Summary) -> str:
    """E.g. `412 tokens in 0.61 s · 17.2 tokens/step · 94 % drafted`. The time leaves queue and loading out; loading
    is told apart, if it took more than a second."""
    seconds = max(0.0, summary.total_seconds - summary.queue_seconds - summary.load_seconds)
    loading = f" · {summary.load_seconds:.1f} s to load the model" if summary.load_seconds > 1 else ""
    return (
        f"{summary.tokens} tokens in {seconds:.2f} s · {summary.tokens_per_step:.1f} tokens/step"
        f" · {100 * summary.drafted_share:.0f} % drafted{loading}"
    )


def wants_colour(stream: TextIO) -> bool:
    """Whether to colour what goes to `stream`: a terminal, and NO_COLOR (https://no-color.org) not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def unified_diff(text: str, hunks: Sequence[HunkReady], name: str, *, colour: bool = False) -> str:
    """The hunks as a unified diff with three lines of context, as `patch` and `git apply` take it."""
    lines = split_lines(text)
    old, new = (name, name) if os.path.isabs(name) else (f"a/{name}", f"b/{name}")
    out = [_paint(f"--- {old}\n", "1", colour), _paint(f"+++ {new}\n", "1", colour)]
    shift = 0
    for group in _groups(hunks, len(lines)):
        first = max(0, group[0].start_line - _CONTEXT)
        last = min(len(lines), group[-1].end_line + _CONTEXT)
        body: list[str] = []
        added = removed = 0
        at = first
        for hunk in group:
            body += [_diff_line(" ", line, colour) for line in lines[at : hunk.start_line]]
            body += [_diff_line("-", line, colour) for line in lines[hunk.start_line : hunk.end_line]]
            body += [_diff_line("+", line, colour) for line in hunk.new_lines]
            removed += hunk.end_line - hunk.start_line
            added += len(hunk.new_lines)
            at = hunk.end_line
        body += [_diff_line(" ", line, colour) for line in lines[at:last]]
        size = last - first
        new_size = size - removed + added
        old_range, new_range = _range(first, size), _range(first + shift, new_size)
        out.append(_paint(f"@@ -{old_range} +{new_range} @@\n", "36", colour))
        out += body
        shift += added - removed
    return "".join(out)


def _groups(hunks: Sequence[HunkReady], count: int) -> Iterable[list[HunkReady]]:
    """Hunks whose contexts touch share one @@ block."""
    group: list[HunkReady] = []
    for hunk in hunks:
        if group and hunk.start_line - group[-1].end_line > 2 * _CONTEXT:
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _range(first: int, size: int) -> str:
    """A block's place as unified diffs write it: 1-based, an empty one names the line before."""
    start = first + 1 if size else first
    return f"{start}" if size == 1 else f"{start},{size}"


def _diff_line(sign: str, line: str, colour: bool) -> str:
    if line.endswith("\r"):
        line += "\n"  # diffs know no such line end
    elif not line.endswith("\n"):
        line += "\n\\ No newline at end of file\n"
    return _paint(sign + line, {"-": "31", "+": "32"}.get(sign, ""), colour)


def _paint(line: str, code: str, colour: bool) -> str:
    if not colour or not code:
        return line
    body = line.rstrip("\r\n")
    return f"\x1b[{code}m{body}\x1b[0m{line[len(body) :]}"


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80  # a terminal may not know its size
    except (OSError, ValueError):
        return 80
