"""The rest of the answer as it would be if the copy went on: rewritten source from one place on, as tokens, grown as
needed."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence as Tokens
from copy import copy

from specd.engine.propose.edit_block import Block, Rewriter, behind
from specd.engine.propose.edit_rules import Piece, Rule

MOST = 64  # tokens that are rewritten together, or a few more


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
        ids, self.agrees = rewriter.splicer.join(pieces, line)
        start = pieces[0].start if pieces else 0
        sites = [(piece.at, piece.rule) for piece in pieces if piece.rule is not None]
        self._blocks = [Block(rewriter.source, ids, start, unit + 1, sites, pieces, rewriter.rules)]
        self._bases = [0]  # tokens before each block
        self._located = -1, 0, 0  # what `_locate` was asked last, and what it said
        self.tokens: array[int] = ids[:]

    def branch(self, rewriter: Rewriter) -> "Plan":
        """A second plan that begins with the same tokens, and grows by itself."""
        other = copy(self)
        other._rewriter = rewriter
        other._blocks, other._bases, other.tokens = self._blocks[:], self._bases[:], self.tokens[:]
        return other

    def grow(self, count: int) -> bool:
        """Have at least `count` tokens, if the source holds so many. True if there were fewer."""
        if len(self.tokens) >= count or self._ended:
            return False
        while len(self.tokens) < count and not self._ended:
            self._add(min(count - len(self.tokens), MOST))
        return True

    def prepare(self, count: int) -> None:
        """One block more if there are fewer than `count` tokens: what the next steps need, bit by bit."""
        if len(self.tokens) < count and not self._ended:
            self._add(0)

    def _add(self, count: int) -> None:
        rewriter = self._rewriter
        self._bases.append(len(self.tokens))
        if self._next < len(rewriter.source.unit_starts):
            block = rewriter.block(self._next, self.shift, self.extra, count)
            self._next = block.units
        else:
            self._ended = True
            block = Block(rewriter.source, array("i", self._end_ids), 0, self._next, [], [], rewriter.rules)
        self._blocks.append(block)
        self.tokens.extend(block.tokens)

    def ahead(self, index: int, count: int) -> tuple[list[Piece], int]:
        """The pieces from token `index` on, `count` bytes or more of them if so many are planned, and the unit that the
        last of them is of."""
        number, offset = self._locate(index)
        pieces = behind(self._blocks[number].pieces, offset)
        length = sum([len(piece.text) for piece in pieces])
        while length < count and number + 1 < len(self._blocks):
            number += 1
            more = self._blocks[number].pieces
            pieces = pieces + more
            length += sum([len(piece.text) for piece in more])
        return pieces, self._blocks[number].units - 1

    def credit(self, index: int) -> None:
        """The target wrote the tokens before `index`: count the rules whose text it wrote."""
        number, offset = self._locate(index)
        credit = self._rewriter.rules.credit
        for block in self._blocks[:number]:
            for _, rule in block.sites:
                credit(rule)
        for piece in self._blocks[number].pieces if self._blocks[number].sites else ():
            offset -= len(piece.text)
            if offset < 0:
                break
            if piece.rule is not None:
                credit(piece.rule)

    def _locate(self, index: int) -> tuple[int, int]:
        """Token index -> (block, byte offset in its text)."""
        if self._located[0] != index:
            number = max(bisect_right(self._bases, index) - 1, 0)
            offset = self._blocks[number].offset(index - self._bases[number], self._rewriter.tokens)
            self._located = index, number, offset
        return self._located[1:]
