"""Identifiers: taking them apart, putting them together in the same style, and inventing new ones.

Knows nothing of instructions or of code beyond one identifier.
"""

import re
from collections.abc import Callable, Sequence
from random import Random

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
WHOLE_IDENTIFIER = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]*")

# Words that no edit renames: keywords of the ten languages, and a few that are everywhere.
KEYWORDS = frozenset(
    """
    and as assert async await break class continue def del elif else except False finally for from global if import in
    is lambda None nonlocal not or pass raise return True try while with yield self this int void const auto struct
    template
    typename static inline public private protected namespace using bool float double char include define var let
    function
    new func fn fun end then do local nil null true false type interface package impl pub mut use mod match case switch
    default throw throws catch extends implements final super extern unsigned long short string export require module
    begin rescue endif ifdef ifndef the to of elseif repeat until where abstract mutable loop ref dyn Self
    """.split()
)

COMMON_WORDS = tuple(
    """
    value item node data name index count result state buffer config option key list size path file user text line error
    handler context manager cache token event message request response factory builder helper parser reader writer
    source target entry record field table column row group level mode input output limit offset total base extra
    """.split()
)


def is_identifier(text: str) -> bool:
    return IDENTIFIER.fullmatch(text) is not None


def whole_word(name: str) -> re.Pattern[str]:
    """A pattern for `name` where it is not part of a longer identifier."""
    return re.compile(r"(?<![A-Za-z0-9_])" + re.escape(name) + r"(?![A-Za-z0-9_])")


def rename_in(code: str, names: dict[str, str]) -> str:
    """Replace every whole-word use of the keys, identifiers, by their values, all at once (so a swap works)."""
    return WHOLE_IDENTIFIER.sub(lambda m: names.get(m.group(), m.group()), code)


def split_words(name: str) -> list[str]:
    """`parseHTTPHeader_line` -> parse, HTTP, Header, line."""
    return [p for p in re.split(r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", name) if p]


def snake(words: Sequence[str]) -> str:
    return "_".join(words).lower()


def camel(words: Sequence[str]) -> str:
    return words[0].lower() + pascal(words[1:])


def pascal(words: Sequence[str]) -> str:
    return "".join(w[:1].upper() + w[1:].lower() for w in words)


def upper(words: Sequence[str]) -> str:
    return "_".join(words).upper()


STYLES: dict[str, Callable[[Sequence[str]], str]] = {"snake": snake, "camel": camel, "pascal": pascal, "upper": upper}


def join_like(rng: Random, words: Sequence[str], like: str) -> str:
    """Join words in the style of the identifier `like`, its leading and trailing underscores mostly kept."""
    low = [w.lower() for w in words if w] or ["x"]
    core = like.strip("_")
    if core.isupper() and len(core) > 1:
        name = upper(low)
    elif "_" in core or (core.islower() and rng.random() < 0.85):
        name = snake(low)
    elif core[:1].isupper():
        name = pascal(low)
    else:
        name = camel(low)
    lead = len(like) - len(like.lstrip("_"))
    if lead and rng.random() < 0.7:
        name = "_" * lead + name
    if core and like.startswith("__") and like.endswith("__"):
        name += "__"
    return "_" + name if name[0].isdigit() else name


def random_word(rng: Random) -> str:
    """A pronounceable nonsense word, random letters, or a common word."""
    r = rng.random()
    if r < 0.5:
        syllables = (rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") for _ in range(rng.randrange(1, 4)))
        return "".join(syllables) + rng.choice(["", "", "n", "r", "x", "s"])
    if r < 0.8:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randrange(1, 8)))
    return rng.choice(COMMON_WORDS)


def pool_word(rng: Random, pool: Sequence[str]) -> str:
    """One word out of a random identifier of the pool, as written there."""
    return rng.choice(split_words(rng.choice(pool)) or ["y"])


def new_name(rng: Random, old: str, pool: Sequence[str]) -> str:
    """A plausible, sometimes wild, new name for `old`; always an identifier and no keyword."""
    parts = split_words(old) or ["x"]
    words = split_words(rng.choice(pool)) or ["y"]
    extra = rng.choice(words) if rng.random() < 0.6 else rng.choice(COMMON_WORDS)
    r = rng.random()
    if r < 0.20:
        name = rng.choice(pool)
    elif r < 0.40:
        name = join_like(rng, parts[:-1] + words[-1:] if rng.random() < 0.5 else words[:1] + parts[1:], old)
    elif r < 0.54:
        name = join_like(rng, [*parts, extra], old)
    elif r < 0.64:
        name = join_like(rng, [extra, *parts], old)
    elif r < 0.70:
        name = join_like(rng, [rng.choice(words), rng.choice(parts)], old)
    elif r < 0.78:
        name = join_like(rng, [random_word(rng) for _ in range(rng.randrange(1, 4))], old)
    elif r < 0.82:
        name = old + rng.choice(["_", "2", "1", "s", "_new", "New", "_impl", "Impl", "_t", "0", "V2", "_old", "_value"])
    elif r < 0.86:
        name = rng.choice(["_", "m_", "new", "my_", "base_", "raw_", "the", "old_", "is_", "get_", "k"]) + old
    elif r < 0.90:
        name = rng.choice(
            [old.upper(), old.lower(), old[:1].swapcase() + old[1:], snake(parts), old.lstrip("_"), "_" + old]
        )
    elif r < 0.94:
        short = "".join(p[0] for p in parts).lower()
        name = (
            short
            if rng.random() < 0.5
            else rng.choice("abcdefghijklmnopqrstuvwxyz") + rng.choice(["", "", "1", "2", "s"])
        )
    elif r < 0.97:
        name = join_like(rng, words, old)
    else:
        name = join_like(rng, [pool_word(rng, pool) for _ in range(rng.randrange(2, 5))], old)
    if not is_identifier(name) or name in KEYWORDS:
        name = join_like(rng, [*words, "v"], old)
    return name if is_identifier(name) else "x1"


_SUFFIXES = ("_x", "2", "s", "_", "_id", "Id", "_list", "Impl", "1", "er", "Type", "_t", "ed", "_at", "0", "es", "able")
_PREFIXES = ("_", "my_", "get_", "x", "__", "base", "m_", "set_", "is_", "k", "un", "re")


def look_alike(rng: Random, name: str, pool: Sequence[str] = ()) -> str:
    """What could be taken for `name`: it begins alike, is longer, shorter, or the same but for case. It may be no
    identifier: check it. With a pool its other words are words of the pool, else common ones."""
    r, words = rng.random(), split_words(name)
    word = pool_word(rng, pool).lower() if pool and rng.random() < 0.6 else rng.choice(COMMON_WORDS)
    if r < 0.34:
        capital = word[:1].upper() + word[1:]
        return name + rng.choice(
            ("_" + word, "_" + word, capital, capital, rng.choice(_SUFFIXES), rng.choice(_SUFFIXES))
        )
    if r < 0.56 and len(words) > 1:  # the first words, then others
        kept = words[: rng.randrange(1, len(words))]
        more = [word] if rng.random() < 0.6 else [word, rng.choice(words)]
        return _joined([*kept, *more], name)
    if r < 0.56:  # the first letters, then others
        return name[: max(2, rng.randrange(len(name) // 2, len(name) + 1))] + rng.choice((word, *_SUFFIXES))
    if r < 0.68:
        return rng.choice((*_PREFIXES, word + "_", word + "_", word)) + name
    if r < 0.75:
        return rng.choice(
            (name.upper(), name.lower(), name.capitalize(), name.swapcase(), name[:1].swapcase() + name[1:])
        )
    if r < 0.90 and len(words) > 1:
        return _joined(words[: rng.randrange(1, len(words))] if rng.random() < 0.4 else words[:-1], name)
    if r < 0.95 and len(words) > 1:
        words[rng.randrange(len(words))] = word
        return _joined(words, name)
    return name[: -rng.randrange(1, 3)]


def _joined(words: Sequence[str], like: str) -> str:
    """Words in the style of `like`, its leading underscores kept."""
    lead = like[: len(like) - len(like.lstrip("_"))]
    if "_" in like.strip("_"):
        return lead + "_".join(w.upper() if like.isupper() else w for w in words)
    return lead + words[0] + "".join(w[:1].upper() + w[1:] for w in words[1:])
