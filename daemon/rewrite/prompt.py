"""What the model is asked: the one source of prompts, for serving and for training the bundled model.

Two forms. "region" is the bundled model's: one user message that holds the region in a fence and then the instruction.
"chat" is for general models: a system message, the file around the region, the region in a fence, the instruction last.
In both the instruction comes last, so what precedes it can be prefilled while the user still types.

This file knows nothing of tokenizers; it imports the standard library only.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from specd.daemon.rewrite.lines import normalise

if TYPE_CHECKING:
    from specd.daemon.rewrite.region import Region

PromptForm = Literal["chat", "region"]

_BACKTICKS = re.compile(r"`{3,}")


def fence_for(text: str) -> str:
    """A fence of backticks longer than every run of backticks in `text`, three at least (CommonMark 0.31, 4.5)."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    return "`" * (longest + 1)


def fenced(tag: str, text: str, fence: str | None = None) -> str:
    """`text` in a fence; the line end before the closing fence is the text's own last one, or stands in for it."""
    fence = fence or fence_for(text)
    return f"{fence}{tag}\n{_without_last_end(normalise(text))}\n{fence}"


def region_message(tag: str, region: str, instruction: str) -> str:
    """The bundled model's user message: the region in a fence tagged `tag` (a language name or empty), the instruction.

    Line ends become LF; the region's indentation stays. The instruction is put on one line, as in training.
    """
    return f"{fenced(tag, region)}\n{' '.join(instruction.split())}"


def region_answer(tag: str, region: str) -> str:
    """The answer to `region_message` that holds `region`: the edited text in training, the predicted one in serving."""
    return fenced(tag, region)


def _without_last_end(text: str) -> str:
    return text.removesuffix("\n")


class PromptTooLong(Exception):
    """The prompt and its answer do not fit the model's window; the message gives the figures and what to do."""


@dataclass(frozen=True)
class Prompt:
    """What to send and what to expect.

    messages: [{"role", "content"}]; predicted: the answer that changes nothing (fence, region, fence), for drafting;
    indent: the common indentation taken off the region; tag, fence: those of the predicted answer; exact: blanks at
    line ends and blank lines at the region's edges count as text, since the instruction speaks of them.
    """

    messages: list[dict[str, str]]
    predicted: str
    indent: str
    tag: str
    fence: str
    exact: bool


def build_prompt(
    form: PromptForm,
    *,
    path: str | None,
    language: str | None,
    text: str,
    region: "Region",
    instruction: str,
    budget: int | None = None,
    count: Callable[[str], int] | None = None,
) -> Prompt:
    """budget: the model's window in tokens, for prompt and answer together."""
    raise NotImplementedError
