"""How people write an instruction: quoting, politeness, punctuation, and ways to ask for a rename.

Every maker in `kinds/` words its instruction through `quote` and `dress`; names are never re-cased.
"""

import re
from collections.abc import Sequence
from random import Random

from specd.mini.phrasing import rename_template

NOUNS = """class function variable identifier method type parameter constant struct field name symbol attribute module
argument property helper enum interface""".split()

EVERYWHERE = ("",) * 5 + tuple(
    " everywhere| everywhere in this file| throughout| throughout the code| in this code"
    "| in the whole file| in the selection"
    "| and update all uses| and update every use| and all its uses| at every use| consistently| wherever it appears"
    "| in all places| here| in this function| in the file".split("|")
)

# A and B stand for the old and the new name, N for a noun. The first is the plain wording that evaluation calls so.
RENAME = tuple(
    """rename A to B|rename A to B|rename A to B|rename the N A to B|change the name A to B|change A's name to B
change A's name into B|change the name of A to B|rename A as B|rename A into B|replace A with B|replace A by B
replace every A with B|replace all occurrences of A with B|use B instead of A|use the name B instead of A
use B in place of A|use B rather than A|call it B instead of A|call A B instead|call the N B instead of A
A should be called B|A should be named B|A should be B|A should be renamed to B|the N A should be named B|make A B
turn A into B|change A to B|change A into B|change every A to B|A -> B|A => B|A to B|rename A -> B|rename: A -> B
rename A => B|s/A/B/g|s/A/B/|swap A for B|substitute B for A|A is now called B|A is now B
A was renamed to B, update the code|rename the N called A to B|rename the N named A to B|let's call A B
let A be called B|I want A to be called B|I'd like A renamed to B|give A the name B|give A the new name B
refactor: rename A to B|refactor A to B|rename all A to B|rename all occurrences of A to B|rename each A to B
update the name of A to B|A is a poor name; rename it to B|A is misspelled, it should be B|fix the typo: A should be B
fix the spelling of A, it is B|correct A to B|the N A is now B; update the code|change all references from A to B
change references to A so they use B|find A and replace it with B|find and replace A with B|search for A, replace with B
do a rename of A to B|apply the rename A -> B|B is a better name than A|prefer B over A|switch from A to B
migrate A to B|move from A to B|name it B, not A|make it B instead of A|rename variable A to B|rename class A to B
rename function A to B|rename the type A to B|rename method A to B|rename A B|A should be named B; update every use
rename the identifier A to B|rename A so that it is called B|A needs to become B|B instead of A""".replace(
        "\n", "|"
    ).split("|")
)

# Never in training: evaluation asks with these to see whether the model reads a wording that it has not met.
RENAME_UNSEEN = tuple(
    """the name of A ought to be B|please have every A spelled B from now on|A must be known as B|relabel A as B
exchange the name A for B|update A so it reads B|we call A B these days, adjust the code|A turns into B
swap out A, put B in its place|I prefer the name B for A|retitle A to B|any mention of A must now say B""".replace(
        "\n", "|"
    ).split("|")
)

_BEFORE = ("",) * 7 + ("please ", "please ", "can you ", "could you ", "pls ", "now ", "just ", "ok, ", "you should ")
_AFTER = ("",) * 4 + (".", ".", ".", " please", "!", ", please", ", thanks", "?")


def quote(rng: Random, text: str, r: float | None = None) -> str:
    """A name or a piece of code, bare (58 %), in back-ticks (26 %), or in quotes; the same r quotes alike."""
    r = rng.random() if r is None else r
    if "`" in text or r < 0.58:
        return text
    if r < 0.84:
        return f"`{text}`"
    if r < 0.92 and "'" not in text:
        return f"'{text}'"
    return f'"{text}"' if '"' not in text else f"`{text}`"


def quote_line(rng: Random, text: str, bare: float = 0.4) -> str:
    """A whole line of code: bare, or in back-ticks."""
    return text if rng.random() < bare or "`" in text else f"`{text}`"


def dress(rng: Random, sentence: str, tails: Sequence[str] = ()) -> str:
    """Random politeness, case of the first letter, and final punctuation, round an imperative sentence."""
    if tails and rng.random() < 0.45:
        sentence += rng.choice(tails)
    if sentence.startswith("s/"):
        return sentence
    if not re.match(r"[A-Z`'\"_]|\w+[A-Z_(]", sentence):
        sentence = rng.choice(_BEFORE) + sentence
    if rng.random() < 0.5 and re.match(r"[a-z]+[ :]", sentence):
        sentence = sentence[0].upper() + sentence[1:]
    if not sentence.endswith("`") or rng.random() < 0.5:
        sentence += rng.choice(_AFTER)
    return sentence


def ask(rng: Random, template: str, a: str, b: str, tails: Sequence[str] = ()) -> str:
    """Fill A, B and N of a template. A sentence that starts with a name keeps the name's case."""
    r = 0.0 if template[:2] in ("s/", "s#", "%s", ":%") else rng.random()
    if 0.5 < r < 0.58 and not template.startswith("rename A B"):  # as a call, or the old name alone in back-ticks
        words = {"A": a + "()", "B": b + "()"} if r < 0.53 else {"A": f"`{a}`", "B": b}
    else:
        words = {"A": quote(rng, a, r), "B": quote(rng, b, r)}
    words["N"] = rng.choice(NOUNS)
    sentence = re.sub(r"\b[ABN]\b", lambda m: words[m.group()], template)
    if re.match(r"[AB]\b", template):
        tail = rng.choice(tails) if tails and rng.random() < 0.3 and "," not in template else ""
        return sentence + tail + rng.choice(["", "", "."])
    return dress(rng, sentence, tails)


def ask_rename(rng: Random, a: str, b: str) -> str:
    """A rename of a to b in one of the listed wordings or in one put together from parts."""
    return ask(rng, rng.choice(RENAME) if rng.random() < 0.5 else rename_template(rng), a, b, EVERYWHERE)


def listed(rng: Random, items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`, with the ways people join a list."""
    if len(items) == 1:
        return items[0]
    return ", ".join(items[:-1]) + rng.choice([" and ", ", ", " and ", ", and "]) + items[-1]


def choose(rng: Random, templates: str) -> str:
    """One of the templates of a |-separated string."""
    return rng.choice(templates.split("|"))
