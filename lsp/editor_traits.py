"""What the editor at the other end can do, from its `initialize` request. Measured behaviour: see Traits."""

from typing import Any, Final

import attrs
from lsprotocol import types

from specd.lsp.options import Options

# They take a stream of versioned edits one by one and tell each at once. Others are given one edit at the end: eglot
# asks the user before each edit and tells changes after half a second only; Vim's plugins never answer.
_STREAMING: Final = ("neovim", "visual studio code", "vscodium", "code-oss", "code-server", "helix", "zed")
_UNANNOUNCED: Final = ("neovim",)  # takes documentChanges, and does not say so


@attrs.frozen
class Traits:
    """streams: hunks may be sent as they come. versioned: edits may name the document's version. applies: knows
    workspace/applyEdit. ignores_version_0: an edit for version 0 is made on whatever version there is. plugin: has
    specd's own plugin, which wants notifications of regions and hunks. asks: the plugin asks for an instruction itself
    where a command has none. reviews: the user wants to take or leave each hunk, and the editor can ask for it.
    takes_literals: code actions may be more than commands. counts_returns: a CR alone ends a line for it, as for
    the protocol.
    """

    name: str = "an editor"
    streams: bool = False
    versioned: bool = False
    applies: bool = True
    progress: bool = False
    shows_disabled: bool = False
    tags_actions: bool = False
    refactoring: bool = False
    ignores_version_0: bool = False
    plugin: bool = False
    reviews: bool = False
    asks: bool = False
    takes_literals: bool = False
    counts_returns: bool = True


def traits_of(params: types.InitializeParams, options: Options) -> Traits:
    """The traits that an `initialize` request tells."""
    name = params.client_info.name if params.client_info else ""
    workspace = params.capabilities.workspace or types.WorkspaceClientCapabilities()
    edit = workspace.workspace_edit or types.WorkspaceEditClientCapabilities()
    text = params.capabilities.text_document or types.TextDocumentClientCapabilities()
    action = text.code_action or types.CodeActionClientCapabilities()
    window = params.capabilities.window or types.WindowClientCapabilities()
    plugin = _experimental(params.capabilities.experimental)
    known = name.lower().startswith(_STREAMING)
    versioned = bool(edit.document_changes) or name.lower().startswith(_UNANNOUNCED)
    streams = {"always": True, "never": False, "auto": known or bool(plugin.get("hunkAck"))}[options.stream]
    annotates = edit.change_annotation_support is not None
    reviews = options.review == "hunks" and versioned and annotates
    return Traits(
        name=name or "an editor",
        streams=streams and versioned and not reviews,
        versioned=versioned,
        applies=bool(workspace.apply_edit),
        progress=bool(window.work_done_progress),
        shows_disabled=bool(action.disabled_support),
        tags_actions=getattr(action, "tag_support", None) is not None,
        refactoring=bool(edit.metadata_support),
        ignores_version_0=name.lower().startswith("neovim") and not plugin,  # the plugin checks it
        plugin=bool(plugin),
        reviews=reviews,
        asks=bool(plugin.get("inputBox")),
        takes_literals=action.code_action_literal_support is not None,
        counts_returns=not name.lower().startswith("neovim"),
    )


def _experimental(value: Any) -> dict[str, Any]:
    """The client's `experimental.specd`, whatever form the deserialiser gave it."""
    found = value.get("specd") if isinstance(value, dict) else getattr(value, "specd", None)
    if isinstance(found, dict):
        return found
    if found is None or isinstance(found, bool):
        return {"hunkAck": False} if found else {}
    return {name: getattr(found, name) for name in getattr(found, "_fields", ())}
