"""Requests to the daemon from an event loop. The client blocks, so each request has a thread; a cancel closes the
connection, and the daemon ends the job before its next step.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from specd.daemon import client as daemon
from specd.daemon.client import RewriteStream, SpecdError
from specd.daemon.protocol import OUTCOMES, Cancelled, Event, Failed, Loading, RewriteRequest

T = TypeVar("T")


class DaemonJob:
    """One rewrite at the daemon, which is started if none runs. Events go to `post` on the loop; exactly one outcome,
    the last event. After `cancel` nothing is posted any more.
    """

    def __init__(self, request: RewriteRequest, name: str, post: Callable[[Event], None]) -> None:
        self._request = request
        self._name = name
        self._post_event = post
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._stream: RewriteStream | None = None
        self._is_cancelled = False
        threading.Thread(target=self._run, name="specd-lsp-job", daemon=True).start()

    def cancel(self) -> None:
        """Hang up. Safe at any time, also before the daemon has been reached."""
        with self._lock:
            self._is_cancelled = True
            if self._stream is not None:
                self._stream.cancel()

    def _run(self) -> None:
        try:
            client = daemon.connect(name=self._name, say=lambda text: self._post(Loading(0.0, text)))
            stream = client.rewrite(self._request)
            with self._lock:
                self._stream = stream
                if self._is_cancelled:
                    stream.close()
                    return
            last: Event | None = None
            for last in stream:
                self._post(last)
            if not isinstance(last, OUTCOMES):
                self._post(Cancelled())
        except SpecdError as error:
            self._post(Failed(error.code, str(error)))
        except Exception as error:
            self._post(Failed("failed", f"an error inside specd ended the rewrite ({type(error).__name__})."))

    def _post(self, event: Event) -> None:
        if not self._is_cancelled and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, event)

    def _deliver(self, event: Event) -> None:
        if not self._is_cancelled:
            self._post_event(event)


def in_thread(call: Callable[[], T]) -> Awaitable[T]:
    """What `call` returns, called on a thread that keeps nobody from ending the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # there is one where there is no error

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        except Exception as raised:
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="specd-lsp-call", daemon=True).start()
    return future
