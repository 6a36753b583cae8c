"""Renames: one name, several at once, among look-alike names, affixes, styles, all case variants, swaps."""

from collections.abc import Collection
from random import Random

from specd.mini.kinds import Made
from specd.mini.lookalike import plant_name
from specd.mini.names import (
    COMMON_WORDS,
    KEYWORDS,
    STYLES,
    is_identifier,
    new_name,
    pool_word,
    random_word,
    rename_in,
    split_words,
)
from specd.mini.region import Region
from specd.mini.wording import EVERYWHERE, RENAME, RENAME_UNSEEN, ask, choose, dress, listed, quote


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
    words = ask(rng, template or rng.choice(RENAME), name, new, EVERYWHERE)
    return Made(words, rename_in(region.code, {name: new}))


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


def rename_hard(rng: Random, region: Region) -> Made | None:
    """A name that is part of, contains, or differs by case from another name of the region; half of these planted."""
    names = [k for k in region.counts if k not in KEYWORDS and len(k) > 2 and k.strip("_")]
    if len(names) < 3:
        return None
    if rng.random() < 0.5:
        rng.shuffle(names)
        for name in names[:12]:
            low = name.lower()
            if any(o != name and (name in o or o in name or o.lower() == low) for o in names):
                return _renamed(rng, region, name)
        return None
    name = pick_name(rng, region) or rng.choice(names)
    planted: Region | None = region
    for _ in range(rng.choice([1, 1, 2, 3])):
        planted = plant_name(rng, planted, name) if planted else None
    if planted is None or name not in planted.counts:
        return None
    made = _renamed(rng, planted, name)
    return made and Made(made.instruction, made.after, planted.code)


def rename_several(rng: Random, region: Region) -> Made | None:
    """Two to four renames in one instruction."""
    olds = pick_names(rng, region, rng.choice([2, 2, 2, 3, 3, 4]))
    if not olds:
        return None
    news: list[str] = []
    for old in olds:
        new = fresh_name(rng, region, old, news)
        if not new:
            return None
        news.append(new)
    quoting, r = rng.random(), rng.random()
    a, b = [quote(rng, x, quoting) for x in olds], [quote(rng, x, quoting) for x in news]
    verb = choose(rng, "rename|rename|rename|change|replace|rename the names|rename the identifiers")
    to = "with" if verb == "replace" else "to"
    if r < 0.55:
        words = f"{verb} {listed(rng, [f'{x} {to} {y}' for x, y in zip(a, b, strict=True)])}"
    elif r < 0.75:
        words = f"{verb} {listed(rng, a)} {to} {listed(rng, b)}"
    elif r < 0.9:
        arrow = choose(rng, " -> |->| => |: ")
        start = choose(rng, "rename |rename: ||apply these renames: ")
        words = start + choose(rng, ", |; ").join(x + arrow + y for x, y in zip(a, b, strict=True))
    else:
        words = " and ".join(f"{x} becomes {y}" for x, y in zip(a, b, strict=True))
    if words.startswith(("rename", "change", "replace", "apply")):
        words = dress(rng, words, EVERYWHERE if r < 0.75 else ())
    return Made(words, rename_in(region.code, dict(zip(olds, news, strict=True))))


def rename_affix(rng: Random, region: Region) -> Made | None:
    """Add a prefix or a suffix to one to three names."""
    names = pick_names(rng, region, rng.choice([1, 1, 2, 3]))
    if not names:
        return None
    word = rng.choice(COMMON_WORDS) if rng.random() < 0.6 else random_word(rng)
    if rng.random() < 0.5:
        x = rng.choice([word + "_", word + "_", "_", "base_", "raw_", "my_", "new_", "old_", "m_", "k", "get_", "do_"])
        words = choose(
            rng,
            "add the prefix {x} to {l}|prefix {l} with {x}|add a {x} prefix to {l}|give {l} the prefix {x}"
            "|prepend {x} to {l}"
            "|prepend {x} to the name of {l}|put {x} in front of {l}",
        )
        new = {n: x + n for n in names}
    else:
        x = rng.choice(
            ["_" + word, "_" + word, word.title(), "_", "_id", "_list", "Impl", "2", "_value", "s", "Info", "_new"]
        )
        words = choose(
            rng,
            "add the suffix {x} to {l}|suffix {l} with {x}|add a {x} suffix to {l}|append {x} to {l}"
            "|give {l} the suffix {x}"
            "|append {x} to the name of {l}|let {l} end in {x}",
        )
        new = {n: n + x for n in names}
    return _all_renamed(rng, region, new, words, x)


def rename_style(rng: Random, region: Region) -> Made | None:
    """Case change of one identifier, sometimes more: snake_case, camelCase, PascalCase, UPPER_CASE; private, public."""
    names = pick_names(rng, region, rng.choice([1, 1, 1, 1, 2, 3]))
    if not names:
        return None
    style = rng.choice([*STYLES, *STYLES, "private", "public"])
    if style == "private":
        new = {n: "_" + n for n in names}
        words = choose(
            rng,
            "make {l} private with a leading underscore|prefix {l} with an underscore|add a leading underscore to {l}",
        )
    elif style == "public":
        if not all(n.startswith("_") for n in names):
            return None
        new = {n: n.lstrip("_") for n in names}
        words = choose(
            rng,
            "remove the leading underscore from {l}|drop the leading underscore of {l}"
            "|make {l} public, without the underscore",
        )
    else:
        new = {n: STYLES[style](split_words(n)) for n in names if split_words(n)}
        title = {
            "snake": "snake_case|snake case|lower snake case|lower_snake_case",
            "camel": "camelCase|camel case|lowerCamelCase",
            "pascal": "PascalCase|pascal case|UpperCamelCase",
            "upper": "UPPER_CASE|upper case|UPPER_SNAKE_CASE|all caps|SCREAMING_SNAKE_CASE",
        }[style]
        words = choose(
            rng,
            "change {l} to {s}|convert {l} to {s}|use {s} for {l}|rename {l} to {s}|write {l} in {s}"
            "|make {l} {s}|turn {l} into {s}"
            "|{l} should be in {s}|put {l} in {s}|change the case of {l} to {s}",
        ).replace("{s}", choose(rng, title))
    return _all_renamed(rng, region, new, words, "")


def _all_renamed(rng: Random, region: Region, new: dict[str, str], words: str, x: str) -> Made | None:
    values = list(new.values())
    if (
        not new
        or len(set(values)) < len(values)
        or any(v in region.counts or not is_identifier(v) or v in KEYWORDS for v in values)
    ):
        return None
    quoting = rng.random()
    names = listed(rng, [quote(rng, n, quoting) for n in new])
    at_name = words.startswith("{l}")
    words = words.replace("{l}", names).replace("{x}", quote(rng, x, quoting))
    return Made(words if at_name else dress(rng, words, EVERYWHERE), rename_in(region.code, new))


def rename_cases(rng: Random, region: Region) -> Made | None:
    """All case variants of one word, alone or inside names: Grid, grid, GRID."""
    old = (pick_name(rng, region, short=0) or "").strip("_").lower()
    if len(old) < 4 or not old.isalpha() or len(split_words(old)) != 1:
        return None
    new = random_word(rng).lower() if rng.random() < 0.4 else pool_word(rng, region.pool).lower()
    if not new.isalpha() or len(new) < 3 or new == old:
        return None
    after = region.code
    for form in (str.lower, str.capitalize, str.upper):
        after = after.replace(form(old), form(new))
    if old in after.lower():
        return None
    words = choose(
        rng,
        "rename {a} to {b} in all case variants|replace {a} with {b}, keeping the case ({A} to {B})"
        "|rename {a} to {b} everywhere, including {A} and {U}|replace {a}/{A}/{U} with {b}/{B}/{V}"
        "|rename {a} to {b}, also inside other names and in any case|replace {a} with {b} in every case form",
    )
    words = words.format(a=old, b=new, A=old.capitalize(), B=new.capitalize(), U=old.upper(), V=new.upper())
    return Made(dress(rng, words), after)


def swap_names(rng: Random, region: Region) -> Made | None:
    names = pick_names(rng, region, 2)
    if not names:
        return None
    a, b = names
    words = choose(rng, "swap {a} and {b}|swap the names {a} and {b}|exchange {a} and {b}|swap {a} with {b}")
    words = dress(rng, words.format(a=quote(rng, a), b=quote(rng, b)), EVERYWHERE[:10])
    return Made(words, rename_in(region.code, {a: b, b: a}))
