r"""`specd serve --replay FILE`: a model that says what a file tells it to, at a pace, through the real path. It is for
tests of clients: queue, steps, hunks, guard and traces are the real ones; no weights are loaded and no torch imported.

FILE is JSON (its name must end in .json), read anew for each job; `model = "FILE"` in the settings means the same:

    {"answers": [{"when": "rename", "swap": [["Grid", "Mesh"]], "step_ms": 20, "characters": 12},
                 {"text": "```\nthe whole answer\n```"}]}

The first answer counts whose `when` is in the instruction (or whose `when` is missing). What it says is `text`, or the
answer that changes nothing with each pair of `swap` replaced in it. `characters` of it are a step (default 16), which
takes `step_ms` (0); the prefill takes `prefill_ms` (0). `end`: "stop" (the model ended), "length" (a limit did), "hang"
(steps without text go on until the job is cancelled) or "fail" (the engine fails).
"""

import json
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from specd.daemon import wire
from specd.daemon.errors import EngineFailed, UsageError
from specd.daemon.generation import Asked, Ended, Prefilled, Stepped
from specd.daemon.record import Record
from specd.daemon.rewrite.prompt import Prompt, PromptForm

_CHARACTERS_A_TOKEN: Final = 4
_HANG_SECONDS: Final = 0.02


class Answer(Record):
    """One answer of the file; see the module."""

    when: str = ""
    text: str | None = None
    swap: tuple[tuple[str, str], ...] = ()
    prefill_ms: float = 0.0
    step_ms: float = 0.0
    characters: int = 16
    end: Literal["stop", "length", "hang", "fail"] = "stop"


class _Script(Record):
    answers: tuple[Answer, ...]


def read_script(path: Path) -> tuple[Answer, ...]:
    """The answers in `path`. Raises UsageError that names the field that is wrong."""
    try:
        return wire.from_json(_Script, json.loads(path.read_text(encoding="utf-8"))).answers
    except OSError as error:
        raise UsageError(f"cannot read the replay {path}: {error.strerror}.") from None
    except (ValueError, wire.WireError) as error:
        raise UsageError(f"the replay {path} is wrong: {error}.") from None


def is_replay(path: str) -> bool:
    """Whether a model of this path is a replay, and not a folder."""
    return path.endswith(".json")


def load_replay(path: str) -> "ReplayModel":
    """The model that says what the file tells. Raises EngineFailed if the file is wrong."""
    try:
        read_script(Path(path))
    except UsageError as error:
        raise EngineFailed(str(error)) from None
    return ReplayModel(Path(path))


class ReplayModel:
    """Implements generation.Served."""

    form: PromptForm = "region"
    window = 1 << 20

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self._path = path

    def count(self, text: str) -> int:
        return -(-len(text) // _CHARACTERS_A_TOKEN)

    def generate(self, asked: Asked) -> Generator[Prefilled | Stepped | Ended | None, None, None]:
        message = asked.prompt.messages[-1]["content"]
        instruction = message.rpartition("\n")[2]
        answer = next((one for one in read_script(self._path) if one.when in instruction), None)
        if answer is None:
            raise EngineFailed(f"the replay has no answer for {instruction!r}.")
        time.sleep(answer.prefill_ms / 1000)
        yield Prefilled(0, self.count(message), answer.prefill_ms / 1000)
        text = asked.prompt.predicted if answer.text is None else answer.text
        for old, new in answer.swap:
            text = text.replace(old, new)
        for at in range(0, len(text), answer.characters):
            time.sleep(answer.step_ms / 1000)
            piece = text[at : at + answer.characters]
            tokens = self.count(piece)
            yield Stepped(piece, "replay", tokens, tokens - 1, tokens)
        while answer.end == "hang":
            time.sleep(_HANG_SECONDS)
            yield Stepped("", None, 0, 0, 0)
        if answer.end == "fail":
            raise EngineFailed("the replay says that the engine fails here.")
        yield Ended("length" if answer.end == "length" else "stop", "")

    def prepare(self, prompts: tuple[Prompt, Prompt]) -> Iterator[Prefilled | None]:
        yield Prefilled(0, self.count(prompts[0].predicted), 0.0)

    def unload(self) -> None:
        pass

    def status(self) -> dict[str, Any]:
        return {"name": self.name, "device": "replay", "dtype": "none", "window": self.window, "prompt_form": self.form}
