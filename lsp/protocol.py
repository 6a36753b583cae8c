"""pygls's protocol with what specd needs otherwise: no mirror of pygls's own, custom requests that are typed, cancels
that reach the job whatever started it, and an end without waiting for threads.
"""

import logging
import sys
from collections.abc import Callable, Generator
from typing import Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol, lsp_method

from specd.lsp import requests

_log = logging.getLogger(__name__)
_TRACE_IN: Final = {types.INITIALIZE: "trace", types.SET_TRACE: "value"}  # the field that names a trace value


class Protocol(LanguageServerProtocol):
    """`on_cancel` hears the id of every request that the client cancels, answered already or not; `on_lost` the URI of
    a document of which a change could not be read.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.exit_status: int | None = None
        self.is_initialized = False
        self.on_cancel: Callable[[int | str], None] = lambda number: None
        self.on_progress_cancel: Callable[[int | str], None] = lambda token: None
        self.on_lost: Callable[[str], None] = lambda uri: None
        super().__init__(*args, **kwargs)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """The message that `data` is. Raises JsonRpcInvalidParams that names what is wrong."""
        method = data.get("method")
        if method in _TRACE_IN:
            data = _with_known_trace(data, _TRACE_IN[method])
        if method == types.TEXT_DOCUMENT_DID_CHANGE:
            if not requests.are_changes(data.get("params")):
                raise JsonRpcInvalidParams("the change of a document is none")
            data = requests.with_version(data)
        if method not in requests.PARAMS or "id" not in data:
            message = super().structure_message(data)
            self.is_initialized = self.is_initialized or method == types.INITIALIZE
            return message
        given = data.get("params")
        try:
            params: Any = requests.read(requests.PARAMS[method], {} if given is None else given)
        except ValueError as error:
            raise JsonRpcInvalidParams(f"{method} {error}") from None
        return requests.Request(data["id"], method, params)

    def _handle_cancel_notification(self, msg_id: int | str) -> None:
        self.on_cancel(msg_id)
        future = self._request_futures.get(msg_id)
        if future is not None:
            super()._handle_cancel_notification(msg_id)

    def _handle_response(
        self, msg_id: int | str, result: Any | None = None, error: types.ResponseError | None = None
    ) -> None:
        """An answer for which nobody waits any more (its job is over) is left out; pygls would raise."""
        future = self._request_futures.get(msg_id)
        if future is not None and future.cancelled():
            del self._request_futures[msg_id]
        else:
            super()._handle_response(msg_id, result, error)

    # Handlers of the same names keep pygls's own text mirror, which costs tens of milliseconds a keystroke in a large
    # file and splits lines at characters that LSP does not; these only pass the message on.

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None

    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def lsp_work_done_progress_cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        self.on_progress_cancel(params.token)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Generator[Any, Any, None]:
        """The end of the message loop; `stdio.run` ends the process."""
        self.exit_status = 0 if self._shutdown else 1
        yield from ()

    def refusal_of(self, method: str) -> tuple[int, str] | None:
        """The error that answers a message out of turn, code and words; None if it is in turn. Before `initialize`
        ("Initialize Request") and after `shutdown` ("Shutdown Request") only `exit` is.
        """
        is_first = method == types.INITIALIZE
        if method == types.EXIT:
            return None
        if self._shutdown:
            return types.ErrorCodes.InvalidRequest, "the server has been shut down"
        if not self.is_initialized and not is_first:
            return types.ErrorCodes.ServerNotInitialized, "the server has not been initialized"
        if self.is_initialized and is_first:
            return types.ErrorCodes.InvalidRequest, "the server has been initialized already"
        return None

    def answer_error(self, number: int | str, code: int, message: str) -> None:
        """Answer a request that could not be read."""
        self._send_response(number, error=types.ResponseError(code=code, message=message))


def _with_known_trace(data: dict[str, Any], field: str) -> dict[str, Any]:
    """A trace value that the specification has not (`compact` of vscode-jsonrpc) means messages."""
    params = data.get("params")
    known = (None, *(value.value for value in types.TraceValue))
    if not isinstance(params, dict) or params.get(field) in known:
        return data
    return {**data, "params": {**params, field: types.TraceValue.Messages.value}}


def quiet_logs() -> None:
    """pygls logs whole messages at INFO, and those hold the user's text: only its warnings without text are let out."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="specd lsp: %(message)s")
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
