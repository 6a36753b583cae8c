"""Guesses by lines: the source line that the output's current one begins like, or the line that comes next."""

from math import log, log1p

from specd.engine.propose.edit_guess import WINDOW, Guess, Lost, Words
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import LEXEME, is_word

MOST_LINES = 4  # that begin like the output's current one
PARAGRAPH = 60  # lines ahead in which the next paragraph is looked for


def line_guesses(source: Source, lost: Lost, words: Words, at: int) -> list[Guess]:
    """Source lines that begin like the output's current one; if that is empty, the lines that may come next."""
    text = lost.since if "\n" in lost.since else lost.before + lost.since
    line = text[text.rfind("\n") + 1 :][-WINDOW:]
    content = line.lstrip(" \t")
    home = source.line_of(at)
    guesses = []
    if content:
        indent = len(line) - len(content)
        numbers = source.lines_that_begin(content, MOST_LINES)
        for number in numbers:
            first, have = source.line_starts[number], source.indent_of(number)
            far = number - home
            for anchor in lost.anchors:
                far = min(far, number - source.line_of(anchor), key=abs)
            features: tuple[float, ...] = (
                *(log1p(len(content)), log(len(numbers)), log1p(max(far, 0)), log1p(max(-far, 0)), float(far < 0)),
                *(float(indent == have), words.mentions(source.lexemes[first : first + 6])),
            )
            guesses.append(Guess("line", source.starts[first] + have + len(content), features, shift=indent - have))
        return guesses
    if "\n" not in lost.since:
        return []
    since = lost.since.rstrip(" \t")
    lines = since.count("\n")
    blank = since.endswith("\n\n")
    like = shared_words(since[-WINDOW:].rstrip("\n").rsplit("\n", 1)[-1], source.line(home, 60))
    ways = [(0, "here"), (1, "next"), (2, "next but one")]
    if lines > 2:
        ways.append((lines, "next of many"))
    if blank:
        ways += [(ahead, "paragraph") for ahead in [_paragraph(source, home)] if ahead]
    for ahead, kind in ways:
        number = home + ahead
        if number >= len(source.line_starts) or source.starts[source.line_starts[number]] < lost.offset:
            continue
        first = source.line_starts[number]
        have = source.indent_of(number) if line else 0
        features = (  # as FEATURES has them
            *(like, float(blank), log(lines), float(bool(line)), log1p(lost.steps)),
            words.mentions(source.lexemes[first : first + 6]),
        )
        guesses.append(Guess(kind, source.starts[first] + have, features, shift=lost.shift))
    return guesses


def _paragraph(source: Source, home: int) -> int:
    """Lines from `home` to the first one behind the next blank line; 0 if there is none near."""
    for ahead in range(1, PARAGRAPH):
        number = home + ahead
        if number >= len(source.line_starts):
            return 0
        if source.is_blank(number - 1) and not source.is_blank(number):
            return ahead
    return 0


def shared_words(line: str, lexemes: list[str]) -> float:
    """Share of a line's words that a written line holds."""
    old = set(filter(is_word, lexemes))
    return len(old.intersection(LEXEME.findall(line))) / len(old) if old else 0.0
