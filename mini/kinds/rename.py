"""Renames that give the new name: one, several at once, among look-alike names, swaps. See also `casing.py`."""

from collections.abc import Collection
from random import Random

from specd.mini.kinds import Made
from specd.mini.lookalike import plant_names
from specd.mini.names import KEYWORDS, new_name, rename_in, split_words
from specd.mini.region import Region
from specd.mini.wording import EVERYWHERE, RENAME_UNSEEN, ask, ask_rename, choose, dress, listed, quote


def pick_names(rng: Random, region: Region, n: int = 1, short: float = 0.12) -> list[str] | None:
    """n different names, frequent ones more likely; names of one or two letters with probability `short`."""
    usable = [
        (name, min(count, 12))
        for name, count in region.counts.items()
        if name not in KEYWORDS
        and (len(name) > 2 or rng.random() < short)
        and (count > 1 or rng.random() < 0.1)
        and name.strip("_")
    ]
    if len(usable) < n:
        return None
    chosen: list[str] = []
    for _ in range(4 * n):
        name = rng.choices([u[0] for u in usable], [u[1] for u in usable])[0]
        if name not in chosen:
            chosen.append(name)
        if len(chosen) == n:
            return chosen
    return None


def pick_name(rng: Random, region: Region, short: float = 0.12) -> str | None:
    names = pick_names(rng, region, 1, short)
    return names[0] if names else None


def fresh_name(rng: Random, region: Region, old: str, taken: Collection[str] = ()) -> str | None:
    """A new name for `old` that the region does not hold yet."""
    for _ in range(4):
        name = new_name(rng, old, region.pool)
        if name != old and name not in region.counts and name not in taken:
            return name
    return None


def _renamed(rng: Random, region: Region, name: str | None, template: str | None = None) -> Made | None:
    new = fresh_name(rng, region, name) if name else None
    if not name or not new:
        return None
    words = ask(rng, template, name, new, EVERYWHERE) if template else ask_rename(rng, name, new)
    return Made(words, rename_in(region.code, {name: new}), names=(name, new))


def rename(rng: Random, region: Region) -> Made | None:
    return _renamed(rng, region, pick_name(rng, region))


def rename_plain(rng: Random, region: Region) -> Made | None:
    """For evaluation: the plain wording, nothing around it."""
    name = pick_name(rng, region)
    new = fresh_name(rng, region, name) if name else None
    return Made(f"rename {name} to {new}", rename_in(region.code, {name: new})) if name and new else None


def rename_unseen(rng: Random, region: Region) -> Made | None:
    """For evaluation: a wording that training never has."""
    return _renamed(rng, region, pick_name(rng, region), rng.choice(RENAME_UNSEEN))


def reads_like(a: str, b: str) -> bool:
    """Whether one name is part of the other, they differ by case only, or have the same first word."""
    if a in b or b in a or a.lower() == b.lower():
        return True
    first = (split_words(a) or [""])[0]
    return len(first) > 2 and b.startswith(first, len(b) - len(b.lstrip("_")))


def among_twins(rng: Random, region: Region, names: Collection[str], share: float) -> tuple[Region, str | None]:
    """The region, in `share` of the cases with names planted that read like one of `names`; then its code as well."""
    if rng.random() < share:
        planted = plant_names(rng, region, rng.choice(list(names)))
        if planted is not None and all(n in planted.counts for n in names):
            return planted, planted.code
    return region, None


def rename_hard(rng: Random, region: Region) -> Made | None:
    """A name that reads like another name of the region; six in ten of these planted."""
    names = [k for k in region.counts if k not in KEYWORDS and len(k) > 2 and k.strip("_")]
    if len(names) < 3:
        return None
    if rng.random() < 0.4:
        rng.shuffle(names)
        for name in names[:12]:
            if any(o != name and reads_like(name, o) for o in names):
                return _renamed(rng, region, name)
        return None
    name = pick_name(rng, region) or rng.choice(names)
    planted, before = among_twins(rng, region, (name,), 1.0)
    if before is None:
        return None
    made = _renamed(rng, planted, name)
    return made and Made(made.instruction, made.after, before, made.names)


def rename_several(rng: Random, region: Region) -> Made | None:
    """Two to four renames in one instruction."""
    olds = pick_names(rng, region, rng.choice([2, 2, 2, 3, 3, 4]))
    if not olds:
        return None
    region, before = among_twins(rng, region, olds, 0.4)
    news: list[str] = []
    for old in olds:
        new = fresh_name(rng, region, old, news)
        if not new:
            return None
        news.append(new)
    words = _several_words(rng, olds, news)
    return Made(words, rename_in(region.code, dict(zip(olds, news, strict=True))), before, (*olds, *news))


def _several_words(rng: Random, olds: list[str], news: list[str]) -> str:
    quoting, r = rng.random(), rng.random()
    a, b = [quote(rng, x, quoting) for x in olds], [quote(rng, x, quoting) for x in news]
    pairs = list(zip(a, b, strict=True))
    verb = choose(rng, "rename|rename|rename|change|replace|rename the names|rename the identifiers|turn|rename both")
    if verb == "rename both" and len(a) != 2:
        verb = "rename all of"
    to = {"replace": choose(rng, "with|by"), "turn": "into"}.get(verb, "to")
    if r < 0.45:
        to = f" {to} " if rng.random() < 0.85 else choose(rng, " -> | into | as ")
        words = f"{verb} {listed(rng, [x + to + y for x, y in pairs])}"
    elif r < 0.6:
        words = f"{verb} {listed(rng, a)} {to} {listed(rng, b)}"
    elif r < 0.75:
        arrow = choose(rng, " -> |->| => |: |=| = | --> |=>|:| > ")
        start = choose(
            rng, "rename |rename: ||apply these renames: |renames: |these names change: |new names: |mapping: "
        )
        words = start + choose(rng, ", |; | and |,| | / ").join(x + arrow + y for x, y in pairs)
    elif r < 0.85:
        form = choose(
            rng,
            "{x} becomes {y}|{x} is now {y}|{x} should be {y}|{x} gets the name {y}|{x} should be called {y}|{x} to {y}"
            "|{y} replaces {x}|{y} instead of {x}|{x} must be {y}|{x} will be {y}|{x} is to be called {y}|{x} was {y}",
        ).replace("{x} was {y}", "{y} was {x}")
        words = choose(rng, " and |, |; |, and | while ").join(form.format(x=x, y=y) for x, y in pairs)
    else:
        form = choose(
            rng,
            "use {y} for {x}|call {x} {y}|use {y} instead of {x}|rename {x} to {y}|change {x} to {y}|make {x} {y}"
            "|replace {x} with {y}|name {x} {y}|let {x} be {y}|turn {x} into {y}|s/{x}/{y}/|substitute {y} for {x}",
        )
        words = choose(rng, " and |, |; |, then |, and | and also | then ").join(
            form.format(x=x, y=y) for x, y in pairs
        )
    if words.startswith(("rename", "change", "replace", "apply", "turn", "use", "call", "make")):
        words = dress(rng, words, EVERYWHERE if r < 0.6 or r >= 0.85 else ())
    return words


def swap_names(rng: Random, region: Region) -> Made | None:
    names = pick_names(rng, region, 2)
    if not names:
        return None
    region, before = among_twins(rng, region, names, 0.3)
    a, b = names
    words = choose(rng, "swap {a} and {b}|swap the names {a} and {b}|exchange {a} and {b}|swap {a} with {b}")
    words = dress(rng, words.format(a=quote(rng, a), b=quote(rng, b)), EVERYWHERE[:10])
    return Made(words, rename_in(region.code, {a: b, b: a}), before, (a, b))
