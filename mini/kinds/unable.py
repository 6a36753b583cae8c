"""Instructions that this model cannot carry out; the right answer is the region as it is, which specd reports as "no
change".

Two sorts: the thing named is not there, and requests that need judgement, knowledge or invention.
"""

import re
from random import Random

from specd.mini.kinds import Made
from specd.mini.kinds.lines import DELETE, new_statement
from specd.mini.kinds.literals import new_literal
from specd.mini.kinds.rename import pick_name
from specd.mini.names import COMMON_WORDS, is_identifier, look_alike, new_name, random_word, split_words
from specd.mini.region import Region
from specd.mini.wording import ask_rename, choose, dress, quote

_ABOUT_NAME = """find a better name for {n}|find a better name for {n} and use it throughout
{n} is a poor name; rename it to something clearer
rename {n} so that it no longer clashes with the other name|give {n} a more descriptive name
think of a good name for {n}
rename {n} to something that says what it does|explain {n}|explain what {n} does|what does {n} do?|why is {n} slow?
is {n} thread-safe?
fix the bug in {n}|fix {n}|{n} is broken, fix it|{n} crashes on empty input|make {n} faster|optimize {n}
simplify {n}|clean up {n}|refactor {n}
split {n} into smaller functions|extract the loop of {n} into a helper|inline {n}|turn {n} into a generator
make {n} thread-safe|memoize {n}
write a test for {n}|write unit tests for {n}|add error handling to {n}|handle errors in {n}
validate the arguments of {n}|log every call of {n}
document {n}|add documentation for {n}|write a docstring for {n}|describe {n} in a comment|add type hints to {n}
implement {n}|finish {n}
turn {n} into a class|make {n} recursive|rewrite {n} without recursion|rewrite {n} with a list comprehension
use a dictionary in {n}
turn the method {n} into a top-level function of the same name and update its callers|port {n} to C
make {n} generic|deprecate {n}
make {n} return an error instead of panicking|use early returns in {n}|cache the results of {n}
{n} should support unicode|sort {n}
add a {w} option to {n}|make {n} handle the {w} case|let {n} retry three times|make {n} configurable
remove the duplication in {n}""".replace("\n", "|")

_ABOUT_CODE = """fix the bug|fix this|fix all warnings|make it faster|make this more readable|optimize this
clean this up|improve this code|simplify
simplify this|refactor this|review this code|explain this code|what does this do?|summarize this file
translate the comments to German
translate the comments into French|translate this to Rust|convert this to TypeScript|port this to Python
write tests|add tests for this
add unit tests|add documentation|document everything|add comments|comment this code|add type annotations
add type hints everywhere|add error handling
handle the errors|add logging|make this thread-safe|make it async|use async/await|remove the dead code
remove unused imports|sort the imports
sort the methods alphabetically|format this|run the formatter|fix the indentation|split this file in two
use a better algorithm|reduce the complexity
make it work on Windows|support Python 2|upgrade to the newest API|migrate to the new version|use modern syntax
follow the style guide
find the memory leak|check for off-by-one errors|why does this not compile?|does this work?|hello|thanks|continue
undo that|never mind|do it again
write a function that reverses a list|write a {w} parser|implement a {w} cache|add a {w} class
generate a {w} for this|create a new {w}
use the {w} pattern here|replace the {w} by something better|improve the {w} handling|make the {w} configurable
add support for {w}s
the {w} is wrong|the {w} should be validated|avoid copying the {w}|what is the {w}?|who wrote this {w}?
make the {w} lazy|tell me a joke|make it safer|is this correct?|is it safe to call this twice?|how do I use this?
what is missing here?|which part is slow?|add examples|shorten it|make it shorter|make it more idiomatic
use better names|choose clearer names|rename everything to something clearer|improve the names|write the docs
explain the {w}|turn this into a {w}|merge the {w} into the {w}s|split the {w} off|use fewer {w}s
write this with generics|extract an interface|extract a {w} helper|inline everything|remove duplication
return early|avoid nesting|flatten the ifs|replace the loop with something functional|use a map instead of the loop
make the {w} immutable|cache the {w}|log the {w}|count the {w}s|retry on failure|close the files properly
make the tests pass|fix the failing test|fix the types|fix the imports|update the copyright|bump the version
add a license header|write a changelog entry|commit this|open a pull request|deploy it|revert|undo|help
why?|really?|yes|no|ok|what?|test|foo|asdf|the {w}|{w}|{w} {w}|more {w}|less {w}, please|a better {w}
handle null|handle unicode|support dark mode|add translations|make the {w} responsive|use UTC
sort this by {w}|order the {w}s|group the {w}s|reorder the methods|put the methods in a better order""".replace(
    "\n", "|"
)

_SENTENCE = re.compile(r"(?:#|//|\*|--)\s+([A-Z][a-z]+(?: [\w'-]+){2,12})[.\n]")


def _absent_name(rng: Random, region: Region) -> str | None:
    """A name that the region does not hold, in half of the cases one that reads like a name it does hold."""
    known, other = pick_name(rng, region), rng.choice(region.pool)
    alike = known if rng.random() < 0.5 else None
    name = look_alike(rng, alike, region.pool) if alike else new_name(rng, other, region.pool)
    return name if is_identifier(name) and len(name) > 2 and name not in region.code else None


def _part_of_a_name(rng: Random, region: Region) -> str | None:
    """The first words of a name, where nothing has just these for its name."""
    words = split_words(known) if (known := pick_name(rng, region)) else []
    if not known or len(words) < 2:
        return None
    end = known.find(words[rng.randrange(1, len(words))], 1)
    name = known[:end].rstrip("_")
    return name if len(name) > 2 and is_identifier(name) and name not in region.counts else None


def absent(rng: Random, region: Region) -> Made | None:
    """The name, the line, the function or the value that the instruction speaks of is not in the region."""
    if rng.random() < 0.25 and (part := _part_of_a_name(rng, region)):
        return Made(ask_rename(rng, part, new_name(rng, part, region.pool)), region.code)
    name = _absent_name(rng, region)
    if name is None:
        return None
    r, quoted, verb = rng.random(), quote(rng, name), choose(rng, DELETE)
    other = new_name(rng, name, region.pool)
    if r < 0.45:
        return Made(ask_rename(rng, name, other), region.code)
    if r < 0.55:
        line = new_statement(rng, region)
        if line in region.code or "`" in line:
            return None
        words = choose(
            rng,
            "{d} the line {l}|{d} {l}|comment out the line {l}|add `{t}` above {l}"
            "|insert `{t}` after the line {l}|replace {l} with `{t}`",
        )
        words = words.format(d=verb, l=f"`{line}`", t=new_statement(rng, region))
    elif r < 0.65:
        words = choose(
            rng, "{d} the function {n}|{d} the definition of {n}|{d} the method {n}|comment out the function {n}"
        ).format(d=verb, n=quoted)
    elif r < 0.75:
        words = choose(rng, "set {n} to {v}|change the value of {n} to {v}|change {n} from {w} to {v}")
        words = words.format(n=quoted, v=rng.randrange(100), w=rng.randrange(100, 200))
    elif r < 0.85:
        words = choose(
            rng,
            "give {n} a new first parameter {x} and pass it at every call|add a parameter {x} to {n}"
            "|{d} the parameter {x} from {n}"
            "|add {x} as the last parameter of {n}",
        ).format(n=quoted, x=other, d=verb)
    elif r < 0.93:
        words = choose(rng, "{d} the line containing {n}|{d} all lines that mention {n}|{d} the import of {n}").format(
            d=verb, n=quoted
        )
    else:
        old = new_literal(rng, '"x"' if rng.random() < 0.5 else "1", region.pool)
        if old in region.code or len(old) < 3:
            return None
        words = choose(rng, "replace {a} with {b}|change {a} to {b}").format(
            a=old, b=new_literal(rng, old, region.pool)
        )
    return Made(dress(rng, words) if words[0].islower() and not words.startswith(quoted) else words, region.code)


def unable(rng: Random, region: Region) -> Made | None:
    """A request that needs judgement, knowledge or invention, or a sentence that is no instruction at all."""
    r = rng.random()
    if r < 0.12:
        found = _SENTENCE.findall(region.code)
        if found:
            return Made(rng.choice(found), region.code)
    word = (
        rng.choice(COMMON_WORDS)
        if rng.random() < 0.6
        else (split_words(rng.choice(region.pool)) or ["thing"])[0].lower()
    )
    if r < 0.22:
        words = " ".join(
            rng.choice([random_word(rng), rng.choice(COMMON_WORDS), rng.choice(region.pool)])
            for _ in range(rng.randrange(1, 7))
        )
        return Made(words, region.code)
    if r < 0.68:
        name = pick_name(rng, region)
        if name is None:
            return None
        template = choose(rng, _ABOUT_NAME)
        words = template.format(n=quote(rng, name), w=word)
        return Made(words if template.startswith("{n}") else dress(rng, words), region.code)
    return Made(dress(rng, choose(rng, _ABOUT_CODE).format(w=word)), region.code)
