"""Text inside the edit proposer: bytes as characters, lexemes, and the tokens of both.

All of it is *byte text*: a str with one character for each UTF-8 byte (latin-1), since a token may end in the middle
of a character.
"""

import re
import string
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Protocol

LEXEME = re.compile(  # at most 200 bytes: no step may pay for a longer one
    r"[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]{0,199}|[0-9]{1,200}|\n|[ \t\r\f\v]{1,200}|.", re.DOTALL
)
LEAST_QUOTED = 200  # bytes: shorter texts are tokenized at once


class TextTokenizer(Protocol):
    """What the edit proposer asks of a tokenizer; `specd.engine.tokenizer.Tokenizer` is one."""

    def encode(self, text: str) -> list[int]: ...
    def token_bytes(self, token: int) -> bytes: ...


def to_bytes(text: str) -> str:
    """str -> byte text. What UTF-8 cannot hold (lone surrogates) becomes "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("latin-1")


def from_bytes(text: str) -> str:
    """Byte text -> str, without the bytes of characters that are cut off."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "ignore")


def is_word(lexeme: str) -> bool:
    """True for an identifier, a keyword, a run of letters; not for a number."""
    first = lexeme[:1]
    return first.isalpha() or first == "_" or first >= "\x80"


LETTERS = frozenset(string.ascii_letters)
_MARKS = frozenset(map(chr, range(128))) - LETTERS


def is_seam(before: str, behind: str) -> bool:
    """Between two such bytes no byte-level tokenizer in use merges: a letter stands before, none behind."""
    return before in LETTERS and behind in _MARKS


SEAM = r"(?<=[A-Za-z])(?=[^A-Za-z\x80-\xff])"  # the same as a pattern


def seams_of(text: str, places: Iterable[int]) -> list[int]:
    """The text's ends, and those of the places that `is_seam` holds for."""
    size, letters, marks = len(text), LETTERS, _MARKS
    return [at for at in places if at == 0 or at == size or (text[at - 1] in letters and text[at] in marks)]


class TokenText(dict[int, str]):
    """Token id -> its byte text, filled as ids are asked for."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, token: int) -> str:
        text = self[token] = self._tokenizer.token_bytes(token).decode("latin-1")
        return text

    def join(self, tokens: Iterable[int]) -> str:
        return "".join(map(self.__getitem__, tokens))

    def encode(self, text: str) -> list[int]:
        """Byte text -> token ids."""
        return self._tokenizer.encode(from_bytes(text)) if text else []


def quoted(text: str, known: Sequence[int], tokens: TokenText) -> list[int]:
    """The tokens of `text` with those of its lines but the first and the last taken from `known`; none if they do not
    stand there in one piece, or would not be cut there as they are in `text`."""
    begin, end = text.find("\n") + 1, text.rfind("\n") + 1
    if end - begin < LEAST_QUOTED or not known:
        return []
    parts = list(map(tokens.__getitem__, known))
    at = "".join(parts).rfind(text[begin:end])
    borders = [0, *accumulate(map(len, parts))]
    first, last = bisect_left(borders, at), bisect_left(borders, at + end - begin)
    if at < 0 or borders[first] != at or borders[last] != at + end - begin:
        return []
    head, tail = tokens.encode(text[:begin]), tokens.encode(text[end:])
    ids = [*head, *known[first:last], *tail]
    start, stop = text.find("\n", begin) + 1, text.rfind("\n", begin, end - 1) + 1
    near = tokens.encode(text[:start])[:-1], tokens.encode(text[stop:])[1:]  # what is cut off may be cut otherwise
    return ids if ids[: len(near[0])] == near[0] and ids[len(ids) - len(near[1]) :] == near[1] else []
