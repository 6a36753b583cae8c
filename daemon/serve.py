"""The daemon process: lock, socket, signals, idle timers, and an orderly end.

One daemon a socket: a lock beside the socket is held for the process's life, and the kernel frees it however the
process ends. So whoever holds the lock may remove a socket file that is there: its owner is dead.
"""

import asyncio
import contextlib
import gc
import logging
import os
import re
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from specd.daemon import __version__, errors, logs, transport
from specd.daemon import settings as settings_file
from specd.daemon.errors import AlreadyRunning, InputRefused, UsageError
from specd.daemon.listen import BACKLOG, Listener, listen
from specd.daemon.locks import FileLock
from specd.daemon.replay import is_replay
from specd.daemon.server import Server
from specd.daemon.service import Service
from specd.daemon.settings import Settings
from specd.daemon.transport import Address
from specd.daemon.watch import Watch

_log = logging.getLogger(__name__)
_DEVICE: Final = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
_TICK: Final = 1.0  # seconds between looks at the idle timers and the socket


def serve_command(model: str | None, device: str | None, tcp: int | None, *, is_detached: bool) -> int:
    """`specd serve`. is_detached: a client started this process, so nobody reads what it prints once it listens."""
    settings = settings_file.load()
    if model is not None:
        settings = replace(settings, model=_model(model))
    if device is not None:
        if not _DEVICE.fullmatch(device):
            raise UsageError(f"--device must be auto, cpu, cuda, cuda:N or mps, not {device!r}.")
        settings = replace(settings, device=device)
    address = transport.given_address() or transport.default_address()
    if tcp is not None:
        address = Address(host="127.0.0.1", port=tcp)
    serve(settings, address, to_terminal=not is_detached)
    return errors.DONE


def _model(name: str) -> str:
    """A folder, or a replay's file, as an absolute path; a hub name as it is. Raises InputRefused for what is none."""
    try:
        path = Path(name).expanduser()
        if path.is_dir() or is_replay(name):
            return str(path.absolute())
    except (OSError, ValueError, RuntimeError):  # no path at all
        pass
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return name
    raise InputRefused(f"--model {name[:200]}: no such folder; name a model's folder, or a hub name (owner/name).")


def serve(settings: Settings, address: Address, *, to_terminal: bool, preload: bool = True) -> None:
    """Run a daemon at `address` until it is stopped. Raises AlreadyRunning, or SpecdError if it cannot listen there."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    with FileLock(transport.lock_path(address)) as lock:
        if not lock.acquire(1.0):  # a client that looks whether it is held has it for a moment
            raise AlreadyRunning(
                f"a daemon is running at {address} already; see `specd status`, or `specd stop` it first."
            )
        logs.start(settings, to_terminal=to_terminal)
        asyncio.run(_Daemon(settings, address, preload=preload, to_terminal=to_terminal).run())


def _greeting(at: Address) -> str:
    """Where it serves, and the commands by which a client finds it."""
    if at == transport.default_address():
        return f"specd {__version__} serves at {at}; stop it with Ctrl-C or `specd stop`"
    return (
        f"specd {__version__} serves at {at}; stop it with Ctrl-C or `{transport.ADDRESS_VARIABLE}={at} specd stop`\n"
        f"Clients find it with {transport.ADDRESS_VARIABLE}={at}"
        + ("" if at.socket else f" (its token is in {transport.token_file()})")
    )


class _Daemon:
    def __init__(self, settings: Settings, address: Address, *, preload: bool, to_terminal: bool) -> None:
        self._address = address
        self._to_terminal = to_terminal
        self._preload = preload
        self._service = Service(settings)
        self._stopping = asyncio.Event()
        self._drains = True

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(number, self.stop, False)
        listener = listen(self._address)
        server = Server(self._service, self.stop, token=listener.token)
        await server.runner.setup()
        create = loop.create_unix_server if listener.address.socket else loop.create_server
        acceptor = await create(server.protocol, sock=listener.socket, backlog=BACKLOG)
        _log.info("specd %s listens at %s, pid %d", __version__, listener.address, os.getpid())
        if self._to_terminal:
            print(_greeting(listener.address), file=sys.stderr)
        if self._preload:
            self._service.preload()
        gc.freeze()  # what is here by now stays; the collector need not look at it between steps
        tasks = [asyncio.create_task(self._tick(listener)), asyncio.create_task(Watch(self._service).run())]
        await self._stopping.wait()
        _log.info("stopping%s", " after the jobs in hand" if self._drains else "")
        self._service.scheduler.drain()
        while self._drains and not self._service.scheduler.wait_idle(0):
            await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._service.stop)
        acceptor.close()
        await server.runner.cleanup()
        listener.close()
        _log.info("stopped")

    def stop(self, drain: bool) -> None:
        """End after the jobs in hand (drain), or cancel them; a second call may only hurry."""
        self._drains = self._drains and drain
        self._service.scheduler.drain()
        self._stopping.set()

    async def _tick(self, listener: Listener) -> None:
        while True:
            await asyncio.sleep(_TICK)
            settings, scheduler = self._service.settings, self._service.scheduler
            active, waiting = scheduler.counts()
            idle = 0.0 if active or waiting else time.monotonic() - scheduler.idle_since
            if settings.idle_shutdown and idle > settings.idle_shutdown:
                _log.info("idle for %.0f s", idle)
                self.stop(True)
            if settings.idle_unload and idle > settings.idle_unload:
                count = await asyncio.to_thread(self._service.pool.unload_unused, settings.idle_unload)
                if count:
                    _log.info("idle for %.0f s: unloaded %d model(s)", idle, count)
            if not listener.is_reachable():
                _log.warning("the socket %s is gone or another's: nobody can reach this daemon", listener.address)
                self.stop(True)
