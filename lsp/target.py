"""From a range in the editor to what the daemon is asked, and from its lines back to the buffer's. Values only.

A comment that asks for the rewrite is kept from the model and goes with the edit: the text that is sent lacks its line.
"""

from dataclasses import dataclass
from typing import Final

from lsprotocol import types

from specd.daemon.protocol import Target
from specd.daemon.rewrite.region import language_of, lines_of_selection
from specd.lsp.documents import Document

_LANGUAGES: Final = {  # LSP's language identifiers that are not the names of grammars
    "javascriptreact": "javascript",
    "typescriptreact": "tsx",
    "shellscript": "bash",
    "cuda-cpp": "cpp",
}


@dataclass(frozen=True)
class Asked:
    """What is sent. comment: the line of the document that the text lacks, or None."""

    target: Target
    comment: int | None = None

    def lines(self, start: int, end: int) -> tuple[int, int]:
        """Lines [start, end) of the text that was sent, in lines of the document as it was then. What lies around the
        comment has it inside.
        """
        if self.comment is None:
            return start, end
        first = start + (start >= self.comment)
        return first, (end - 1 + (end - 1 >= self.comment)) + 1 if end > start else first


def asked_of(document: Document, where: types.Range | None, *, path: str | None, comment: int | None = None) -> Asked:
    """What a rewrite of `where` asks for: its whole lines, the definition around it if it is empty, all if None."""
    lines = document.lines
    language = (language_of(path) if path else None) or _LANGUAGES.get(document.language_id, document.language_id)
    count = len(lines) - (not lines[-1])
    if comment is not None and not 0 <= comment < count:
        comment = None
    text = document.text if comment is None else "".join(lines[:comment] + lines[comment + 1 :])
    target = Target(text=text, path=path, language=language or None)
    if where is None:
        return Asked(target, comment)
    last = count - 1 - (comment is not None)
    start, end = document.place(where.start), document.place(where.end)
    first, behind = lines_of_selection(start, end)
    first, behind = (_without(first, comment), _without(behind, comment)) if start != end else (0, 0)
    behind = min(behind, last + 1)
    if first < behind:
        return Asked(target.replace(lines=(first, behind)), comment)
    at = min(_without(start[0], comment), last)
    return Asked(target.replace(at=at) if at >= 0 else target, comment)


def _without(line: int, comment: int | None) -> int:
    return line if comment is None or line <= comment else line - 1
