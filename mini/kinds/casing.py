"""Renames that spell the old name anew: a prefix or suffix, another case, all case variants of a word."""

from random import Random

from specd.mini.kinds import Made
from specd.mini.kinds.rename import among_twins, pick_name, pick_names
from specd.mini.names import (
    COMMON_WORDS,
    KEYWORDS,
    STYLES,
    is_identifier,
    pool_word,
    random_word,
    rename_in,
    split_words,
)
from specd.mini.region import Region
from specd.mini.wording import EVERYWHERE, choose, dress, listed, quote

_TITLES = {
    "snake": "snake_case|snake case|lower snake case|lower_snake_case|lower case with underscores|snake-case"
    "|snake_case",
    "camel": "camelCase|camel case|lowerCamelCase|camelcase|lower camel case|camelCase",
    "pascal": "PascalCase|pascal case|UpperCamelCase|Pascal case|upper camel case|PascalCase",
    "upper": "UPPER_CASE|upper case|UPPER_SNAKE_CASE|all caps|SCREAMING_SNAKE_CASE|capitals|uppercase|UPPERCASE"
    "|constant case|upper snake case|ALL_CAPS",
}


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


def _other_names(rng: Random, region: Region, most: int) -> Region:
    """Give up to `most` identifiers of the region names out of the pool: a case change must spell any word."""
    names = pick_names(rng, region, rng.randrange(1, most + 1), short=0.5) or []
    new: dict[str, str] = {}
    for name in names:
        other = rng.choice(region.pool)
        if rng.random() < 0.4 and len(words := split_words(other)) > 1:
            other = STYLES[rng.choice(("snake", "snake", "camel", "pascal", "upper"))](words)
        if other not in region.counts and other not in new.values() and is_identifier(other) and other not in KEYWORDS:
            new[name] = other
    return region.with_code(rename_in(region.code, new)) if new else region


def rename_style(rng: Random, region: Region) -> Made | None:
    """Case change of one identifier, sometimes more: snake_case, camelCase, PascalCase, UPPER_CASE; private, public."""
    before = None
    count = rng.choice((1, 1, 1, 1, 1, 1, 2, 4, 6, 10))
    if rng.random() < 0.6:
        region = _other_names(rng, region, max(2, count))
        before = region.code
    if count > 2:
        usable = [n for n in region.counts if n not in KEYWORDS and len(n) > 2 and n.strip("_")]
        names = rng.sample(usable, min(count, len(usable)))
    else:
        names = pick_names(rng, region, count) or []
    style = rng.choice((*STYLES, *STYLES, *STYLES, "upper", "upper", "private", "public"))
    if style == "public":
        names = [n for n in region.counts if n.startswith("_") and n.strip("_")][:count]
    if style in STYLES:  # only names that change
        names = [n for n in names if split_words(n) and STYLES[style](split_words(n)) != n]
    if not names:
        return None
    region, planted = among_twins(rng, region, names, 0.3)
    before = planted or before
    made = _styled(rng, region, names, style)
    return made and Made(made.instruction, made.after, before, made.names)


def case_change(rng: Random, region: Region) -> Made | None:
    """For evaluation: the case change, or leading underscore, of one name that the region has of itself."""
    style = rng.choice((*STYLES, *STYLES, "private", "public"))
    name = pick_name(rng, region, short=0)
    if not name or not split_words(name) or (style in STYLES and STYLES[style](split_words(name)) == name):
        return None
    return _styled(rng, region, [name], style) if style != "public" or name.startswith("_") else None


def _styled(rng: Random, region: Region, names: list[str], style: str) -> Made | None:
    if style == "private":
        new = {n: "_" + n for n in names}
        words = choose(
            rng,
            "make {l} private with a leading underscore|prefix {l} with an underscore|add a leading underscore to {l}"
            "|put an underscore before {l}|{l} should start with an underscore|give {l} a leading underscore",
        )
    elif style == "public":
        new = {n: n.lstrip("_") for n in names}
        words = choose(
            rng,
            "remove the leading underscore from {l}|drop the leading underscore of {l}"
            "|make {l} public, without the underscore|take the leading underscore off {l}",
        )
    else:
        new = {n: STYLES[style](split_words(n)) for n in names}
        words = choose(
            rng,
            "change {l} to {s}|convert {l} to {s}|use {s} for {l}|rename {l} to {s}|write {l} in {s}"
            "|make {l} {s}|turn {l} into {s}"
            "|{l} should be in {s}|put {l} in {s}|change the case of {l} to {s}|{l} in {s}|{l} to {s}|{l} should be {s}"
            "|spell {l} in {s}|convert the name {l} to {s}|rename {l} so that it is in {s}|{l} must be written in {s}"
            "|switch {l} to {s}|give {l} its {s} form|let {l} be {s}|bring {l} to {s}|I want {l} in {s}",
        ).replace("{s}", choose(rng, _TITLES[style]))
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
    return Made(words if at_name else dress(rng, words, EVERYWHERE), rename_in(region.code, new), names=(*new, *values))


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
