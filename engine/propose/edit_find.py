"""Every other guess where the copy goes on: a word replaced, a line replaced, an insertion over, a new name to
complete, a recalled row of tokens."""

from bisect import bisect_left
from math import log, log1p

from specd.engine.propose.edit_guess import Guess, Lost, Words, rank
from specd.engine.propose.edit_inside import Inside
from specd.engine.propose.edit_lines import line_guesses
from specd.engine.propose.edit_match import match_guesses
from specd.engine.propose.edit_recall import Recalled, follow
from specd.engine.propose.edit_rules import Rule, RuleBook
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import TokenText, is_word

SHORT = 40  # bytes written since a divergence, above which what stood there says nothing more
RECALLED = 64  # tokens taken from a recalled place


def find_guesses(
    source: Source,
    rules: RuleBook,
    lost: Lost,
    words: Words,
    tokens: list[int],
    recalled: list[Recalled],
    texts: TokenText,
    inside: Inside,
) -> list[Guess]:
    """All guesses, best first."""
    out, at = lost.out, source.lexeme_at(lost.offset)
    guesses = _after_rules(source, lost, out)
    begun = inside.begun(rules, lost)
    if begun is not None:
        guesses.append(begun)
    guesses += _words(source, lost, words, out, at)
    guesses += match_guesses(source, rules, lost, at, words)
    guesses += line_guesses(source, lost, words, at)
    guesses += _insertion_over(source, lost, words, out, at)
    phrase = words.follow(out)
    if phrase is not None and phrase[0]:
        following, depth, count, share = phrase
        features = (log(depth), log(count), share, log1p(lost.steps))
        guesses.append(Guess("phrase", lost.offset, features, shift=lost.shift, lead=following))
    for found in recalled:
        features = (log(found.depth), log(found.count), found.share, log1p(lost.steps))
        row = follow(tokens, found.position, RECALLED)
        guesses.append(Guess(f"recall{min(found.depth, 5)}", -1, features, tokens=row))
    return rank(guesses, lost, source, texts)


def _after_rules(source: Source, lost: Lost, out: list[str]) -> list[Guess]:
    """A rule did not hold: the source as it is; or it held half: the rest of its text behind what was written in
    between."""
    guesses = []
    if lost.rule is not None and lost.since and source.text.startswith(lost.since, lost.offset):
        guesses.append(Guess("unruled", lost.offset + len(lost.since), (), shift=lost.shift))
    guesses += _undo(source, lost)
    if lost.rest and lost.since and len(lost.since) <= SHORT and "\n" not in lost.since:
        cut = next((i for i, letter in enumerate(lost.rest) if not (letter.isalnum() or letter == "_")), len(lost.rest))
        for lead in dict.fromkeys(filter(None, (lost.rest, lost.rest[cut:]))):
            features = (float(len(lead) < len(lost.rest)), float(is_word(out[-1])), log1p(lost.steps))
            guesses.append(Guess("rule rest", lost.offset, features, shift=lost.shift, lead=lead))
    return guesses


def _undo(source: Source, lost: Lost) -> list[Guess]:
    """The divergence just before was settled wrongly: its text was put in front of the source, which goes on there
    after all."""
    if lost.undo < 0 or not lost.since or len(lost.since) > SHORT:
        return []
    if source.text.startswith(lost.since, lost.undo):
        return [Guess("undo", lost.undo + len(lost.since), (1.0, 0.0), shift=lost.shift)]
    lead = _separator(source, source.lexeme_at(lost.undo))
    for size in range(min(len(lead), len(lost.since)), 0, -1):
        if lost.since.endswith(lead[:size]):
            return [Guess("undo", lost.undo, (0.0, float(size == len(lost.since))), shift=lost.shift, lead=lead[size:])]
        if (
            lead[:size]
            and source.text.startswith(lost.since[size:] or "\0", lost.undo)
            and lost.since.startswith(lead[:size])
        ):
            return [Guess("undo", lost.undo + len(lost.since) - size, (1.0, 1.0), shift=lost.shift)]
    return []


def _words(source: Source, lost: Lost, words: Words, out: list[str], at: int) -> list[Guess]:
    """One word replaced by another; a name that gets a beginning or an end; a new name that the instruction holds."""
    guesses: list[Guess] = []
    last = out[-1] if out else ""
    old = source.lexemes[at] if at < len(source) else ""
    known = float(last in words.known or last in source.places)
    behind = source.starts[min(at + 1, len(source))]
    alone = lost.count == 1
    replaced = alone and is_word(lost.since) and is_word(old)
    if replaced:
        word = lost.since
        places = source.places[old]
        passed = bisect_left(places, at)
        middle = float(at > 1 and "\n" not in source.lexemes[at - 2 : at])
        again = log1p(len(places) - passed)
        features: tuple[float, ...] = (
            float(passed > 0),
            known,
            likeness(word, old),
            middle,
            log1p(lost.steps),
            log(len(word)),
            again,
        )
        guesses.append(Guess("word", behind, features, shift=lost.shift, extra=None if passed else Rule((old,), word)))
        rest = rest_of_affixed(word, old)
        features = (known, float(word.endswith("_")), float(len(word) < 3), again, middle)
        extra = None if passed else Rule((old,), word + rest)
        guesses.append(Guess("affix", behind, features, shift=lost.shift, lead=rest, extra=extra))
    elif old and alone:
        guesses.append(Guess("mark", behind, (float(old.isspace()),), shift=lost.shift))
    if is_word(last):
        named = [word for word in words.new if word.startswith(last) and word != last][:2]
        for number, word in enumerate(named):
            features = (log(len(last)), log1p(number), known)
            extra = Rule((old,), word) if replaced else None
            place = behind if replaced else lost.offset
            guesses.append(Guess("named", place, features, shift=lost.shift, lead=word[len(last) :], extra=extra))
    return guesses


def _insertion_over(source: Source, lost: Lost, words: Words, out: list[str], at: int) -> list[Guess]:
    """What was written came on top: the source goes on where the copy stopped, there or at an earlier stop."""
    if not lost.since:
        return []
    guesses = []
    since, wordy, steps = lost.since, float(is_word(out[-1])), log1p(lost.steps)
    line_over = float(since.endswith("\n"))
    for number, anchor in enumerate([at, *reversed(lost.anchors)]):
        offset = source.starts[anchor] if number else lost.offset
        context = _common_end(since, source.text, offset)
        if number and context < 2 and not line_over:
            continue
        features = (
            line_over,
            steps,
            log1p(context),
            float(context >= 4 or context == len(since)),
            wordy,
            float(number == 1),
        )
        guesses.append(Guess("back" if number else "resume", offset, features, shift=lost.shift))
    lead = _separator(source, at)
    for size in range(min(len(lead), len(since)), 0, -1):
        if since.endswith(lead[:size]):
            lead = lead[size:]
            break
    if lead:
        known = float(out[-1] in words.known or out[-1] in source.places)
        guesses.append(
            Guess("item", lost.offset, (wordy, float("\n" in lead), known, steps), shift=lost.shift, lead=lead)
        )
    return guesses


def likeness(a: str, b: str) -> float:
    """Share of the shorter word that both begin or end with."""
    most = min(len(a), len(b))
    head = tail = 0
    while head < most and a[head] == b[head]:
        head += 1
    while tail < most - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return (head + tail) / most if most else 0.0


def rest_of_affixed(word: str, old: str) -> str:
    """What is left to write of a new name that begins with `word` and ends with the old one: base -> base_|name, get
    -> get|Name."""
    for size in range(min(len(word), len(old)) - 1, 0, -1):
        if word.endswith(old[:size]):
            return old[size:]
    if word.endswith("_"):
        return old
    if "_" in old or (old.islower() and word.islower()):
        return "_" + old
    return old[0].upper() + old[1:]


def _separator(source: Source, at: int) -> str:
    """Marks and blanks between a lexeme and the word before it."""
    lead = ""
    while at > 0 and len(lead) < 40 and not is_word(source.lexemes[at - 1]) and not source.lexemes[at - 1].isdigit():
        at -= 1
        lead = source.lexemes[at] + lead
    return lead


def _common_end(since: str, text: str, offset: int) -> int:
    """Bytes that the written text and the source before `offset` end with alike, 40 at most."""
    count, most = 0, min(len(since), offset, 40)
    while count < most and since[-1 - count] == text[offset - 1 - count]:
        count += 1
    return count
