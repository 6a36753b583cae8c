"""Synthetic mechanical code edits: a region of real code, an instruction, and the edited region.

    maker = EditMaker(files, seed)
    edit = maker.make()                 # Edit(kind, language, before, instruction, after, source)

Names are matched as whole words everywhere in the region, strings and comments included. The kinds are in `kinds/`, the
wordings in `wording.py`; this file mixes them. Nothing is ever repeated: training makes edits as it goes.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from specd.mini.kinds import (
    Made,
    Maker,
    casing,
    expressions,
    functions,
    insert,
    layout,
    lines,
    literals,
    parameters,
    rename,
    unable,
    values,
)
from specd.mini.lookalike import foreign, make_rare, scrambled
from specd.mini.names import IDENTIFIER, KEYWORDS
from specd.mini.region import Region, cut_region
from specd.mini.wording import choose

LANGUAGES = ("python", "julia", "rust", "go", "java", "typescript", "javascript", "c", "cpp", "lua")


@dataclass(frozen=True)
class SourceFile:
    """A file to cut regions from. `source` names its repository or package, and its path there."""

    source: str
    language: str
    text: str


@dataclass(frozen=True)
class Edit:
    kind: str
    language: str
    before: str
    instruction: str
    after: str
    source: str
    names: tuple[str, ...] = ()  # what the answer must tell apart: see kinds.Made


_FIRST: tuple[Maker, ...] = (
    rename.rename,
    literals.literal,
    values.set_value,
    lines.delete,
    insert.insert,
    parameters.add_parameter,
)
_SECOND: tuple[Maker, ...] = (rename.rename, literals.literal, insert.insert, lines.delete, values.replace_fragment)
_VERBS = frozenset(
    """rename change replace use delete remove drop add insert put set turn get take erase rewrite find call make please
    write give""".split()
)


def compound(rng: Random, region: Region) -> Made | None:
    """Two edits in one instruction, the second on what the first left."""
    first = rng.choice(_FIRST)(rng, region)
    if first is None or first.before is not None:
        return None
    second = rng.choice(_SECOND)(rng, region.with_code(first.after))
    if second is None or second.before is not None:
        return None
    if any(s not in region.code for s in re.findall(r"`([^`]+)`", second.instruction)[:1]):
        return None
    a = re.sub(r"[.!?]+$|,? (please|thanks)[.!?]?$", "", first.instruction)
    b = second.instruction
    if re.search(r"[.!?]\s", a):
        return None
    if b.split()[0].lower() in _VERBS and b[:1].isupper() and b[1:2].islower():
        b = b[0].lower() + b[1:]
    return Made(a + choose(rng, " and |, then | and then |; |. Then | and also ") + b, second.after)


# kind -> (share of training in percent, maker)
KINDS: dict[str, tuple[float, Maker]] = {
    "rename": (15, rename.rename),
    "rename_hard": (19, rename.rename_hard),
    "rename_several": (9, rename.rename_several),
    "rename_affix": (2.5, casing.rename_affix),
    "rename_style": (14, casing.rename_style),
    "rename_cases": (1.2, casing.rename_cases),
    "swap_names": (0.8, rename.swap_names),
    "absent": (2, unable.absent),
    "unable": (3, unable.unable),
    "literal": (11, literals.literal),
    "set_value": (6, values.set_value),
    "replace_fragment": (4, values.replace_fragment),
    "inline": (2, values.inline),
    "word": (1.2, values.word),
    "delete": (9, lines.delete),
    "delete_block": (1, lines.delete_block),
    "replace_line": (1.5, lines.replace_line),
    "move_line": (1.2, lines.move_line),
    "comment": (2.2, lines.comment),
    "insert": (8, insert.insert),
    "delete_function": (6, functions.delete_function),
    "reorder": (1, functions.reorder),
    "decorate": (1.5, functions.decorate),
    "wrap": (1.2, expressions.wrap),
    "negate": (1, expressions.negate),
    "add_parameter": (4, parameters.add_parameter),
    "remove_parameter": (1.2, parameters.remove_parameter),
    "annotate": (1, parameters.annotate),
    "indentation": (0.7, layout.indentation),
    "quotes": (0.4, layout.quotes),
    "compound": (2, compound),
}

# kind -> (part of its edits in training that are made on short regions, longest of these in characters)
SHORT: dict[str, tuple[float, int]] = {
    "rename_style": (0.7, 450),
    "rename_cases": (0.4, 600),
    "rename_hard": (0.35, 700),
    "rename_several": (0.3, 700),
    "swap_names": (0.3, 700),
    "literal": (0.35, 600),
}

FOREIGN = 0.04  # part of the regions in training whose strings and comments get text of another script

# Kinds that only evaluation asks for, by name.
EVALUATION_KINDS: dict[str, Maker] = {
    "rename_plain": rename.rename_plain,
    "rename_unseen": rename.rename_unseen,
    "case_change": casing.case_change,
}

# Share of the regions that a language gets in training.
LANGUAGE_SHARE = {
    "python": 15, "typescript": 12, "rust": 11, "go": 10, "java": 9, "cpp": 10, "c": 9, "julia": 9,
    "javascript": 8, "lua": 7,
}  # fmt: skip


def identifier_pool(files: Sequence[SourceFile], rng: Random, most: int = 200_000) -> list[str]:
    """Identifiers of the files, shuffled, to invent names from."""
    found: dict[str, None] = {}
    for f in files:
        for name in IDENTIFIER.findall(f.text):
            if 2 < len(name) < 28 and name not in KEYWORDS and name.strip("_"):
                found[name] = None
        if len(found) > 3 * most:
            break
    pool = list(found)
    rng.shuffle(pool)
    return pool[:most]


class EditMaker:
    """Makes edits from files, one after the other; the same seed gives the same edits.

    `sizes` are (probability, longest region in characters); a region's size is log-uniform from `shortest` to the
    longest. `dense` makes some of the kinds in SHORT on short regions, where decisions lie close together.
    """

    def __init__(self, files: Sequence[SourceFile], pool: Sequence[str], seed: int, *, scrambled_share: float = 0.04):
        self.rng = Random(seed)
        self.pool = pool
        self.scrambled_share = scrambled_share
        by_language: dict[str, list[SourceFile]] = {}
        for f in files:
            by_language.setdefault(f.language, []).append(f)
        self._files = by_language
        self._languages = sorted(by_language)
        self._language_weights = list(accumulate(LANGUAGE_SHARE.get(x, 5) for x in self._languages))
        self._file_weights = {k: list(accumulate(min(len(f.text), 30_000) for f in v)) for k, v in by_language.items()}
        self._kinds = list(KINDS)
        self._kind_weights = list(accumulate(share for share, _ in KINDS.values()))

    def make(
        self,
        kind: str | None = None,
        *,
        sizes: Sequence[tuple[float, int]] = ((1.0, 2500),),
        shortest: int = 60,
        language: str | None = None,
        dense: bool = False,
    ) -> Edit:
        """One edit of the given kind on a region of the given language; either is random where none is given."""
        rng = self.rng
        kind = kind or rng.choices(self._kinds, cum_weights=self._kind_weights)[0]
        maker = KINDS[kind][1] if kind in KINDS else EVALUATION_KINDS[kind]
        if dense and kind in SHORT and rng.random() < SHORT[kind][0]:
            sizes, shortest = ((1.0, SHORT[kind][1]),), min(shortest, 40)
        while True:
            longest = rng.choices([s[1] for s in sizes], [s[0] for s in sizes])[0]
            size = int(math.exp(rng.uniform(math.log(shortest), math.log(longest))))
            region, source = self._region(size, language)
            if not 25 <= len(region.code) <= longest * 1.3 + 200 or "```" in region.code:
                continue
            if dense and rng.random() < FOREIGN:
                region = foreign(rng, region)
            if rng.random() < 0.12 and (name := rename.pick_name(rng, region)):
                region = make_rare(rng, region, name)
            made = maker(rng, region)
            if made is None:
                continue
            before = made.before or region.code
            words = made.instruction.strip()
            is_refusal = kind in ("absent", "unable")
            if (made.after == before) != is_refusal or "\n" in words or not 0 < len(words) <= 400:
                continue
            if "```" in made.after or not made.after.strip() or len(made.after) > 2 * len(before) + 400:
                continue
            return Edit(kind, region.language, before, words, made.after, source, made.names)

    def _region(self, size: int, language: str | None) -> tuple[Region, str]:
        rng = self.rng
        language = language or rng.choices(self._languages, cum_weights=self._language_weights)[0]
        if rng.random() < self.scrambled_share:
            return Region(scrambled(rng, size).rstrip(), language, self.pool), "scrambled"
        file = rng.choices(self._files[language], cum_weights=self._file_weights[language])[0]
        return Region(cut_region(rng, file.text, size), language, self.pool), file.source
