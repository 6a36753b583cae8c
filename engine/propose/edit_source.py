"""The text an edit starts from, cut for drafting: lexemes to align by, units to tokenize by, and where everything
stands.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice, pairwise
from math import log2

from specd.engine.propose.edit_border import LINE_BEFORE, LINE_BEHIND, TRIED, Borders
from specd.engine.propose.edit_text import LEXEME, TokenText, is_word, quoted, seams_of, to_bytes

MOST_BYTES = 1 << 18  # of predicted text; no context window holds an answer longer than that
MOST_PLACES = 32  # of one lexeme that a search looks at
FEW_PLACES = 8  # so many are all looked at
MOST_BITS = 12.0  # that one lexeme can tell
KEY = 80  # bytes of a line that a search by its beginning compares
LONG_UNIT = 256  # bytes: longer units are cut
SHORT_UNIT = 64  # bytes that the pieces of a long one have at least, and that the next good place is sought among
BLOCK = 32  # tokens of the units that are rewritten together, at least


class Source:
    """Byte text as lexemes, lines and units.

    A *unit* is a line with its end and the blank lines behind it; or, for tokenizers that glue a line end to the
    indentation that follows, a line end and the line behind it: pieces whose tokens, one after the other, are the
    tokens of the whole. A line of more than LONG_UNIT bytes is cut at lexemes, where tokens cannot reach across if
    there is such a place: what a step costs grows with the unit that it is in. A *block* is some units, BLOCK tokens or
    a few more.
    """

    def __init__(self, text: str, tokens: TokenText, known: Sequence[int] = ()) -> None:
        """known: tokens in which most of `text` may stand, such as the prompt; it is not tokenized again then."""
        spelled = to_bytes(text)[:MOST_BYTES]
        ids = quoted(spelled, known, tokens) or tokens.encode(spelled)
        parts = list(map(tokens.__getitem__, ids))
        self.text = "".join(parts)  # as the tokenizer sees it: some normalise
        self.lexemes: list[str] = LEXEME.findall(self.text)
        self.starts = [0, *accumulate(map(len, self.lexemes))]  # byte offset of each lexeme, and of the end
        self.places: dict[str, list[int]] = {}
        for index, lexeme in enumerate(self.lexemes):
            if lexeme in self.places:
                self.places[lexeme].append(index)
            else:
                self.places[lexeme] = [index]
        self._words = sorted(filter(is_word, self.places))
        self._cut(ids, list(accumulate(map(len, parts))))
        self.unit_lexemes = [*(bisect_right(self.starts, start) - 1 for start in self.unit_starts), len(self.lexemes)]
        self._bits: dict[str, float] = {}
        self.line_starts = [0, *(index + 1 for index in self.places.get("\n", ()))]  # first lexeme of each line
        self._contents: list[tuple[str, int]] | None = None

    def __len__(self) -> int:
        return len(self.lexemes)

    def _cut(self, ids: list[int], behind_each: list[int]) -> None:
        ends = dict(zip(behind_each, range(1, len(ids) + 1), strict=True))
        first = {line: islice(re.finditer(line, self.text), TRIED) for line in (LINE_BEHIND, LINE_BEFORE)}
        behind, before = (sum(found.start() in ends for found in places) for places in first.values())
        self.cut_behind = behind >= before
        line = LINE_BEHIND if self.cut_behind else LINE_BEFORE
        lines = [place for place in (found.start() for found in re.finditer(line, self.text)) if place in ends]
        cuts = self._cut_long(lines, ends)
        self.unit_starts = [0, *cuts]
        self.tokens = array("i", ids)
        self.token_starts = [0, *behind_each]  # byte offset of each token, and of the end
        self.token_at = {0: 0, **ends}  # byte offset -> index of the token that begins there
        self.borders = Borders(self.text, self.token_at, self.unit_starts, line, lines)
        self.block_starts, self._block_tokens = [0], [0]  # first unit of each block, and first token
        for unit, cut in enumerate(cuts, 1):
            if ends[cut] - self._block_tokens[-1] >= BLOCK:
                self._block_tokens.append(ends[cut])
                self.block_starts.append(unit)

    def _cut_long(self, cuts: list[int], ends: dict[int, int]) -> list[int]:
        """`cuts` and those that long units need. ends: the bytes behind a token."""
        borders = [0, *cuts, len(self.text)]
        if all(stop - start <= LONG_UNIT for start, stop in pairwise(borders)):
            return cuts
        places = [start for start in self.starts if start in ends]  # ascending
        found: list[int] = []
        for start, stop in pairwise(borders):
            while stop - start > LONG_UNIT:
                first = bisect_left(places, start + SHORT_UNIT)
                near = places[first : bisect_right(places, start + LONG_UNIT - SHORT_UNIT)] or places[first : first + 1]
                if not near or near[0] >= stop:
                    break
                start = (seams_of(self.text, near) or near)[-1]
                found.append(start)
            if stop < len(self.text):
                found.append(stop)
        return found

    def unit_at(self, offset: int) -> int:
        """The unit that holds the byte at `offset`."""
        return max(bisect_right(self.unit_starts, offset) - 1, 0)

    def blocks_end(self, unit: int, count: int) -> int:
        """The unit behind the block that holds `unit`, or behind a later one if that has not `count` tokens yet."""
        block = bisect_right(self.block_starts, unit)
        if count > BLOCK:
            block = max(block, bisect_left(self._block_tokens, self.token_at[self.unit_starts[unit]] + count))
        return self.block_starts[block] if block < len(self.block_starts) else len(self.unit_starts)

    def unit_end(self, unit: int) -> int:
        """Byte offset behind a unit."""
        return self.unit_starts[unit + 1] if unit + 1 < len(self.unit_starts) else len(self.text)

    def lexeme_at(self, offset: int) -> int:
        """The lexeme that holds the byte at `offset`; len(self) at the end of the text."""
        return min(bisect_right(self.starts, offset) - 1, len(self.lexemes))

    def line_of(self, lexeme: int) -> int:
        """The line that a lexeme is in."""
        return bisect_right(self.line_starts, lexeme) - 1

    def line(self, number: int, most: int = KEY) -> list[str]:
        """A line's first lexemes, without its end."""
        first = self.line_starts[number]
        last = self.line_starts[number + 1] - 1 if number + 1 < len(self.line_starts) else len(self.lexemes)
        return self.lexemes[first : min(last, first + most)]

    def indent_of(self, number: int) -> int:
        """Bytes of blanks that a line begins with."""
        first = self.line_starts[number]
        lexeme = self.lexemes[first] if first < len(self.lexemes) else ""
        return len(lexeme) if lexeme[:1] in (" ", "\t") else 0

    def is_blank(self, number: int) -> bool:
        """The line holds nothing but blanks."""
        return not "".join(self.line(number, 3)).strip()

    def index_lines(self) -> None:
        """Sort the lines by what they begin with; done before the first step so that no step pays for it."""
        lines = ("".join(self.line(number)).strip()[:KEY] for number in range(len(self.line_starts)))
        self._contents = sorted((line, number) for number, line in enumerate(lines) if line)

    def lines_that_begin(self, content: str, limit: int) -> list[int]:
        """Lines whose text behind the indentation begins with `content`; at most `limit`."""
        if self._contents is None:
            self.index_lines()
        assert self._contents is not None
        content = content[:KEY]
        at = bisect_left(self._contents, (content, -1))
        found: list[int] = []
        while at < len(self._contents) and len(found) < limit and self._contents[at][0].startswith(content):
            found.append(self._contents[at][1])
            at += 1
        return found

    def bits(self, lexeme: str) -> float:
        """What a match of this lexeme tells: log2(all lexemes / places of this one), MOST_BITS at most."""
        bits = self._bits.get(lexeme)
        if bits is None:
            share = len(self.places.get(lexeme, "?")) / max(len(self.lexemes), 1)
            bits = self._bits[lexeme] = min(-log2(min(share, 1.0)), MOST_BITS)
        return bits

    def places_near(self, lexeme: str, anchors: Iterable[int], before: str = "") -> list[int]:
        """Where a lexeme stands: everywhere if that is rare, else around the anchors (lexeme indices). Where it stands
        behind `before` only, if those are more than a few places and some of them do."""
        places, lexemes = self.places.get(lexeme, []), self.lexemes
        if len(places) > MOST_PLACES:
            found = [bisect_left(places, anchor) for anchor in anchors]
            near = [places[max(at - 6, 0) : at + 14] for at in found]
            if before:
                behind = {place for run in near for place in run if place and lexemes[place - 1] == before}
                if behind:
                    return sorted(behind)
            return sorted(set().union(*near))
        if before and len(places) > FEW_PLACES:
            return [place for place in places if place and lexemes[place - 1] == before] or places
        return places

    def words_that_hold(self, names: re.Pattern[str]) -> list[str]:
        """Distinct words of the text in which one of the names stands."""
        return list(filter(names.search, self._words))

    def words_that_begin(self, prefix: str, limit: int) -> list[str]:
        """Distinct longer words of the text that begin with `prefix`; at most `limit`."""
        at = bisect_right(self._words, prefix)
        found: list[str] = []
        while at < len(self._words) and len(found) < limit and self._words[at].startswith(prefix):
            found.append(self._words[at])
            at += 1
        return found
