"""Guesses by alignment: the end of the output stands in the source, so the copy goes on behind it."""

from math import log, log1p

from specd.engine.propose.edit_guess import Guess, Lost, Words
from specd.engine.propose.edit_rules import RuleBook
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import is_word

DEEPEST = 32  # lexemes of a match that count
SHALLOW = 6  # lexemes of it that are compared one by one at first
MOST_GUESSES = 4
UNLIKELY = 30  # times less likely than the best place: not worth a guess
NEAREST_ANCHOR = 0.6  # of 1.0: how near a place behind an anchor is
MOST_ENDS = 24  # places that are compared


def match_guesses(source: Source, rules: RuleBook, lost: Lost, at: int, words: Words) -> list[Guess]:
    """One guess for each of the best places. at: the lexeme where the copy stopped.

    A match is worth the bits of its lexemes, log2(all / places of it); rare words tell most. Names that a rule writes
    match the names that it replaces.
    """
    out, lexemes, others = lost.out, source.lexemes, lost.anchors
    if not out:
        return []
    newest = out[-1 : -DEEPEST - 1 : -1]
    most = len(newest)
    gains = [0.0, source.bits(newest[0])]  # bits of the first so many lexemes, as far as they were asked for
    odds = [1.0, 2.0 ** (gains[1] / 2)]
    written = rules.written
    before = newest[1] if most > 1 else ""
    alike = written.get(before, ())
    scored = []
    for place, length in _ends(source, rules, newest, (at, *others)):
        depth = 1
        if most > 1 and place and (lexemes[place - 1] == before or lexemes[place - 1] in alike):
            depth = _depth(out, lexemes, place, min(most, place + 1), written)
            while len(gains) <= depth:
                gains.append(gains[-1] + source.bits(newest[len(gains) - 1]))
                odds.append(2.0 ** min(gains[-1] / 2, 60.0))
        distance = place - at  # a place is less likely the further it is, and behind less than ahead
        near = 200.0 / (200 + distance) if distance >= 0 else 100.0 / (200 - distance)
        if near < NEAREST_ANCHOR:
            for anchor in others:
                away = place - anchor
                other = 120.0 / (200 + away) if away >= 0 else 60.0 / (200 - away)
                if other > near:
                    near = other
        if length == len(lexemes[place]):
            scored.append((near * odds[depth], gains[depth], depth, place, length))
        else:
            gained = gains[depth] - gains[1] * 0.4
            scored.append((near * 2.0 ** min(gained / 2, 60.0), gained, depth, place, length))
    scored.sort(reverse=True)
    all_scores = sum([entry[0] for entry in scored])
    line_end, steps = float(newest[0] == "\n"), log1p(lost.steps)
    guesses = []
    for score, gained, depth, place, length in scored[:MOST_GUESSES]:
        if score * UNLIKELY < scored[0][0]:
            break
        distance = place - at
        weak = 1.0 / (1.0 + gained / 20)
        whole = length == len(lexemes[place])
        began = place - depth + 1
        anchored = [anchor for anchor in others if began <= anchor <= place]
        features = (
            log1p(gained),
            score / all_scores,
            log1p(distance) * weak if distance > 0 else 0.0,
            log1p(-distance) * weak if distance < 0 else 0.0,
            1.0 if distance < 0 else 0.0,
            0.0 if whole else 1.0,
            1.0 if depth >= lost.count else 0.0,
            line_end,
            1.0 if anchored else 0.0,
            steps,
            words.mentions(lexemes[place + 1 : place + 3] if whole else lexemes[place : place + 1]),
            log(depth),
        )
        shift = _shift(lexemes, out, place, depth, lost.shift)
        guesses.append(Guess("match", source.starts[place] + length, features, shift=shift))
    return guesses


def _ends(source: Source, rules: RuleBook, newest: list[str], anchors: tuple[int, ...]) -> list[tuple[int, int]]:
    """(lexeme that the output's last lexeme is or begins, bytes of it that were written)."""
    last = newest[0]
    places = source.places_near(last, anchors, newest[1] if len(newest) > 1 else "")
    ends = [(place, len(last)) for place in places]
    if is_word(last):
        for word in rules.written.get(last, ()):
            ends += [(place, len(word)) for place in source.places_near(word, anchors)]
        for word in source.words_that_begin(last, 4):
            ends += [(place, len(last)) for place in source.places_near(word, anchors)[:8]]
    return ends[:MOST_ENDS]


def _depth(out: list[str], lexemes: list[str], place: int, most: int, written: dict[str, list[str]]) -> int:
    """How many of the output's last lexemes stand in front of the source lexeme behind `place`, at most `most`; the
    last one is not looked at, and the one before it is known to stand there."""
    depth = 2
    while depth < most:
        ours, theirs = out[-1 - depth], lexemes[place - depth]
        if ours != theirs and theirs not in written.get(ours, ()):
            break
        depth += 1
        if depth == SHALLOW:
            for step in (16, 8, 4):
                reach = depth + step
                if reach <= most and out[-reach:-depth] == lexemes[place - reach + 1 : place - depth + 1]:
                    depth = reach
    return depth


def _shift(lexemes: list[str], out: list[str], place: int, depth: int, shift: int) -> int:
    """Blanks that the matched line moved by, where the match reaches its indentation."""
    if place < depth or len(out) <= depth:
        return shift
    ours, theirs = out[-1 - depth], lexemes[place - depth]
    starts_line = place == depth or lexemes[place - depth - 1] == "\n"
    if (
        ours.strip(" \t") == ""
        and theirs.strip(" \t") == ""
        and starts_line
        and out[-2 - depth : -1 - depth] in ([], ["\n"])
    ):
        return len(ours) - len(theirs)
    if ours == "\n" and starts_line and theirs.strip(" \t") == "":
        return -len(theirs)
    if theirs == "\n" and ours.strip(" \t") == "" and out[-2 - depth : -1 - depth] in ([], ["\n"]):
        return len(ours)
    return shift
