"""Other open documents as texts to draft from: as they stand in the editor, alike ones, within bounds."""

from typing import cast

from lsprotocol import types

from specd.lsp.documents import Documents
from specd.lsp.job import Editor
from specd.lsp.rewrites import Rewrites


def seeds(documents: Documents, uri: str) -> list[tuple[str, str | None]]:
    document = documents.get(uri)
    assert document is not None
    rewrites = Rewrites(documents, cast(Editor, None), lambda: None)  # nothing is sent to it here
    return [(file.path, file.text) for file in rewrites._others(document)]


def opened(documents: Documents, name: str, text: str, language: str = "python") -> str:
    uri = f"file:///w/{name}"
    documents.open(types.TextDocumentItem(uri, language, 1, text))
    return uri


def test_an_unsaved_buffer_is_drafted_from_as_it_stands() -> None:
    documents = Documents()
    mine, other = opened(documents, "a.py", "x = 1\n"), opened(documents, "b c.py", "y = 1\n")
    opened(documents, "notes.md", "# y\n", "markdown")
    document = documents.get(other)
    assert document is not None
    document.change(2, [types.TextDocumentContentChangeWholeDocument("y = unsaved\n")])
    assert seeds(documents, mine) == [("file:///w/b c.py", "y = unsaved\n")]
    assert seeds(documents, other) == [("file:///w/a.py", "x = 1\n")]
    documents.close(other)
    assert seeds(documents, mine) == []


def test_many_and_large_buffers_are_bounded_and_broken_ones_left_out() -> None:
    documents = Documents()
    mine = opened(documents, "a.py", "x = 1\n")
    for number in range(40):
        opened(documents, f"{number}.py", "y = 1\n" * (number + 1))
    assert 0 < len(seeds(documents, mine)) < 10
    opened(documents, "huge.py", "z = 1\n" * 10**5)
    opened(documents, "half.py", "\ud83d\n")
    found = seeds(documents, mine)
    assert not {"file:///w/huge.py", "file:///w/half.py"} & {path for path, _ in found}
    assert sum(len(text or "") for _, text in found) < 2**18
