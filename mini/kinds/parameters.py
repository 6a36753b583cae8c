"""Edits of parameter lists, and of the calls that go with them."""

import re
from random import Random

from specd.mini.kinds import Made
from specd.mini.names import COMMON_WORDS, IDENTIFIER, new_name
from specd.mini.region import Function, Region, arguments, splice
from specd.mini.wording import choose, dress, quote

_TYPES = {
    "python": ["int", "str", "bool", "float", "list", "dict", "bytes", "Optional[int]", "list[str]", "Path"],
    "typescript": ["number", "string", "boolean", "any", "string[]", "Date"],
    "go": ["int", "string", "bool", "context.Context", "error", "[]byte"],
    "rust": ["usize", "&str", "bool", "u32", "String", "Option<u8>"],
    "julia": ["Int", "String", "Bool", "Float64", "Vector{Int}", "AbstractString"],
}
_RECEIVERS = frozenset({"self", "cls", "&self", "&mut self", "mut self"})
_NAMES = (*COMMON_WORDS, "ctx", "env", "verbose", "state", "opts", "timeout", "debug", "config", "logger")


def _one_with_calls(rng: Random, region: Region) -> Function | None:
    """A function of the region, one that is called there if there is such."""
    functions = region.unique_functions()
    called = [
        f for f in functions if len(re.findall(r"(?<![A-Za-z0-9_])" + re.escape(f.name) + r"\(", region.code)) > 1
    ]
    functions = called if called and rng.random() < 0.85 else functions
    return rng.choice(functions) if functions else None


def _declaration(rng: Random, region: Region, name: str, has_updated_calls: bool) -> str:
    """How the new parameter stands in the definition: typed where the language wants it."""
    language = region.language
    if language == "go":
        return f"{name} {rng.choice(_TYPES['go'])}"
    if language == "rust" or (language in ("typescript", "julia") and rng.random() < 0.5):
        return f"{name}{'::' if language == 'julia' else ': '}{rng.choice(_TYPES[language])}"
    if language in ("java", "c", "cpp"):
        kind = rng.choice(
            [
                "int ",
                "bool ",
                "String " if language == "java" else "const char *",
                "double ",
                new_name(rng, "Type", region.pool) + " ",
            ]
        )
        return kind + name
    if language == "python" and not has_updated_calls and rng.random() < 0.5:
        return name + rng.choice(["=None", "=False", "=True", "=0", ": int = 1", "=()"])
    return name


def add_parameter(rng: Random, region: Region) -> Made | None:
    """Add a first or last parameter, and pass it at every call (or leave the calls alone, and say so)."""
    f = _one_with_calls(rng, region)
    if f is None:
        return None
    calls = region.calls(f)
    name = rng.choice(_NAMES) if rng.random() < 0.6 else new_name(rng, rng.choice(region.pool), region.pool)
    if calls is None or name in IDENTIFIER.findall(f.parameters):
        return None
    old = arguments(f.parameters)
    has_receiver = bool(old) and old[0].strip() in _RECEIVERS
    first, updates = rng.random() < 0.5, bool(calls) and rng.random() < 0.85
    if any("*" in x or "..." in x for x in old) and not first and region.language not in ("c", "cpp"):
        return None
    new = _declaration(rng, region, name, updates)
    some = bool(f.parameters.strip())
    if first and has_receiver:
        at = f.start + len(old[0])
        changes = [(at, at, ", " + new)]
    elif first:
        changes = [(f.start, f.start, new + (", " if some else ""))]
    else:
        changes = [(f.end, f.end, (", " if some else "") + new)]
    for a, b in calls if updates else ():
        passed = region.code[a:b]
        if first:
            changes.append((a, a, name + (", " if passed.strip() else "")))
        elif passed.rstrip().endswith(",") or passed != passed.strip() or "\n" in passed:
            return None
        else:
            changes.append((b, b, (", " if passed.strip() else "") + name))
    which = choose(rng, "first|new first" if first else "last|new last|additional|new")
    quoted_new, quoted = quote(rng, new, 0.7 if new != name else None), quote(rng, f.name)
    words = choose(
        rng,
        "give {n} a {w} parameter {d}|add a {w} parameter {d} to {n}"
        "|add the {w} parameter {d} to the function {n}|{n} should take a {w} parameter {d}"
        "|add {d} as the {w} parameter of {n}|let {n} take a {w} argument {d}|extend {n} with a {w} parameter {d}",
    ).format(n=quoted, w=which, d=quoted_new)
    words = re.sub(r"\ba (additional)", r"an \1", words)
    if updates:
        words += choose(
            rng,
            " and pass it at every call| and pass {x} at every call| and update the calls to pass {x}"
            "| and pass {x} at all call sites"
            "|, passing {x} at each call| and update the call sites| and pass it everywhere",
        ).format(x=quote(rng, name))
    elif calls:
        words += choose(
            rng, ", but leave the calls alone| without touching the calls| (definition only)|, only in its definition"
        )
    return Made(words if words.startswith(quoted) else dress(rng, words), splice(region.code, changes))


def remove_parameter(rng: Random, region: Region) -> Made | None:
    functions = [
        f
        for f in region.unique_functions()
        if arguments(f.parameters) and not re.search(r"[*]|\.\.\.|\[|\(", f.parameters)
    ]
    if not functions:
        return None
    f = rng.choice(functions)
    old = arguments(f.parameters)
    i = rng.randrange(len(old))
    names = IDENTIFIER.findall(old[i])
    if not names or names[0] in ("self", "cls"):
        return None
    name = names[-1] if region.language in ("java", "c", "cpp") else names[0]
    calls = region.calls(f) or []
    has_receiver = old[0].strip() in _RECEIVERS
    updates = bool(calls) and rng.random() < 0.7
    changes = [(f.start, f.end, _without(old, i))]
    for a, b in calls if updates else ():
        passed = region.code[a:b]
        pieces = arguments(passed)
        if len(pieces) != len(old) - has_receiver or "\n" in passed or "=" in passed:
            return None
        changes.append((a, b, _without(pieces, i - has_receiver)))
    if calls and not updates and rng.random() < 0.5:
        return None
    words = choose(
        rng,
        "{d} the parameter {x} from {n}|{d} the parameter {x} of {n}|{d} {x} from the parameters of {n}"
        "|{d} the argument {x} from the function {n}"
        "|{n} no longer needs the parameter {x}; remove it",
    ).format(d=choose(rng, "delete|remove|delete|remove|drop"), x=quote(rng, name), n=quote(rng, f.name))
    if words.endswith("it"):
        words = words.replace("; remove it", "")
        return Made(
            words + ("; remove it and update the calls." if updates else "; remove it."), splice(region.code, changes)
        )
    if updates:
        words += choose(
            rng, " and from its calls| and update the calls| and drop it at every call| and at every call site"
        )
    return Made(dress(rng, words), splice(region.code, changes))


def _without(pieces: list[str], i: int) -> str:
    kept = ",".join(pieces[:i] + pieces[i + 1 :])
    return kept.lstrip() if i == 0 else kept


def annotate(rng: Random, region: Region) -> Made | None:
    """Give a parameter or a return value a type (Python, TypeScript, Julia parameters)."""
    if region.language not in ("python", "typescript", "julia"):
        return None
    functions = [f for f in region.unique_functions() if f.parameters.strip()]
    if not functions:
        return None
    f = rng.choice(functions)
    kind, quoted = rng.choice(_TYPES[region.language]), quote(rng, f.name)
    if rng.random() < 0.3:
        end = f.end + 1
        if region.code[end : end + 1] != ":" or region.language != "python":
            return None
        words = choose(
            rng,
            "add the return type {t} to {n}|annotate {n} as returning {t}|{n} returns {t}; annotate it"
            "|add -> {t} to {n}|add a return annotation {t} to {n}",
        ).format(t=quote(rng, kind), n=quoted)
        return Made(
            words if words.startswith(quoted) else dress(rng, words),
            f"{region.code[:end]} -> {kind}{region.code[end:]}",
        )
    old = arguments(f.parameters)
    i = rng.randrange(len(old))
    m = re.fullmatch(r"(\w+)(=(.+))?", old[i].strip())
    if not m or m.group(1) in ("self", "cls"):
        return None
    if region.language == "julia":
        new = f"{m.group(1)}::{kind}" + (m.group(2) or "")
    else:
        new = f"{m.group(1)}: {kind}" + (f" = {m.group(3)}" if m.group(3) else "")
    start = f.start + sum(len(x) + 1 for x in old[:i]) + len(old[i]) - len(old[i].lstrip())
    words = choose(
        rng,
        "add the type {t} to the parameter {x} of {n}|annotate the parameter {x} of {n} as {t}"
        "|annotate {x} as {t} in {n}"
        "|add a type annotation {t} to {x} in {n}|give the parameter {x} of {n} the type {t}"
        "|type the argument {x} of {n} as {t}"
        "|{x} in {n} is a {t}, annotate it",
    )
    words_ = words.format(t=quote(rng, kind), x=quote(rng, m.group(1)), n=quoted)
    made = region.code[:start] + new + region.code[start + len(old[i].strip()) :]
    return Made(words_ if words.startswith("{x}") else dress(rng, words_), made)
