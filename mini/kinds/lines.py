"""Edits of whole lines: delete, replace, move, swap, duplicate, comment out."""

import re
from random import Random

from specd.mini.kinds import Made
from specd.mini.lookalike import plant_line
from specd.mini.names import IDENTIFIER, new_name, rename_in, whole_word
from specd.mini.region import Region, indent_of, is_balanced
from specd.mini.wording import choose, dress, quote, quote_line

DELETE = "delete|remove|delete|remove|drop|get rid of|take out|erase"
_IMPORT = re.compile(r"\s*(import|from|use|using|#include|require)\b")
_PRINT = re.compile(
    r"\s*(print|println|console\.log|println!|fmt\.Println|fmt\.Printf|System\.out\.println|eprintln!|puts|printf"
    r"|log\.debug|logger\.debug)\b.*[);]\s*$"
)
_OPENS = (":", "{", "(", "[", ",", "\\")


def target_line(rng: Random, region: Region, planted: float = 0.45) -> tuple[Region, int, str | None] | None:
    """A line to name in an instruction; in `planted` of the cases by a look-alike (then `before` is set)."""
    i = region.unique_line(rng)
    if i is None:
        return None
    before = None
    if rng.random() < planted:
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if (twin := plant_line(rng, region, i)) and twin[0].is_unique_line(twin[1]):
                region, i = twin
                before = region.code
    return region, i, before


def delete(rng: Random, region: Region) -> Made | None:
    """Delete one line (quoted, by its start, by a word in it), all lines with a word, comment lines, or prints."""
    if len(region.lines) < 2:
        return None
    verb, r, before = choose(rng, DELETE), rng.random(), None
    if r < 0.68:
        target = target_line(rng, region)
        if target is None:
            return None
        region, i, before = target
        drop, line = [i], region.lines[i].strip()
        if r < 0.55:
            words = choose(
                rng,
                "{d} the line {l}|{d} the line {l}|{d} this line: {l}|{d} {l}|{d} the line that says {l}"
                "|{d} the line with {l}"
                "|{d} the statement {l}|the line {l} can go|{d} line {l}",
            )
            words = words.format(d=verb, l=f"`{line}`" if words == "{d} {l}" else quote_line(rng, line))
        else:
            start = _unique_start(region, line)
            if start is None:
                return None
            words = choose(
                rng, "{d} the line starting with {p}|{d} the line that starts with {p}|{d} the line beginning with {p}"
            )
            words = words.format(d=verb, p=quote(rng, start, 0.7))
    else:
        found = _lines_by_content(rng, region, r)
        if found is None:
            return None
        drop, words = found[0], f"{verb} {found[1]}"
    after = region.without_lines(drop)
    following = next((x.strip() for x in region.lines[drop[0] + 1 :] if x.strip()), "")
    names = (region.lines[drop[0]].strip(), following) if len(drop) == 1 and following else ()
    return Made(dress(rng, words), after, before, names) if after.strip() else None


def _unique_start(region: Region, line: str) -> str | None:
    pieces = line.split(" ")
    for n in range(1, len(pieces)):
        start = " ".join(pieces[:n])
        if len(start) > 3 and sum(x.strip().startswith(start) for x in region.lines) == 1:
            return start
    return None


def _lines_by_content(rng: Random, region: Region, r: float) -> tuple[list[int], str] | None:
    """Lines to drop, and how to say which, after the verb."""
    if r < 0.9:
        name = rng.choice(list(region.counts)) if region.counts else ""
        if len(name) < 3:
            return None
        rows = [j for j, line in enumerate(region.lines) if whole_word(name).search(line)]
        if not rows or len(rows) > min(6, max(1, len(region.lines) // 3)):
            return None
        if len(rows) > 1:
            words = "all lines containing {a}|every line that contains {a}|all lines with {a}"
            words += "|the lines that mention {a}|every line mentioning {a}"
        elif _IMPORT.match(region.lines[rows[0]]):
            words = "the import of {a}|the {a} import|the line that imports {a}|the line with {a}"
        else:
            words = "the line containing {a}|the line that contains {a}|the line mentioning {a}"
            words += "|the line with {a}|the {a} line"
        return rows, choose(rng, words).format(a=quote(rng, name))
    if r < 0.95:
        sign = region.comment_sign
        rows = [j for j, line in enumerate(region.lines) if line.strip().startswith(sign) and not line.startswith("#!")]
        if not rows or "/*" in region.code:
            return None
        if len(rows) == 1 and rng.random() < 0.5:
            return rows, "the comment"
        return rows, choose(
            rng,
            "all comments that stand on their own line|all full-line comments|the comment lines"
            "|all comment lines|every comment line",
        )
    rows = [j for j, line in enumerate(region.lines) if _PRINT.match(line) and is_balanced(line)]
    return (
        (rows, choose(rng, "the debug prints|all print statements|the print lines|the logging lines|all the prints"))
        if rows
        else None
    )


def delete_block(rng: Random, region: Region) -> Made | None:
    """Delete an if, for, while ... with its body."""
    i = region.unique_line(rng)
    if i is None or not re.match(r"\s*(if|for|while|with|try|else|switch|case)\b", region.lines[i]):
        return None
    rows = region.block(i)
    if rows is None or not 2 <= rows[1] - i <= 40 or (rows[1] >= len(region.lines) and i == 0):
        return None
    words = choose(
        rng,
        "{d} the block {l}|{d} the whole block starting with {l}|{d} {l} and its body"
        "|{d} the block that starts with {l}",
    )
    words = words.format(d=choose(rng, DELETE), l=f"`{region.lines[i].strip()}`")
    return Made(dress(rng, words), region.without_lines(range(i, rows[1])))


def new_statement(rng: Random, region: Region) -> str:
    """A short statement with invented names, in the manner of the region's language."""
    a, b = (new_name(rng, rng.choice(region.pool), region.pool) for _ in range(2))
    forms = [
        f"{a}({b})", f"{a} = {b}", f"{a} = {rng.randrange(100)}", f"{a}.{b}()", f"return {a}",
        f"assert {a}", f"{a} += 1",
        f"import {a}",
        f'{a}("{b}")', f"{a}({b}, {rng.choice(region.pool)})", f"{a} = {b}({rng.choice(region.pool)})",
        f"if {a}: return {b}",
    ]  # fmt: skip
    return rng.choice(forms) + region.statement_end


def replace_line(rng: Random, region: Region) -> Made | None:
    """Replace a quoted line by another quoted one."""
    target = target_line(rng, region)
    if target is None:
        return None
    region, i, before = target
    old = region.lines[i].strip()
    names = IDENTIFIER.findall(old)
    if rng.random() < 0.4 or not names:
        new = new_statement(rng, region)
    else:
        name = rng.choice(names)
        new = rename_in(old, {name: new_name(rng, name, region.pool)})
    if new == old or "`" in new:
        return None
    words = choose(
        rng,
        "replace the line {l} with {t}|change the line {l} to {t}|replace {l} with {t}|the line {l} should read {t}"
        "|turn the line {l} into {t}|rewrite the line {l} as {t}",
    )
    after = region.replace_line(i, indent_of(region.lines[i]) + new)
    return Made(dress(rng, words.format(l=f"`{old}`", t=f"`{new}`")), after, before, (old, new))


def move_line(rng: Random, region: Region) -> Made | None:
    """Duplicate a line, swap two, or move one next to another (taking that one's indentation)."""
    if len(region.lines) < 3:
        return None
    target = target_line(rng, region)
    if target is None:
        return None
    region, i, before = target
    j = region.unique_line(rng)
    if j is None or i == j:
        return None
    lines = list(region.lines)
    a, b, r = lines[i], lines[j], rng.random()
    if r < 0.25:
        words = choose(rng, "duplicate the line {l}|repeat the line {l}|copy the line {l} once more below itself")
        return Made(dress(rng, words.format(l=quote_line(rng, a.strip()))), region.with_line(i + 1, a), before)
    if r < 0.5:
        lines[i], lines[j] = indent_of(a) + b.strip(), indent_of(b) + a.strip()
        words = choose(rng, "swap the lines {a} and {b}|exchange the lines {a} and {b}")
        return Made(dress(rng, words.format(a=f"`{a.strip()}`", b=f"`{b.strip()}`")), "\n".join(lines), before)
    below = rng.random() < 0.5
    if below and b.rstrip().endswith(_OPENS):
        return None
    del lines[i]
    lines.insert(j - (j > i) + below, indent_of(b) + a.strip())
    words = choose(rng, "move the line {a} {w} {b}|move {a} {w} the line {b}|put the line {a} {w} {b}")
    where = choose(rng, "after|below" if below else "before|above")
    return Made(dress(rng, words.format(a=f"`{a.strip()}`", b=f"`{b.strip()}`", w=where)), "\n".join(lines), before)


def comment(rng: Random, region: Region) -> Made | None:
    """Comment out a line, a function or everything; or take the comment sign off a line."""
    sign, r, before = region.comment_sign, rng.random(), None
    if r < 0.2:
        functions = region.unique_functions()
        if not functions:
            return None
        f = rng.choice(functions)
        block = region.block(f.line)
        lead = indent_of(region.lines[f.line])
        if block is None or block[1] - f.line > 40:
            return None
        rows = range(*block)
        words = choose(rng, "comment out the function {n}|comment {n} out|comment out {n}").format(n=quote(rng, f.name))
    elif r < 0.75:
        target = target_line(rng, region)
        if target is None or target[0].lines[target[1]].strip().startswith(sign):
            return None
        region, i, before = target
        rows, lead = range(i, i + 1), indent_of(region.lines[i])
        words = choose(
            rng,
            "comment out the line {l}|comment out {l}|turn the line {l} into a comment"
            "|disable the line {l} with a comment",
        )
        words = words.format(l=quote_line(rng, region.lines[i].strip()))
    elif r < 0.85:
        lead = min((indent_of(x) for x in region.lines if x.strip()), key=len)
        rows = range(len(region.lines))
        if len(region.lines) > 60:
            return None
        words = choose(
            rng,
            "comment out everything|comment out this code|comment all of this out"
            "|comment out the whole selection|comment this out",
        )
    else:
        marked = [
            i
            for i, x in enumerate(region.lines)
            if x.strip().startswith(sign + " ") and region.code.count(x.strip()) == 1
        ]
        if not marked:
            return None
        i = rng.choice(marked)
        line = region.lines[i].strip()
        words = choose(rng, "uncomment the line {l}|uncomment {l}|remove the comment sign from {l}").format(
            l=quote_line(rng, line, 0)
        )
        return Made(dress(rng, words), region.replace_line(i, indent_of(region.lines[i]) + line[len(sign) + 1 :]))
    if any(region.lines[i].strip() and not region.lines[i].startswith(lead) for i in rows):
        return None
    lines = [f"{lead}{sign} {x[len(lead) :]}" if i in rows and x.strip() else x for i, x in enumerate(region.lines)]
    return Made(dress(rng, words), "\n".join(lines), before)
