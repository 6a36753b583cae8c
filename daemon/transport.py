"""Addresses of a daemon, and HTTP connections to them: a unix socket, or loopback TCP with a token.

An address is `unix:/path/of/socket` (a bare path means the same) or `http://127.0.0.1:PORT`. Other hosts are refused on
both sides: to use a daemon on another machine, forward its socket, e.g. `ssh -L /tmp/specd.sock:REMOTE_SOCKET HOST`.
"""

import contextlib
import json
import os
import socket
from pathlib import Path
from typing import Final

from specd.daemon import paths
from specd.daemon.errors import DaemonUnavailable, SpecdError, UsageError
from specd.daemon.record import Record

ADDRESS_VARIABLE: Final = "SPECD_DAEMON"
TOKEN_VARIABLE: Final = "SPECD_TOKEN"
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
HAS_UNIX_SOCKETS: Final = hasattr(socket, "AF_UNIX")


class Address(Record):
    """Where a daemon listens: `socket` is a path, or `host` and `port` with a `token`."""

    socket: Path | None = None
    host: str = ""
    port: int = 0
    token: str = ""

    def __str__(self) -> str:
        return f"unix:{self.socket}" if self.socket else f"http://{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """The address that `text` names. Raises UsageError if it is none, or not of this machine."""
    if text.startswith("http://"):
        host, _, port = text.removeprefix("http://").rstrip("/").rpartition(":")
        host = host.strip("[]")
        if host not in LOOPBACK:
            raise UsageError(
                f"{ADDRESS_VARIABLE}={text}: specd speaks TCP on this machine only (http://127.0.0.1:PORT).\n"
                "For a daemon elsewhere forward its socket: ssh -L /tmp/specd.sock:REMOTE_SOCKET HOST"
            )
        if not port.isdigit() or not 0 <= int(port) < 65536:
            raise UsageError(f"{ADDRESS_VARIABLE}={text}: the port is missing; write http://127.0.0.1:PORT")
        return Address(host=host, port=int(port), token=os.environ.get(TOKEN_VARIABLE) or _own_token(host, int(port)))
    if "://" in text or not text:
        raise UsageError(f"{ADDRESS_VARIABLE}={text}: write unix:/path/of/socket or http://127.0.0.1:PORT")
    path = Path(text.removeprefix("unix:")).expanduser().absolute()
    paths.check_socket_path(path)
    return Address(socket=path)


def given_address() -> Address | None:
    """The address in $SPECD_DAEMON, or None."""
    text = os.environ.get(ADDRESS_VARIABLE)
    return parse_address(text) if text else None


def default_address() -> Address:
    """Where this user's daemon listens: the socket in the run folder, or, where there are no unix sockets, what the
    daemon wrote to the token file beside it. Port 0: no such file, so no daemon.
    """
    if HAS_UNIX_SOCKETS:
        return Address(socket=paths.default_socket())
    return read_token_file(token_file()) or Address(host="127.0.0.1")


def token_file() -> Path:
    """Where a daemon on TCP writes its port and token, mode 0600."""
    return paths.run_folder() / "daemon.json"


def _own_token(host: str, port: int) -> str:
    """The token of this user's own daemon, if it is the one at this very address; else ""."""
    try:
        own = read_token_file(token_file())
    except SpecdError:  # no run folder that can be trusted
        return ""
    return own.token if own is not None and (own.host, own.port) == (host, port) else ""


def lock_path(address: Address) -> Path:
    """The file that a daemon at `address` keeps locked while it lives."""
    if address.socket:
        return address.socket.with_name(address.socket.name + ".lock")
    return token_file().with_suffix(".lock")


def read_token_file(path: Path) -> Address | None:
    """The address in a token file; None if there is none or it is broken."""
    try:
        data = json.loads(path.read_text())
        return Address(host=str(data["host"]), port=int(data["port"]), token=str(data["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_token_file(path: Path, address: Address) -> None:
    """Write host, port and token so that only the user can read them."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as file:
        json.dump({"host": address.host, "port": address.port, "token": address.token}, file)


class Connection:
    """One HTTP request to a daemon, by HTTP/1.0: the answer ends where the connection does.

    Not the standard library's http.client, which takes 35 ms to import (e-mail and TLS come with it) for the few lines
    that a local daemon needs. `cancel` may be called from any thread.
    """

    def __init__(self, address: Address, *, connect_timeout: float = 5.0, timeout: float | None = None) -> None:
        """Connect. timeouts in seconds; `timeout` is for each read. Raises DaemonUnavailable if nobody listens."""
        try:
            if address.socket:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._socket.settimeout(connect_timeout)
                self._socket.connect(str(address.socket))
            elif address.port:
                self._socket = socket.create_connection((address.host, address.port), connect_timeout)
            else:
                raise ConnectionRefusedError
        except OSError as error:
            if address.socket:
                self._socket.close()
            reason = f" ({error.strerror})" if error.strerror else ""
            raise DaemonUnavailable(f"no daemon answers at {address}{reason}.") from error
        self._socket.settimeout(timeout)
        self._reader = self._socket.makefile("rb")
        self._length: int | None = None
        self.address = address
        self.status = 0

    @property
    def server_pid(self) -> int | None:
        """Process that listens at the address, where that can be told: one of this machine, not a forwarded socket."""
        from specd.daemon.locks import FileLock
        from specd.daemon.peer import peer_pid

        path = lock_path(self.address)
        is_here = self.address.socket is not None and path.exists() and FileLock(path).is_held()
        return peer_pid(self._socket) if is_here else None

    def request(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> None:
        """Send the request and read the answer's head. Raises OSError or ValueError if the connection breaks."""
        if body is not None:
            headers = {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = [f"{method} {path} HTTP/1.0", "Host: localhost", *(f"{key}: {value}" for key, value in headers.items())]
        # a server that refuses the request may answer, and hang up, before it has read all of it
        with contextlib.suppress(BrokenPipeError):
            self._socket.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))
        version, code, *_ = self._line().split(" ")
        if not version.startswith("HTTP/1."):
            raise ValueError("not an HTTP answer")
        self.status = int(code)
        while line := self._line():
            key, _, value = line.partition(":")
            if key.lower() == "content-length":
                self._length = int(value)

    def wait_without_end(self) -> None:
        """From here on a read may take as long as it does."""
        self._socket.settimeout(None)

    def read(self) -> bytes:
        """The whole body. Raises ValueError if it is cut short."""
        body = self._reader.read()
        if self._length is not None and len(body) < self._length:
            raise ValueError("the answer was cut short")
        return body

    def readline(self) -> bytes:
        """The next line of the body; empty at its end."""
        return self._reader.readline()

    def cancel(self) -> None:
        """Hang up; a read that waits in another thread ends."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def _line(self) -> str:
        raw = self._reader.readline(65536)
        if not raw.endswith(b"\n"):
            raise ValueError("the answer was cut short")
        return raw.decode("latin-1").rstrip("\r\n")
