"""Edits of literals, values, fragments of a line, and plain words."""

import re
from collections.abc import Sequence
from random import Random

from specd.mini.kinds import Made
from specd.mini.lookalike import plant_line
from specd.mini.names import (
    COMMON_WORDS,
    IDENTIFIER,
    KEYWORDS,
    is_identifier,
    new_name,
    pool_word,
    random_word,
    split_words,
    whole_word,
)
from specd.mini.region import Region, is_balanced
from specd.mini.wording import ask, choose, dress, quote, quote_line

_LITERAL = re.compile(r"\"[^\"\n\\]{1,40}\"|'[^'\n\\]{1,40}'|(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
_ASSIGNED = re.compile(
    r"(?<![\w.])([A-Za-z_]\w{1,30})[ \t]*(=|:|:=|\()[ \t]*(\"[^\"\n\\]{0,30}\"(?!\")"
    r"|'[^'\n\\]{0,30}'(?!')|-?\d+(?:\.\d+)?|True|False|true|false)(?![\w.])"
)
_PIECE = re.compile(r"[A-Za-z_]\w*|\d+|[^\w\s]")
_OPPOSITE = {"True": "False", "False": "True", "true": "false", "false": "true"}


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
    count = len(pattern.findall(region.code))
    a, b = (old, new) if is_string or rng.random() < 0.8 else (f"`{old}`", f"`{new}`")
    if is_string and rng.random() < 0.25 and new[1:-1] and region.code.count(old[1:-1]) == count:
        a, b = "the string " + old[1:-1], new[1:-1]
    templates = (
        "replace {a} with {b}|change {a} to {b}|replace {a} by {b}|use {b} instead of {a}|{a} should be {b}"
        "|turn {a} into {b}|{a} -> {b}"
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
    return Made(words + rng.choice(["", "."]) if template[0] == "{" else dress(rng, words), after)


def set_value(rng: Random, region: Region) -> Made | None:
    """Set the one literal that a named variable, field or call has."""
    found = list(_ASSIGNED.finditer(region.code))
    if not found:
        return None
    m = rng.choice(found)
    name, sign, old = m.groups()
    if name in KEYWORDS or sum(x.group(1) == name for x in found) != 1:
        return None
    new = _OPPOSITE.get(old) or new_literal(rng, old.lstrip("-") or "1", region.pool)
    if new == old:
        return None
    if sign == "(":
        template = choose(
            rng,
            "call {a} with {b}|pass {b} to {a} instead of {v}|pass {b} instead of {v} to {a}"
            "|change the argument of {a} from {v} to {b}|change the first argument of {a} to {b}",
        )
    else:
        template = choose(
            rng,
            "set {a} to {b}|change {a} to {b}|change the value of {a} to {b}|change {a} from {v} to {b}"
            "|set the value of {a} to {b}"
            "|make {a} {b}|{a} should be {b}|update {a} to {b}|use {b} for {a}|set {a} = {b}|set {a}={b}"
            "|{a} = {b}|let {a} be {b}",
        )
    words = template.format(a=quote(rng, name), b=new, v=old)
    after = region.code[: m.start(3)] + new + region.code[m.end(3) :]
    return Made(words + rng.choice(["", "."]) if template[0] == "{" else dress(rng, words), after)


def fragment(rng: Random, region: Region, least: int = 2, most: int = 9) -> str | None:
    """A balanced piece of one line, cut at token edges, of `least` to `most` tokens."""
    for _ in range(6):
        line = rng.choice(region.lines)
        spans = [m.span() for m in _PIECE.finditer(line)]
        if len(spans) < least:
            continue
        n = rng.randrange(least, min(most, len(spans)) + 1)
        i = rng.randrange(len(spans) - n + 1)
        text = line[spans[i][0] : spans[i + n - 1][1]]
        if is_balanced(text) and len(text) > 2 and text[0] not in ",;:)=" and text[-1] not in "(,=:":
            return text
    return None


def at_edges(text: str) -> re.Pattern[str]:
    """`text` where it neither starts nor ends inside a word."""
    first = r"(?<!\w)" if text[0].isalnum() or text[0] == "_" else ""
    last = r"(?!\w)" if text[-1].isalnum() or text[-1] == "_" else ""
    return re.compile(first + re.escape(text) + last)


def replace_fragment(rng: Random, region: Region) -> Made | None:
    """Replace a quoted piece of code by another."""
    old = fragment(rng, region)
    if not old:
        return None
    name = new_name(rng, rng.choice(region.pool), region.pool)
    r = rng.random()
    if r < 0.35:
        new = fragment(rng, region)
    elif r < 0.7:
        names = [x for x in _PIECE.findall(old) if is_identifier(x)]
        if not names:
            return None
        x = rng.choice(names)
        new = at_edges(x).sub(lambda _: new_name(rng, x, region.pool), old, count=1)
    else:
        other = new_name(rng, name, region.pool)
        wrapped = [
            f"{name}({old})",
            name,
            f"{old}.{name}",
            f"{name}.{old}",
            f"{name}()",
            f"{name}[{other}]",
            f"{old} + {name}",
        ]
        new = rng.choice([*wrapped, f"not {old}", old + rng.choice([" + 1", " - 1", "[0]", " or None", "()"])])
    count = region.code.count(old)
    if not new or new == old or count != len(at_edges(old).findall(region.code)):
        return None
    templates = (
        "replace {a} with {b}|change {a} to {b}|replace {a} by {b}|use {b} instead of {a}|turn {a} into {b}"
        "|rewrite {a} as {b}"
        "|substitute {a} with {b}|write {b} instead of {a}"
    )
    if count > 1:
        templates += "|replace every {a} with {b}|change all {a} to {b}|replace all occurrences of {a} with {b}"
    ticks = "`" if rng.random() < 0.75 or " " in old or " " in new else ""
    words = choose(rng, templates).format(a=ticks + old + ticks, b=ticks + new + ticks)
    return Made(dress(rng, words), region.code.replace(old, new))


def inline(rng: Random, region: Region) -> Made | None:
    """Change something in one named line only."""
    i = region.unique_line(rng)
    if i is None:
        return None
    before = None
    if rng.random() < 0.3 and (planted := plant_line(rng, region, i)):
        region, i = planted
        before = region.code
    if not region.is_unique_line(i):
        return None
    line = region.lines[i]
    pieces = [x for x in _PIECE.findall(line) if len(x) > 1 or x.isalnum() or x in "+-*/<>"]
    if not pieces:
        return None
    old = rng.choice(pieces)
    if len(at_edges(old).findall(line)) != 1 or line.count(old) != 1:
        return None
    new = (
        new_literal(rng, old, region.pool)
        if old.isdigit()
        else new_name(rng, old, region.pool)
        if IDENTIFIER.fullmatch(old)
        else rng.choice("+-*/<>")
    )
    if new == old:
        return None
    words = choose(
        rng,
        "in the line {l} change {a} to {b}|in the line {l}, replace {a} with {b}|change {a} to {b} in the line {l}"
        "|replace {a} with {b} only in the line {l}|in {l} use {b} instead of {a}|change {a} to {b}, but only in {l}",
    )
    words = words.format(a=quote(rng, old, 0.6), b=quote(rng, new, 0.6), l=quote_line(rng, line.strip()))
    return Made(dress(rng, words), region.replace_line(i, at_edges(old).sub(lambda _: new, line)), before)


def word(rng: Random, region: Region) -> Made | None:
    """Replace any word of the text, keywords and words of comments included."""
    found = re.findall(r"[A-Za-z]{2,}", region.code)
    old = rng.choice(found) if found else ""
    if not found or len(whole_word(old).findall(region.code)) != region.code.count(old):
        return None
    new = random_word(rng) if rng.random() < 0.5 else (split_words(rng.choice(region.pool)) or ["x"])[0]
    if new == old or not new.isidentifier():
        return None
    template = choose(
        rng,
        "replace A with B|replace all A with B|change A to B|s/A/B/g|replace the word A with B"
        "|use the word B instead of A"
        "|correct the misspelling A to B|fix the typo A, it should be B|A should be spelled B|substitute A with B",
    )
    return Made(ask(rng, template, old, new), region.code.replace(old, new))
