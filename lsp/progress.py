"""Work-done progress that the server begins (LSP 3.17, "Work Done Progress"): after a `begin` there is an `end`."""

import asyncio
import contextlib
import time
from typing import Final, Protocol

from lsprotocol import types

_CREATE_SECONDS: Final = 5.0
_REPORT_SECONDS: Final = 0.1  # between two reports


class Client(Protocol):
    """What progress needs of the connection."""

    async def create_progress(self, token: str) -> None: ...

    def notify_progress(self, token: str, value: object) -> None: ...


class Progress:
    """One progress, cancellable. Does nothing where the client has none (`client` is None)."""

    def __init__(self, client: Client | None, token: str, title: str) -> None:
        self.token = token
        self._client = client
        self._title = title
        self._is_begun = self._is_over = False
        self._message: str | None = None
        self._last = 0.0

    async def begin(self, message: str) -> None:
        """Ask for the token, then begin. A client that does not answer, or refuses, sees no progress."""
        self._message = message
        if self._client is None:
            return
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._client.create_progress(self.token), _CREATE_SECONDS)
            if not self._is_over:
                self._is_begun = True
                begin = types.WorkDoneProgressBegin(self._title, cancellable=True, message=self._message)
                self._client.notify_progress(self.token, begin)

    def report(self, message: str, fraction: float | None = None) -> None:
        """fraction: 0..1. Reports that come too fast are left out."""
        self._message = message
        now = time.monotonic()
        if self._client is None or not self._is_begun or self._is_over or now - self._last < _REPORT_SECONDS:
            return
        self._last = now
        share = None if fraction is None else round(100 * fraction)
        self._client.notify_progress(
            self.token, types.WorkDoneProgressReport(cancellable=True, message=message, percentage=share)
        )

    def end(self, message: str) -> None:
        """May be called more than once; only the first counts."""
        if self._client is not None and self._is_begun and not self._is_over:
            self._client.notify_progress(self.token, types.WorkDoneProgressEnd(message=message))
        self._is_over = True
