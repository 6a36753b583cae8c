"""Which code actions are offered, and what the editor's settings do."""

from typing import Any

import pytest
from lsprotocol import types

from specd.lsp.actions import Offer, code_actions
from specd.lsp.comments import is_request, request_in
from specd.lsp.documents import Document
from specd.lsp.editor_traits import Traits, traits_of
from specd.lsp.options import Options, read_options

CODE = """\
# specd: say hello
def greet(name):
    print(name)

    return 1


def other():
    pass
"""
OFFER = Offer({"Types": "add types"}, last="make it quick")
CURSOR = types.Range(types.Position(2, 4), types.Position(2, 4))
LINES = types.Range(types.Position(7, 0), types.Position(9, 0))
FOUND = types.Diagnostic(LINES, "name 'x'\nis not defined")


def asked(
    where: types.Range, offer: Offer = OFFER, traits: Traits | None = None, **context: Any
) -> list[types.CodeAction]:
    document = Document("file:///a.py", "python", 1, CODE)
    identifier = types.TextDocumentIdentifier(document.uri)
    params = types.CodeActionParams(identifier, where, types.CodeActionContext(**{"diagnostics": [], **context}))
    return code_actions(document, params, offer, traits or Traits())


def test_presets_the_last_instruction_and_the_comment_are_offered() -> None:
    titles = [action.title for action in asked(CURSOR)]
    assert titles == ["Rewrite with LLM: say hello", "Rewrite: Types", "Rewrite again: make it quick"]
    assert [action.title for action in asked(LINES)] == titles[1:]


def test_a_diagnostic_is_offered_to_be_fixed() -> None:
    (action,) = asked(LINES, diagnostics=[FOUND], only=[types.CodeActionKind.QuickFix])
    assert action.title == "Fix with LLM: name 'x' is not defined"
    assert action.diagnostics == [FOUND]
    assert action.command is not None
    assert action.command.arguments is not None
    argument = action.command.arguments[0]
    assert "name 'x' is not defined" in argument["instruction"]
    assert argument["range"]["start"] == argument["range"]["end"]


def test_nothing_is_offered_by_itself_where_nothing_is_selected() -> None:
    automatic = types.CodeActionTriggerKind.Automatic
    assert asked(CURSOR, trigger_kind=automatic, diagnostics=[FOUND]) == []
    assert len(asked(LINES, trigger_kind=automatic)) == 2


@pytest.mark.parametrize(
    ("only", "count"),
    [("refactor", 3), ("refactor.rewrite", 3), ("", 4), ("quickfix", 1), ("source", 0), ("refactor.rewrite.x", 0)],
)
def test_kinds_are_hierarchical(only: str, count: int) -> None:
    assert len(asked(CURSOR, only=[only], diagnostics=[FOUND])) == count


def test_what_cannot_be_done_is_disabled_with_a_reason_or_left_out() -> None:
    offer = Offer({"Types": "add types"}, disabled="the file is read-only")
    assert asked(LINES, offer) == []
    (action,) = asked(LINES, offer, Traits(shows_disabled=True))
    assert action.disabled == types.CodeActionDisabled("the file is read-only")
    assert action.command is None


def test_actions_are_tagged_where_the_client_knows_tags() -> None:
    assert all(
        action.tags == [types.CodeActionTag.LlmGenerated] for action in asked(LINES, traits=Traits(tags_actions=True))
    )
    assert all(action.tags is None for action in asked(LINES))


@pytest.mark.parametrize(
    ("comment", "instruction"),
    [
        ("# specd: do it", "do it"),
        ("    // specd: do it", "do it"),
        ("/* specd: do it */", "do it"),
        ("<!-- Specd: do it -->", "do it"),
        ("-- specd:do it", "do it"),
        ('"specd: do it"', "do it"),
        ("x = 1  # specd: do it", None),
        ("# about specd: do it", None),
        ("# specd:", None),
    ],
)
def test_comments_of_every_language_are_read(comment: str, instruction: str | None) -> None:
    lines = [comment + "\r\n", "x\r\n", ""]
    found = request_in(lines, 1, 1)
    assert (found.instruction if found else None) == instruction
    assert is_request(lines, 0, "do it") == (instruction is not None)


@pytest.mark.parametrize(("line", "is_found"), [(0, True), (1, True), (4, True), (7, False), (8, False)])
def test_a_comment_is_for_the_block_below_it(line: int, is_found: bool) -> None:
    lines = CODE.splitlines(keepends=True)
    assert (request_in(lines, line, line) is not None) == is_found


def test_options_are_typed_and_a_wrong_one_is_named() -> None:
    options, problems = read_options({"specd": {"presets": {"A": "b"}, "applyTimeout": 5, "stream": "never"}})
    assert (options, problems) == (Options(presets={"A": "b"}, apply_timeout=5, stream="never"), [])
    options, problems = read_options(
        {"presets": ["x"], "applyTimeout": "soon", "stream": "maybe", "wamr": 1, "warm": 0}
    )
    assert options == Options()
    assert [problem.split("'")[1] for problem in problems] == ["presets", "applyTimeout", "stream", "wamr", "warm"]
    assert read_options(5)[1]
    assert read_options(None) == (Options(), [])


@pytest.mark.parametrize(
    ("name", "document_changes", "stream", "streams", "versioned"),
    [
        ("Neovim", None, "auto", True, True),
        ("Visual Studio Code - Insiders", True, "auto", True, True),
        ("Visual Studio Code", True, "never", False, True),
        ("helix", True, "auto", True, True),
        (None, True, "auto", False, True),
        ("Eglot", True, "auto", False, True),
        ("emacs", True, "always", True, True),
        ("vim", None, "auto", False, False),
        ("vim", None, "always", False, False),
    ],
)
def test_who_gets_a_stream(
    name: str | None, document_changes: bool | None, stream: Any, streams: bool, versioned: bool
) -> None:
    edit = types.WorkspaceEditClientCapabilities(document_changes=document_changes)
    capabilities = types.ClientCapabilities(types.WorkspaceClientCapabilities(apply_edit=True, workspace_edit=edit))
    client = types.ClientInfo(name) if name else None
    params = types.InitializeParams(capabilities, client_info=client)
    traits = traits_of(params, Options(stream=stream))
    assert (traits.streams, traits.versioned) == (streams, versioned)
