"""The source under the rules, as tokens: some lines at a time, remembered until a rule changes them."""

from array import array
from copy import copy

from specd.engine.propose.edit_rules import Piece, Rule, RuleBook, Site, spell
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_splice import Splicer
from specd.engine.propose.edit_text import TokenText

MOST_BLOCKS = 4096  # that are remembered
MOST_PREPARED = 256  # blocks; some 8,000 tokens


class Block:
    """Units under the rules, from one to `units`, exclusively, or the rest of one. `tokens`: of their text; `start`:
    the source byte that they begin at; `sites`: where a rule applied.

    `pieces`: what the tokens spell.
    """

    __slots__ = ("_pieces", "_source", "is_aligned", "is_copy", "sites", "start", "tokens", "units", "version")

    def __init__(
        self,
        source: Source,
        tokens: "array[int]",
        start: int,
        units: int,
        sites: list[Site],
        pieces: list[Piece] | None,
        rules: RuleBook,
    ) -> None:
        """pieces: None if they can be told from the sites alone."""
        self._source, self._pieces = source, pieces
        self.tokens, self.start, self.units, self.sites = tokens, start, units, sites
        self.version, self.is_aligned = rules.version, rules.aligned
        self.is_copy = pieces is None and not sites

    @property
    def pieces(self) -> list[Piece]:
        if self._pieces is None:
            source, last = self._source, self._source.unit_lexemes[self.units]
            if self.is_copy:
                stop = source.starts[last]
                self._pieces = [Piece(source.text[self.start : stop], self.start, stop)]
            else:
                self._pieces = spell(source, source.lexeme_at(self.start), last, self.sites, False)
        return self._pieces

    def offset(self, count: int, texts: TokenText) -> int:
        """Bytes of the first `count` tokens."""
        if self.is_copy:
            source = self._source
            return source.token_starts[source.token_at[self.start] + count] - self.start
        return sum(map(len, map(texts.__getitem__, self.tokens[:count])))


class Rewriter:
    """Rewritten blocks and their tokens. Where a rule that touches a block changes, it is rewritten anew."""

    def __init__(self, source: Source, rules: RuleBook, tokens: TokenText) -> None:
        self.source, self.rules, self.tokens = source, rules, tokens
        self.splicer = Splicer(source, tokens)
        self._blocks: dict[tuple[int, int], Block] = {}  # (first unit, shift) -> block

    def branch(self, rules: RuleBook) -> "Rewriter":
        """A second one that begins with the same blocks, for a branch of the rules."""
        other = copy(self)
        other.rules, other._blocks = rules, self._blocks.copy()
        return other

    def block(self, unit: int, shift: int, extra: Rule | None = None, count: int = 0) -> Block:
        """The units from `unit` to the end of their block, or of a later one so that they have `count` tokens, under
        the rules, `extra` before them, their lines moved right by `shift` blanks (left if negative)."""
        source, rules = self.source, self.rules
        known = self._blocks.get((unit, shift)) if extra is None else None
        if known is not None and known.version == rules.version:
            return known
        units = source.blocks_end(unit, count) if known is None else known.units
        first, last = source.unit_lexemes[unit], source.unit_lexemes[units]
        sites = rules.sites(first, last, extra)
        if known is not None and known.sites == sites and (known.is_aligned == rules.aligned or not sites):
            known.version = rules.version
            return known
        start = source.unit_starts[unit]
        pieces = None
        if shift or (sites and rules.aligned):
            pieces = shifted(source, spell(source, first, last, sites, rules.aligned), shift)
            tokens = self.splicer.tokenize(pieces)
        elif sites:
            tokens = self.splicer.splice(first, last, sites)
        else:
            tokens = source.tokens[source.token_at[start] : source.token_at[source.starts[last]]]
        block = Block(source, tokens, start, units, sites, pieces, rules)
        if extra is None:
            if len(self._blocks) >= MOST_BLOCKS:
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
