"""Who is at the other end of a unix socket."""

import socket
import struct
import sys
from typing import Final

_LOCAL_PEERCRED: Final = 1  # sys/un.h of macOS and FreeBSD; level 0


def peer_uid(connection: socket.socket) -> int | None:
    """User id of the process that connected, as the kernel knows it; None where the system cannot tell."""
    try:
        if sys.platform == "linux":
            _, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return int(uid)
        if sys.platform == "darwin" or sys.platform.startswith("freebsd"):
            # struct xucred: version, uid, group count, 16 groups
            return int(struct.unpack_from("II", connection.getsockopt(0, _LOCAL_PEERCRED, 76))[1])
    except (OSError, struct.error):
        return None
    return None
