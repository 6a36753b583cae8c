"""Edits of whole definitions: delete, reorder, decorate."""

import re
from random import Random

from specd.mini.kinds import Made
from specd.mini.kinds.lines import DELETE
from specd.mini.names import (
    COMMON_WORDS,
    IDENTIFIER,
    KEYWORDS,
    look_alike,
    new_name,
    rename_in,
    split_words,
    whole_word,
)
from specd.mini.region import Function, Region, indent_of
from specd.mini.wording import choose, dress, quote

_TYPE = re.compile(
    r"^([ \t]*)(?:export |public |final |pub )*(?:class|struct|interface|enum|trait)[ \t]+([A-Za-z_]\w*)", re.M
)
_AT_SIGN = frozenset({"python", "typescript", "java"})
_MODIFIERS = {
    "python": ["async"],
    "typescript": ["async", "export", "export default"],
    "javascript": ["async", "export", "export default"],
    "rust": ["pub", "pub(crate)", "async", "const", "unsafe"],
    "java": ["static", "public", "final", "private", "synchronized"],
}


def _twin_functions(rng: Random, region: Region) -> tuple[Region, str | None]:
    """Sometimes give one function a name that reads like another's."""
    names = [f.name for f in region.unique_functions()]
    if len(names) < 2 or rng.random() > 0.4:
        return region, None
    a, b = rng.sample(names, 2)
    twin = look_alike(rng, a, region.pool)
    if not IDENTIFIER.fullmatch(twin) or twin in region.counts or twin in KEYWORDS:
        return region, None
    planted = region.with_code(rename_in(region.code, {b: twin}))
    return planted, planted.code


def _twin_heads(rng: Random, region: Region) -> Region:
    """Put above some definitions a comment or a decorator each that begin alike, as those of neighbours often do."""
    functions = region.unique_functions()
    if len(functions) < 2:
        return region
    is_mark = region.language in _AT_SIGN and rng.random() < 0.5
    name = new_name(rng, rng.choice(region.pool), region.pool)
    words = [rng.choice(COMMON_WORDS) for _ in range(rng.randrange(1, 4))]
    start = f"@{name}." if is_mark else f"{region.comment_sign} {' '.join(words).capitalize()} "
    lines = list(region.lines)
    for f in sorted(functions, key=lambda f: -f.line):
        if rng.random() < 0.7:
            tail = split_words(rng.choice(region.pool)) or ["x"]
            lines.insert(region.head(f.line), f.indent + start + (tail[0] if is_mark else " ".join(tail).lower()))
    return region.with_code("\n".join(lines))


def delete_function(rng: Random, region: Region) -> Made | None:
    """Delete a definition with its decorators and the comment right above it, and the blank lines after it."""
    region, before = _twin_functions(rng, region)
    if rng.random() < 0.3:
        region = _twin_heads(rng, region)
        before = region.code
    functions = region.unique_functions()
    if not functions or len(region.lines) < 5:
        return None
    f = rng.choice(functions)
    block = region.block(f.line)
    if block is None:
        return None
    start, end = region.head(f.line), block[1]
    while end < len(region.lines) and not region.lines[end].strip():
        end += 1
    after = region.without_lines(range(start, end)).rstrip()
    if not after.strip():
        return None
    words = choose(
        rng,
        "{d} the function {n}|{d} {n}|{d} the method {n}|{d} the whole function {n}"
        "|{d} the definition of {n}|{d} function {n}()"
        "|{d} {n} completely|{n} is unused, {d} it|{d} {n} and its body",
    ).format(d=choose(rng, DELETE), n=quote(rng, f.name))
    names = (region.lines[start].strip(), region.lines[end].strip()) if end < len(region.lines) else ()
    return Made(words if "unused" in words else dress(rng, words), after, before, names)


def reorder(rng: Random, region: Region) -> Made | None:
    """Swap two functions of the same indentation, or move one past its neighbour."""
    functions = region.unique_functions()
    rng.shuffle(functions)
    for f in functions:
        for g in functions:
            if f.line < g.line and f.indent == g.indent and (made := _swapped(rng, region, f, g)):
                return made
    return None


def _swapped(rng: Random, region: Region, f: Function, g: Function) -> Made | None:
    block_f, block_g = region.block(f.line), region.block(g.line)
    if block_f is None or block_g is None:
        return None
    start_f, start_g = region.head(f.line), region.head(g.line)
    if block_f[1] > start_g or block_g[1] - start_f > 130:
        return None
    lines = region.lines
    between = lines[block_f[1] : start_g]
    if any(x.strip() for x in between):
        words = choose(rng, "swap the functions {a} and {b}|swap the positions of the functions {a} and {b}")
    else:
        words = choose(
            rng,
            "swap the functions {a} and {b}|swap {a} and {b}'s definitions|move {b} above {a}"
            "|move the function {b} before {a}|move {a} below {b}"
            "|move the function {a} after {b}|put {b} before {a}|reorder: {b} first, then {a}|define {b} before {a}",
        )
    after = [
        *lines[:start_f],
        *lines[start_g : block_g[1]],
        *between,
        *lines[start_f : block_f[1]],
        *lines[block_g[1] :],
    ]
    return Made(dress(rng, words.format(a=quote(rng, f.name), b=quote(rng, g.name))), "\n".join(after))


def decorate(rng: Random, region: Region) -> Made | None:
    """Put a decorator, an attribute or a modifier on a definition, or take one off."""
    found = [(f.name, f.line) for f in region.functions]
    found += [(m.group(2), region.code.count("\n", 0, m.start(2))) for m in _TYPE.finditer(region.code)]
    if not found:
        return None
    name, i = rng.choice(found)
    if sum(x[0] == name for x in found) > 1:
        return None
    line, quoted, r = region.lines[i], quote(rng, name), rng.random()
    if r < 0.35 and region.language in _MODIFIERS:
        modifier = rng.choice(_MODIFIERS[region.language])
        if (region.language == "python" and " def " not in f" {line}") or whole_word(
            modifier.split("(")[0].split()[0]
        ).search(line):
            return None
        words = choose(
            rng,
            "make {n} {m}|mark {n} as {m}|add the modifier {m} to {n}|add {m} to the definition of {n}"
            "|put {m} in front of {n}'s definition",
        ).format(n=quoted, m=quote(rng, modifier, 0 if rng.random() < 0.7 else 0.7))
        return Made(dress(rng, words), region.replace_line(i, f"{indent_of(line)}{modifier} {line.lstrip()}"))
    if r < 0.45:
        marks = [k for k in range(region.head(i), i) if re.match(r"\s*(@\w|#\[)", region.lines[k])]
        if not marks:
            return None
        k = rng.choice(marks)
        words = choose(rng, "{d} the decorator {x} from {n}|{d} {x} from {n}|{d} the attribute {x} of {n}")
        words = words.format(d=choose(rng, "delete|remove|drop"), x=f"`{region.lines[k].strip()}`", n=quoted)
        return Made(dress(rng, words), region.without_lines([k]))
    mark = _mark(rng, region)
    quoted_mark = f"`{mark}`" if rng.random() < 0.7 or " " in mark else mark
    words = choose(
        rng,
        "add the decorator {t} to {n}|decorate {n} with {t}|add {t} above {n}|put {t} on {n}|add {t} to {n}"
        "|annotate {n} with {t}"
        "|add the line {t} above the definition of {n}|mark {n} with {t}",
    ).format(t=quoted_mark, n=quoted)
    return Made(dress(rng, words), region.with_line(i, indent_of(line) + mark))


def _mark(rng: Random, region: Region) -> str:
    name = new_name(rng, rng.choice(region.pool), region.pool)
    word = rng.choice(COMMON_WORDS)
    if region.language in _AT_SIGN:
        usual = {"python": ["staticmethod", "property", "cached"], "java": ["Override", "Deprecated", "Test"]}.get(
            region.language, ["injectable"]
        )
        return "@" + rng.choice([name, name, f"{name}({word})", f"{name}.{word}", *usual])
    if region.language == "rust":
        return rng.choice(
            [
                "#[inline]",
                "#[test]",
                "#[derive(Debug)]",
                "#[derive(Clone, Copy)]",
                "#[must_use]",
                "#[allow(dead_code)]",
                f"#[{name}]",
            ]
        )
    if region.language in ("c", "cpp"):
        return rng.choice(
            [
                "[[nodiscard]]",
                "[[maybe_unused]]",
                f"__attribute__(({name}))",
                f"{name.upper()}()",
                "template <typename T>",
            ]
        )
    remark = rng.choice(["nolint", "eslint-disable-next-line", "@" + name, name, "go:noinline", "TODO " + name])
    return f"{region.comment_sign}{rng.choice([' ', ''])}{remark}"
