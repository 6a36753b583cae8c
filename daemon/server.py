"""HTTP around a Service: routes, checks of who asks, limits. See docs/http.md for the interface.

One request a connection, so that a connection's time limit is a request's. Handlers only translate: JSON to requests,
events to server-sent events, errors to `{"error": {"code", "message"}}`.
"""

import asyncio
import contextlib
import hmac
import json
import logging
import os
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from specd.daemon import __version__, wire
from specd.daemon.errors import Busy, InputRefused, SpecdError, UsageError, VersionMismatch
from specd.daemon.peer import peer_uid
from specd.daemon.protocol import (
    CLIENT_HEADER,
    OUTCOMES,
    VERSION_HEADER,
    Event,
    encode_event,
    parse_prepare,
    parse_rewrite,
)
from specd.daemon.service import Service

_log = logging.getLogger(__name__)
_WRITE_TIMEOUT: Final = 60.0  # seconds a client may leave its events unread
_STATUS: Final[dict[type[SpecdError], int]] = {UsageError: 400, InputRefused: 422, VersionMismatch: 409, Busy: 503}

_http_log = logging.getLogger(__name__ + ".http")


def _without_text(record: logging.LogRecord) -> bool:
    """What is logged of a request that is no HTTP: no byte of it."""
    kind = record.exc_info[0] if record.exc_info else None
    record.msg, record.args = "a request that is no HTTP (%s)", (kind.__name__ if kind else record.levelname,)
    record.levelno, record.levelname = logging.INFO, "INFO"
    record.exc_info = record.exc_text = None
    return True


_http_log.addFilter(_without_text)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """The HTTP application. `token`: asked of every request (loopback TCP); `stop` is called by /v1/shutdown(drain)."""

    def __init__(self, service: Service, stop: Callable[[bool], None], *, token: str = "") -> None:
        self.service = service
        self._stop = stop
        self._token = token
        self._silent: dict[web.RequestHandler, asyncio.TimerHandle] = {}  # connections that have sent no request yet
        limit = service.settings.max_request * 2**20
        app = web.Application(client_max_size=limit, middlewares=[self._guard])
        app.add_routes(
            [
                web.post("/v1/rewrite", self._rewrite),
                web.post("/v1/prepare", self._prepare),
                web.post("/v1/shutdown", self._shutdown),
                web.get("/v1/status", self._status),
                web.get("/metrics", self._metrics),
            ]
        )
        # a client that hangs up cancels its handler, and the handler its job
        self.runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, logger=_http_log, shutdown_timeout=5.0
        )

    def protocol(self) -> asyncio.Protocol:
        """A protocol for a new connection, which is closed if its request is not there in time."""
        server = self.runner.server
        assert server is not None, "the runner has been set up"
        protocol: web.RequestHandler = server()
        limit = self.service.settings.request_timeout + 1.0
        self._silent[protocol] = asyncio.get_running_loop().call_later(limit, self._close, protocol)
        return protocol

    def _close(self, protocol: web.RequestHandler) -> None:
        del self._silent[protocol]
        if protocol.transport is not None:
            protocol.transport.abort()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._check_peer(request)
            body = await self._read(request)
            timer = self._silent.pop(request.protocol, None)
            if timer is not None:
                timer.cancel()
            request["json"] = body
            self._check_version(request)
            response = await handler(request)
        except web.HTTPRequestEntityTooLarge:
            limit = self.service.settings.max_request
            response = _error(413, "refused", f"the request is larger than {limit} MiB (setting max_request).")
        except web.HTTPException as error:
            response = _error(
                error.status, "usage", f"{request.method} {request.path}: {error.reason}; see docs/http.md"
            )
        except VersionMismatch as error:
            response = _error(409, error.code, str(error), daemon_version=error.daemon_version)
        except ConnectionError:
            response = _error(400, "usage", "the request broke off")  # the client is gone; nobody hears it
        except SpecdError as error:
            status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
            response = _error(status, error.code, str(error))
        except Exception as error:  # one of ours; its own text may quote the user's
            frames = "".join(traceback.format_tb(error.__traceback__))
            _log.error("%s %s: %s\n%s", request.method, request.path, type(error).__name__, frames)
            response = _error(
                500, SpecdError.code, f"an error inside specd ({type(error).__name__}); the log tells where."
            )
        response.force_close()
        return response

    def _check_peer(self, request: web.Request) -> None:
        if self._token:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                raise web.HTTPUnauthorized(reason="the token is missing or wrong")
            return
        transport = request.transport
        connection = transport.get_extra_info("socket") if transport else None
        uid = peer_uid(connection) if connection is not None else None
        if uid is not None and uid not in (os.getuid(), 0):
            raise web.HTTPForbidden(reason="this daemon belongs to another user")

    async def _read(self, request: web.Request) -> Any:
        if request.method != "POST":
            return None
        if (request.content_length or 0) > request.client_max_size:
            raise web.HTTPRequestEntityTooLarge(request.client_max_size, request.content_length or 0)
        try:
            body = await asyncio.wait_for(request.read(), self.service.settings.request_timeout)
        except TimeoutError:
            raise web.HTTPRequestTimeout(reason="the request did not arrive in time") from None
        try:
            return json.loads(body) if body else {}
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the request is not JSON: {str(error)[:100]}") from None

    def _check_version(self, request: web.Request) -> None:
        version = request.headers.get(VERSION_HEADER, __version__)
        if version == __version__ or request.path in ("/v1/shutdown", "/v1/status", "/metrics"):
            return
        active, waiting = self.service.scheduler.counts()
        self._stop(True)
        raise VersionMismatch(
            f"this daemon is specd {__version__} and the client {version}; it ends after its {active + waiting} jobs.",
            __version__,
        )

    async def _rewrite(self, request: web.Request) -> web.StreamResponse:
        asked = parse_rewrite(_with_client(request))
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[Event] = asyncio.Queue()

        def emit(event: Event) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: the daemon stops, nobody listens
                loop.call_soon_threadsafe(events.put_nowait, event)

        job = self.service.rewrite(asked, emit)
        try:
            headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}
            response = web.StreamResponse(headers=headers)
            response.force_close()
            await response.prepare(request)
            while True:
                event = await events.get()
                try:
                    await asyncio.wait_for(response.write(encode_event(event)), _WRITE_TIMEOUT)
                except (ConnectionError, TimeoutError):
                    _log.info("a client left before its job was over")
                    return response
                if isinstance(event, OUTCOMES):
                    return response
        finally:
            self.service.cancel(job)  # does nothing to a job that has ended

    async def _prepare(self, request: web.Request) -> web.StreamResponse:
        job, future = self.service.prepare(parse_prepare(_with_client(request)))
        try:
            reply = await asyncio.wrap_future(future)
        finally:
            self.service.cancel(job)
        return web.json_response(wire.to_json(reply))

    async def _status(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.service.status())

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=self.service.metrics_text(), headers={"Content-Type": "text/plain; version=0.0.4"})

    async def _shutdown(self, request: web.Request) -> web.StreamResponse:
        drain = request["json"].get("drain", True) if isinstance(request["json"], dict) else None
        if not isinstance(drain, bool):
            raise UsageError("the request is wrong: drain must be true or false")
        active, waiting = self.service.scheduler.counts()
        asyncio.get_running_loop().call_later(0.01, self._stop, drain)  # after the answer is out
        return web.json_response({"stopping": True, "jobs": active + waiting, "pid": os.getpid()})


def _with_client(request: web.Request) -> Any:
    data = request["json"]
    name = request.headers.get(CLIENT_HEADER, "")
    if isinstance(data, dict) and name and not data.get("client"):
        return {**data, "client": name[:100]}
    return data


def _error(status: int, code: str, message: str, **more: str) -> web.Response:
    return web.json_response({"error": {"code": code, "message": message, **more}}, status=status)
