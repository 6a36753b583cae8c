"""Edits of values, fragments of a line, and plain words."""

import re
from random import Random

from specd.mini.kinds import Made
from specd.mini.kinds.literals import new_literal
from specd.mini.lookalike import plant_line
from specd.mini.names import (
    IDENTIFIER,
    KEYWORDS,
    is_identifier,
    new_name,
    random_word,
    split_words,
    whole_word,
)
from specd.mini.region import Region, is_balanced
from specd.mini.wording import ask, choose, dress, quote, quote_line

_ASSIGNED = re.compile(
    r"(?<![\w.])([A-Za-z_]\w{1,30})[ \t]*(=|:|:=|\()[ \t]*(\"[^\"\n\\]{0,30}\"(?!\")"
    r"|'[^'\n\\]{0,30}'(?!')|-?\d+(?:\.\d+)?|True|False|true|false)(?![\w.])"
)
_PIECE = re.compile(r"[A-Za-z_]\w*|\d+|[^\w\s]")
_OPPOSITE = {"True": "False", "False": "True", "true": "false", "false": "true"}


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
