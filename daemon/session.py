"""One rewrite from request to outcome: region, prompt, drafting hints, generation, hunks, guard.

What parses a text goes through `parsing.py`, so that no other job waits for a parser.

Knows models only as the `Model` protocol of generation.py, so it has no torch in it; `worker` supplies real ones.
A rewrite is a generator as `scheduler` wants it: one step of the model a turn, events by callback.
"""

import contextlib
import functools
import hashlib
import time
from collections.abc import Callable, Generator, Iterator

from specd.daemon.errors import EmptyText, InputRefused
from specd.daemon.events import (
    Declined,
    Done,
    Event,
    Failed,
    HunkReady,
    NoChange,
    Outcome,
    Progress,
    RegionChosen,
    Truncated,
)
from specd.daemon.generation import Asked, Ended, Model, Prefilled, Stepped, Waits
from specd.daemon.parsing import aside, parsed
from specd.daemon.protocol import RewriteRequest, Target
from specd.daemon.rewrite import guard, renames
from specd.daemon.rewrite.hunks import Hunk
from specd.daemon.rewrite.lines import shortened
from specd.daemon.rewrite.pairs import read_pairs
from specd.daemon.rewrite.prompt import Prompt, PromptTooLong, build_prompt
from specd.daemon.rewrite.region import Region, RegionError, language_of, select_region
from specd.daemon.rewrite.stream import Outcome as StreamOutcome
from specd.daemon.rewrite.stream import RewriteStream
from specd.daemon.scheduler import Steps
from specd.daemon.settings import Settings
from specd.daemon.sources import Sources
from specd.daemon.trace import JobTrace

_PROGRESS_SECONDS = 0.05  # between two progress events
_SAID = 400  # characters that are repeated of what the model wrote beside the code
_DRAFT_CHARS = 64 * 1024  # of the file, and of the other files together, that are drafted from: a tenth of a second


def rewrite(
    request: RewriteRequest,
    model: Model,
    settings: Settings,
    sources: Sources,
    emit: Callable[[Event], None],
    trace: JobTrace,
) -> Steps:
    """Run `request` on `model`; the last event is its outcome. Raises InputRefused and EngineFailed."""
    began = time.monotonic()
    target = request.target
    language, region = yield from _find(target, model, settings, trace)
    emit(RegionChosen(trace.job, region.start_line, region.end_line, region.kind, region.label))
    prompt = make_prompt(target, region, request.instruction, language, model)
    others, missing = sources.texts(request.context)
    trace.notes += [f"the context file {path} cannot be read as text; it was left out." for path in missing]
    asked = Asked(
        prompt=prompt,
        pairs=read_pairs(request.instruction),
        draft_texts=_draft_texts(target.text, region, others + sources.recent(target.path, language)),
        max_tokens=request.max_tokens or settings.max_tokens or model.count(prompt.predicted) * 3 // 2 + 512,
        sampling=request.sampling,
        speculation=request.speculation,
    )
    trace.prompt = time.monotonic() - began
    writer = _Writer(RewriteStream(target.text, region, prompt, language=language), region, emit, trace)
    is_complete = False
    with contextlib.closing(model.generate(asked)) as steps:
        for event in steps:
            match event:
                case None | Waits():
                    pass
                case Prefilled(reused, new, seconds):
                    trace.prefill, trace.prefill_reused, trace.prefill_new = seconds, reused, new
                    trace.prompt_tokens = reused + new
                    writer.start_decoding()
                case Stepped(text, proposer, drafted, accepted, emitted):
                    trace.step(proposer, drafted, accepted, emitted)
                    writer.push(text)
                    if writer.stream.ended is not None:
                        yield from parsed(language, writer.stream.ended)
                    is_complete = writer.stream.is_over
                case Ended(reason, text):
                    writer.push(text)
                    is_complete = reason == "stop"
            yield not isinstance(event, Waits)
            if is_complete:
                break
    ended = writer.finish(complete=is_complete)
    sources.remember(target.path, language, ended.text)
    report = guard.FINE
    mode = request.guard or settings.guard
    if ended.kind == "done" and mode != "off":
        check = functools.partial(guard.check, language, target.text, ended.text, instruction=request.instruction)
        report = yield from aside(check, size=len(target.text) + len(ended.text))
    told = [report.message] if report.message else []
    if ended.kind in ("done", "unchanged") and mode != "off":
        tail = len(target.text) - region.end
        before, after = target.text[region.start : region.end], ended.text[region.start : len(ended.text) - tail]
        told += renames.remarks(request.instruction, asked.pairs, before, after, first=region.start_line)
        told += renames.gone(request.instruction, before, after)
    if mode == "refuse" and report.broke_syntax:
        emit(Failed("guard", report.message, trace.summary()))
    else:
        emit(_outcome(ended, told, trace))


def prepare(
    target: Target, model: Model, settings: Settings, trace: JobTrace, done: Callable[[Prefilled], None]
) -> Steps:
    """Prefill what a rewrite of `target` will begin with, whatever its instruction."""
    language, region = yield from _find(target, model, settings, trace)
    # two instructions that share no beginning: what their prompts share comes before the instruction
    both = tuple(make_prompt(target, region, word, language, model) for word in ("rename", "0"))
    for event in model.prepare((both[0], both[1])):
        if isinstance(event, Prefilled):
            trace.prefill, trace.prefill_reused, trace.prefill_new = event.seconds, event.reused, event.new
            trace.prompt_tokens = event.reused + event.new
            done(event)
        yield not isinstance(event, Waits)


def _find(
    target: Target, model: Model, settings: Settings, trace: JobTrace
) -> Generator[bool, None, tuple[str | None, Region]]:
    """The language and the region of `target`. Raises InputRefused."""
    language = target.language or (language_of(target.path) if target.path else None)
    if target.at is not None:
        yield from parsed(language, target.text)
    region = choose_region(target, language, settings)
    trace.model, trace.language = model.name, language
    trace.text_chars, trace.region_lines = len(target.text), region.end_line - region.start_line
    return language, region


def _draft_texts(text: str, region: Region, others: list[str]) -> list[str]:
    """What may be drafted from: the file around the region, then the others, within bounds: it is all read at once."""
    first = max(0, min(region.start - _DRAFT_CHARS // 2, len(text) - _DRAFT_CHARS))
    texts, left = [text[first : first + _DRAFT_CHARS]], _DRAFT_CHARS
    for other in dict.fromkeys(others):
        texts.append(other[:left])
        left -= len(texts[-1])
    return [text for text in texts if text]


def choose_region(target: Target, language: str | None, settings: Settings) -> Region:
    """The lines that `target` means. Raises InputRefused."""
    if not target.text.strip("\ufeff \t\r\n\f\v"):
        raise EmptyText("the text is empty; there is nothing to rewrite.")
    try:
        region = select_region(target.text, lines=target.lines, at=target.at, language=language)
    except RegionError as error:
        raise InputRefused(str(error)) from None
    count = region.end_line - region.start_line
    if count > settings.max_lines:
        raise InputRefused(
            f"{region.label} has {count:,} lines; the limit is {settings.max_lines:,} (setting max_lines).\n"
            "Rewrite a part of it: --range A:B, or --at LINE for one definition."
        )
    return region


def make_prompt(target: Target, region: Region, instruction: str, language: str | None, model: Model) -> Prompt:
    """The prompt for `model`. Raises InputRefused if it does not fit the model's window."""
    try:
        return build_prompt(
            model.form,
            path=target.path,
            language=language,
            text=target.text,
            region=region,
            instruction=instruction,
            budget=model.window,
            count=model.count,
        )
    except PromptTooLong as error:
        found = "" if target.at is None else f"{region.label}: "
        raise InputRefused(f"{found}{error}") from None


class _Writer:
    """Turns the model's text into hunk and progress events."""

    def __init__(self, stream: RewriteStream, region: Region, emit: Callable[[Event], None], trace: JobTrace) -> None:
        self.stream = stream
        self._region = region
        self._emit = emit
        self._trace = trace
        self._began = self._told = time.monotonic()
        self._answer_lines = 0

    def start_decoding(self) -> None:
        self._began = time.monotonic()

    def push(self, text: str) -> None:
        if self._trace.first_token is None:
            self._trace.first_token = self._trace.since()
        self._send(self.stream.push(text))
        self._answer_lines += text.count("\n")
        now = time.monotonic()
        if now - self._told >= _PROGRESS_SECONDS:
            self._told = now
            seconds = max(now - self._began, 1e-6)
            count = max(1, self._region.end_line - self._region.start_line)
            fraction = min(1.0, self._answer_lines / count)
            self._emit(Progress(self._trace.tokens, self._trace.steps, self._trace.tokens / seconds, fraction))

    def finish(self, *, complete: bool) -> StreamOutcome:
        self._trace.generate = time.monotonic() - self._began
        hunks, outcome = self.stream.finish(complete=complete)
        self._send(hunks)
        return outcome

    def _send(self, hunks: list[Hunk]) -> None:
        for hunk in hunks:
            if self._trace.first_hunk is None:
                self._trace.first_hunk = self._trace.since()
            self._trace.hunks += 1
            self._trace.lines += max(len(hunk.new_lines), hunk.end_line - hunk.start_line)
            start = self._region.start_line
            self._emit(HunkReady(start + hunk.start_line, start + hunk.end_line, hunk.new_lines))


def _outcome(ended: StreamOutcome, told: list[str], trace: JobTrace) -> Outcome:
    notes = (*trace.notes, *_notes(ended), *told)
    said = shortened(" ".join(ended.said.split()), _SAID)
    if ended.kind == "declined":
        return Declined(ended.message, trace.summary(), ended.says_unchanged)
    if ended.kind == "unchanged":
        return NoChange(trace.summary(), notes, said)
    digest = hashlib.sha256(ended.text.encode()).hexdigest()
    if ended.kind == "truncated":
        return Truncated(ended.message, digest, trace.summary())
    return Done(digest, trace.summary(), notes, said)


def _notes(ended: StreamOutcome) -> Iterator[str]:
    if ended.report.omissions:
        quoted = ", ".join(repr(line.strip()[:60]) for line in ended.report.omissions[:3])
        yield f"the model left lines out ({quoted}); those were kept as they were."
