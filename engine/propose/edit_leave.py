"""The place where an answer left the text it edits."""

from specd.engine.propose.edit_guess import WINDOW, Lost
from specd.engine.propose.edit_rules import Piece, RuleBook
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import is_word


def diverge(
    source: Source, rules: RuleBook, rest: list[Piece], before: str, written: str, shift: int, anchors: list[int]
) -> Lost:
    """Where the copy stopped: in front of the word that came out different.

    rest: the pieces that were to come; before: the output's end up to there; written: the token that came instead. A
    rule whose text this contradicts is told so.
    """
    ahead = "".join([piece.text for piece in rest])
    same = 0
    while same < min(len(written), len(ahead)) and written[same] == ahead[same]:
        same += 1
    piece, inside = None, same
    for candidate in rest:
        refused = not candidate.text and source.text.startswith(written[inside : inside + 8] or "\0", candidate.start)
        if inside < len(candidate.text) or (not inside and refused):  # `refused`: a deletion that did not take place
            piece = candidate
            break
        inside -= len(candidate.text)
    rule, over = None, ""
    offset, back = (
        len(source.text),
        0,
    )  # back: bytes of the output before the difference that belong to the divergence
    if piece is not None and piece.rule is not None:
        rule = piece.rule
        back = inside + len(rule.text) - len(piece.text)
        offset = source.starts[piece.at]
        if back and not source.text.startswith(rule.text[:back], offset):  # the new text, but not all of it
            over, offset, back = rule.text[back:], piece.end, 0
            rules.keep(rule, piece.at, wrong=False)
            rule = None
        else:
            rules.keep(rule, piece.at, wrong=True)
    elif piece is not None:
        offset = max(piece.end - (len(piece.text) - inside), piece.start)
    if rule is None and not over:
        lexeme = source.lexeme_at(offset)
        longer = written[same : same + 1]
        if lexeme < len(source) and is_word(source.lexemes[lexeme]) and source.starts[lexeme] < offset:
            back = offset - source.starts[lexeme]
        elif lexeme and is_word(source.lexemes[lexeme - 1]) and (longer.isalnum() or longer == "_"):
            back = len(source.lexemes[lexeme - 1])  # a word that was copied whole and goes on
        offset -= back
    text = before + written
    border = max(len(before) + same - back, 0)
    return Lost(offset, text[:border][-WINDOW:], text[border:], shift, rule, over, list(anchors))
