"""A client of the daemon, with the standard library alone. Blocking; `RewriteStream.cancel` may be called from any
thread. Every error is a SpecdError whose message is for the user.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

from specd.daemon import __version__, wire
from specd.daemon.errors import DaemonUnavailable, SpecdError, Unanswered, VersionMismatch, error_of
from specd.daemon.paths import log_path
from specd.daemon.protocol import (
    CLIENT_HEADER,
    OUTCOMES,
    VERSION_HEADER,
    Event,
    PrepareReply,
    PrepareRequest,
    RewriteRequest,
    decode_event,
)
from specd.daemon.transport import Address, Connection

__all__ = [
    "Client",
    "DaemonUnavailable",
    "RewriteStream",
    "SpecdError",
    "VersionMismatch",
    "__version__",
    "connect",
    "keep_trace",
    "running_status",
]

_ACCEPT_SECONDS: Final = 30.0  # a daemon accepts a job within milliseconds; it may be importing, a machine may be busy
_SILENT: Final = (
    "the daemon (pid {pid}) takes connections and does not answer: it is suspended, or stuck.\n"
    "`kill -CONT {pid}` wakes it; if that does not help, `kill -KILL {pid}` ends it, and the next rewrite starts one."
)
_SILENT_ELSEWHERE: Final = (
    "the daemon at {address} takes connections and does not answer: it is suspended, or stuck.\n"
    "End its process where it runs, and start another there."
)
_LOST: Final = (
    "the daemon ended in the middle of the job; nothing was lost. Try again, and if it happens again see {log}."
)


def connect(*, name: str | None = None, say: Callable[[str], None] = lambda text: None) -> "Client":
    """A client of the running daemon of this version; it is started, or replaced, where needed. say: told what is
    waited for. Raises DaemonUnavailable, or SettingsError if the settings keep it from starting.
    """
    from specd.daemon.lifecycle import with_daemon

    def reached(client: Client) -> Client:
        version = client.status()["version"]
        if version != __version__:
            client.shutdown()
            raise VersionMismatch(f"the daemon is specd {version}, this is {__version__}", version)
        return client

    return with_daemon(reached, name=name, say=say)


def running_status() -> dict[str, Any]:
    """What the running daemon says of itself; none is started. Raises NoDaemon if none runs, Unanswered if one does not
    answer, DaemonUnavailable if one is starting or ending, UsageError if SPECD_DAEMON is no address.
    """
    from specd.daemon.lifecycle import running_status

    return running_status()


def keep_trace(record: dict[str, Any]) -> None:
    """Append a client's own record of a job to the trace file, beside the daemon's, if the settings keep traces. What
    cannot be written is lost, silently.
    """
    from specd.daemon import paths, settings
    from specd.daemon.trace import TraceFile

    with contextlib.suppress(SpecdError):
        wanted = settings.load()
        if wanted.trace:
            TraceFile(paths.trace_path(), wanted.log_size * 1024).append(record)


class Client:
    """Requests to the daemon at `address`, one connection each. `name` tells its queue whose jobs these are."""

    def __init__(
        self,
        address: Address,
        *,
        name: str | None = None,
        connect_timeout: float = 5.0,
        accept_timeout: float = _ACCEPT_SECONDS,
    ) -> None:
        """accept_timeout: seconds in which a rewrite is accepted; how long it takes then is not limited."""
        self.address = address
        self.name = name or f"pid-{os.getpid()}"
        self._connect_timeout, self._accept_timeout = connect_timeout, accept_timeout

    def is_reachable(self) -> bool:
        """Whether somebody listens at the address."""
        try:
            Connection(self.address, connect_timeout=self._connect_timeout).close()
        except DaemonUnavailable:
            return False
        return True

    def rewrite(self, request: RewriteRequest) -> "RewriteStream":
        """Start a rewrite. Raises DaemonUnavailable, Unanswered, VersionMismatch, Busy, UsageError before the first
        event."""
        connection = self._send("POST", "/v1/rewrite", wire.to_json(request), timeout=self._accept_timeout)
        connection.wait_without_end()
        return RewriteStream(connection)

    def prepare(self, request: PrepareRequest, *, timeout: float | None = None) -> PrepareReply:
        """Warm the prompt's fixed part and wait until that is done."""
        data = self._call("POST", "/v1/prepare", wire.to_json(request), timeout=timeout)
        return wire.from_json(PrepareReply, data, ignore_unknown=True)

    def status(self, *, timeout: float = 10.0) -> dict[str, Any]:
        """What the daemon says of itself; see docs/http.md for the fields."""
        data: dict[str, Any] = self._call("GET", "/v1/status", None, timeout=timeout)
        return data

    def metrics(self, *, timeout: float = 10.0) -> str:
        """Counters in Prometheus text format."""
        with contextlib.closing(self._send("GET", "/metrics", None, timeout)) as connection, _loss_as_error(connection):
            return connection.read().decode()

    def shutdown(self, *, drain: bool = True, timeout: float = 10.0) -> dict[str, Any]:
        """Ask the daemon to end: after its jobs (drain) or at once. Returns before it has ended."""
        data: dict[str, Any] = self._call("POST", "/v1/shutdown", {"drain": drain}, timeout=timeout)
        return data

    def _call(self, method: str, path: str, body: Any, timeout: float | None) -> Any:
        with contextlib.closing(self._send(method, path, body, timeout)) as connection, _loss_as_error(connection):
            return json.loads(connection.read())

    def _send(self, method: str, path: str, body: Any, timeout: float | None) -> Connection:
        headers = {VERSION_HEADER: __version__, CLIENT_HEADER: self.name}
        if self.address.token:
            headers["Authorization"] = f"Bearer {self.address.token}"
        payload = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        connection = Connection(self.address, connect_timeout=self._connect_timeout, timeout=timeout)
        try:
            with _loss_as_error(connection):
                connection.request(method, path, headers, payload)
                if connection.status >= 400:
                    raise _error_in(connection)
        except BaseException:
            connection.close()
            raise
        return connection


class RewriteStream:
    """The events of one rewrite, as an iterator that ends after the outcome. Closing or `cancel` cancels the job."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_cancelled = False
        self._events = self._read()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        """Raises DaemonUnavailable if the stream ends without an outcome (the daemon was killed, say)."""
        return next(self._events)

    def _read(self) -> Iterator[Event]:
        with self, _loss_as_error(self._connection):
            name = ""
            while True:
                line = self._line()
                if self._is_cancelled:
                    return
                if not line:
                    raise ValueError("the stream ended without an outcome")
                key, _, value = line.rstrip("\r\n").partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    event = decode_event(name, value)
                    if event is not None:
                        yield event
                    if isinstance(event, OUTCOMES):
                        return

    def _line(self) -> str:
        try:
            return self._connection.readline().decode()
        except (OSError, ValueError):
            if self._is_cancelled:
                return ""
            raise

    def cancel(self) -> None:
        """Cancel the job: the daemon ends it before its next step. Safe from any thread; the iterator just ends."""
        self._is_cancelled = True
        self._connection.cancel()

    def close(self) -> None:
        """Let go of the connection; cancels the job if it is not over."""
        self._connection.close()

    def __enter__(self) -> "RewriteStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def _loss_as_error(connection: Connection) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        pid = connection.server_pid
        known, unknown = _SILENT.format(pid=pid), _SILENT_ELSEWHERE.format(address=connection.address)
        raise Unanswered(known if pid else unknown) from error
    except (OSError, ValueError) as error:
        raise DaemonUnavailable(_LOST.format(log=log_path())) from error


def _error_in(connection: Connection) -> SpecdError:
    try:
        error = json.loads(connection.read())["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        return SpecdError(f"the daemon answered {connection.status} to a request of this client; see its log.")
    if code == VersionMismatch.code:
        return VersionMismatch(message, str(error.get("daemon_version", "")))
    return error_of(code, message)
