"""The source under the rules, as tokens: some lines at a time, remembered until a rule changes them."""

from array import array
from collections.abc import Sequence as Tokens

from specd.engine.propose.edit_rules import Piece, Rule, RuleBook, Site, spell
from specd.engine.propose.edit_source import Source
from specd.engine.propose.edit_text import TokenText, is_seam

MOST_ENCODED = 4096  # short texts, and blocks, whose tokens are remembered
Run = tuple[str, int, int]  # some text, and behind it the source's bytes from one place to another
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
        self._blocks: dict[tuple[int, int], Block] = {}  # (first unit, shift) -> block
        self._encoded: dict[str, array[int]] = {}

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
            tokens = self.tokenize(pieces)
        elif sites:
            tokens = self._splice(first, last, sites)
        else:
            tokens = source.tokens[source.token_at[start] : source.token_at[source.starts[last]]]
        block = Block(source, tokens, start, units, sites, pieces, rules)
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
        """Tokens of byte text, remembered by its segments: most stand in the source or were seen before."""
        encoded = self._encoded
        ids = encoded.get(text)
        if ids is not None:
            return ids
        if len(encoded) >= MOST_ENCODED:
            encoded.clear()
        segments = self.source.borders.split(text)
        if len(segments) > 1:
            ids = array("i")
            for segment in segments:
                ids += encoded.get(segment) or self._segment(segment)
        else:
            ids = self._segment(text)
        encoded[text] = ids
        return ids

    def _segment(self, text: str) -> "array[int]":
        """Tokens of one segment."""
        place = self.source.borders.segments.get(text)
        ids = array("i", self.tokens.encode(text)) if place is None else self.source.tokens[place[0] : place[1]]
        self._encoded[text] = ids
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
        """Tokens of `context` and the pieces behind it."""
        text, lead = self.source.text, context
        runs: list[Run] = []
        for piece in pieces:
            if piece.rule is not None or piece.text != text[piece.start : piece.end]:
                lead += piece.text
            else:
                runs.append((lead, piece.start, piece.end))
                lead = ""
        if lead:
            runs.append((lead, 0, 0))
        return self._tokens_of(runs)

    def _splice(self, first: int, last: int, sites: list[Site]) -> "array[int]":
        """Tokens of the source lexemes [first, last) with the rules applied at `sites`."""
        starts = self.source.starts
        begin, lead = starts[first], ""
        runs: list[Run] = []
        for index, rule in sites:
            runs.append((lead, begin, starts[index]))
            lead, begin = rule.text, starts[min(index + len(rule.pattern), len(starts) - 1)]
        runs.append((lead, begin, max(starts[last], begin)))
        return self._tokens_of(runs)

    def _tokens_of(self, runs: list[Run]) -> "array[int]":
        """The source's own tokens wherever the runs copy it, between seams, and new ones around what was changed."""
        source = self.source
        own, at, text, borders = source.tokens, source.token_at, source.text, source.borders
        ids = array("i")
        pending = ""  # text that waits to be tokenized
        last = len(runs) - 1
        for number, (lead, start, end) in enumerate(runs):
            pending += lead
            begin, stop = start, end
            if pending or begin not in at:
                begin = borders.first(begin, pending)
            if number < last:
                following, resumes, _ = runs[number + 1]
                stop = borders.last(stop, following or text[resumes : resumes + 1])
            elif stop not in at:
                stop = borders.last(stop, "")
            if begin >= stop:
                pending += text[start:end]
                continue
            if pending := pending + text[start:begin]:
                ids += self.encode(pending)
            ids += own[at[begin] : at[stop]]
            pending = text[stop:end]
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
