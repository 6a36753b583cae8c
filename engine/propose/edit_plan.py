"""The rest of the answer as it would be if the copy went on: rewritten source from one place on, as tokens, grown as
needed."""

from bisect import bisect_right
from collections.abc import Sequence as Tokens
from dataclasses import dataclass
from itertools import accumulate

from specd.engine.propose.edit_rules import Piece, Rule, RuleBook
from specd.engine.propose.edit_source import Source, TokenText, is_seam

MOST_ENCODED = 4096  # short texts whose tokens are remembered


@dataclass(frozen=True)
class Chunk:
    """The tokens of a unit, or of the rest of one, and the pieces of text that they spell; None: the unit as it
    stands."""

    tokens: list[int]
    pieces: list[Piece] | None = None


class Rewriter:
    """Rewritten units and their tokens, kept until a rule changes."""

    def __init__(self, source: Source, rules: RuleBook, tokens: TokenText) -> None:
        self.source, self.rules, self.tokens = source, rules, tokens
        self._units: dict[tuple[int, int], Chunk] = {}
        self._ends: dict[int, dict[int, int]] = {}
        self._encoded: dict[str, list[int]] = {}
        self._version = -1

    def unit(self, unit: int, shift: int, extra: Rule | None = None) -> Chunk:
        """A unit under the rules, `extra` before them, its line moved right by `shift` blanks (left if negative)."""
        source = self.source
        first, last = source.unit_lexemes[unit], source.unit_lexemes[unit + 1]
        if not shift and not self.rules.touch(source.lexemes[first:last], extra):
            return Chunk(source.unit_tokens[unit])
        if self._version != self.rules.version:
            self._units.clear()
            self._version = self.rules.version
        chunk = self._units.get((unit, shift)) if extra is None else None
        if chunk is None:
            pieces = shifted(source, self.rules.rewrite(first, last, extra), shift)
            chunk = Chunk(self.tokenize(unit, pieces), pieces)
            if extra is None:
                self._units[unit, shift] = chunk
        return chunk

    def rest(self, offset: int, shift: int, extra: Rule | None = None) -> list[Piece]:
        """What is left of the unit that holds the byte `offset`; `shift` moves lines that begin in it."""
        source = self.source
        first, last = source.lexeme_at(offset), source.lexeme_at(source.unit_end(source.unit_at(offset)))
        pieces: list[Piece] = []
        if first < last and source.starts[first] < offset:  # no rule applies inside a lexeme
            first += 1
            pieces.append(Piece(source.text[offset : source.starts[first]], offset, source.starts[first]))
        return shifted(source, pieces + self.rules.rewrite(first, last, extra), shift)

    def encode(self, text: str) -> list[int]:
        """Tokens of byte text, remembered."""
        ids = self._encoded.get(text)
        if ids is None:
            if len(self._encoded) >= MOST_ENCODED:
                self._encoded.clear()
            ids = self._encoded[text] = self.tokens.encode(text)
        return ids

    def tokenize(self, unit: int, pieces: list[Piece], context: str = "") -> list[int]:
        """Tokens of `context` and the pieces behind it: the unit's own tokens wherever they copy it, between seams,
        and new ones around what was changed."""
        source = self.source
        start = source.unit_starts[unit]
        ends = self._token_ends(unit)
        own, text = source.unit_tokens[unit], source.text
        ids: list[int] = []
        pending = context  # text that waits to be tokenized
        for number, piece in enumerate(pieces):
            if (
                piece.rule is not None
                or len(piece.text) != piece.end - piece.start
                or piece.text != text[piece.start : piece.end]
            ):
                pending += piece.text
                continue
            begin, stop = piece.start, piece.end
            if pending or begin not in ends:
                while begin < stop and not (is_seam(text, begin) and begin in ends):
                    begin += 1
            if number + 1 < len(pieces) or stop not in ends:
                while stop > begin and not (is_seam(text, stop) and stop in ends):
                    stop -= 1
            if begin >= stop:
                pending += piece.text
                continue
            ids += self.encode(pending + text[piece.start : begin])
            ids += own[ends[begin] : ends[stop]]
            pending = text[stop : piece.end]
        return ids + self.encode(pending) if pending or start < 0 else ids

    def _token_ends(self, unit: int) -> dict[int, int]:
        """Byte offset -> index of the unit's token that begins there."""
        ends = self._ends.get(unit)
        if ends is None:
            ids, start, text = self.source.unit_tokens[unit], self.source.unit_starts[unit], self.tokens
            lengths = accumulate([len(text[token]) for token in ids], initial=start)
            ends = self._ends[unit] = {offset: index for index, offset in enumerate(lengths)}
        return ends


def shifted(source: Source, pieces: list[Piece], shift: int) -> list[Piece]:
    """`pieces` with the indentation of each line that begins in them moved by `shift` blanks."""
    if not shift:
        return pieces
    out: list[Piece] = []
    for piece in pieces:
        text = piece.text
        if piece.rule is None:
            lines = text.split("\n")
            from_start = piece.start == 0 or source.text[piece.start - 1] == "\n"
            for number, line in enumerate(lines):
                if (number or from_start) and line.strip():
                    blanks = len(line) - len(line.lstrip(" \t"))
                    blank = line[0] if blanks else "\t" if source.text[:1] == "\t" else " "
                    lines[number] = blank * max(blanks + shift, 0) + line[blanks:]
            text = "\n".join(lines)
        out.append(Piece(text, piece.start, piece.end, piece.rule, piece.at))
    return out


class Plan:
    """Tokens to draft from one place of the source on, and the way back from each of them to that place."""

    def __init__(
        self,
        rewriter: Rewriter,
        pieces: list[Piece],
        unit: int,
        line: Tokens[int],
        *,
        shift: int = 0,
        extra: Rule | None = None,
        end_ids: Tokens[int] = (),
    ) -> None:
        """`pieces`: what is left of `unit`; the units behind it follow. `line`: the tokens of the output's current
        line."""
        self._rewriter, self._end_ids = rewriter, end_ids
        self.shift, self.extra = shift, extra
        self._next = unit + 1
        self._ended = False
        ids, self.agrees = self._join(unit, pieces, line)
        self.tokens = list(ids)
        self.chunks = [Chunk(ids, pieces)]
        self._bases = [0]
        self.credited = 0  # chunks whose rules have had their credit

    def _join(self, unit: int, pieces: list[Piece], line: Tokens[int]) -> tuple[list[int], bool]:
        """The tokens of `pieces` behind the line so far; False if the target would have cut its line into other
        tokens, had it meant to go on like this."""
        rewriter, texts = self._rewriter, self._rewriter.tokens
        begin = len(line)
        while begin > 0:
            begin -= 1
            before = texts[line[begin - 1]][-1:] if begin else ""
            here = texts[line[begin]][:1]
            if not begin or (before.isascii() and before.isalpha() and here.isascii() and not here.isalpha()):
                break
        given = list(line[begin:])
        context = texts.join(given)
        ids = rewriter.tokenize(unit, pieces, context)
        if ids[: len(given)] == given:
            return ids[len(given) :], True
        offset = 0
        for index, token in enumerate(ids):
            if offset >= len(context):
                if offset == len(context):
                    return ids[index:], False
                break
            offset += len(texts[token])
        return rewriter.tokenize(unit, pieces), False

    def grow(self, count: int) -> None:
        """Have at least `count` tokens, if the source holds so many."""
        tokens, source = self.tokens, self._rewriter.source
        while len(tokens) < count and not self._ended:
            self._bases.append(len(tokens))
            if self._next < len(source.unit_starts):
                self.chunks.append(self._rewriter.unit(self._next, self.shift, self.extra))
                self._next += 1
            else:
                self._ended = True
                self.chunks.append(Chunk(list(self._end_ids), []))
            tokens.extend(self.chunks[-1].tokens)

    def locate(self, index: int) -> tuple[int, int]:
        """Token index -> (chunk, byte offset in its text)."""
        chunk = max(bisect_right(self._bases, index) - 1, 0)
        texts = self._rewriter.tokens
        return chunk, sum([len(texts[token]) for token in self.tokens[self._bases[chunk] : index]])

    def unit_of(self, chunk: int) -> int:
        """The unit that a chunk is of."""
        return self._next - (len(self.chunks) - chunk) + self._ended

    def cut(self, chunk: int, offset: int) -> list[Piece]:
        """The pieces of a chunk from byte `offset` of its text on."""
        return behind(self.pieces_of(chunk), offset)

    def pieces_of(self, chunk: int) -> list[Piece]:
        """The pieces of text that a chunk's tokens spell."""
        pieces = self.chunks[chunk].pieces
        if pieces is None:
            source, unit = self._rewriter.source, self.unit_of(chunk)
            start, end = source.unit_starts[unit], source.unit_end(unit)
            pieces = [Piece(source.text[start:end], start, end)]
        return pieces


def behind(pieces: list[Piece], offset: int) -> list[Piece]:
    """`pieces` without their first `offset` bytes."""
    for number, piece in enumerate(pieces):
        length = len(piece.text)
        if offset < length or not offset:
            return [piece.behind(offset) if offset else piece, *pieces[number + 1 :]]
        offset -= length
    return []
