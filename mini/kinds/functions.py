"""Edits of whole functions and of what surrounds a call: delete, reorder, decorate, wrap, negate."""

import re
from random import Random

from specd.mini.kinds import Made
from specd.mini.kinds.lines import DELETE
from specd.mini.kinds.values import at_edges, fragment
from specd.mini.names import COMMON_WORDS, IDENTIFIER, KEYWORDS, look_alike, new_name, rename_in, whole_word
from specd.mini.region import Function, Region, arguments, closing, indent_of, is_balanced
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
    if len(names) < 2 or rng.random() > 0.3:
        return region, None
    a, b = rng.sample(names, 2)
    twin = look_alike(rng, a)
    if not IDENTIFIER.fullmatch(twin) or twin in region.counts or twin in KEYWORDS:
        return region, None
    planted = region.with_code(rename_in(region.code, {b: twin}))
    return planted, planted.code


def delete_function(rng: Random, region: Region) -> Made | None:
    """Delete a definition with its decorators and the comment right above it, and the blank lines after it."""
    region, before = _twin_functions(rng, region)
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
        "{d} the function {n}|{d} {n}|{d} the method {n}|{d} the whole function {n}|{d} the definition of {n}|{d} function {n}()"
        "|{d} {n} completely|{n} is unused, {d} it|{d} {n} and its body",
    ).format(d=choose(rng, DELETE), n=quote(rng, f.name))
    return Made(words if "unused" in words else dress(rng, words), after, before)


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
            "swap the functions {a} and {b}|swap {a} and {b}'s definitions|move {b} above {a}|move the function {b} before {a}|move {a} below {b}"
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
            "make {n} {m}|mark {n} as {m}|add the modifier {m} to {n}|add {m} to the definition of {n}|put {m} in front of {n}'s definition",
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
        "add the decorator {t} to {n}|decorate {n} with {t}|add {t} above {n}|put {t} on {n}|add {t} to {n}|annotate {n} with {t}"
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
    return f"{region.comment_sign}{rng.choice([' ', ''])}{rng.choice(['nolint', 'eslint-disable-next-line', '@' + name, name, 'go:noinline', 'TODO ' + name])}"


def wrap(rng: Random, region: Region) -> Made | None:
    """Wrap a call or an expression in another call, or take a wrapper off."""
    usual = [
        "str",
        "int",
        "len",
        "list",
        "sorted",
        "abs",
        "Some",
        "Box::new",
        "String",
        "Number",
        "tuple",
        "float",
        "Ok",
        "repr",
        "max",
    ]
    wrapper = new_name(rng, rng.choice(region.pool), region.pool) if rng.random() < 0.6 else rng.choice(usual)
    quoted = quote(rng, wrapper, 0 if rng.random() < 0.6 else 0.7)
    code = region.code
    if rng.random() < 0.3:
        found = [m for m in re.finditer(r"(?<![A-Za-z0-9_.])([A-Za-z_]\w*)\(", code) if m.group(1) not in KEYWORDS]
        if not found:
            return None
        m = rng.choice(found)
        name, end = m.group(1), closing(code, m.end())
        is_definition = any(f.name == name for f in region.functions) or re.search(
            r"(def|function|func|fn|fun)\s+$", code[: m.start()]
        )
        if end is None or is_definition or "\n" in code[m.end() : end] or region.counts[name] != 1:
            return None
        inner = code[m.end() : end]
        if rng.random() < 0.4 and inner.strip() and len(arguments(inner)) == 1:
            words = choose(
                rng,
                "remove the call to {n}, keep its argument|unwrap {n}(...)|replace {n}(x) with just x|drop the {n} wrapper|unwrap the call of {n}",
            )
            return Made(dress(rng, words.format(n=quote(rng, name))), code[: m.start()] + inner + code[end + 1 :])
        words = choose(
            rng,
            "wrap the call to {n} in {f}|wrap {n}(...) in {f}(...)|wrap the {n} call with {f}()|pass the result of {n} to {f}",
        )
        words = words.format(n=quote(rng, name), f=quoted)
        return Made(dress(rng, words), f"{code[: m.start()]}{wrapper}({code[m.start() : end + 1]}){code[end + 1 :]}")
    piece = fragment(rng, region, 1, 7)
    if not piece or not re.match(r"[\w\"'(\[]", piece) or re.search(r"(?<![=!<>])=(?!=)|;", piece):
        return None
    if (
        any(x in KEYWORDS for x in IDENTIFIER.findall(piece))
        or code.count(piece) != 1
        or len(at_edges(piece).findall(code)) != 1
    ):
        return None
    words = choose(
        rng,
        "wrap {e} in {f}()|wrap {e} in a call to {f}|wrap {e} with {f}(...)|put {e} inside {f}()|call {f} on {e}|surround {e} with {f}( )",
    )
    return Made(dress(rng, words.format(e=f"`{piece}`", f=quoted)), code.replace(piece, f"{wrapper}({piece})"))


def negate(rng: Random, region: Region) -> Made | None:
    """Negate the condition of an if or a while."""
    word_style = region.language in ("python", "lua")
    bare_style = region.language in ("go", "rust")
    if region.language == "julia":
        return None
    if word_style:
        pattern = re.compile(r"(\s*(?:if|elif|elseif|while) )(.+?)(:|\s+then)\s*$")
    elif bare_style:
        pattern = re.compile(r"(\s*if )([^;]+?)( \{)\s*$")
    else:
        pattern = re.compile(r"(\s*(?:\} else )?(?:if|while) ?)\((.+)\)( ?\{)\s*$")
    found = [
        (i, m)
        for i, x in enumerate(region.lines)
        if "`" not in x and (m := pattern.match(x)) and is_balanced(m.group(2)) and region.code.count(x.strip()) == 1
    ]
    if not found:
        return None
    i, m = rng.choice(found)
    condition, sign = m.group(2).strip(), "not " if word_style else "!"
    is_simple = re.fullmatch(r"[\w.\->:]+(\([^()]*\))?(\[[^\[\]]*\])?(\.\w+)*(\([^()]*\))?", condition)
    if condition.startswith("let ") or ":=" in condition:
        return None
    if condition.startswith(sign) and re.fullmatch(r"[\w.]+(\([^()]*\))?", condition[len(sign) :].strip()):
        new = condition[len(sign) :].strip()
    else:
        new = sign + condition if is_simple else f"{sign}({condition})"
    words = choose(
        rng,
        "negate the condition {c}|invert the condition {c}|negate the condition in {l}|flip the condition of {l}|invert {l}|negate the check {c}"
        "|the condition {c} should be negated",
    )
    if len(found) == 1 and len(re.findall(r"\b(if|while|elif|elseif)\b", region.code)) == 1 and rng.random() < 0.5:
        words = choose(rng, "negate the if condition|negate the condition|invert the condition|flip the condition")
    words = words.format(c=f"`{condition}`", l=f"`{region.lines[i].strip()}`")
    return Made(
        dress(rng, words),
        region.replace_line(i, m.group(1) + (new if word_style or bare_style else f"({new})") + m.group(3)),
    )
