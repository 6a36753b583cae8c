"""Substitutions that an instruction names: "rename A to B" gives [("A", "B")].

A reading of how people write renames, in English, with or without quotes. It errs on the side of reading too much: a pair whose old
text does not occur in the region does nothing, and the drafts that pairs lead to are verified like any other. Pure; never raises.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_PAIRS = 64
MOST_TEXT = 4000  # characters of the instruction that are read

_SED = re.compile(r"(?:^|[\s`'\"(])s([/|#,])((?:\\.|(?!\1).){1,200}?)\1((?:\\.|(?!\1).){0,200}?)\1g?(?![\w/])")
_TOKEN = re.compile(
    r"`{1,3}([^`\n]+)`{1,3}|\"([^\"\n]+)\"|“([^”\n]+)”|‘([^’\n]+)’|(?<!\w)'([^'\n]+)'(?!\w)"
    r"|(->|=>|→|⇒|⟶)|([^\s,;()`\"“”‘’→⇒⟶]+?(?=->|=>)|[^\s,;()`\"“”‘’→⇒⟶]+)|([,;()])"
)
_ARROW = "->"
_TO = {"to", "into", "as", "by", "with", "becomes", "become", "be", "named", "called", _ARROW}
_RENAMING = {
    *(
        "rename",
        "renamed",
        "renames",
        "renaming",
        "change",
        "changes",
        "changing",
        "turn",
        "convert",
        "replace",
        "replaces",
    ),
    *(
        "replacing",
        "correct",
        "fix",
        "make",
        "update",
        "switch",
        "move",
        "migrate",
        "shorten",
        "substitute",
        "swap",
        "refactor",
    ),
    *("write", "spell", "rewrite", "expand", "call", "name", "use", "edit", "transform"),
}
_PASSIVE = re.compile(
    r"\b(?:(?:should|shall|must|will|can|is|are|was|gets?)\s+(?:now\s+|to\s+|from\s+now\s+on\s+)?(?:be\s+)?(?:now\s+)?"
    r"(?:renamed|named|called|known|changed|spelled|written)(?:\s+(?:to|into|as))?"
    r"|(?:should|shall|must|will)\s+(?:now\s+)?(?:be|become)|becomes?|turns?\s+into)\b(?!\s+(?:from|by|in)\b)",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r"\b(?:instead\s+of|in\s+place\s+of|rather\s+than|in\s+lieu\s+of|and\s+not|not)\b", re.IGNORECASE)
_FILLER = {
    *(
        "the",
        "a",
        "an",
        "its",
        "their",
        "our",
        "this",
        "that",
        "these",
        "those",
        "new",
        "old",
        "just",
        "simply",
        "all",
        "every",
    ),
    *(
        "both",
        "each",
        "private",
        "public",
        "exported",
        "local",
        "global",
        "lower-case",
        "lowercase",
        "upper-case",
        "uppercase",
    ),
    *(
        "shorter",
        "longer",
        "now",
        "please",
        "also",
        "then",
        "being",
        "from",
        "name",
        "names",
        "named",
        "called",
        "of",
        "uses",
    ),
    *(
        "use",
        "usages",
        "usage",
        "occurrences",
        "occurrence",
        "instances",
        "instance",
        "references",
        "everywhere",
        "any",
    ),
}
_NOUNS = {
    *(
        "class",
        "classes",
        "function",
        "functions",
        "method",
        "methods",
        "variable",
        "variables",
        "identifier",
        "identifiers",
    ),
    *(
        "type",
        "types",
        "constant",
        "constants",
        "field",
        "fields",
        "parameter",
        "parameters",
        "param",
        "argument",
        "arguments",
    ),
    *(
        "helper",
        "helpers",
        "decorator",
        "decorators",
        "struct",
        "structs",
        "enum",
        "enums",
        "interface",
        "trait",
        "macro",
    ),
    *(
        "macros",
        "flag",
        "flags",
        "attribute",
        "attributes",
        "property",
        "properties",
        "member",
        "members",
        "module",
        "modules",
    ),
    *(
        "package",
        "packages",
        "symbol",
        "symbols",
        "word",
        "string",
        "literal",
        "key",
        "option",
        "loop",
        "import",
        "alias",
    ),
    *(
        "namespace",
        "label",
        "misspelling",
        "typo",
        "spelling",
        "term",
        "prefix",
        "suffix",
        "template",
        "column",
        "ordering",
    ),
    *(
        "object",
        "test",
        "tests",
        "file",
        "callback",
        "receiver",
        "local",
        "component",
        "hook",
        "signal",
        "event",
        "getter",
        "setter",
    ),
}
_ENDS = {
    *(
        "in",
        "on",
        "at",
        "for",
        "so",
        "throughout",
        "across",
        "inside",
        "within",
        "because",
        "since",
        "where",
        "when",
        "if",
    ),
    *(
        "but",
        "while",
        "before",
        "after",
        "which",
        "wherever",
        "everywhere",
        "too",
        "only",
        "using",
        "via",
        "than",
        "or",
    ),
    *("likewise", "respectively", "consistently", "accordingly", "here", "there", "as", "to", "into", "by", "with"),
}
_PRONOUNS = {"it", "them", "this", "that", "they"}
_VAGUE = {
    *(
        "something",
        "anything",
        "better",
        "clearer",
        "more",
        "less",
        "what",
        "match",
        "reflect",
        "avoid",
        "be",
        "one",
        "i",
    ),
    *("it", "them", "they", "is", "are", "and", "no", "not", "do", "does", "have", "has"),
}


@dataclass(frozen=True)
class _Token:
    text: str
    quoted: bool
    start: int
    end: int

    @property
    def word(self) -> str:
        return "" if self.quoted else self.text.lower()

    @property
    def is_code(self) -> bool:
        """It cannot be a plain word of prose."""
        text = self.text
        return (
            self.quoted or bool(re.search(r"[_0-9$.:!#@*/<>\[\]=-]|[a-z][A-Z]|^[A-Z]{2,}", text)) or text[:1].isupper()
        )


def read_pairs(instruction: str) -> list[tuple[str, str]]:
    """(old, new) for each substitution that the instruction names, in its order; the first of two for one old text wins.

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
    for found in _SED.finditer(text):
        yield found[2], found[3]
    text = _SED.sub(" ; ", text)
    for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n+(?=\s*[-*•\d]|\s*\n)|;", text):
        yield from _sentence(sentence)


def _sentence(sentence: str) -> Iterator[tuple[str, str]]:
    yield from _affixes(sentence)
    yield from _parameters(sentence)
    tokens = _tokens(sentence)
    floor = 0  # tokens before it are used up
    for start, end, swapped in _connectors(sentence, tokens):
        if start < floor:
            continue
        left = _names_before(tokens, floor, start, first=swapped)
        right, used = _names_after(tokens, end)
        if left == [None]:  # "rename it to B": the last code word before
            named = [t.text for t in tokens[:start] if t.is_code and t.word not in _RENAMING]
            left = list(named[-1:])
        old, new = (right, left) if swapped else (left, right)
        count = min(len(old), len(new))
        if not count or None in old or None in new:
            continue
        if swapped:
            old, new = old[:count], new[-count:] if len(new) > len(old) else new
        else:
            old = old[-count:]
        yield from zip([o for o in old if o], [n for n in new if n], strict=False)
        floor = end + used[count - 1] if not swapped else end
    return


def _tokens(sentence: str) -> list[_Token]:
    tokens = []
    for found in _TOKEN.finditer(sentence):
        quoted = next((group for group in found.groups()[:5] if group is not None), None)
        if quoted is not None:
            tokens.append(_Token(quoted, True, found.start(), found.end()))
            continue
        if found[6]:
            tokens.append(_Token(_ARROW, False, found.start(), found.end()))
            continue
        text = found[7] or found[8]
        kept = text.rstrip(".:?") if len(text) > 1 else text
        kept = kept[:-2] if kept.endswith("'s") else kept
        if kept:
            tokens.append(_Token(kept, False, found.start(), found.end()))
    return tokens


def _connectors(sentence: str, tokens: list[_Token]) -> Iterator[tuple[int, int, bool]]:
    """(first token of the connector, first token behind it, new name comes first) in the order of the text."""
    found: list[tuple[int, int, bool]] = []
    spans = [(m.start(), m.end(), False) for m in _PASSIVE.finditer(sentence)]
    spans += [(m.start(), m.end(), True) for m in _INSTEAD.finditer(sentence)]
    for begin, stop, swapped in spans:
        inside = [i for i, t in enumerate(tokens) if not t.quoted and begin <= t.start and t.end <= stop + 1]
        if inside:
            found.append((inside[0], inside[-1] + 1, swapped))
    taken = {i for start, end, _ in found for i in range(start, end)}
    renaming = False
    for index, token in enumerate(tokens):
        if token.word in _RENAMING or token.word in ("from",):
            renaming = True
        elif token.text == _ARROW and not token.quoted:
            found.append((index, index + 1, False))
        elif renaming and token.word in _TO and index not in taken:
            found.append((index, index + 1, False))
    return iter(sorted(found))


def _names_before(tokens: list[_Token], floor: int, stop: int, *, first: bool) -> list[str | None]:
    """The names right before token `stop`, in order; [None] for a pronoun. `first`: the phrase behind its verb is meant."""
    begin = stop
    while begin > floor and tokens[begin - 1].word not in _RENAMING | {"."}:
        begin -= 1
    phrases = _phrases(tokens[begin:stop], first=first)
    return phrases


def _names_after(tokens: list[_Token], begin: int) -> tuple[list[str | None], list[int]]:
    """The names right behind, and for each how many tokens from `begin` on it takes."""
    names: list[str | None] = []
    used: list[int] = []
    phrase: list[_Token] = []
    for index in range(begin, len(tokens) + 1):
        token = tokens[index] if index < len(tokens) else None
        ends = token is None or token.word in _ENDS or token.word in (";", ")", _ARROW) or token.word in _RENAMING
        if ends or (token is not None and token.word in (",", "and", "&", "(")):
            name = _name(phrase, last=False)
            if phrase and name:
                names.append(name)
                used.append(index - begin)
            elif phrase or ends:
                break
            phrase = []
            if ends:
                break
        elif token is not None:
            phrase.append(token)
    return names, used


def _phrases(tokens: list[_Token], *, first: bool) -> list[str | None]:
    names: list[str | None] = []
    phrase: list[_Token] = []
    closed = False
    for token in [*tokens, None]:
        if token is None or token.word in (",", "and", "&", ";", "(", ")") or (not first and token.word in _ENDS):
            if phrase and len(phrase) == 1 and phrase[0].word in _PRONOUNS and not first:
                names = [None]
            elif phrase and not (closed and first):
                name = _name(phrase, last=not first)
                if name:
                    names.append(name)
            if token is not None and token.word in _ENDS:
                names = names if token.word in ("as", "in") else []
            phrase = []
        elif first and token.word in _ENDS:
            name = _name(phrase, last=False)
            if name:
                names.append(name)
            phrase, closed = [], True
        else:
            phrase.append(token)
    return names


def _name(phrase: list[_Token], *, last: bool) -> str | None:
    """The one name of a noun phrase such as "the old helper `foo`"; None if there is none to tell."""
    useful = [t for t in phrase if t.quoted or t.word not in _FILLER]
    named = [t for t in useful if t.quoted] or [t for t in useful if t.is_code and t.word not in _VAGUE]
    if named:
        return named[-1 if last else 0].text
    plain = [t for t in useful if t.word not in _NOUNS and t.word not in _VAGUE and re.fullmatch(r"[^\W\d]\w*", t.text)]
    if len(plain) == 1:
        return plain[0].text
    if not plain and len(useful) == 1 and useful[0].word in _NOUNS:  # "rename type to kind"
        return useful[0].text
    return plain[-1].text if last and plain else None


_AFFIX = re.compile(
    r"\b(?P<verb>append|prepend|add)\s+(?:the\s+)?(?:(?P<kind>prefix|suffix)\s+)?[`\"']?(?P<affix>[\w$]+)[`\"']?"
    r"(?:\s+(?P<kind2>prefix|suffix))?\s+to\s+(?P<rest>.+)",
    re.IGNORECASE,
)
_AFFIX_WITH = re.compile(
    r"\b(?P<verb>prefix|suffix)\s+(?P<rest>.+?)\s+with\s+(?:an?\s+|the\s+)?[`\"']?(?P<affix>[\w$]+)[`\"']?",
    re.IGNORECASE,
)


def _affixes(sentence: str) -> Iterator[tuple[str, str]]:
    """ "append X to the names of a and b", "prefix a, b with X"."""
    for found in [*_AFFIX.finditer(sentence), *_AFFIX_WITH.finditer(sentence)]:
        groups = found.groupdict()
        kind = (groups.get("kind") or groups.get("kind2") or groups["verb"]).lower()
        if kind == "add":
            continue
        in_front = kind in ("prefix", "prepend")
        names, _ = _names_after(_tokens(found["rest"]), 0)
        for name in names:
            if name and re.fullmatch(r"\w+", name):
                yield name, found["affix"] + name if in_front else name + found["affix"]


_PARAMETER = re.compile(
    r"\b(?:give\s+(?:the\s+)?(?:\w+\s+)?[`\"']?(?P<f1>[\w.:]+[!?]?)[`\"']?\s+an?\s+(?:new\s+|extra\s+|additional\s+)*(?:first|leading)\s+"
    r"(?:parameter|argument|param|arg)\s+(?:named\s+|called\s+)?[`\"']?(?P<p1>\w+)"
    r"|add\s+(?:an?\s+|the\s+)?(?:new\s+|extra\s+|additional\s+)*(?:first|leading)\s+(?:parameter|argument|param|arg)\s+(?:named\s+|called\s+)?"
    r"[`\"']?(?P<p2>\w+)[`\"']?\s+to\s+(?:the\s+)?(?:function\s+|method\s+)?[`\"']?(?P<f2>[\w.:]+[!?]?)"
    r"|pass\s+[`\"']?(?P<p3>\w+)[`\"']?\s+as\s+(?:the\s+|a\s+)?(?:new\s+)?first\s+(?:parameter|argument|param|arg)\s+(?:to|of)\s+"
    r"(?:the\s+)?[`\"']?(?P<f3>[\w.:]+[!?]?))",
    re.IGNORECASE,
)


def _parameters(sentence: str) -> Iterator[tuple[str, str]]:
    """ "give f a new first parameter p": f() -> f(p), f( -> f(p, ."""
    for found in _PARAMETER.finditer(sentence):
        function = (found["f1"] or found["f2"] or found["f3"]).rstrip(".:")
        parameter = found["p1"] or found["p2"] or found["p3"]
        yield f"{function}()", f"{function}({parameter})"
        yield f"{function}(", f"{function}({parameter}, "
