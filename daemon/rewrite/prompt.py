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

from specd.daemon.rewrite.context import surroundings
from specd.daemon.rewrite.indent import common_indent, without_indent
from specd.daemon.rewrite.lines import BOM, content, core, normalise, split_lines

if TYPE_CHECKING:
    from specd.daemon.rewrite.region import Region

PromptForm = Literal["chat", "region"]

SYSTEM = (
    "You rewrite code. You are given a file, the part of it to rewrite, and an instruction. Answer with the whole "
    "rewritten part in one code block, in the same fence as the part, and write nothing outside it. Write out every "
    "line of the part, changed or not: never leave lines out, never stand a comment in for them. Change only what the "
    "instruction asks for, and keep everything else as it is, comments and formatting included. If nothing needs to "
    "change, repeat the part. If you cannot do it, say why in one sentence, without a code block."
)

_BACKTICKS = re.compile(r"`{3,}")
_ABOUT_BLANKS = re.compile(
    r"\b(?:white[ -]?spaces?|blanks?|newlines?|empty lines?|line (?:ends?|endings?)|trailing (?:spaces?|tabs?))\b", re.I
)
_ABOUT_INDENTATION = re.compile(r"\b(?:re-?|un-?)?(?:in|de|out)dent", re.I)
_OVERHEAD = 24  # tokens of the chat template around the messages
_CHARACTERS = 3  # a token, where no tokenizer is given
_MANY_CHARACTERS = 6  # a token of code, where few are as long
_MOST_CHARACTERS = 16  # a token on average: with more of them there is no need to count


class PromptTooLong(Exception):
    """The region and its rewrite do not fit the model's window; the message gives the figures and what to do."""


@dataclass(frozen=True)
class Prompt:
    """What to send and what to expect.

    messages: [{"role", "content"}]; predicted: the answer that changes nothing (fence, region, fence), for drafting;
    indent: the common indentation taken off the region; tag, fence: those of the predicted answer; exact: blanks at
    line ends and blank lines at the region's ends count as text, since the instruction speaks of them.
    """

    messages: list[dict[str, str]]
    predicted: str
    indent: str
    tag: str
    fence: str
    exact: bool


def fence_for(text: str) -> str:
    """A fence of backticks longer than every run of backticks in `text`, three at least (CommonMark 0.31, 4.5)."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    return "`" * (longest + 1)


def fenced(tag: str, text: str) -> str:
    """`text` in a fence, LF throughout; its last line end, or the lack of one, is not seen."""
    fence = fence_for(text)
    return f"{fence}{tag}\n{normalise(text).removesuffix(chr(10))}\n{fence}"


def region_message(tag: str, region: str, instruction: str) -> str:
    """The bundled model's user message: the region in a fence tagged `tag` (a language name or empty), the instruction.

    Line ends become LF; the region's indentation stays. The instruction is put on one line, as in training.
    """
    return f"{fenced(tag, region)}\n{' '.join(instruction.split())}"


def region_answer(tag: str, region: str) -> str:
    """The answer to `region_message` that holds `region`: the edited text in training, the predicted one in serving."""
    return fenced(tag, region)


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
    """The prompt for rewriting `region` of the file text `text`.

    budget: the model's window in tokens, for prompt and answer together; None = no limit. count: tokens of a text; None
    = a rough guess. The file's text around the region is cut to the room that is left. PromptTooLong if the region
    alone has no room.
    """
    if budget is not None and region.end - region.start + len(instruction) > budget * _MOST_CHARACTERS:
        count = None  # counting would take seconds
    exact = bool(_ABOUT_BLANKS.search(instruction))
    lines = _region_lines(text[region.start : region.end], exact=exact)
    indent = common_indent(lines) if form == "chat" and not exact and not _ABOUT_INDENTATION.search(instruction) else ""
    code = "".join(without_indent(line, indent) + "\n" for line in lines)
    tag = language or ""
    predicted = fenced(tag, code)

    def prompt(messages: list[dict[str, str]]) -> Prompt:
        return Prompt(messages, predicted, indent, tag, fence_for(code), exact)

    if form == "region":
        messages = [{"role": "user", "content": region_message(tag, code, instruction)}]
        _check_room(_tokens(messages, count), _tokens_to_write(predicted, count), budget, _count(instruction, count))
        return prompt(messages)
    request = f"Rewrite {_lines_named(region.start_line, region.end_line)}:\n\n{predicted}\n\n{instruction.strip()}"
    alone = _tokens(_chat("", request), count)
    to_write = _tokens_to_write(predicted, count)
    _check_room(alone, to_write, budget, _count(instruction, count))
    file_lines = split_lines(normalise(text.lstrip(BOM)))
    size = sum(map(len, file_lines))
    size = size if budget is None else min(size, budget * _MANY_CHARACTERS)
    while size > 0:
        messages = _chat(_context(path, tag, file_lines, region, size), request)
        tokens = _tokens(messages, count) + to_write
        if budget is None or tokens <= budget:
            return prompt(messages)
        fits = (budget - alone - to_write) / (tokens - alone - to_write)  # this share of the context
        size = min(int(size * fits * 0.95), size * 9 // 10)
    return prompt(_chat(_named(path), request))


def _region_lines(region: str, *, exact: bool) -> list[str]:
    """The region's lines that a rewrite works on (`lines.core`), without line ends."""
    lines = [content(line) for line in split_lines(region.lstrip(BOM))]
    first, last = core(lines, exact=exact)
    return lines[first:last]


def _chat(context: str, request: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": context + request}]


def _named(path: str | None) -> str:
    return f"The file is {path}.\n\n" if path else ""


def _context(path: str | None, tag: str, lines: list[str], region: "Region", size: int) -> str:
    """The file around the region, at most `size` characters of it; none where the region is the whole file."""
    first, last = surroundings(lines, region.start_line, region.end_line, size)
    if (first, last) == (region.start_line, region.end_line):
        return _named(path)
    which = "" if (first, last) == (0, len(lines)) else f", {_lines_named(first, last)} of {len(lines)}"
    return f"The file{' ' + path if path else ''}{which}:\n\n{fenced(tag, ''.join(lines[first:last]))}\n\n"


def _lines_named(start: int, end: int) -> str:
    return f"line {end}" if end - start <= 1 else f"lines {start + 1}-{end}"


def _tokens(messages: list[dict[str, str]], count: Callable[[str], int] | None) -> int:
    return sum(_count(message["content"], count) for message in messages) + _OVERHEAD


def _tokens_to_write(predicted: str, count: Callable[[str], int] | None) -> int:
    """Room for the answer: as long as the region, and a quarter or 64 tokens more."""
    tokens = _count(predicted, count)
    return tokens + max(64, tokens // 4)


def _count(text: str, count: Callable[[str], int] | None) -> int:
    return count(text) if count else -(-len(text) // _CHARACTERS)


def _check_room(to_read: int, to_write: int, budget: int | None, instruction: int) -> None:
    """instruction: the tokens of `to_read` that are the instruction's."""
    if budget is not None and to_read + to_write > budget:
        if to_read - instruction + to_write <= budget:
            raise PromptTooLong(
                f"the instruction takes about {instruction:,} tokens and beside the region the model has room for "
                f"{budget - to_read - to_write + instruction:,}: shorten it, or use a model with a longer context"
            )
        raise PromptTooLong(
            f"the region takes about {to_read + to_write:,} tokens ({to_read:,} to read, {to_write:,} to write) and "
            f"the model has room for {budget:,}: rewrite fewer lines at once, or use a model with a longer context"
        )
