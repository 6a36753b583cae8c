"""The source under the rules, as tokens: some lines at a time, remembered until a rule changes them."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence as Tokens

from specd.engine.propose.edit_rules import Piece, Rule, RuleBook
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import TokenText, is_seam

MOST_ENCODED = 4096  # short texts, and blocks, whose tokens are remembered
MOST_PREPARED = 256  # blocks; some 8,000 tokens


class Block:
    """Units under the rules. `tokens`: of their text, or of the rest of it; `units`: up to this one; `pieces`: what
    the tokens spell."""

    __slots__ = ("_pieces", "_source", "is_rewritten", "start", "tokens", "units", "version")

    def __init__(
        self, source: Source, tokens: "array[int]", start: int, units: int, pieces: list[Piece] | None, version: int
    ) -> None:
        """start: the source byte that it begins at. pieces: None if the text is the source's own. version: of the
        rules, when this was last true."""
        self._source, self._pieces = source, pieces
        self.is_rewritten = pieces is not None
        self.tokens, self.start, self.units, self.version = tokens, start, units, version

    @property
    def pieces(self) -> list[Piece]:
        if self._pieces is None:
            stop = self._source.unit_end(self.units - 1)
            self._pieces = [Piece(self._source.text[self.start : stop], self.start, stop)]
        return self._pieces


class Rewriter:
    """Rewritten blocks and their tokens. A block is rewritten anew when a rule that may touch it changes, and
    tokenized anew if that changed its text."""

    def __init__(self, source: Source, rules: RuleBook, tokens: TokenText) -> None:
        self.source, self.rules, self.tokens = source, rules, tokens
        self._blocks: dict[tuple[int, int], Block] = {}  # (first unit, shift) -> block
        self._encoded: dict[str, array[int]] = {}

    def block(self, unit: int, shift: int, extra: Rule | None = None) -> Block:
        """The units from `unit` to the end of their block under the rules, `extra` before them, their lines moved right
        by `shift` blanks (left if negative)."""
        source, rules = self.source, self.rules
        known = self._blocks.get((unit, shift))
        if known is not None and extra is None and known.version == rules.version:
            return known
        units = source.block_end(unit)
        first, last = source.unit_lexemes[unit], source.unit_lexemes[units]
        if known is not None and extra is None and not rules.changed(known.version, first, last):
            known.version = rules.version
            return known
        pieces = shifted(source, rules.rewrite(first, last, extra), shift)
        if known is not None and known.pieces == pieces:
            known.version = rules.version
            return known
        start = source.unit_starts[unit]
        if len(pieces) == 1 and pieces[0].rule is None and not shift:
            stop = pieces[0].end
            own = source.tokens[source.token_at[start] : source.token_at[stop]]
            block = Block(source, own, start, units, None, rules.version)
        else:
            block = Block(source, self.tokenize(pieces), start, units, pieces, rules.version)
        if extra is None:
            if len(self._blocks) >= MOST_ENCODED:
                self._blocks.clear()
            self._blocks[unit, shift] = block
        return block

    def prepare(self) -> None:
        """Rewrite and tokenize as much as is worth while before anything is drafted, under rules that are known by
        then."""
        if len(self.rules):
            for unit in self.source.block_starts[:MOST_PREPARED]:
                self.block(unit, 0)

    def rest(self, offset: int, shift: int, extra: Rule | None = None) -> list[Piece]:
        """What is left of the unit that holds the byte `offset`; `shift` moves lines that begin in it."""
        source = self.source
        first, last = source.lexeme_at(offset), source.lexeme_at(source.unit_end(source.unit_at(offset)))
        pieces: list[Piece] = []
        if first < last and source.starts[first] < offset:  # no rule applies inside a lexeme
            first += 1
            pieces.append(Piece(source.text[offset : source.starts[first]], offset, source.starts[first]))
        return shifted(source, pieces + self.rules.rewrite(first, last, extra), shift)

    def encode(self, text: str) -> "array[int]":
        """Tokens of byte text, remembered."""
        ids = self._encoded.get(text)
        if ids is None:
            if len(self._encoded) >= MOST_ENCODED:
                self._encoded.clear()
            ids = self._encoded[text] = array("i", self.tokens.encode(text))
        return ids

    def join(self, pieces: list[Piece], line: Tokens[int]) -> tuple["array[int]", bool]:
        """The tokens of `pieces` behind those of the output's current line; False if the target would have cut its line
        into other tokens, had it meant to go on like this."""
        texts = self.tokens
        if line and pieces and self._follows(line[-1], pieces[0]):
            return self.tokenize(pieces), True
        begin, here = len(line), "".join([piece.text[:1] for piece in pieces])[:1]
        while begin > 0 and not is_seam(texts[line[begin - 1]][-1:], here):
            begin -= 1
            here = texts[line[begin]][:1]
        given = array("i", line[begin:])
        context = texts.join(given)
        ids = self.tokenize(pieces, context)
        if ids[: len(given)] == given:
            return ids[len(given) :], True
        offset = 0
        for index, token in enumerate(ids):
            if offset >= len(context):
                if offset == len(context):
                    return ids[index:], False
                break
            offset += len(texts[token])
        return self.tokenize(pieces), False

    def _follows(self, token: int, piece: Piece) -> bool:
        """The source has a border of tokens where `piece` begins to copy it, and the same one behind `token`: the same
        token stands before it, or a line begins there and `token` ends one."""
        source, start = self.source, piece.start
        if piece.rule is not None or not piece.text or piece.text != source.text[start : piece.end]:
            return False
        index = source.token_at.get(start, 0)
        if index > 0 and source.tokens[index - 1] == token:
            return True
        begins_line = source.cut_behind and source.text[start - 1 : start] == "\n"
        return begins_line and self.tokens[token][-1:] == "\n" and start == source.unit_starts[source.unit_at(start)]

    def tokenize(self, pieces: list[Piece], context: str = "") -> "array[int]":
        """Tokens of `context` and the pieces behind it: the source's own tokens wherever they copy it, between seams,
        and new ones around what was changed."""
        source = self.source
        own, at, seams, text = source.tokens, source.token_at, source.seams, source.text
        ids = array("i")
        pending = context  # text that waits to be tokenized
        last = len(pieces) - 1
        for number, piece in enumerate(pieces):
            begin, stop = piece.start, piece.end
            if piece.rule is not None or len(piece.text) != stop - begin or piece.text != text[begin:stop]:
                pending += piece.text
                continue
            if pending or begin not in at:
                seam = bisect_left(seams, begin)
                if seam < len(seams) and seams[seam] == begin and begin in source.cuts:
                    seam += 1
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


def behind(pieces: list[Piece], offset: int) -> list[Piece]:
    """`pieces` without their first `offset` bytes."""
    for number, piece in enumerate(pieces):
        length = len(piece.text)
        if offset < length or not offset:
            return [piece.behind(offset) if offset else piece, *pieces[number + 1 :]]
        offset -= length
    return []
