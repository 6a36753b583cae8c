"""Where the copy goes on after a divergence: guesses, each with the tokens it is expected to win."""

from dataclasses import dataclass, field
from math import log, log1p, log2

from specd.engine.propose.edit_plan import Plan
from specd.engine.propose.edit_rules import Rule, RuleBook
from specd.engine.propose.edit_source import LEXEME, Source, TokenText, is_word
from specd.engine.propose.edit_weights import worth
from specd.engine.propose.ngram import NgramIndex

WINDOW = 240  # bytes of output that alignment looks at
DEEPEST = 32  # lexemes of a match that count
TOP = 6


@dataclass
class Lost:
    """A divergence: the source byte `offset` where the copy stopped, and the text written `since` then."""

    offset: int
    before: str
    since: str
    shift: int
    rule: Rule | None = None  # the rule whose text was refused there
    place: int = -1  # the lexeme where that rule had applied
    anchors: list[int] = field(default_factory=list)
    refused: dict[object, int] = field(default_factory=dict)
    steps: int = 0

    def write(self, text: str) -> None:
        self.since += text
        self.steps += 1


@dataclass
class Candidate:
    """A guess: go on at source byte `offset` (behind the text `lead`, if any)."""

    gain: float
    offset: int
    kind: str
    shift: int = 0
    lead: str = ""
    extra: Rule | None = None
    tokens: list[int] = field(default_factory=list)
    plan: Plan | None = None
    feats: dict[str, float] = field(default_factory=dict)

    @property
    def key(self) -> object:
        return self.offset, self.lead


BASE = {"unruled": 3.9, "word": 1.05, "word1": 0.5, "affix": 1.2, "item": 0.4, "resume": 0.1, "here": 0.5, "next": 0.9, "next2": 0.3}


def candidates(source: Source, rules: RuleBook, lost: Lost, tokens: TokenText, ngrams: NgramIndex) -> list[Candidate]:
    found: list[Candidate] = []
    since = lost.since
    text = (lost.before + since)[-WINDOW:]
    out: list[str] = LEXEME.findall(text)
    at = source.lexeme_at(lost.offset)
    old = source.lexemes[at] if at < len(source) else ""
    new: list[str] = LEXEME.findall(since[-WINDOW:])
    shift = lost.shift

    def add(kind: str, offset: int, shift: int = shift, lead: str = "", extra: Rule | None = None, **feats: float) -> None:
        found.append(Candidate(BASE.get(kind, 0.0), offset, kind, shift, lead, extra, feats=feats))

    if lost.rule is not None and since:
        if source.text.startswith(since, lost.offset):
            add("unruled", lost.offset + len(since))

    line = text[text.rfind("\n") + 1 :]
    content = line.lstrip(" \t")
    # one word replaced
    if old and is_word(old):
        word = new[0] if len(new) == 1 and is_word(new[0]) else ""
        if word:
            passed = sum(p < at for p in source.places.get(old, ()))
            extra = None if passed else Rule((old,), word)
            add("word", source.starts[at + 1], extra=extra, passed=float(passed > 0))
            for lead in affixes(word, old):
                add("affix", source.starts[at + 1], lead=lead, extra=None if passed else Rule((old,), word + lead))
    elif old and len(new) == 1:
        add("word1", source.starts[at + 1])

    if out:
        found.extend(matches(source, rules, lost, out, at))
    if content:
        indent = len(line) - len(content)
        home = source.line_of(at)
        lines = source.lines_that_start_with(content)
        for number in lines[:8]:
            first = source.line_starts[number]
            have = len(source.indent_of(number))
            offset = source.starts[first] + have + len(content)
            far = number - home
            gain = min(0.3 + 0.25 * len(content), 3.0) * near(far * 10)
            found.append(
                Candidate(gain, offset, "line", indent - have, feats={
                    "chars": log1p(len(content)), "many": log(len(lines)), "fwd": log1p(max(far, 0)),
                    "back": log1p(max(-far, 0)), "isback": float(far < 0),
                })
            )
    elif "\n" in since:
        number = source.line_of(at)
        for ahead, kind in ((0, "here"), (1, "next"), (2, "next2")):
            if number + ahead < len(source.line_starts):
                first = source.line_starts[number + ahead]
                if source.starts[first] >= lost.offset:
                    add(kind, source.starts[first] + (0 if not line else len(source.indent_of(number + ahead))))
    if since:
        add("resume", lost.offset, newline=float(since.endswith("\n")), steps=log1p(lost.steps))
        lead = separator(source, at)
        if lead and not since.endswith(lead):
            for size in range(len(lead), 0, -1):
                if since.endswith(lead[:size]):
                    lead = lead[size:]
                    break
            add("item", lost.offset, lead=lead)
    for n, gain in ((5, 2.6), (4, 1.9), (3, 1.4), (2, 0.9), (1, 0.45)):
        position = ngrams.find(n)
        if position is not None:
            depth = n
            hist = ngrams.tokens
            while n == 5 and depth < 40 and depth < position and hist[position - 1 - depth] == hist[-1 - depth]:
                depth += 1
            found.append(Candidate(gain, -1, f"ngram{n}", tokens=ngrams.follow(position, 24), feats={"depth": log(depth)}))
            break
    for c in found:
        if c.key in lost.refused:
            c.feats["refused"] = log1p(lost.refused[c.key])
        c.gain = worth(c.kind, c.feats)
    found.sort(key=lambda c: -c.gain)
    return found


def affixes(word: str, old: str) -> list[str]:
    """What is left to write if the new name is `word`, a joint, and the old name."""
    for size in range(min(len(word), len(old) - 1), 0, -1):
        if word.endswith(old[:size]) and len(word) > size:
            return [old[size:]]
    if word.endswith("_"):
        return [old]
    if "_" in old or (old.islower() and word.islower()):
        return ["_" + old]
    return [old[0].upper() + old[1:]]


def separator(source: Source, at: int) -> str:
    """The punctuation and blanks in front of a lexeme, up to the word before."""
    lead = ""
    while at > 0 and len(lead) < 40 and not is_word(source.lexemes[at - 1]) and not source.lexemes[at - 1][0].isdigit():
        at -= 1
        lead = source.lexemes[at] + lead
    return lead


def near(distance: int) -> float:
    """How likely a place is, by its distance in lexemes from where the copy stopped."""
    if distance >= 0:
        return 1.0 / (1.0 + distance / 200)
    return 0.5 / (1.0 - distance / 200)


def matches(source: Source, rules: RuleBook, lost: Lost, out: list[str], at: int) -> list[Candidate]:
    lexemes, starts, places = source.lexemes, source.starts, source.places
    last = out[-1]
    anchors = [at, *lost.anchors]
    ends: list[tuple[int, int]] = [(place, len(last)) for place in source.places_of(last, anchors)]
    for word in rules.written.get(last, ()):
        ends += [(place, len(word)) for place in source.places_of(word, anchors)]
    if is_word(last):
        for word in source.words_that_start_with(last):
            ends += [(place, len(last)) for place in source.places_of(word, anchors)[:16]]
    total = len(lexemes) or 1
    bits = [min(log2(total / len(places.get(lexeme, (0,)))), 12.0) for lexeme in out[-DEEPEST:]]
    scored = []
    written = rules.written
    count = min(len(out), DEEPEST)
    for place, length in ends:
        whole = length == len(lexemes[place])
        gained = bits[-1] if whole else bits[-1] * 0.6
        depth = 1
        limit = min(count, place + 1)
        while depth < limit:
            a, b = out[-1 - depth], lexemes[place - depth]
            if a != b and not (written and (b in written.get(a, ()) or a in written.get(b, ()))):
                break
            gained += bits[-1 - depth]
            depth += 1
        scored.append((near(place - at) * 2 ** min(gained / 2, 40), gained, depth, place, length))
    if not scored:
        return []
    scored.sort(reverse=True)
    whole_sum = sum(s[0] for s in scored)
    since_count = len(LEXEME.findall(lost.since[-WINDOW:]))
    found = []
    for score, gained, depth, place, length in scored[:TOP]:
        shift = lost.shift
        if place >= depth and len(out) > depth:
            a, b = out[-1 - depth], lexemes[place - depth]
            if a.isspace() and b.isspace() and "\n" not in (a, b) and len(out) > depth + 1 and out[-2 - depth] == "\n":
                if place == depth or lexemes[place - depth - 1] == "\n":
                    shift = len(a) - len(b)
            elif a == "\n" and b.isspace() and b != "\n":
                shift = -len(b)
            elif b == "\n" and a.isspace() and a != "\n":
                shift = len(a)
        distance = place - at
        share = score / whole_sum
        gain = min(gained / 8, 3.9) * near(distance) * (0.3 + 0.7 * share)
        if gained > 60:
            gain = 4.0
        found.append(
            Candidate(gain, starts[place] + length, "match", shift, feats={
                "bits": log1p(gained), "depth": log(depth), "share": share, "fwd": log1p(max(distance, 0)),
                "back": log1p(max(-distance, 0)), "isback": float(distance < 0), "partial": float(length != len(lexemes[place])),
                "covers": float(depth >= since_count), "nl": float(last == "\n"),
            })
        )
    return found
