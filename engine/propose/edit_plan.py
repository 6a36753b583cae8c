"""The rest of the answer as it would be if the copy went on: rewritten source from one place on, as tokens, grown as
needed."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence as Tokens
from typing import NamedTuple

from specd.engine.propose.edit_rules import Piece, Rule, RuleBook
from specd.engine.propose.edit_source import Source, TokenText

MOST_ENCODED = 4096  # short texts, and rewritten units, whose tokens are remembered


class Chunk(NamedTuple):
    """The tokens of a unit, or of the rest of one, and the pieces of text that they spell; None: the unit as it
    stands."""

    tokens: list[int]
    pieces: list[Piece] | None = None


class Rewriter:
    """Rewritten units and their tokens. A unit is rewritten anew when a rule changes, and tokenized anew if that
    changed its text."""

    def __init__(self, source: Source, rules: RuleBook, tokens: TokenText) -> None:
        self.source, self.rules, self.tokens = source, rules, tokens
        self._plain = [Chunk(ids) for ids in source.unit_tokens]
        self._units: dict[tuple[int, int], tuple[int, Chunk]] = {}  # (unit, shift) -> version of the rules, result
        self._encoded: dict[str, list[int]] = {}

    def unit(self, unit: int, shift: int, extra: Rule | None = None) -> Chunk:
        """A unit under the rules, `extra` before them, its line moved right by `shift` blanks (left if negative)."""
        source, rules = self.source, self.rules
        first, last = source.unit_lexemes[unit], source.unit_lexemes[unit + 1]
        if not shift and not rules.touch(source.lexemes[first:last], extra):
            return self._plain[unit]
        known = self._units.get((unit, shift))
        if known is not None and known[0] == rules.version and extra is None:
            return known[1]
        pieces = shifted(source, rules.rewrite(first, last, extra), shift)
        chunk = known[1] if known is not None and known[1].pieces == pieces else Chunk(self.tokenize(pieces), pieces)
        if extra is None:
            if len(self._units) >= MOST_ENCODED:
                self._units.clear()
            self._units[unit, shift] = rules.version, chunk
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

    def follows(self, token: int, unit: int, piece: Piece) -> bool:
        """The source has a border of tokens where `piece` begins to copy it, and the same one behind `token`: the same
        token stands before it, or a line begins there and `token` ends one."""
        source, start = self.source, piece.start
        if piece.rule is not None or not piece.text or piece.text != source.text[start : piece.end]:
            return False
        index = source.token_at.get(start, 0)
        if index > 0 and source.tokens[index - 1] == token:
            return True
        begins_line = source.cut_behind and start == source.unit_starts[unit] and source.text[start - 1 : start] == "\n"
        return begins_line and self.tokens[token][-1:] == "\n"

    def tokenize(self, pieces: list[Piece], context: str = "") -> list[int]:
        """Tokens of `context` and the pieces behind it: the source's own tokens wherever they copy it, between seams,
        and new ones around what was changed."""
        source = self.source
        own, at, seams, text = source.tokens, source.token_at, source.seams, source.text
        ids: list[int] = []
        pending = context  # text that waits to be tokenized
        last = len(pieces) - 1
        for number, piece in enumerate(pieces):
            begin, stop = piece.start, piece.end
            if piece.rule is not None or len(piece.text) != stop - begin or piece.text != text[begin:stop]:
                pending += piece.text
                continue
            if pending or begin not in at:
                seam = bisect_left(seams, begin)
                begin = seams[seam] if seam < len(seams) else stop
            if number < last or stop not in at:
                seam = bisect_right(seams, stop) - 1
                stop = seams[seam] if seam >= 0 else begin
            if begin >= stop:
                pending += piece.text
                continue
            if pending := pending + text[piece.start : begin]:
                ids += self.encode(pending)
            ids += own[at[begin] : at[stop]]
            pending = text[stop : piece.end]
        return ids + self.encode(pending) if pending else ids


def shifted(source: Source, pieces: list[Piece], shift: int) -> list[Piece]:
    """`pieces` with the indentation of each line that begins in them moved by `shift` blanks: a piece for the blanks,
    if any are left, and one for what they stand before."""
    if not shift:
        return pieces
    out: list[Piece] = []
    filler = "\t" if source.text[:1] == "\t" else " "
    for piece in pieces:
        if piece.rule is not None or len(piece.text) != piece.end - piece.start:
            out.append(piece)
            continue
        copied = at = piece.start
        starts_line = at == 0 or source.text[at - 1] == "\n"
        for line in piece.text.split("\n"):
            content = line.lstrip(" \t")
            if starts_line and content.strip():
                blanks = len(line) - len(content)
                if copied < at:
                    out.append(Piece(source.text[copied:at], copied, at))
                if blanks + shift > 0:
                    out.append(Piece((line[0] if blanks else filler) * (blanks + shift), at, at + blanks))
                copied = at + blanks
            at += len(line) + 1
            starts_line = True
        if copied < piece.end:
            out.append(Piece(source.text[copied : piece.end], copied, piece.end))
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
        if line and pieces and rewriter.follows(line[-1], unit, pieces[0]):
            return rewriter.tokenize(pieces), True
        begin = len(line)
        while begin > 0:
            begin -= 1
            before = texts[line[begin - 1]][-1:] if begin else ""
            here = texts[line[begin]][:1]
            if not begin or (before.isascii() and before.isalpha() and here.isascii() and not here.isalpha()):
                break
        given = list(line[begin:])
        context = texts.join(given)
        ids = rewriter.tokenize(pieces, context)
        if ids[: len(given)] == given:
            return ids[len(given) :], True
        offset = 0
        for index, token in enumerate(ids):
            if offset >= len(context):
                if offset == len(context):
                    return ids[index:], False
                break
            offset += len(texts[token])
        return rewriter.tokenize(pieces), False

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
        return chunk, sum(map(len, map(texts.__getitem__, self.tokens[self._bases[chunk] : index])))

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
