"""Replace a literal wherever it stands, in half of the cases among literals that begin or end like it."""

import re
from collections.abc import Sequence
from random import Random

from specd.mini.kinds import Made
from specd.mini.names import COMMON_WORDS, pool_word
from specd.mini.region import Region
from specd.mini.wording import choose, dress

_LITERAL = re.compile(r"\"[^\"\n\\]{1,40}\"|'[^'\n\\]{1,40}'|(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def new_literal(rng: Random, old: str, pool: Sequence[str]) -> str:
    """Another literal of the same kind: string in the same quotes, integer, or decimal number."""
    if old[0] in "\"'":
        words = [
            rng.choice(COMMON_WORDS) if rng.random() < 0.3 else pool_word(rng, pool).lower()
            for _ in range(rng.randrange(1, 5))
        ]
        if rng.random() < 0.3:
            words[rng.randrange(len(words))] = rng.choice(pool)
        if rng.random() < 0.15:
            words[0] = words[0].capitalize()
        inside = rng.choice([" ", " ", "_", "-", "/", "."]).join(words)
        return old[0] + inside + old[0] if rng.random() > 0.04 else old[0] * 2
    if "." in old:
        return f"{rng.random() * 10 ** rng.randrange(3):.{rng.randrange(1, 4)}f}"
    usual = [0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 1000, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    return str(rng.choice(usual) if rng.random() < 0.4 else rng.randrange(10 ** rng.randrange(1, 6)))


def _twin_literal(rng: Random, old: str, pool: Sequence[str]) -> str:
    """What begins or ends like the literal `old`, holds it, or is `old` with a suffix, but is another."""
    if old[0] not in "\"'":
        return rng.choice(
            (
                old + str(rng.randrange(10)), old + str(rng.randrange(10)), str(rng.randrange(1, 10)) + old,
                f"{old}{rng.randrange(10)}{rng.randrange(10)}", f"{old}.{rng.randrange(100)}", old[:-1] or "7",
                old + rng.choice(("L", "f", "u32", "px", "e3", "_000", "n", "u")), old[:-1] + str(rng.randrange(10)),
            )
        )  # fmt: skip
    inside, mark = old[1:-1], old[0]
    word = pool_word(rng, pool).lower()
    if rng.random() < 0.5:
        cut = rng.randrange(1, len(inside) + 1)
        return mark + inside[:cut] + rng.choice((word, "_" + word, " " + word, "." + word, "s", "2")) + mark
    return rng.choice(
        (
            mark + word + rng.choice(("_", " ", ".", "/")) + inside + mark, mark + inside.swapcase() + mark,
            mark + inside[: max(1, len(inside) - 1)] + mark, mark + inside + rng.choice(("x", "/", ".")) + mark,
        )
    )  # fmt: skip


def _among_twins(rng: Random, region: Region, old: str, pattern: re.Pattern[str]) -> Region | None:
    """Some other literals of the region in the guise of `old`, a few as `old` itself."""
    twins = [_twin_literal(rng, old, region.pool) for _ in range(rng.choice((1, 1, 2, 3, 4)))]
    if any(pattern.search(t) or "`" in t for t in twins):
        return None
    uses, kept = (*twins, *twins, old), rng.random() * 0.6
    is_string = old[0] in "\"'"

    def other(m: re.Match[str]) -> str:
        same_kind = (m.group()[0] in "\"'") == is_string
        return rng.choice(uses) if same_kind and m.group() != old and rng.random() > kept else m.group()

    code = _LITERAL.sub(other, region.code)
    return region.with_code(code) if code != region.code else None


def literal(rng: Random, region: Region) -> Made | None:
    """Replace every use of one literal."""
    found = _LITERAL.findall(region.code)
    if not found:
        return None
    old = rng.choice(found)
    new = new_literal(rng, old, region.pool)
    if new == old:
        return None
    is_string = old[0] in "\"'"
    pattern = re.compile(re.escape(old) if is_string else r"(?<![\w.])" + re.escape(old) + r"(?![\w.])")
    before = None
    if rng.random() < 0.55 and (planted := _among_twins(rng, region, old, pattern)):
        region, before = planted, planted.code
    count = len(pattern.findall(region.code))
    a, b = (old, new) if is_string or rng.random() < 0.8 else (f"`{old}`", f"`{new}`")
    if is_string and rng.random() < 0.25 and new[1:-1] and region.code.count(old[1:-1]) == count:
        a, b = "the string " + old[1:-1], new[1:-1]
    templates = (
        "replace {a} with {b}|change {a} to {b}|replace {a} by {b}|use {b} instead of {a}|{a} should be {b}"
        "|turn {a} into {b}|{a} -> {b}"
        "|{a} => {b}|{a} becomes {b}|write {b} for {a}|put {b} where {a} is|swap {a} for {b}|{a} must be {b}"
        "|let {a} be {b}|every {a} should be {b}|no longer {a} but {b}|{b}, not {a}|change all {a} to {b}"
        "|update {a} to {b}|s/{a}/{b}/|make {a} {b}|set {a} to {b}|where it says {a} write {b}|{a} is wrong, use {b}"
        "|make it {b} instead of {a}|set it to {b} instead of {a}|{b} instead of {a}|use {b} in place of {a}"
    )
    if count > 1:
        templates += "|replace every {a} with {b}|change every {a} to {b}|replace all {a} with {b}"
        templates += "|change all occurrences of {a} to {b}"
    if is_string:
        templates += "|change the string {a} to {b}|change the text {a} to {b}|replace the string {a} with {b}"
        templates += "|let the text {a} read {b}"
    else:
        templates += (
            "|change the number {a} to {b}|change the value {a} to {b}|change {a} to the number {b}|bump {a} to {b}"
        )
    template = choose(rng, templates)
    words = template.format(a=a, b=b)
    after = pattern.sub(lambda _: new, region.code)
    return Made(
        words + rng.choice(["", "."]) if template[0] == "{" else dress(rng, words),
        after,
        before,
        (old.strip("\"'"), new.strip("\"'")),
    )
