"""The code actions offered: presets, the last instruction again, a diagnostic to fix, a comment that asks. Pure, and
fast enough for every move of the cursor: nothing here reads more than the lines around the range.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lsprotocol import types

from specd.lsp import conflicts
from specd.lsp.comments import request_in
from specd.lsp.documents import Document
from specd.lsp.editor_traits import Traits

COMMAND: Final = "specd.rewrite"
_WORDS: Final = 2000  # characters of a diagnostic that are told to the model
_TITLE: Final = 80  # characters of an instruction that a menu shows


@dataclass(frozen=True)
class Offer:
    """What can be offered. disabled: why nothing can be done here, or empty. last: the latest instruction, or empty.
    conflicts: codes of the diagnostics that tell of hunks not applied.
    """

    presets: Mapping[str, str]
    last: str = ""
    disabled: str = ""
    conflicts: Collection[str] = ()


def code_actions(
    document: Document, params: types.CodeActionParams, offer: Offer, traits: Traits
) -> list[types.CodeAction]:
    """The actions for a range. None for automatic requests where nothing is selected, and none at all that the client
    did not ask for (`only`), or that it would show as if they worked (`disabled`).
    """
    context = params.context
    is_empty = params.range.start == params.range.end
    if is_empty and context.trigger_kind == types.CodeActionTriggerKind.Automatic:
        return []
    if offer.disabled and not traits.shows_disabled:
        return []
    make = _Maker(document, params.range, offer.disabled, traits)
    actions: list[types.CodeAction] = []
    if _wanted(types.CodeActionKind.RefactorRewrite, context.only):
        first, last = document.place(params.range.start)[0], document.place(params.range.end)[0]
        if request := request_in(document.lines, first, last):
            actions.append(make(f"Rewrite with LLM: {request.instruction}", request.instruction, comment=request.line))
        if traits.asks:
            actions.append(make("Rewrite with LLM…", ""))
        actions += [make(f"Rewrite: {name}", text) for name, text in offer.presets.items()]
        if offer.last:
            actions.append(make(f"Rewrite again: {offer.last}", offer.last))
    if _wanted(types.CodeActionKind.QuickFix, context.only):
        for diagnostic in context.diagnostics:
            if diagnostic.source != conflicts.SOURCE:
                actions.append(make.fix(diagnostic))
            elif diagnostic.code in offer.conflicts:
                actions += make.settle(diagnostic)
    return actions


def _wanted(kind: str, only: Any) -> bool:
    """Kinds are hierarchical: `refactor` asks for `refactor.rewrite` too ("CodeActionKind")."""
    return not only or any(asked == "" or kind == asked or kind.startswith(f"{asked}.") for asked in map(_value, only))


def _value(kind: Any) -> str:
    return str(getattr(kind, "value", kind))


class _Maker:
    def __init__(self, document: Document, where: types.Range, disabled: str, traits: Traits) -> None:
        self._document = document
        self._where = where
        self._disabled = disabled
        self._traits = traits

    def __call__(self, title: str, instruction: str, *, comment: int | None = None) -> types.CodeAction:
        return self._action(title, instruction, self._where, types.CodeActionKind.RefactorRewrite, comment=comment)

    def fix(self, diagnostic: types.Diagnostic) -> types.CodeAction:
        words = " ".join(str(diagnostic.message)[:_WORDS].split())
        place = types.Range(diagnostic.range.start, diagnostic.range.start)
        action = self._action(
            f"Fix with LLM: {words}", f"fix this problem: {words}", place, types.CodeActionKind.QuickFix
        )
        action.diagnostics = [diagnostic]
        return action

    def settle(self, diagnostic: types.Diagnostic) -> list[types.CodeAction]:
        found = []
        for use, title in conflicts.USES.items():
            argument = {**conflicts.argument_of(str(diagnostic.code)), "use": use}
            command = types.Command(title, conflicts.COMMAND, arguments=[argument])
            kind = types.CodeActionKind.QuickFix
            found.append(types.CodeAction(title, kind=kind, diagnostics=[diagnostic], command=command))
        return found

    def _action(
        self, title: str, instruction: str, where: types.Range, kind: types.CodeActionKind, comment: int | None = None
    ) -> types.CodeAction:
        title = " ".join(title.split())
        title = title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"
        argument: dict[str, Any] = {
            "uri": self._document.uri,
            "range": {"start": _position(where.start), "end": _position(where.end)},
            "instruction": instruction,
        }
        if comment is not None:
            argument["comment"] = comment
        action = types.CodeAction(title, kind=kind)
        if self._disabled:
            action.disabled = types.CodeActionDisabled(self._disabled)
        else:
            action.command = types.Command(title, COMMAND, arguments=[argument])
        if self._traits.tags_actions:
            action.tags = [types.CodeActionTag.LlmGenerated]
        return action


def _position(position: types.Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}
