"""`specd lsp`, or `python -m specd.lsp`: the language server over standard input and output."""

import asyncio
import gc
import os
import sys

from specd.daemon.client import __version__
from specd.lsp import protocol, stdio


async def _serve() -> int:
    from specd.lsp.handlers import register
    from specd.lsp.server import Server

    source, sink = stdio.standard_streams()
    reader = stdio.start_reader(source)
    server = Server(__version__)
    register(server)
    writer = stdio.Writer(sink)
    server.protocol.set_writer(writer)
    gc.freeze()  # what is here by now stays; a keystroke need not wait until the collector has looked at it
    status = await stdio.read_messages(reader, server.protocol)
    server.rewrites.cancel(server.rewrites.find(None, None), "the editor is gone")
    writer.close()
    return status


def main() -> None:
    """Serve one editor, and end with it: the connections of what is under way are closed with the process."""
    protocol.quiet_logs()
    if sys.stdin.isatty():
        print(
            "specd lsp speaks to an editor over stdin and stdout; see editors/PROTOCOL.md. Ctrl-D ends it.",
            file=sys.stderr,
        )
    os._exit(asyncio.run(_serve()))


main()
