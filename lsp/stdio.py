"""Standard input and output as the transport: nothing here waits for the other side on the event loop.

A thread reads and a thread writes, so an editor that stops reading, or sends megabytes, delays no job. The end of input
ends the process at once, whatever is under way (pygls's own loop waits for its thread pool).
"""

import asyncio
import contextlib
import json
import logging
import os
import queue
import sys
import threading
from typing import Any, BinaryIO, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from specd.lsp.protocol import Protocol

_log = logging.getLogger(__name__)
_CHUNK: Final = 1 << 16
_LARGEST_HEADER: Final = 1 << 16
_FLUSH_SECONDS: Final = 2.0


class Writer:
    """Writes on a thread of its own; `close` waits until all is out, for two seconds at most."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="specd-lsp-write", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        self._waiting.put(data)

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join(_FLUSH_SECONDS)

    def _run(self) -> None:
        while (data := self._waiting.get()) is not None:
            view = memoryview(data)
            while view:
                try:
                    view = view[os.write(self._fd, view) :]
                except OSError:  # the editor is gone; the end of input tells
                    return


def start_reader(fd: int) -> asyncio.StreamReader:
    """What arrives at `fd`, read on a thread. Must be called on the loop."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LARGEST_HEADER)

    def run() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            while True:
                try:
                    data = os.read(fd, _CHUNK)
                except OSError:
                    data = b""
                if not data:
                    loop.call_soon_threadsafe(reader.feed_eof)
                    return
                loop.call_soon_threadsafe(reader.feed_data, data)

    threading.Thread(target=run, name="specd-lsp-read", daemon=True).start()
    return reader


async def read_messages(reader: asyncio.StreamReader, protocol: Protocol) -> int:
    """Handle messages until `exit` or the end of input; the exit status.

    What a message starts has begun when the next one is handled: a request is about the text that was there when it
    was sent, not about what a change behind it made of that.
    """
    while (body := await _body(reader)) is not None:
        handle(body, protocol)
        await asyncio.sleep(0)
        if protocol.exit_status is not None:
            return protocol.exit_status
    return 1


async def _body(reader: asyncio.StreamReader) -> bytes | None:
    """The next message; None at the end of input. Header fields: LSP "Base Protocol"."""
    length = -1
    try:
        while True:
            line = await reader.readline()
            if not line:
                return None
            name, _, value = line.decode("ascii", "replace").partition(":")
            if name.strip().lower() == "content-length":
                if not value.strip().isdecimal():
                    _log.error("a Content-Length that is no number: it is not known where the next message begins")
                    return None
                length = int(value)
            elif not line.strip() and length >= 0:
                return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ValueError):  # cut off, or a header line without an end
        return None


def handle(body: bytes, protocol: Protocol) -> None:
    """Handle one message (or a batch of them), given as JSON."""
    try:
        data = json.loads(body)
    except ValueError:
        _log.warning("a message of %d bytes is not JSON; it was left out", len(body))
        return
    for one in data if isinstance(data, list) else [data]:
        _handle_one(one, protocol)


def _handle_one(data: Any, protocol: Protocol) -> None:
    if not isinstance(data, dict):
        return
    method, number = data.get("method"), data.get("id")
    if isinstance(method, str) and (refusal := protocol.refusal_of(method)):
        if isinstance(number, int | str):
            protocol.answer_error(number, *refusal)
        return
    try:
        protocol.handle_message(protocol.structure_message(data))
    except JsonRpcException as error:
        _log.warning("cannot read the message %s", method)
        if method == types.TEXT_DOCUMENT_DID_CHANGE and isinstance(uri := _uri_in(data), str):
            protocol.on_lost(uri)
        if method is not None and isinstance(number, int | str):
            is_told = error.message not in ("", type(error).MESSAGE)
            reason = error.message if is_told else f"the parameters of {method} are wrong"
            protocol.answer_error(number, error.code, reason)


def _uri_in(data: dict[str, Any]) -> Any:
    try:
        return data["params"]["textDocument"]["uri"]
    except (TypeError, KeyError):
        return None


def standard_streams() -> tuple[int, int]:
    """Descriptors of input and output for the protocol; what prints by accident goes to standard error."""
    source: BinaryIO = sys.stdin.buffer
    fd = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return source.fileno(), fd
