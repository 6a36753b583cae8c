"""Edits of one expression: wrap it in a call, take a wrapper off, negate a condition."""

import re
from random import Random

from specd.mini.kinds import Made
from specd.mini.kinds.values import at_edges, fragment
from specd.mini.names import IDENTIFIER, KEYWORDS, new_name
from specd.mini.region import Region, arguments, closing, is_balanced
from specd.mini.wording import choose, dress, quote


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
                "remove the call to {n}, keep its argument|unwrap {n}(...)|replace {n}(x) with just x"
                "|drop the {n} wrapper|unwrap the call of {n}",
            )
            return Made(dress(rng, words.format(n=quote(rng, name))), code[: m.start()] + inner + code[end + 1 :])
        words = choose(
            rng,
            "wrap the call to {n} in {f}|wrap {n}(...) in {f}(...)|wrap the {n} call with {f}()"
            "|pass the result of {n} to {f}",
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
        "wrap {e} in {f}()|wrap {e} in a call to {f}|wrap {e} with {f}(...)|put {e} inside {f}()"
        "|call {f} on {e}|surround {e} with {f}( )",
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
        "negate the condition {c}|invert the condition {c}|negate the condition in {l}"
        "|flip the condition of {l}|invert {l}|negate the check {c}"
        "|the condition {c} should be negated",
    )
    if len(found) == 1 and len(re.findall(r"\b(if|while|elif|elseif)\b", region.code)) == 1 and rng.random() < 0.5:
        words = choose(rng, "negate the if condition|negate the condition|invert the condition|flip the condition")
    words = words.format(c=f"`{condition}`", l=f"`{region.lines[i].strip()}`")
    return Made(
        dress(rng, words),
        region.replace_line(i, m.group(1) + (new if word_style or bare_style else f"({new})") + m.group(3)),
    )
