"""Splices of a document as LSP edits: as small as they can be, and never between the two characters of a line end."""

from collections.abc import Sequence

from lsprotocol import types

from specd.lsp.documents import Document
from specd.lsp.splice import Splice


def text_edits(document: Document, splices: Sequence[Splice]) -> list[types.TextEdit]:
    """Edits that make all `splices` (top to bottom, apart or touching), in positions of the document as it is."""
    return [_edit(document, splice) for splice in _joined(splices) if splice.old != splice.new]


def workspace_edit(
    document: Document, edits: list[types.TextEdit], *, versioned: bool, reviewed: bool = False
) -> types.WorkspaceEdit:
    """`edits` for the client, with its own spelling of the URI; versioned: only on the version that they count in.
    reviewed: each is shown to the user first, who takes it or not ("ChangeAnnotation").
    """
    if not versioned:
        return types.WorkspaceEdit(changes={document.uri: edits})
    annotations = {}
    parts: list[types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit] = [*edits]
    if reviewed:
        for at, edit in enumerate(edits):
            label = f"specd: hunk {at + 1}, line {edit.range.start.line + 1}"
            annotations[str(at)] = types.ChangeAnnotation(label, needs_confirmation=True)
            parts[at] = types.AnnotatedTextEdit(str(at), edit.range, edit.new_text)
    identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    return types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(identifier, parts)], change_annotations=annotations or None
    )


def _joined(splices: Sequence[Splice]) -> list[Splice]:
    """Without two that touch: clients differ in what they make of an insertion at the beginning of a replacement."""
    found: list[Splice] = []
    for splice in splices:
        if found and found[-1].end == splice.start:
            above = found.pop()
            splice = Splice(above.start, above.old + splice.old, above.new + splice.new)
        found.append(splice)
    return found


def _edit(document: Document, splice: Splice) -> types.TextEdit:
    old, new = "".join(splice.old), "".join(splice.new)
    head = _common(old, new)
    if _splits_crlf(old, head) or _splits_crlf(new, head):
        head -= 1
    tail = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - head)
    if tail and (_splits_crlf(old, len(old) - tail) or _splits_crlf(new, len(new) - tail)):
        tail -= 1
    start = _position(document, splice, head)
    end = _position(document, splice, len(old) - tail)
    return types.TextEdit(types.Range(start, end), new[head : len(new) - tail])


def _common(a: str, b: str) -> int:
    """How many characters `a` and `b` have in common at their beginnings."""
    most = min(len(a), len(b))
    if a[:most] == b[:most]:
        return most
    return next(at for at in range(most) if a[at] != b[at])


def _splits_crlf(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1 : at + 1] == "\r\n"


def _position(document: Document, splice: Splice, offset: int) -> types.Position:
    line = splice.start
    for text in splice.old:
        if offset < len(text):
            break
        offset -= len(text)
        line += 1
    else:
        offset = 0 if line < len(document.lines) else offset
    return document.position(line, offset)
