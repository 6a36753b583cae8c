"""The prompts of bench/edits.py: renames, other edits, and free text, on this repository's own sources."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specd.daemon.rewrite.pairs import read_pairs
from specd.daemon.rewrite.prompt import build_prompt
from specd.daemon.rewrite.region import select_region
from specd.daemon.rewrite.syntax import language_of
from specd.engine import Loaded

ROOT = Path(__file__).parents[1]
Kind = Literal["rename", "edit", "free"]
NEW_TEXT = ("add ", "insert ")  # with these words instructions begin whose answers hold text that stands nowhere yet

# (kind, file, a line that the region holds, or None for the whole file, instruction)
_CASES: list[tuple[Kind, str, str | None, str]] = [
    ("rename", "examples/shapes.jl", None, "rename Rect to Rectangle"),
    ("rename", "examples/shapes.jl", "function report(shapes)", "rename total to area_sum"),
    ("rename", "engine/kv_cache.py", "class PagePool:", "rename page to block"),
    ("rename", "engine/finish.py", "def cut(", "rename tokens to new_tokens"),
    ("rename", "engine/stats.py", "class Summary:", "rename steps to step_count"),
    ("rename", "engine/acceptance.py", "class Acceptance:", "rename counts to tallies and reached to seen"),
    ("edit", "examples/shapes.jl", "function largest(shapes)", "add a parameter by to largest"),
    (
        "edit",
        "examples/shapes.jl",
        "function report(shapes)",
        "insert the line `count = 0` after the line `total = 0.0`",
    ),
    ("edit", "engine/finish.py", "def _possible_start(", "delete the line `return length`"),
    ("edit", "engine/verify.py", "def tree_layout(", "change `rows` to `row_count` and 1 to 2"),
    ("edit", "engine/stats.py", "class ProposerStats:", "add a comment `# totals` above the line `steps: int = 0`"),
    ("edit", "engine/kv_cache.py", "def take(self)", "replace 1 by 2"),
    ("edit", "engine/kv_cache.py", "def take(self)", "insert the line `count = 1` before the line `return page`"),
    (
        "edit",
        "engine/verify.py",
        "def tree_layout(",
        "add a comment `# parents first` above the line `depth = [0] * rows`",
    ),
    ("edit", "engine/stats.py", "class Summary:", "insert the line `failed: int = 0` after the line `steps: int = 0`"),
]
_FREE = [
    "Explain how a hash map works, step by step, in plain words.",
    "Write a poem about a compiler that dreams of the sea.",
    "What is the difference between a process and a thread?",
    "Explain what a garbage collector does and when it runs.",
    "Tell a story about a bug that nobody could find.",
    "List ten things to check before a release.",
    "Describe how to review the change of another developer.",
    "Why are floating point numbers not exact?",
]


@dataclass(frozen=True)
class Case:
    """ids: the prompt. predicted: the answer if nothing changed, to draft from. texts: what lookup may quote."""

    kind: Kind
    name: str
    ids: list[int]
    predicted: str
    pairs: list[tuple[str, str]]
    texts: list[str]
    stops: bool  # free text runs to its budget: the bundled model would end at once
    has_new_text: bool = False


def build_cases(loaded: Loaded, form: Literal["region", "chat"]) -> list[Case]:
    cases = []
    for kind, file, line, instruction in _CASES:
        path = ROOT / file
        text = path.read_text(encoding="utf-8")
        language = language_of(path.name)
        at = None if line is None else text[: text.index(line)].count("\n")
        region = select_region(text, at=at, language=language)
        prompt = build_prompt(
            form, path=path.name, language=language, text=text, region=region, instruction=instruction
        )
        ids = loaded.tokenizer.chat(prompt.messages)
        name = f"{path.name}: {instruction}"
        is_new = instruction.startswith(NEW_TEXT)
        cases.append(Case(kind, name, ids, prompt.predicted, read_pairs(instruction), [text], True, is_new))
    for words in _FREE:
        ids = loaded.tokenizer.chat([{"role": "user", "content": words}])
        cases.append(Case("free", words, ids, "", [], [], False))
    return cases
