"""A slow, plain model of an editor's text: what positions and changes mean, character by character."""

from specd.lsp.positions import Encoding


def size(char: str, encoding: Encoding) -> int:
    """Code units of one character."""
    if encoding == "utf-32":
        return 1
    if encoding == "utf-16":
        return 2 if ord(char) > 0xFFFF else 1
    return len(char.encode("utf-8", "surrogatepass"))


def line_starts(text: str) -> list[tuple[int, int]]:
    """(start, end of content) of each line, as offsets."""
    found = []
    start = at = 0
    while at < len(text):
        if text[at] in "\r\n":
            found.append((start, at))
            at += 2 if text[at : at + 2] == "\r\n" else 1
            start = at
        else:
            at += 1
    return [*found, (start, len(text))]


def offset(text: str, line: int, units: int, encoding: Encoding) -> int:
    """The offset of an LSP position, clamped."""
    lines = line_starts(text)
    if line >= len(lines):
        return len(text)
    at, end = lines[line]
    while at < end and size(text[at], encoding) <= units:
        units -= size(text[at], encoding)
        at += 1
    return at


def position(text: str, at: int, encoding: Encoding) -> tuple[int, int]:
    """The LSP position of an offset; inside of a CRLF it is the end of the content."""
    lines = line_starts(text)
    line = max(number for number, (start, _) in enumerate(lines) if start <= at)
    start, end = lines[line]
    return line, sum(size(char, encoding) for char in text[start : min(at, end)])


def change(text: str, start: tuple[int, int], end: tuple[int, int], new: str, encoding: Encoding) -> str:
    """The text after an incremental change."""
    a, b = sorted((offset(text, *start, encoding), offset(text, *end, encoding)))
    return text[:a] + new + text[b:]
