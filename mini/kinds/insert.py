"""New lines: a comment, a statement, a blank line, above or below a quoted line, at an end, or at a function."""

from random import Random

from specd.mini.kinds import Made
from specd.mini.kinds.lines import _OPENS, new_statement, target_line
from specd.mini.names import COMMON_WORDS, new_name, pool_word, random_word
from specd.mini.region import Region, indent_of
from specd.mini.wording import choose, dress, quote, quote_line

_ADD = "add|insert|put|add|insert|write"


def comment_text(rng: Random, region: Region) -> str:
    """One to six words, sometimes with a capital or a TODO."""
    words = []
    for _ in range(rng.randrange(1, 7)):
        r = rng.random()
        words.append(
            rng.choice(COMMON_WORDS)
            if r < 0.3
            else random_word(rng)
            if r < 0.4
            else pool_word(rng, region.pool).lower()
            if r < 0.7
            else rng.choice(region.pool)
        )
    text = " ".join(words)
    if rng.random() < 0.5:
        text = text[:1].upper() + text[1:]
    return choose(rng, "TODO: |FIXME: |NOTE: |XXX ") + text if rng.random() < 0.15 else text


def insert(rng: Random, region: Region) -> Made | None:
    r = rng.random()
    if r < 0.36:
        return _comment(rng, region)
    if r < 0.74:
        return _statement(rng, region)
    if r < 0.83:
        return _at_an_end(rng, region)
    if r < 0.88:
        return _blank(rng, region)
    return _at_function(rng, region)


def _comment(rng: Random, region: Region) -> Made | None:
    target = target_line(rng, region)
    if target is None:
        return None
    region, i, before = target
    text = comment_text(rng, region)
    comment = f"{region.comment_sign} {text}"
    words = choose(
        rng,
        '{v} a comment "{c}" above the line {l}|{v} the comment "{c}" before the line {l}|{v} the comment {c} above {l}'
        '|{v} a comment saying "{c}" above {l}|comment {l} with "{c}" on the line above|above {l} {v} the comment "{c}"'
        "|{v} `{t}` above {l}|{v} the comment `{t}` above the line {l}|{v} a comment above {l}: {c}",
    )
    words = words.format(v=choose(rng, _ADD), c=text, l=quote_line(rng, region.lines[i].strip()), t=comment)
    line = region.lines[i]
    return Made(dress(rng, words), region.with_line(i, indent_of(line) + comment), before, (line.strip(), comment))


def _statement(rng: Random, region: Region) -> Made | None:
    target = target_line(rng, region)
    if target is None:
        return None
    region, i, before = target
    line = region.lines[i].strip()
    new = (
        new_statement(rng, region)
        if rng.random() < 0.7
        else rng.choice(region.lines).strip() or new_statement(rng, region)
    )
    below = rng.random() < 0.5
    if "`" in new or len(new) > 90 or (below and line.endswith(_OPENS)):
        return None
    words = choose(
        rng,
        "{v} `{t}` {w} {l}|{v} `{t}` {w} the line {l}|{v} the line `{t}` {w} {l}|{w} {l} {v} `{t}`"
        "|{w} the line {l}, {v} `{t}`"
        "|{v} a line {t} {w} {l}|{v} a line `{t}` {w} {l}",
    )
    where = choose(rng, "after|below|right after|under" if below else "before|above|right before|over")
    words = words.format(v=choose(rng, _ADD), t=new, l=quote_line(rng, line, 0.25), w=where)
    after = region.with_line(i + below, indent_of(region.lines[i]) + new)
    return Made(dress(rng, words), after, before, (line, new))


def _at_an_end(rng: Random, region: Region) -> Made | None:
    r = rng.random()
    if r < 0.5:
        new = new_statement(rng, region)
    elif r < 0.8:
        new = f"{region.comment_sign} {comment_text(rng, region)}"
    else:
        new = "import " + new_name(rng, rng.choice(region.pool), region.pool)
    top = rng.random() < 0.6
    where = choose(
        rng,
        "at the top|as the first line|at the very top|at the beginning|as a first line"
        if top
        else "at the end|as the last line|at the bottom|at the very end",
    )
    words = choose(rng, "{v} `{t}` {w}|{v} the line `{t}` {w}|{v} {t} {w}").format(v=choose(rng, _ADD), t=new, w=where)
    after = f"{indent_of(region.lines[0])}{new}\n{region.code}" if top else f"{region.code}\n{new}"
    return Made(dress(rng, words), after)


def _blank(rng: Random, region: Region) -> Made | None:
    target = target_line(rng, region)
    if target is None:
        return None
    region, i, before = target
    below = rng.random() < 0.5
    words = choose(rng, "{v} a blank line {w} {l}|{v} an empty line {w} the line {l}")
    words = words.format(
        v=choose(rng, _ADD), w="after" if below else "before", l=quote_line(rng, region.lines[i].strip())
    )
    return Made(dress(rng, words), region.with_line(i + below, ""), before)


def _at_function(rng: Random, region: Region) -> Made | None:
    """A line above a definition, at the start of its body, or a docstring."""
    functions = region.unique_functions()
    if not functions:
        return None
    f = rng.choice(functions)
    line, name, verb = region.lines[f.line], quote(rng, f.name), choose(rng, _ADD)
    text = comment_text(rng, region)
    if rng.random() < 0.5:
        new = f"{region.comment_sign} {text}" if rng.random() < 0.7 else new_statement(rng, region)
        words = choose(
            rng,
            "{v} `{t}` above the function {n}|{v} `{t}` before {n}|{v} the line `{t}` above the definition of {n}"
            "|{v} `{t}` right above {n}",
        ).format(v=verb, t=new, n=name)
        return Made(dress(rng, words), region.with_line(f.line, indent_of(line) + new))
    following = region.lines[f.line + 1] if f.line + 1 < len(region.lines) else ""
    inner = indent_of(following)
    opens = line.rstrip().endswith((":", "{")) or region.language in ("julia", "lua")
    if not opens or not following.strip() or len(inner) <= len(indent_of(line)):
        return None
    if region.language == "python" and rng.random() < 0.5:
        words = choose(
            rng,
            'add the docstring "{c}" to {n}|add a docstring to {n}: {c}|give {n} the docstring "{c}"'
            '|document {n} with "{c}"'
            '|add a docstring to {n} that says "{c}"|write the docstring "{c}" for {n}',
        ).format(c=text, n=name)
        return Made(dress(rng, words), region.with_line(f.line + 1, f'{inner}"""{text}"""'))
    new = new_statement(rng, region)
    words = choose(
        rng,
        "{v} `{t}` at the start of {n}|{v} `{t}` as the first statement of {n}|start {n} with `{t}`"
        "|{v} the line `{t}` at the top of the function {n}"
        "|{v} `{t}` as the first line of {n}'s body",
    ).format(v=verb, t=new, n=name)
    return Made(dress(rng, words), region.with_line(f.line + 1, inner + new))
