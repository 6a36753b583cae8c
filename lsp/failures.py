"""Requests that fail: what the answer says, and what the log may say of it, which is never the user's text."""

import traceback

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError

from specd.daemon.client import SpecdError
from specd.lsp.rewrites import Refused

_QUOTES = "refused"  # code of the daemon's errors about the text, which may name a definition in it


class RequestFailed(JsonRpcException):
    """Answers a request with the message of `error`, which is for the user. reason: the same for the log."""

    def __init__(self, error: Refused | SpecdError) -> None:
        super().__init__(str(error), code=types.LSPErrorCodes.RequestFailed.value)
        is_quoting = isinstance(error, SpecdError) and error.code == _QUOTES
        self.reason = "the daemon refused the text" if is_quoting else str(error)


def reason_of(error: BaseException) -> str:
    """Why a request failed, as a log may have it. Of an error that nobody expected it is told where it happened, not
    what it says: that may quote anything.
    """
    if isinstance(error, RequestFailed):
        return error.reason
    if isinstance(error, JsonRpcException) and not isinstance(error, JsonRpcInternalError):
        return error.message
    frames = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return "\n".join(filter(None, [f"an error inside specd ({type(error).__name__})", frames]))
