"""The rest of the answer as it would be if the copy went on: rewritten source from one place on, as tokens, grown as needed."""

from bisect import bisect_right
from collections.abc import Sequence as Tokens
from dataclasses import dataclass

from specd.engine.propose.edit_rules import Piece, Rule, RuleBook
from specd.engine.propose.edit_source import Source, TokenText

MOST_ENCODED = 4096  # lines whose tokens are remembered


@dataclass(frozen=True)
class Chunk:
    """The tokens of a unit, or of the rest of one, and the pieces of text that they spell."""

    tokens: list[int]
    pieces: list[Piece]
    plain: bool = False  # no rule applied


class Rewriter:
    """Rewritten units and their tokens, kept until a rule changes."""

    def __init__(self, source: Source, rules: RuleBook, tokens: TokenText) -> None:
        self.source, self.rules, self.tokens = source, rules, tokens
        self._units: dict[tuple[int, int], Chunk] = {}
        self._encoded: dict[str, list[int]] = {}
        self._version = -1

    def unit(self, unit: int, shift: int, extra: Rule | None = None) -> Chunk:
        """A unit under the rules, `extra` before the others, its indentation moved by `shift` characters."""
        if self._version != self.rules.version:
            self._units.clear()
            self._version = self.rules.version
        if extra is not None:
            return self._rewrite(unit, shift, extra)
        chunk = self._units.get((unit, shift))
        if chunk is None:
            chunk = self._units[unit, shift] = self._rewrite(unit, shift, None)
        return chunk

    def rest(self, offset: int, shift: int, extra: Rule | None = None) -> list[Piece]:
        """What is left of the unit that holds byte `offset`. `shift` moves its indentation if `offset` stands before it."""
        source = self.source
        unit = source.unit_at(offset)
        first, last = source.lexeme_at(offset), self._last(unit)
        pieces: list[Piece] = []
        if first < last and source.starts[first] < offset:  # inside a lexeme no rule can apply
            pieces.append(Piece(source.text[offset : source.starts[first + 1]], offset, source.starts[first + 1]))
            first += 1
        return shifted(source, pieces + self.rules.rewrite(first, last, extra), shift)

    def encode(self, text: str) -> list[int]:
        """Tokens of byte text, remembered."""
        ids = self._encoded.get(text)
        if ids is None:
            if len(self._encoded) >= MOST_ENCODED:
                self._encoded.clear()
            ids = self._encoded[text] = self.tokens.encode(text)
        return ids

    def _last(self, unit: int) -> int:
        end = self.source.unit_end(unit)
        return self.source.lexeme_at(end) if end < len(self.source.text) else len(self.source)

    def _rewrite(self, unit: int, shift: int, extra: Rule | None) -> Chunk:
        source = self.source
        start = source.unit_starts[unit]
        pieces = self.rules.rewrite(source.lexeme_at(start), self._last(unit), extra)
        plain = all(piece.rule is None for piece in pieces)
        if plain and not shift:
            return Chunk(source.unit_tokens[unit], pieces, True)
        pieces = shifted(source, pieces, shift)
        return Chunk(self.encode("".join([piece.text for piece in pieces])), pieces, plain)


def shifted(source: Source, pieces: list[Piece], shift: int) -> list[Piece]:
    """`pieces` with the indentation of each line that starts in them moved by `shift` characters."""
    if not shift:
        return pieces
    out: list[Piece] = []
    for piece in pieces:
        at_start = piece.rule is None and (piece.start == 0 or source.text[piece.start - 1] == "\n")
        lines = piece.text.split("\n")
        for number, line in enumerate(lines):
            if (number or at_start) and line.strip():
                blanks = len(line) - len(line.lstrip(" \t"))
                blank = line[0] if blanks else " "
                lines[number] = blank * max(blanks + shift, 0) + line[blanks:]
        out.append(Piece("\n".join(lines), piece.start, piece.end, piece.rule, piece.at))
    return out


class Plan:
    """Tokens to draft from one place of the source on, and the way back from each token to that place."""

    def __init__(
        self,
        rewriter: Rewriter,
        pieces: list[Piece],
        unit: int,
        context: str,
        context_ids: Tokens[int],
        *,
        shift: int = 0,
        extra: Rule | None = None,
        end_ids: Tokens[int] = (),
    ) -> None:
        """`pieces`: what is left of the current line; `unit`: the one to go on with behind it. `context`: the text of the line that
        was emitted already, by the tokens `context_ids`."""
        self._rewriter, self._shift, self._extra, self._end_ids = rewriter, shift, extra, list(end_ids)
        self._next = unit
        text = "".join([piece.text for piece in pieces])
        ids = rewriter.encode(context + text)
        given = len(context_ids)
        self.agrees = ids[:given] == list(context_ids)
        """False: the target would have cut what it wrote into other tokens if this rest came next."""
        if self.agrees:
            ids = ids[given:]
        else:
            ids = self._behind(ids, len(context)) or rewriter.encode(text)
        self.tokens: list[int] = list(ids)
        self.chunks = [Chunk(ids, pieces)]
        self._bases = [0]
        self.counted = 0  # chunks whose rules have been credited
        self._ended = False

    def _behind(self, ids: list[int], context_bytes: int) -> list[int]:
        """The tokens that start exactly behind the context, if there is such a border."""
        offset = 0
        for index, id in enumerate(ids):
            if offset == context_bytes:
                return ids[index:]
            offset += len(self._rewriter.tokens[id])
        return []

    def grow(self, count: int) -> None:
        """Have at least `count` tokens, if the source holds so many."""
        tokens, source = self.tokens, self._rewriter.source
        while len(tokens) < count and not self._ended:
            if self._next >= len(source.unit_starts):
                self._ended = True
                self.chunks.append(Chunk(self._end_ids, []))
            else:
                self.chunks.append(self._rewriter.unit(self._next, self._shift, self._extra))
                self._next += 1
            self._bases.append(len(tokens))
            tokens.extend(self.chunks[-1].tokens)

    def locate(self, index: int) -> tuple[int, int]:
        """Token index -> (chunk, byte offset in its text)."""
        chunk = max(bisect_right(self._bases, index) - 1, 0)
        text = self._rewriter.tokens
        return chunk, sum([len(text[id]) for id in self.tokens[self._bases[chunk] : index]])

    def unit_behind(self, chunk: int) -> int:
        """The unit that follows a chunk."""
        return self._next - (len(self.chunks) - 1 - chunk) + self._ended

    def cut(self, chunk: int, offset: int) -> list[Piece]:
        """The pieces of a chunk from byte `offset` of its text on."""
        rest: list[Piece] = []
        for piece in self.chunks[chunk].pieces:
            length = len(piece.text)
            if offset >= length:
                offset -= length
                continue
            if offset:
                start = piece.start if piece.rule else max(piece.end - (length - offset), piece.start)
                piece = Piece(piece.text[offset:], start, piece.end, piece.rule, piece.at)
                offset = 0
            rest.append(piece)
        return rest
