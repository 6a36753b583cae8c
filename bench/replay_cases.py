"""The edits of a replay corpus as token rows: prompt, answer, and what a proposer may know beforehand.

A case is what a rewrite request looks like to the engine when its target is perfect: the answer is the edited region,
a closing fence and the end token, token by token as the tokenizer itself writes that text.
"""

import difflib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from specd.engine.tokenizer import Tokenizer

Scope = Literal["region", "file"]
MARGIN = 4  # lines on each side of the changed ones that a region has at least
WORD = re.compile(r"\w+")
TEXTS = ("kind", "instruction", "before", "after", "language")  # of a line; the last need not be there


@dataclass(frozen=True)
class Case:
    """One edit. `predicted` is the unedited region and its closing fence: what the answer would be if nothing
    changed."""

    id: str
    kind: str
    instruction: str
    names_new: bool  # the instruction holds a word that the edit introduces (or it introduces none)
    prompt: list[int]
    answer: list[int]  # ends with the end token
    predicted: str
    end_token: int


def read_edits(path: Path) -> list[dict[str, Any]]:
    """The corpus's lines as dicts. Raises ValueError naming the line that is not an edit."""
    edits = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            edit = json.loads(line)
            texts = edit if isinstance(edit, dict) else {}
            missing = [key for key in TEXTS[:4] if not isinstance(texts.get(key), str)]
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}: not JSON ({error})") from None
        if missing:
            raise ValueError(f"{path}, line {number}: no text under {', '.join(missing)}")
        if broken := [key for key in TEXTS if not _is_text(edit.get(key, ""))]:
            raise ValueError(f"{path}, line {number}: half a character, or no text, under {', '.join(broken)}")
        edits.append(edit)
    return edits


def _is_text(value: object) -> bool:
    """Whether it is text of whole characters: JSON can spell one half of a pair, which no file can hold."""
    return isinstance(value, str) and value.encode("utf-8", errors="ignore").decode("utf-8") == value


def changed_span(before: list[str], after: list[str]) -> tuple[int, int, int, int]:
    """Lines [a0, a1) of `before` and [b0, b1) of `after` that hold every change, widened to blank lines, MARGIN lines
    at least."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    start, kept = head, tail
    while start > 0 and before[start - 1].strip():
        start -= 1
    while kept > 0 and before[len(before) - kept].strip():
        kept -= 1
    start, kept = max(min(start, head - MARGIN), 0), max(min(kept, tail - MARGIN), 0)
    return start, len(before) - kept, start, len(after) - kept


def build_case(edit: dict[str, Any], tokenizer: Tokenizer, scope: Scope, end_text: str = "<|im_end|>") -> Case:
    """Tokenize one edit of the corpus."""
    before, after = edit["before"].splitlines(keepends=True), edit["after"].splitlines(keepends=True)
    a0, a1, b0, b1 = (0, len(before), 0, len(after)) if scope == "file" else changed_span(before, after)
    tag = edit.get("language", "")
    asked = f"```{tag}\n{edit['before']}```\n\n{edit['instruction']}"
    prompt = tokenizer.chat([{"role": "user", "content": asked}], answer_prefix=f"```{tag}\n")
    end_token = tokenizer.encode(end_text)[0]
    answer = [*tokenizer.encode("".join(after[b0:b1]) + "```"), end_token]
    new_words = set(WORD.findall(edit["after"])) - set(WORD.findall(edit["before"]))
    names_new = not new_words or bool(new_words & set(WORD.findall(edit["instruction"])))
    predicted = "".join(before[a0:a1]) + "```"
    return Case(edit.get("id", ""), edit["kind"], edit["instruction"], names_new, prompt, answer, predicted, end_token)


def changed_lines(before: list[str], after: list[str]) -> int:
    """How many lines a line diff calls changed (for the harness's own listing)."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return sum(max(a1 - a0, b1 - b0) for tag, a0, a1, b0, b1 in matcher.get_opcodes() if tag != "equal")
