"""Substitutions that an instruction names: "rename A to B" gives [("A", "B")].

A reading of how people write renames in English, quoted or not, in several word orders. It may read too much: a pair
whose old text is not in the region does nothing, and what pairs draft is verified like any draft. Pure; never raises.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from specd.daemon.rewrite.pair_forms import read_forms, read_refused, read_sed
from specd.daemon.rewrite.pair_phrases import affirmed, phrases
from specd.daemon.rewrite.pair_words import (
    AFFIX,
    AFFIX_WITH,
    ARROWS,
    ARTICLES,
    ENDS,
    FILLER,
    INSTEAD,
    NO_NAMES,
    NOUNS,
    OTHER_VERBS,
    PARAMETER,
    PASSIVE,
    PRONOUNS,
    VERBS,
    is_code,
)

MOST_PAIRS = 64
MOST_TEXT = 2000  # characters of the instruction that are read
MOST_TOKENS = 4 * MOST_PAIRS  # of a sentence: "a -> b," is four

_TOKEN = re.compile(
    r"`{1,3}([^`\n]+?)`{1,3}|\"([^\"\n]+)\"|“([^”\n]+)”|‘([^’\n]+)’|(?<!\w)'([^'\n]+)'(?!\w)"
    r"|[«‹]\s*([^«»‹›\n]+?)\s*[»›]"
    rf"|({ARROWS})|([^\s,;()`\"“”‘’«»‹›→⇒⟶]+?(?={ARROWS})|[^\s,;()`\"“”‘’«»‹›→⇒⟶]+)|([,;()])"
)
ARROW = "->"


@dataclass(frozen=True)
class _Token:
    text: str
    quoted: bool
    start: int
    end: int
    first: bool = False  # of its sentence

    @property
    def word(self) -> str:
        """In lower case, but for a name A."""
        return "" if self.quoted else "A" if self.text == "A" and not self.first else self.text.lower()

    @property
    def is_code(self) -> bool:
        return self.quoted or is_code(self.text, self.first)


Names = list[str | None]  # None: a pronoun


def read_pairs(instruction: str) -> list[tuple[str, str]]:
    """(old, new) for each substitution that the instruction names, in its order; of two for one old text the first.

    >>> read_pairs("Rename `Context` and ctx to Environment and env")
    [('Context', 'Environment'), ('ctx', 'env')]
    """
    text = instruction[:MOST_TEXT]
    pairs: dict[str, str] = {}
    for old, new in _read(text):
        if old and old != new and len(pairs) < MOST_PAIRS:
            pairs.setdefault(old, new)
    return list(pairs.items())


def _read(text: str) -> Iterator[tuple[str, str]]:
    commands, text = read_sed(text)
    yield from commands
    for phrase in phrases(text):
        yield from read_refused(phrase)
        sentence = affirmed(phrase)
        yield from read_forms(sentence)
        yield from _affixes(sentence)
        yield from _parameters(sentence)
        yield from _renames(sentence)


def _renames(sentence: str) -> Iterator[tuple[str, str]]:
    tokens = _tokens(sentence)
    floor = 0  # tokens before it are used up
    for start, end, swapped in _connectors(sentence, tokens):
        if start < floor:
            continue
        left, right, used = _names_before(tokens, floor, start, swapped), *_names_after(tokens, end)
        if left == [None]:  # "rename it to B": the last code word before
            left = list[str | None](token.text for token in tokens[:start] if token.is_code)[-1:]
        old, new = (right, left) if swapped else (left, right)
        count = min(len(old), len(new))
        if not count or None in old or None in new:
            continue
        if swapped:
            new = new[-count:] if count == len(old) else new
        else:
            old = old[-count:]
            floor = end + used[count - 1]
        for a, b in zip(old, new, strict=False):
            if a and b:
                yield a, b


def _tokens(sentence: str) -> list[_Token]:
    tokens: list[_Token] = []
    for found in islice(_TOKEN.finditer(sentence), MOST_TOKENS):
        quoted = next((group for group in found.groups()[:6] if group is not None), None)
        if quoted is not None:
            text = quoted
        elif found[7]:
            text = ARROW
        else:
            text = found[8] or found[9]
            text = (text.rstrip(".:?") if len(text) > 1 else text).removesuffix("'s")
        if text:
            tokens.append(_Token(text, quoted is not None, found.start(), found.end(), not tokens))
    return tokens


def _connectors(sentence: str, tokens: list[_Token]) -> list[tuple[int, int, bool]]:
    """(its first token, the token behind it, the new name comes first) for whatever stands between two names."""
    found: list[tuple[int, int, bool]] = []
    spans = [(match.span(), False) for match in PASSIVE.finditer(sentence)]
    spans += [(match.span(), True) for match in INSTEAD.finditer(sentence)]
    for (begin, stop), swapped in spans:
        inside = [i for i, token in enumerate(tokens) if not token.quoted and begin <= token.start < stop]
        if inside:
            found.append((inside[0], inside[-1] + 1, swapped))
    taken = {index for start, end, _ in found for index in range(start, end)}
    between: frozenset[str] = frozenset()
    for index, token in enumerate(tokens):
        if token.text == ARROW and not token.quoted:
            found.append((index, index + 1, False))
        elif index in taken:
            continue
        elif token.word in VERBS and _is_verb(tokens, index):
            between = VERBS[token.word]
        elif token.word == "from":
            between = frozenset({"to", "into"}) if index == 0 or between else between
        elif token.word in OTHER_VERBS and index and tokens[index - 1].word in ("and", ",", "then"):
            between = frozenset()
        elif token.word in between:
            found.append((index, index + 1, False))
    return sorted(found)


def _is_verb(tokens: list[_Token], index: int) -> bool:
    """`rename` and `name` are names too: they are verbs where something to rename follows, without an article in
    front."""
    behind = tokens[index + 1] if index + 1 < len(tokens) else None
    if index and tokens[index - 1].word in ARTICLES:
        return False
    return behind is not None and behind.word not in (",", "and", ")", ";", *ENDS)


def _names_before(tokens: list[_Token], floor: int, stop: int, swapped: bool) -> Names:
    """The names right before token `stop`, in order; where the new name comes first, those right behind the verb."""
    begin = stop
    while begin > floor and tokens[begin - 1].word != ";":
        if tokens[begin - 1].word in VERBS and _is_verb(tokens, begin - 1):
            break
        begin -= 1
    at_verb = swapped and begin > floor and tokens[begin - 1].word != ";"
    names: Names = []
    phrase: list[_Token] = []
    for token in [*tokens[begin:stop], None]:
        ends = token is not None and token.word in ENDS
        if token is not None and token.word not in (",", "and", "&", "(", ")") and not ends:
            phrase.append(token)
            continue
        if len(phrase) == 1 and phrase[0].word in PRONOUNS and not swapped:
            names = [None]
        elif (name := _name(phrase)) is not None:
            names.append(name)
        if ends and at_verb and names:
            return names
        if ends and not swapped and token is not None and token.word not in ("as", "in", "from"):
            names = []
        phrase = []
    return names


def _names_after(tokens: list[_Token], begin: int) -> tuple[Names, list[int]]:
    """The names right behind, and for each how many tokens from `begin` on it takes."""
    names: Names = []
    used: list[int] = []
    phrase: list[_Token] = []
    for index in range(begin, len(tokens) + 1):
        token = tokens[index] if index < len(tokens) else None
        ends = token is None or token.word in ENDS or token.word in (")", ";") or token.text == ARROW
        if token is not None and token.word in VERBS and _is_verb(tokens, index):
            ends = True
        if not ends and token is not None and token.word not in (",", "and", "&", "("):
            phrase.append(token)
            continue
        name = _name(phrase)
        if name is None:
            break
        names.append(name)
        used.append(index - begin)
        phrase = []
        if ends:
            break
    return names, used


def _name(phrase: list[_Token]) -> str | None:
    """The one name in a noun phrase such as "the old helper `foo`"; None if there is none to tell."""
    if len(phrase) == 1 and not phrase[0].first | (phrase[0].word in PRONOUNS | {"something", "nothing", "what"}):
        return phrase[0].text
    useful = [token for token in phrase if token.quoted or token.word not in FILLER]
    named = [token for token in useful if token.quoted] or [
        token for token in useful if token.is_code and token.word not in NO_NAMES
    ]
    if named:
        return named[-1].text
    plain = [
        token for token in useful if token.word not in NOUNS | NO_NAMES and re.fullmatch(r"[^\W\d]\w*", token.text)
    ]
    if len(plain) == 1 and len(useful) <= 3 and phrase[0].word not in ("a", "an"):
        return plain[0].text
    return phrase[0].text if len(phrase) == 1 and phrase[0].word not in PRONOUNS | {"nothing"} else None


def _affixes(sentence: str) -> Iterator[tuple[str, str]]:
    """ "append X to the names of a and b", "prefix a and b with X"."""
    for found in [*AFFIX.finditer(sentence), *AFFIX_WITH.finditer(sentence)]:
        groups = found.groupdict()
        kind = (groups.get("kind") or groups.get("kind2") or groups["verb"]).lower()
        if kind == "add":
            continue
        for name in _names_after(_tokens(found["rest"]), 0)[0]:
            if name and re.fullmatch(r"\w+", name):
                yield name, found["affix"] + name if kind in ("prefix", "prepend") else name + found["affix"]


def _parameters(sentence: str) -> Iterator[tuple[str, str]]:
    """ "give f a new first parameter p": f() -> f(p), f( -> f(p, ."""
    for pattern in PARAMETER:
        for found in pattern.finditer(sentence):
            function, parameter = found["f"].rstrip(".:"), found["p"]
            yield f"{function}()", f"{function}({parameter})"
            yield f"{function}(", f"{function}({parameter}, "
