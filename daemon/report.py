"""What `specd edit` tells of each file: a diff and a line, or JSON, and the exit code of them all."""

import json
import sys

from specd.daemon import display, errors, wire
from specd.daemon.events import HunkReady, Outcome, RegionChosen, event_name


class Result:
    """What became of one file. before, text: the whole text then and now, where the outcome is Done. hunks: as they
    came; those of another outcome are never written.
    """

    def __init__(self, name: str, exit_code: int, message: str, outcome: Outcome | None = None) -> None:
        self.name = name
        self.exit_code = exit_code
        self.message = message
        self.outcome = outcome
        self.region: RegionChosen | None = None
        self.hunks: list[HunkReady] = []
        self.before = ""
        self.text = ""
        self.is_written = False


def failure(name: str, error: errors.SpecdError) -> Result:
    """What became of a file that an error kept from being rewritten."""
    text = str(error)
    return Result(name, error.exit_code, text if text.startswith(name) or name in text else f"{name}: {text}")


def show(result: Result, *, as_json: bool, shows_diff: bool) -> None:
    """The change on standard output, and its line on standard error; or all of it as one JSON object."""
    if as_json:
        data = {
            "file": result.name,
            "outcome": event_name(result.outcome) if result.outcome else "error",
            "exit_code": result.exit_code,
            "message": result.message,
            "written": result.is_written,
            "region": wire.to_json(result.region) if result.region else None,
            "hunks": wire.to_json(result.hunks),
            "summary": wire.to_json(result.outcome.summary) if result.outcome else None,
        }
        print(json.dumps(data, ensure_ascii=False))
        return
    if result.exit_code == errors.DONE and (shows_diff or sys.stdout.isatty()):
        colour = display.wants_colour(sys.stdout)
        print_text(display.unified_diff(result.before, result.hunks, result.name, colour=colour))
    print(line(result), file=sys.stderr)


def line(result: Result) -> str:
    """What is said of one file."""
    message = "".join(sign if sign.isprintable() or sign == "\n" else "?" for sign in result.message)  # no escapes
    return message if result.exit_code <= errors.NO_CHANGE else f"specd: {message}"


def print_text(text: str) -> None:
    """Text with its own line ends, whatever the platform's are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()


def exit_code(results: list[Result]) -> int:
    """The worst failure; else 0 if any file changed, else 1."""
    codes = [result.exit_code for result in results]
    worst = max(codes, default=errors.DONE)
    return worst if worst > errors.NO_CHANGE else min(codes, default=errors.DONE)
