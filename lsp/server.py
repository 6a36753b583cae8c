"""One editor's server: the connection as jobs see it, and the jobs as the connection sees them."""

import asyncio
import logging
import sys
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from lsprotocol import types
from pygls.exceptions import FeatureNotificationError, FeatureRequestError
from pygls.lsp.server import LanguageServer

from specd.daemon import client as daemon
from specd.daemon.client import SpecdError
from specd.lsp import conflicts, messages
from specd.lsp.daemon_job import in_thread
from specd.lsp.documents import Document, Documents
from specd.lsp.failures import reason_of
from specd.lsp.job import Job
from specd.lsp.options import PRESETS
from specd.lsp.outcomes import Ended
from specd.lsp.protocol import Protocol
from specd.lsp.requests import (
    ConflictParams,
    JobParams,
    RevertResult,
    RewriteParams,
    RewriteResult,
)
from specd.lsp.rewrites import Refused, Rewrites
from specd.lsp.spans import line_of

T = TypeVar("T")

_log = logging.getLogger(__name__)
_FAILED: Final = {FeatureRequestError: "a request", FeatureNotificationError: "a notification"}
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
        self.here: RewriteParams | None = None  # where code actions were last asked for
        self._with_conflicts: dict[str, tuple[Document, set[str]]] = {}  # what diagnostics tell of, by URI
        self._tasks: set[asyncio.Task[Any]] = set()
        self.protocol.on_cancel = self._cancel_request
        self.protocol.on_lost = self._lose
        self.protocol.on_progress_cancel = self._cancel_progress

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
        cause = sys.exc_info()[1] or error  # pygls wraps what it is handling, and drops where that came from
        failed = f"{_FAILED.get(source, 'a message')} failed"
        _log.error("%s: %s", failed, reason_of(cause))
        if self.protocol.trace == types.TraceValue.Verbose:
            self.log_trace(types.LogTraceParams(failed, str(cause)))

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
            outcome = "unsynced" if params.sha256 is not None and refusal.is_unsynced else "refused"
            return RewriteResult("", outcome, "error", str(refusal), 0, [], {})
        run = self.in_background(self._run(job, says=False))
        try:
            ended = await asyncio.shield(run)
        except asyncio.CancelledError:
            job.cancel("by request")
            await asyncio.wait({run})  # an edit under way comes in, or is refused: none may come after the answer
            raise
        return ended.result

    async def _run(self, job: Job, *, says: bool) -> Ended:
        ended = await self.rewrites.run(job)
        self._by_request = {number: other for number, other in self._by_request.items() if other is not job}
        if says:
            self.say(ended.result.message, ended.result.severity)
        self._trace(job, ended)
        self.show_conflicts(job.document)
        return ended

    def _trace(self, job: Job, ended: Ended) -> None:
        """The job's one line in the editor's log, its spans where tracing is on, and its record in the trace file."""
        result = ended.result
        spans = [*job.spans.of_daemon(ended.summary), *job.spans.spans]
        spans.sort(key=lambda span: span["start_ms"])
        name = ended.daemon_job or result.job
        # figures alone: an outcome's message may quote the model, and the model the user
        figures = messages.done(result.hunks, job.spans.now() / 1000, ended.summary, ended.lines)
        lost = f"{len(result.conflicts)} in conflict" if result.conflicts else ""
        told = [f"job {name} {result.outcome}: {figures}", lost, job.spans.applies()]
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

    def show_conflicts(self, document: Document) -> None:
        """Tell the conflicts that are open, in this document and in those that had some before."""
        before = {uri: one for uri, (one, _) in self._with_conflicts.items()}
        for uri, one in {document.uri: document, **before}.items():
            jobs = self.rewrites.find(None, uri)
            found = list(conflicts.diagnostics(one, jobs))
            if found or uri in before:
                self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found))
            self._with_conflicts.pop(uri, None)
            if found:
                self._with_conflicts[uri] = one, conflicts.codes(jobs)

    def show_settled(self, document: Document) -> None:
        """After a change of the document: a hunk that the editor took late is no conflict any more."""
        told = self._with_conflicts.get(document.uri)
        if told is not None and told[1] != conflicts.codes(self.rewrites.find(None, document.uri)):
            self.show_conflicts(document)

    async def revert(self, params: JobParams) -> RevertResult:
        result = await self.rewrites.revert(params.job, params.uri)
        for document, _ in tuple(self._with_conflicts.values()):
            self.show_conflicts(document)
        return result

    async def settle(self, params: ConflictParams) -> None:
        document, problem = await self.rewrites.settle(params.job, params.hunk, use=params.use == "specd")
        if problem:
            self.say(problem, "warning")
        if document is not None:
            self.show_conflicts(document)

    def in_background(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _cancel_request(self, number: int | str) -> None:
        if number in self._by_request:
            self._by_request[number].cancel("by request")

    def _lose(self, uri: str) -> None:
        """The editor's text is not known any more: no edit may follow."""
        document = self.documents.get(uri)
        if document is not None:
            document.is_lost = True
            self.rewrites.cancel(self.rewrites.find(None, uri), "a change of the document could not be read")

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
