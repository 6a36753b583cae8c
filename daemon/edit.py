"""`specd edit`: read the files, have them rewritten, show the change, write it. Only this process touches the files.

Nothing heavy is imported here: on a warm daemon the command costs little more than Python's own start.
"""

import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from specd.daemon import atomic, display, errors, files, report
from specd.daemon.client import RewriteStream
from specd.daemon.errors import EngineFailed, SpecdError
from specd.daemon.events import (
    OUTCOMES,
    Cancelled,
    Declined,
    Done,
    Event,
    Failed,
    HunkReady,
    NoChange,
    Outcome,
    RegionChosen,
    Truncated,
)
from specd.daemon.lifecycle import with_daemon
from specd.daemon.protocol import ContextFile, RewriteRequest
from specd.daemon.record import Record
from specd.daemon.report import Result
from specd.daemon.rewrite.lines import shortened, split_lines

_REST = re.compile(r"(?:lines? [\d-]+|what was not finished) (?:is|are) as before$")
_SAID = 160  # characters that are shown of what the model wrote beside the code
_BESIDE = 8  # other files of the command line that one may quote from


class Options(Record):
    """What the command line asks for. `request` is complete but for its target's text and path."""

    request: RewriteRequest
    shows_diff: bool = False
    is_dry: bool = False
    as_json: bool = False
    is_atomic: bool = False
    in_process: bool = False


def edit_files(paths: list[Path], options: Options) -> int:
    """Rewrite each file in turn; the exit code. With is_atomic all are written at the end, or none."""
    results: list[Result] = []
    staged: list[files.Staged] = []
    with contextlib.ExitStack() as stack:
        for path in paths:
            result = _edit_file(path, _beside(path, paths, options), stack, staged)
            results.append(result)
            if not options.is_atomic:
                stack.close()  # the next file may be the same one
                report.show(result, as_json=options.as_json, shows_diff=options.shows_diff)
            if result.exit_code == errors.INTERRUPTED:
                break
        if options.is_atomic:
            atomic.commit_all(staged, results)
            for result in results:
                report.show(result, as_json=options.as_json, shows_diff=options.shows_diff)
    return report.exit_code(results)


def _beside(path: Path, paths: list[Path], options: Options) -> Options:
    """The options for one file of several: the others are texts to draft from."""
    here = paths.index(path)
    near = [*reversed(paths[:here]), *paths[here + 1 :]][:_BESIDE]
    others = tuple(ContextFile(str(other.absolute())) for other in near if other != path and os.path.isfile(other))
    return options.replace(request=options.request.replace(context=options.request.context + others))


def _edit_file(path: Path, options: Options, stack: contextlib.ExitStack, staged: list[files.Staged]) -> Result:
    """Rewrite one file; what has to be let go of afterwards goes on `stack`, a text to write later into `staged`."""
    writes = not (options.shows_diff or options.is_dry)
    try:
        source = files.read(path, to_write=writes)
        stack.callback(source.close)
        result = _rewrite(source.text, str(path), options)
        if result.exit_code == errors.DONE and writes:
            if source.info.st_nlink > 1:
                result.message += f"\n{path}: other names of this file (hard links) keep the old text."
            new = files.stage(source, result.text)
            stack.callback(new.discard)
            if options.is_atomic:
                staged.append(new)
            else:
                new.commit()
                result.is_written = True
    except SpecdError as error:
        return report.failure(str(path), error)
    except KeyboardInterrupt:
        return Result(str(path), errors.INTERRUPTED, f"{path}: interrupted; it is as it was.")
    return result


def edit_stdin(name: str | None, options: Options) -> int:
    """Rewrite standard input to standard output. Whatever goes wrong, the text comes out as it went in."""
    raw = sys.stdin.buffer.read() if sys.stdin is not None else b""
    label = name or "standard input"
    text = ""
    try:
        text = files.decode(raw, label)
        result = _rewrite(text, label, options, path=name)
    except SpecdError as error:
        result = report.failure(label, error)
    except KeyboardInterrupt:
        result = Result(label, errors.INTERRUPTED, f"{label}: interrupted.")
    if options.as_json or options.shows_diff:
        report.show(result, as_json=options.as_json, shows_diff=options.shows_diff)
        return result.exit_code
    is_done = result.exit_code == errors.DONE and not options.is_dry
    sys.stdout.buffer.write(result.text.encode() if is_done else raw)
    sys.stdout.flush()
    print(report.line(result), file=sys.stderr)
    return result.exit_code


def _rewrite(text: str, name: str, options: Options, *, path: str | None = "") -> Result:
    """Have one text rewritten. path: what the model is told, the name if it is ""."""
    target = options.request.target.replace(text=text, path=name if path == "" else path)
    request = options.request.replace(target=target)
    progress = display.ProgressLine(name)
    hunks: list[HunkReady] = []
    outcome: Outcome | None = None
    region: RegionChosen | None = None
    try:
        with _events(request, options, progress) as events:
            for event in events:
                progress.show(event)
                if isinstance(event, RegionChosen):
                    region = event
                elif isinstance(event, HunkReady):
                    hunks.append(event)
                elif isinstance(event, OUTCOMES):
                    outcome = event
    finally:
        progress.clear()
    if outcome is None:
        raise EngineFailed(f"{name}: the job ended without an outcome; it is as it was.")
    where = f": {region.label}" if target.at is not None and region is not None else ""  # said, since it was found
    result = _result(name, where, outcome)
    result.region = region
    result.hunks = hunks
    if isinstance(outcome, Done):
        result.before, result.text = text, _applied(text, hunks, outcome)
    return result


@contextlib.contextmanager
def _events(request: RewriteRequest, options: Options, progress: display.ProgressLine) -> Iterator[Iterator[Event]]:
    if options.in_process:
        from specd.daemon.local import local_events  # torch

        with local_events(request) as events:
            yield events
        return
    stream: RewriteStream = with_daemon(lambda client: client.rewrite(request), say=progress.say)
    with stream:
        yield iter(stream)


def _applied(text: str, hunks: list[HunkReady], done: Done) -> str:
    """The text with the hunks in it, checked against the daemon's own. They are in order and do not overlap."""
    lines = split_lines(text)
    for hunk in reversed(hunks):
        lines[hunk.start_line : hunk.end_line] = hunk.new_lines
    new = "".join(lines)
    if hashlib.sha256(new.encode()).hexdigest() != done.sha256:
        raise EngineFailed("the change arrived damaged; nothing was written. Run the command again.")
    return new


def _result(name: str, where: str, outcome: Outcome) -> Result:
    match outcome:
        case Done(_, summary, notes, said):
            lines = [display.statistics(name + where, summary), *_remarks(name, notes, said)]
            return Result(name, errors.DONE, "\n".join(lines), outcome)
        case NoChange(summary, notes, said):
            lines = [
                f"{name}{where}: the model changed nothing · {display.speed(summary)}",
                *_remarks(name, notes, said),
            ]
            return Result(name, errors.NO_CHANGE, "\n".join(lines), outcome)
        case Declined(message):
            return Result(name, errors.NO_CHANGE, f"{name}{where}: {_of_whole_file(message)}", outcome)
        case Truncated(message):
            advice = "Raise --max-tokens, or rewrite less at once with --range A:B or --at LINE."
            return Result(name, errors.FAILED, f"{name}{where}: {_of_whole_file(message)}. {advice}", outcome)
        case Cancelled(message):
            return Result(name, errors.FAILED, f"{name}: {message}; it is as it was. Run the command again.", outcome)
        case Failed("guard", message):
            refusal = f"the change would break it ({message}); nothing was written"
            return Result(
                name, errors.FAILED, f"{name}{where}: {refusal}. `--guard report` writes it all the same.", outcome
            )
        case Failed():
            error = outcome.error()
            return Result(name, error.exit_code, f"{name}: {error}", outcome)


def _remarks(name: str, notes: Iterable[str], said: str) -> list[str]:
    added = [f"the model added: {shortened(said, _SAID)}"] if said else []
    return [f"{name}: {note}" for note in [*notes, *added]]


def _of_whole_file(message: str) -> str:
    """The daemon says which lines are as before, for editors that apply hunks as they come; here all lines are."""
    return _REST.sub("nothing was written", message)
