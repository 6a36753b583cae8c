"""Edits of form only: indentation and quotes."""

import re
from random import Random

from specd.mini.kinds import Made
from specd.mini.region import Region, indent_of
from specd.mini.wording import choose, dress

_QUOTED_LANGUAGES = frozenset({"python", "javascript", "typescript", "lua"})


def indentation(rng: Random, region: Region) -> Made | None:
    """Another unit of indentation, or everything one step to the right or left."""
    lines = region.lines
    if not 2 <= len(lines) <= 130:
        return None
    widths = [len(indent_of(x)) for x in lines if x.strip()]
    has_tabs = any("\t" in indent_of(x) for x in lines)
    if has_tabs and any(" " in indent_of(x) for x in lines):
        return None
    if rng.random() < 0.55:
        return _other_unit(rng, lines, widths, has_tabs)
    step = "\t" if has_tabs else " " * rng.choice([2, 4, 4, 4, 8])
    said = "one tab" if has_tabs else f"{len(step)} spaces"
    if rng.random() < 0.5 or min(widths) < len(step):
        words = choose(
            rng, "indent everything by {u}|indent this by {u}|indent the code by {u}|shift everything right by {u}"
        )
        return Made(dress(rng, words.format(u=said)), "\n".join(step + x if x.strip() else x for x in lines))
    words = choose(
        rng, "dedent everything by {u}|dedent this by {u}|unindent the code by {u}|shift everything left by {u}"
    )
    return Made(dress(rng, words.format(u=said)), "\n".join(x[len(step) :] if x.strip() else x for x in lines))


def _other_unit(rng: Random, lines: list[str], widths: list[int], has_tabs: bool) -> Made | None:
    if not max(widths):
        return None
    old = 1 if has_tabs else next((n for n in (4, 2) if all(w % n == 0 for w in widths)), 0)
    if not old:
        return None
    new = rng.choice(
        [
            u
            for u in ("  ", "    ", "        ", "   ", "\t")
            if (u == "\t") != has_tabs or (not has_tabs and len(u) != old)
        ]
    )
    old_said, new_said = "tabs" if has_tabs else f"{old} spaces", "tabs" if new == "\t" else f"{len(new)} spaces"
    words = choose(
        rng,
        "use {n} instead of {o} for indentation|indent with {n} instead of {o}|change the indentation from {o} to {n}"
        "|convert the indentation from {o} to {n}|reindent with {n} instead of {o}|indent with {n}"
        "|use {n} for indentation"
        "|change the indentation to {n}",
    ).format(n=new_said, o=old_said)
    after = "\n".join(new * (len(indent_of(x)) // old) + x.lstrip() if x.strip() else x for x in lines)
    return Made(dress(rng, words), after)


def quotes(rng: Random, region: Region) -> Made | None:
    """Single quotes to double ones or back, where no string holds either."""
    old, new = rng.choice([("'", '"'), ('"', "'")])
    code = region.code
    if region.language not in _QUOTED_LANGUAGES or old not in code or '"""' in code or "'''" in code or "\\" in code:
        return None
    for line in region.lines:
        inside = "".join(re.findall(f"{old}[^{old}]*{old}", line))
        if line.count(old) % 2 or line.count(new) % 2 or new in inside:
            return None
    said, other = ("double", "single") if new == '"' else ("single", "double")
    words = choose(
        rng,
        "use {n} quotes instead of {o} quotes|change {o} quotes to {n} quotes"
        "|convert the {o} quotes to {n} quotes|use {n} quotes"
        "|replace {o} quotes with {n} quotes",
    )
    return Made(dress(rng, words.format(n=said, o=other)), code.replace(old, new))
