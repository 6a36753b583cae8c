"""The handlers: each reads its request, asks the room that knows, and answers."""

import asyncio
import logging
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams, JsonRpcRequestCancelled
from pygls.lsp.server import LanguageServer

from specd.daemon import client as daemon
from specd.daemon.client import SpecdError
from specd.daemon.protocol import PrepareRequest
from specd.lsp import actions, messages, requests
from specd.lsp.daemon_job import in_thread
from specd.lsp.documents import Documents
from specd.lsp.editor_traits import traits_of
from specd.lsp.job import Ended, Job
from specd.lsp.options import PRESETS, read_options
from specd.lsp.positions import Encoding
from specd.lsp.protocol import Protocol
from specd.lsp.requests import (
    HereParams,
    JobParams,
    PrepareParams,
    PrepareResult,
    RevertResult,
    RewriteParams,
    RewriteResult,
    StatusParams,
    StatusResult,
)
from specd.lsp.rewrites import Refused, Rewrites, path_of
from specd.lsp.spans import line_of

T = TypeVar("T")

_log = logging.getLogger(__name__)
_SEVERITY: Final = {
    "info": types.MessageType.Info,
    "warning": types.MessageType.Warning,
    "error": types.MessageType.Error,
}


class Server(LanguageServer):
    """One editor's server."""

    protocol: Protocol

    def __init__(self, version: str) -> None:
        super().__init__("specd", version, protocol_cls=Protocol)
        self.documents = Documents()
        self.rewrites = Rewrites(self.documents, self, lambda: self if self.rewrites.traits.progress else None)
        self.presets: dict[str, str] = dict(PRESETS)
        self.problems: list[str] = []
        self._by_request: dict[int | str, Job] = {}
        self._here: RewriteParams | None = None  # where code actions were last asked for
        self._tasks: set[asyncio.Task[Any]] = set()
        self.protocol.on_cancel = self._cancel_request
        self.protocol.on_progress_cancel = self._cancel_progress
        _register(self)

    # What jobs ask of the connection.

    async def apply(self, edit: types.WorkspaceEdit) -> types.ApplyWorkspaceEditResult:
        params = types.ApplyWorkspaceEditParams(edit, label="specd")
        if self.rewrites.traits.refactoring:
            params.metadata = types.WorkspaceEditMetadata(is_refactoring=True)
        return await self.workspace_apply_edit_async(params)

    async def create_progress(self, token: str) -> None:
        await self.window_work_done_progress_create_async(types.WorkDoneProgressCreateParams(token))

    def notify_progress(self, token: str, value: object) -> None:
        self.protocol.notify(types.PROGRESS, types.ProgressParams(token, value))

    def notify(self, method: str, params: Any) -> None:
        self.protocol.notify(method, params)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """An error of ours is for the log; the client has its answer. pygls would show it to the user as it is."""
        _log.error("%s in %s", type(error).__name__, getattr(source, "__name__", source))

    # Jobs.

    def start(self, params: RewriteParams) -> tuple[str, "asyncio.Task[Ended] | None"]:
        """Start a job that says its outcome by itself; its name. A refusal is said at once."""
        try:
            job = self.rewrites.start(params)
        except Refused as refusal:
            self.say(str(refusal), "error")
            return "", None
        if (request := self.protocol.msg_id) is not None:
            self._by_request[request] = job
        task = self.in_background(self._run(job, says=True))
        return job.number, task

    async def wait_for(self, params: RewriteParams) -> RewriteResult:
        """Run a job whose outcome is the answer. Raises the error that answers a cancelled request."""
        try:
            job = self.rewrites.start(params)
        except Refused as refusal:
            return RewriteResult("", "refused", str(refusal), 0, [], {})
        run = self.in_background(self._run(job, says=False))
        try:
            ended = await asyncio.shield(run)
        except asyncio.CancelledError:
            job.cancel("by request")
            raise
        return ended.result

    async def _run(self, job: Job, *, says: bool) -> Ended:
        ended = await self.rewrites.run(job)
        self._by_request = {number: other for number, other in self._by_request.items() if other is not job}
        if says:
            self.say(ended.result.message, ended.severity)
        self._trace(job, ended)
        return ended

    def _trace(self, job: Job, ended: Ended) -> None:
        """The job's one line in the editor's log, its spans where tracing is on, and its record in the trace file."""
        result = ended.result
        spans = [*job.spans.of_daemon(ended.summary), *job.spans.spans]
        spans.sort(key=lambda span: span["start_ms"])
        name = ended.daemon_job or result.job
        told = [
            f"job {name} {result.outcome}: {result.message}",
            f"total {job.spans.now():.0f} ms",
            job.spans.applies(),
        ]
        text = " · ".join(part for part in told if part)
        self.window_log_message(types.LogMessageParams(types.MessageType.Info, text))
        if self.protocol.trace != types.TraceValue.Off:
            for span in spans:
                message, rest = line_of(span, name)
                verbose = rest if self.protocol.trace == types.TraceValue.Verbose else None
                self.log_trace(types.LogTraceParams(message, verbose))
        record = job.spans.record(
            job=name,
            client=self.rewrites.client_name,
            outcome=result.outcome,
            hunks=result.hunks,
            conflicts=len(result.conflicts),
        )
        in_thread(lambda: daemon.keep_trace(record))

    def say(self, message: str, severity: str) -> None:
        self.window_show_message(types.ShowMessageParams(_SEVERITY[severity], f"specd: {message}"))

    def in_background(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _cancel_request(self, number: int | str) -> None:
        if number in self._by_request:
            self._by_request[number].cancel("by request")

    def _cancel_progress(self, token: int | str) -> None:
        self.rewrites.cancel(self.rewrites.find(str(token).removeprefix("specd-"), None), "by the user")

    async def warm(self) -> None:
        """Start the daemon and learn the presets of its settings. Failures wait until somebody asks for a rewrite."""
        try:
            status = await in_thread(lambda: daemon.connect(name=self.rewrites.client_name).status())
        except SpecdError as error:
            _log.warning("%s", error)
            return
        presets = status.get("presets")
        if self.rewrites.options.presets is None and isinstance(presets, dict) and presets:
            self.presets = {str(name): str(text) for name, text in presets.items()}


def _register(server: Server) -> None:
    """All handlers. pygls finds them by method name."""
    feature, command = server.feature, server.command

    @feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        options, server.problems = read_options(params.initialization_options)
        rewrites = server.rewrites
        rewrites.options, rewrites.traits = options, traits_of(params, options)
        server.presets = dict(PRESETS if options.presets is None else options.presets)
        encoding = server.protocol.workspace.position_encoding
        name = str(getattr(encoding, "value", encoding))
        server.documents.encoding = next((one for one in get_args(Encoding) if one == name), "utf-16")
        server.protocol.trace = params.trace or types.TraceValue.Off
        root = params.workspace_folders[0].uri if params.workspace_folders else params.root_uri
        rewrites.root = Path(path) if root and (path := path_of(root)) else None
        if params.process_id:
            server.in_background(_exit_with(params.process_id))

    @feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        for problem in server.problems:
            server.say(problem, "warning")
        if server.rewrites.options.warm:
            server.in_background(server.warm())

    @feature(types.SHUTDOWN)
    def shutdown(params: None) -> None:
        server.rewrites.cancel(server.rewrites.find(None, None), "the editor ends")

    @feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        before = server.documents.close(params.text_document.uri)
        if before is not None:
            server.rewrites.close(before)
        server.documents.open(params.text_document)

    @feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        document = server.documents.get(params.text_document.uri)
        if document is not None:
            document.change(params.text_document.version, params.content_changes)

    @feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        document = server.documents.close(params.text_document.uri)
        if document is not None:
            server.rewrites.close(document)

    kinds = [types.CodeActionKind.RefactorRewrite, types.CodeActionKind.QuickFix]

    @feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        server._here = RewriteParams(document.uri, "", params.range)
        rewrites = server.rewrites
        offer = actions.Offer(server.presets, rewrites.last_instruction, rewrites.disabled(document))
        return actions.code_actions(document, params, offer, rewrites.traits)

    @command(actions.COMMAND)
    def rewrite_command(*given: Any) -> dict[str, str]:
        params = _argument(RewriteParams, given)
        return {"job": server.start(params)[0]}

    @command("specd.rewrite.here")
    def rewrite_here(*given: Any) -> dict[str, str]:
        params = _argument(HereParams, given)
        here = server._here
        if params.uri is not None and (here is None or here.uri != params.uri):
            raise JsonRpcInvalidParams(messages.NOWHERE)
        if here is None:
            raise JsonRpcInvalidParams(messages.NOWHERE)
        return {"job": server.start(RewriteParams(here.uri, params.instruction, here.range))[0]}

    @command("specd.cancel")
    def cancel_command(*given: Any) -> dict[str, int]:
        params = _argument(JobParams, given or ({},))
        found = server.rewrites.find(params.job, params.uri)
        return {"cancelled": server.rewrites.cancel(found, "by the user")}

    @command("specd.revert")
    def revert_command(*given: Any) -> None:
        params = _argument(JobParams, given or ({},))

        async def revert() -> None:
            result = await server.rewrites.revert(params.job, params.uri)
            server.say(result.message, "warning" if result.refused else "info")

        server.in_background(revert())

    @feature(requests.PREPARE)
    async def prepare(params: PrepareParams) -> PrepareResult:
        try:
            target = server.rewrites.target(RewriteParams(params.uri, "", params.range, params.version))
            name, model = server.rewrites.client_name, server.rewrites.options.model
            request = PrepareRequest(target=target, model=model, client=name)
            reply = await in_thread(lambda: daemon.connect(name=name).prepare(request))
        except (Refused, SpecdError) as error:
            raise JsonRpcInvalidParams(str(error)) from None
        return PrepareResult(reply.reused, reply.new, reply.replaced)

    @feature(requests.REWRITE)
    async def rewrite(params: RewriteParams) -> RewriteResult:
        result = await server.wait_for(params)
        if result.outcome == "cancelled":
            raise JsonRpcRequestCancelled(result.message)
        return result

    @feature(requests.REVERT)
    async def revert(params: JobParams) -> RevertResult:
        return await server.rewrites.revert(params.job, params.uri)

    @feature(requests.STATUS)
    async def status(params: StatusParams | None) -> StatusResult:
        jobs = [
            {"job": job.number, "uri": job.document.uri, "running": not job.is_over}
            for job in server.rewrites.jobs.values()
        ]
        return StatusResult(await in_thread(daemon.status_if_running), jobs)


def _argument(kind: type[T], given: tuple[Any, ...]) -> T:
    """A command's one argument. Raises JsonRpcInvalidParams that names what is wrong."""
    if len(given) != 1:
        raise JsonRpcInvalidParams(f"one argument is expected, not {len(given)}")
    try:
        return requests.read(kind, given[0])
    except ValueError as error:
        raise JsonRpcInvalidParams(f"the argument {error}") from None


async def _exit_with(parent: int, every: float = 5.0) -> None:
    """End when the editor's process is gone: it may have left its end of the pipe to a child."""
    import psutil

    while psutil.pid_exists(parent):
        await asyncio.sleep(every)
    os._exit(1)
