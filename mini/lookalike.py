"""Makes a region harder to copy right: neighbours that begin alike, names that read alike, and text made of few words.

A model that copies by "what came after the last few tokens" goes wrong exactly there, so training plants such places.
"""

import re
from random import Random

from specd.mini.names import (
    COMMON_WORDS,
    IDENTIFIER,
    KEYWORDS,
    WHOLE_IDENTIFIER,
    is_identifier,
    join_like,
    look_alike,
    new_name,
    random_word,
    rename_in,
)
from specd.mini.region import Region, indent_of


def plant_line(rng: Random, region: Region, i: int) -> tuple[Region, int] | None:
    """Put near line i a line that starts like it and differs late. Gives the region and where line i is now."""
    line = region.lines[i]
    late = [m for m in IDENTIFIER.finditer(line) if m.group() not in KEYWORDS]
    if not late:
        return None
    m = late[-1] if rng.random() < 0.5 else rng.choice(late)
    r = rng.random()
    if r < 0.4:
        other = look_alike(rng, m.group(), region.pool)
    elif r < 0.8:
        other = new_name(rng, m.group(), region.pool)
    else:
        other = m.group() + rng.choice(["()", "[0]", " + 1", ".x", "_"])
    twin = line[: m.start()] + other + line[m.end() :]
    if twin.strip() in region.code or line.strip() in twin:
        return None
    at = i + rng.choice([0, 0, 1, 1, 1]) if rng.random() < 0.6 else rng.randrange(len(region.lines) + 1)
    if at < len(region.lines) and at not in (i, i + 1):
        twin = indent_of(region.lines[at]) + twin.strip()
    return region.with_code(region.with_line(at, twin)), i + (at <= i)


def plant_names(rng: Random, region: Region, name: str) -> Region | None:
    """Rename one to six other identifiers of the region, or single uses of them, so that they read like `name`.

    A name that begins like the one that is meant is where most answers go wrong: what follows decides, not what came
    before. With single uses replaced, nothing around them tells which is which.
    """
    others = {x: n for x, n in region.counts.items() if x != name and x not in KEYWORDS and len(x) > 2 and x.strip("_")}
    if not others:
        return None
    twins = []
    for _ in range(rng.choice((1, 1, 2, 3, 4, 6))):
        twin = look_alike(rng, name, region.pool)
        if is_identifier(twin) and twin not in region.counts and twin not in KEYWORDS:
            twins.append(twin)
    chosen = rng.choices(list(others), list(others.values()), k=len(twins))
    if not twins:
        return None
    if rng.random() < 0.55:
        return region.with_code(rename_in(region.code, dict(zip(chosen, twins, strict=True))))
    uses = (*twins, *(name,) * rng.randrange(1, len(twins) + 1))
    kept = rng.random() * 0.5  # part of the uses that stay as they are
    some = frozenset((*chosen, name))

    def other(m: re.Match[str]) -> str:
        return m.group() if m.group() not in some or rng.random() < kept else rng.choice(uses)

    planted = region.with_code(WHOLE_IDENTIFIER.sub(other, region.code))
    return planted if any(twin in planted.counts for twin in twins) else None


def make_rare(rng: Random, region: Region, name: str) -> Region:
    """Give one name of the region a spelling nobody knows, so that copying does not lean on known words."""
    rare = join_like(rng, [random_word(rng) for _ in range(rng.randrange(1, 3))], name)
    if not is_identifier(rare) or rare in region.counts or rare in KEYWORDS:
        return region
    return region.with_code(rename_in(region.code, {name: rare}))


# Ranges of code points: accented Latin, Greek, Cyrillic, Arabic, Devanagari, kana, Chinese, Hangul, signs, emoji.
_SCRIPTS = (
    (0xC0, 0x17F), (0x391, 0x3C9), (0x410, 0x44F), (0x627, 0x64A), (0x905, 0x939), (0x3042, 0x30FA), (0x4E00, 0x9FA5),
    (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x2190, 0x22FF), (0x1F300, 0x1F64F),
)  # fmt: skip
_PROSE = re.compile(r"\"[^\"\n\\]{2,60}\"|'[^'\n\\]{2,60}'|(?<=// )[^\n]{3,}|(?<=# )[^\n]{3,}")


def foreign(rng: Random, region: Region) -> Region:
    """Text of other scripts in strings and comments: it is copied byte by byte, and code has little of it."""
    low, high = rng.choice(_SCRIPTS)
    letters = [chr(rng.randrange(low, high + 1)) for _ in range(rng.randrange(6, 60))]
    letters = [c for c in letters if c.isprintable()]
    if not letters:
        return region
    share = 0.3 + 0.7 * rng.random()

    def other(m: re.Match[str]) -> str:
        text = m.group()
        mark = text[0] if text[0] in "\"'" else ""
        if rng.random() > share:
            return text
        words = ["".join(rng.choices(letters, k=rng.randrange(1, 9))) for _ in range(rng.randrange(1, 4))]
        if rng.random() < 0.4:
            words.insert(rng.randrange(len(words) + 1), text.strip("\"'").split(" ")[0])
        return mark + rng.choice(("", " ")).join(words) + mark

    return region.with_code(_PROSE.sub(other, region.code))


def scrambled(rng: Random, size: int) -> str:
    """About `size` characters of code-like lines over very few words, with whole runs repeated and slightly changed."""
    words = [rng.choice(COMMON_WORDS) if rng.random() < 0.3 else random_word(rng) for _ in range(rng.randrange(4, 16))]
    words += [look_alike(rng, rng.choice(words)) for _ in range(rng.randrange(1, 8))]
    words = [w for w in dict.fromkeys(words) if is_identifier(w) and w not in KEYWORDS] or ["item", "items"]
    lines: list[str] = []
    depth, length = 0, 0
    while length < size:
        r = rng.random()
        if lines and r < 0.35:  # a line again, one word changed
            tokens = lines[-1 if rng.random() < 0.6 else rng.randrange(len(lines))].split(" ")
            plain = [k for k, t in enumerate(tokens) if is_identifier(t)]
            if plain:
                tokens[rng.choice(plain)] = rng.choice(words)
            line = " ".join(tokens)
        elif len(lines) > 3 and r < 0.43:  # a run of lines again
            k = rng.randrange(len(lines) - 2)
            run = lines[k : k + rng.randrange(2, 5)]
            lines += run
            length += sum(map(len, run))
            continue
        else:
            depth = max(0, min(3, depth + rng.choice([-1, 0, 0, 0, 1])))
            line = "    " * depth + _statement(rng, words)
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines).strip("\n")


def _statement(rng: Random, words: list[str]) -> str:
    def some(least: int, most: int) -> list[str]:
        return [rng.choice(words) for _ in range(rng.randrange(least, most))]

    r = rng.random()
    if r < 0.3:
        return f"{rng.choice(words)} = {' + '.join(some(1, 5))}"
    if r < 0.6:
        return f"{'.'.join(some(1, 3))}( {' , '.join(some(1, 6))} )"
    if r < 0.75:
        return f"{rng.choice(words)}[ {rng.randrange(12)} ] = {rng.choice(words)}( {' , '.join(some(0, 3))} )"
    return " ".join(some(2, 9))
