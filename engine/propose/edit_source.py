"""The text an edit starts from, cut for drafting: lexemes to align by, units to tokenize by, and where each word stands.

All text in the edit proposer is *byte text*: a str with one character for each UTF-8 byte (latin-1), since a token may end in the
middle of a character. `encode_bytes` and `decode_bytes` are the way in and out.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence as Tokens
from typing import Protocol

LEXEME = re.compile(r"[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*|[0-9]+|\n|[ \t\r\f\v]+|.", re.DOTALL)
NEAR = 400  # lexemes around an anchor in which a frequent lexeme is looked for
MOST_PLACES = 48  # places of one lexeme that a search looks at


class TextTokenizer(Protocol):
    """What the edit proposer asks of a tokenizer."""

    def encode(self, text: str) -> list[int]: ...
    def token_bytes(self, id: int, /) -> bytes: ...


def encode_bytes(text: str) -> str:
    """A str -> byte text. Lone surrogates, which no UTF-8 holds, become "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("latin-1")


def decode_bytes(text: str) -> str:
    """Byte text -> str; bytes of a cut-off character are left out."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "ignore")


def is_word(lexeme: str) -> bool:
    """True for identifiers, keywords and runs of letters; not for numbers."""
    first = lexeme[:1]
    return first.isalpha() or first == "_" or first >= "\x80"


class TokenText:
    """Token ids -> byte text, remembered by id."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._text: dict[int, str] = {}

    def __getitem__(self, id: int) -> str:
        text = self._text.get(id)
        if text is None:
            text = self._text[id] = self._tokenizer.token_bytes(id).decode("latin-1")
        return text

    def join(self, ids: Tokens[int]) -> str:
        return "".join([self[id] for id in ids])

    def encode(self, text: str) -> list[int]:
        """Byte text -> token ids."""
        return self._tokenizer.encode(decode_bytes(text)) if text else []


class Source:
    """Byte text as lexemes and units.

    A *unit* is a line with its end and the blank lines behind it, or, for tokenizers that glue a line end to the indentation
    behind it, a line end and the line behind it: the pieces that can be tokenized apart and give the tokens of the whole.
    """

    def __init__(self, text: str, tokens: TokenText) -> None:
        ids = tokens.encode(encode_bytes(text))
        self.text = tokens.join(ids)  # as the tokenizer sees it: some normalise
        self.lexemes = LEXEME.findall(self.text)
        self.starts: list[int] = []  # byte offset of each lexeme, and of the end
        offset = 0
        places: dict[str, list[int]] = {}
        for index, lexeme in enumerate(self.lexemes):
            self.starts.append(offset)
            offset += len(lexeme)
            places.setdefault(lexeme, []).append(index)
        self.starts.append(offset)
        self.places = places
        self.vocabulary = sorted(places)
        self._cut(ids, tokens)
        self._lines()

    def __len__(self) -> int:
        return len(self.lexemes)

    def _cut(self, ids: list[int], tokens: TokenText) -> None:
        """Choose where units begin and slice the tokens of the whole at these places."""
        ends = {0}
        offset = 0
        for id in ids:
            offset += len(tokens[id])
            ends.add(offset)
        text = self.text
        behind = [m.end() for m in re.finditer(r"\n(?=[ \t\r\f\v]*[^\s])", text)]
        before = [m.start() for m in re.finditer(r"\r?\n(?=[ \t\f\v]*[^\s])", text)]
        self.cut_behind = sum(cut in ends for cut in behind) >= sum(cut in ends for cut in before)
        cuts = [cut for cut in (behind if self.cut_behind else before) if cut in ends and cut]
        self.unit_starts = [0, *cuts]
        self.unit_tokens: list[list[int]] = []
        where: list[int] = []
        wanted = iter([*cuts, None])
        cut = next(wanted)
        offset = 0
        for index, id in enumerate(ids):
            if offset == cut:
                where.append(index)
                cut = next(wanted)
            offset += len(tokens[id])
        edges = [0, *where, len(ids)]
        self.unit_tokens = [ids[a:b] for a, b in zip(edges, edges[1:], strict=False)]
        del self.unit_starts[len(self.unit_tokens) :]

    def _lines(self) -> None:
        """Line table: start lexeme of each line's content, its indentation, and an index by content."""
        self.line_starts = [0]
        for index in self.places.get("\n", ()):
            self.line_starts.append(index + 1)
        self.by_content: dict[str, list[int]] = {}
        text, starts = self.text, self.starts
        contents: list[tuple[str, int]] = []
        for line, first in enumerate(self.line_starts):
            last = self.line_starts[line + 1] - 1 if line + 1 < len(self.line_starts) else len(self.lexemes)
            content = text[starts[first] : starts[last]].strip()
            if content:
                contents.append((content[:80], line))
        contents.sort()
        self.contents = contents

    def unit_at(self, offset: int) -> int:
        """The unit that holds the byte at `offset`."""
        return max(bisect_right(self.unit_starts, offset) - 1, 0)

    def unit_end(self, unit: int) -> int:
        """Byte offset behind a unit."""
        return self.unit_starts[unit + 1] if unit + 1 < len(self.unit_starts) else len(self.text)

    def lexeme_at(self, offset: int) -> int:
        """Index of the lexeme that holds the byte at `offset`; len(self) at the end."""
        return bisect_right(self.starts, offset) - 1

    def line_of(self, lexeme: int) -> int:
        """The line that a lexeme is in."""
        return bisect_right(self.line_starts, lexeme) - 1

    def indent_of(self, line: int) -> str:
        """Leading blanks of a line."""
        first = self.line_starts[line]
        lexeme = self.lexemes[first] if first < len(self.lexemes) else ""
        return lexeme if lexeme[:1] in (" ", "\t") else ""

    def lines_that_start_with(self, content: str, limit: int = 16) -> list[int]:
        """Lines whose text behind the indentation starts with `content`."""
        content = content[:80]
        at = bisect_left(self.contents, (content, -1))
        found = []
        while at < len(self.contents) and len(found) < limit and self.contents[at][0].startswith(content):
            found.append(self.contents[at][1])
            at += 1
        return found

    def places_of(self, lexeme: str, anchors: list[int]) -> list[int]:
        """Lexeme indices where `lexeme` stands: all if they are few, else those near the anchors."""
        places = self.places.get(lexeme, [])
        if len(places) <= MOST_PLACES:
            return places
        near: set[int] = set()
        for anchor in anchors:
            at = bisect_left(places, anchor)
            near.update(places[max(at - 8, 0) : at + 24])
        return sorted(near)

    def words_that_start_with(self, prefix: str, limit: int = 8) -> list[str]:
        """Distinct longer words of the text that start with `prefix`."""
        at = bisect_right(self.vocabulary, prefix)
        found = []
        while at < len(self.vocabulary) and len(found) < limit and self.vocabulary[at].startswith(prefix):
            found.append(self.vocabulary[at])
            at += 1
        return found
