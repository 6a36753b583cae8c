"""Where no token reaches across: what stands between two such places has the same tokens in any text.

Changed text is tokenized from one of them to another only, and by what stands between two of them: most of it stands
in the source as well, or was written before.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise

from specd.engine.propose.edit_text import LETTERS, SEAM, is_seam, seams_of

TRIED = 200  # places by which it is told whether tokens of this tokenizer end at such places
LINE_BEHIND = r"(?<=\n)(?=[ \t\r\f\v]*[^\s])"  # line end | indentation, text
# A return behind blanks is one lexeme with them, and a unit begins with a lexeme.
LINE_BEFORE = r"(?=(?:(?<![ \t\r\f\v])\r)?\n[ \t\f\v]*[^\s])"  # | line end, indentation, text
BLANK_WORD = "(?= [A-Za-z])"  # a word takes the blank before it along
WORD = "(?<= )(?=[A-Za-z])"  # or it never does


class Borders:
    """The *borders* of a text. A letter and then a mark is one with every tokenizer (`is_seam`); the others that it
    knows are borders if tokens ended at each of the first TRIED in this text.

    `segments`: what stands between two borders -> its first token, and the one behind it.
    """

    def __init__(
        self, text: str, token_at: Mapping[int, int], units: Sequence[int], line: str, lines: Sequence[int]
    ) -> None:
        """token_at: byte offset -> index of the token that begins there; units: places that count as borders as long as
        the text before them is not changed; line: LINE_BEHIND or LINE_BEFORE; lines: where it is found and a token
        begins."""
        self._text = text
        within = seams_of(text, token_at)
        known = [SEAM]
        if _always(line, text, token_at):
            known.append(line)
            within += lines
        self._takes_blank = _always(BLANK_WORD, text, token_at)
        if self._takes_blank:
            known.append(BLANK_WORD)
            within += [at for at in token_at if text[at : at + 1] == " " and text[at + 1 : at + 2] in LETTERS]
        if _always(WORD, text, token_at):
            known.append(WORD)
            within += [at for at in token_at if text[at - 1 : at] == " " and text[at : at + 1] in LETTERS]
        self._pattern = re.compile("|".join(known))
        borders = sorted({0, *within, len(text)})
        self._places = borders if set(units).issubset(borders) else sorted({*borders, *units})
        texts = map(text.__getitem__, map(slice, borders, borders[1:]))
        tokens = list(map(token_at.__getitem__, borders))
        self.segments: dict[str, tuple[int, int]] = dict(zip(texts, pairwise(tokens), strict=False))

    def split(self, text: str) -> list[str]:
        """Any text cut at its borders."""
        return [part for part in self._pattern.split(text) if part]

    def first(self, begin: int, before: str) -> int:
        """The first border at or behind the byte `begin` if `before` stands in front of that; the text's end if there
        is none."""
        places, text = self._places, self._text
        index = bisect_left(places, begin)
        if index < len(places) and places[index] == begin:
            behind = text[begin : begin + 2]
            takes = self._takes_blank and behind[:1] == " " and behind[1:] in LETTERS
            if not takes and not is_seam(before[-1:], behind[:1]):
                index += 1
        return places[index] if index < len(places) else len(text)

    def last(self, end: int, behind: str) -> int:
        """The last border at or before the byte `end` if `behind` follows that."""
        places, text = self._places, self._text
        index = bisect_right(places, end) - 1
        if index > 0 and places[index] == end and not is_seam(text[end - 1], behind[:1]):
            index -= 1
        if index > 0 and places[index] == end - 1 and text[end - 1] == " " and behind[:1] not in LETTERS:
            index -= 1
        return places[index]


def _always(pattern: str, text: str, token_at: Mapping[int, int]) -> bool:
    """Tokens end at the first places of this kind, and there are some."""
    found = [match.start() for match in islice(re.finditer(pattern, text), TRIED)]
    return bool(found) and all(place in token_at for place in found)
