"""The daemon's listening socket: where clients reach it, and who may."""

import os
import secrets
import socket
from dataclasses import dataclass
from typing import Final

from specd.daemon import transport
from specd.daemon.errors import SpecdError
from specd.daemon.transport import Address

BACKLOG: Final = 256


@dataclass(frozen=True)
class Listener:
    """A listening socket, its address, and the token to ask for ("" on a unix socket: its file mode does)."""

    socket: socket.socket
    address: Address
    token: str = ""
    inode: int = 0

    def is_reachable(self) -> bool:
        """Whether the socket's file still is this socket's; a temporary folder may have been cleaned under it."""
        if self.address.socket is None:
            return True
        try:
            return self.address.socket.stat().st_ino == self.inode
        except OSError:
            return False

    def close(self) -> None:
        """Stop listening and remove the socket's file, or the token file."""
        if self.address.socket is None:
            transport.token_file().unlink(missing_ok=True)
        elif self.is_reachable():
            self.address.socket.unlink(missing_ok=True)
        self.socket.close()


def listen(address: Address) -> Listener:
    """Listen at `address`, whose lock the caller holds. On TCP port 0 takes a free one, and port and token are written
    to the token file.
    """
    try:
        if address.socket:
            address.socket.unlink(missing_ok=True)
            unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            before = os.umask(0o177)
            try:
                unix.bind(str(address.socket))
            finally:
                os.umask(before)
            unix.listen(BACKLOG)
            return Listener(unix, address, inode=address.socket.stat().st_ino)
        tcp = socket.create_server((address.host, address.port), backlog=BACKLOG)
    except OSError as error:
        raise SpecdError(
            f"cannot listen at {address}: {error.strerror}; set SPECD_DAEMON to another address."
        ) from None
    token = address.token or secrets.token_urlsafe(32)
    bound = Address(host=address.host, port=tcp.getsockname()[1], token=token)
    transport.write_token_file(transport.token_file(), bound)
    return Listener(tcp, bound, token)
