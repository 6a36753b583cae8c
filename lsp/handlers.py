"""The handlers: each reads its request, asks the room that knows, and answers."""

import asyncio
import os
from pathlib import Path
from typing import Any, TypeVar, get_args

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from specd.daemon import client as daemon
from specd.daemon.client import SpecdError
from specd.daemon.protocol import PrepareRequest
from specd.lsp import actions, conflicts, messages, requests
from specd.lsp.daemon_job import in_thread
from specd.lsp.editor_traits import traits_of
from specd.lsp.failures import RequestFailed
from specd.lsp.options import PRESETS, read_options
from specd.lsp.positions import Encoding
from specd.lsp.requests import (
    ConflictParams,
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
from specd.lsp.rewrites import Refused, path_of
from specd.lsp.server import Server

T = TypeVar("T")


def register(server: Server) -> None:
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
        server.documents.counts_returns = rewrites.traits.counts_returns
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
            version = params.text_document.version
            document.change(None if version == requests.NO_VERSION else version, params.content_changes)
            server.show_settled(document)

    @feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        document = server.documents.close(params.text_document.uri)
        if document is not None:
            server.rewrites.close(document)
            server.show_conflicts(document)

    kinds = [types.CodeActionKind.RefactorRewrite, types.CodeActionKind.QuickFix]

    @feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction] | list[types.Command]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        server.here = RewriteParams(document.uri, "", params.range)
        rewrites = server.rewrites
        open_ones = conflicts.codes(rewrites.find(None, document.uri))
        offer = actions.Offer(server.presets, rewrites.last_instruction, rewrites.disabled(document), open_ones)
        found = actions.code_actions(document, params, offer, rewrites.traits)
        if rewrites.traits.takes_literals:
            return found
        return [action.command for action in found if action.command is not None]

    @command(actions.COMMAND)
    def rewrite_command(*given: Any) -> dict[str, str]:
        params = _argument(RewriteParams, given)
        return {"job": server.start(params)[0]}

    @command("specd.rewrite.here")
    def rewrite_here(*given: Any) -> dict[str, str]:
        params = _argument(HereParams, given)
        here = server.here
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
            result = await server.revert(params)
            server.say(result.message, "warning" if result.refused else "info")

        server.in_background(revert())

    @command(conflicts.COMMAND)
    def conflict_command(*given: Any) -> None:
        params = _argument(ConflictParams, given)
        if params.use not in conflicts.USES:
            raise JsonRpcInvalidParams(f"the argument field 'use' must be one of {', '.join(conflicts.USES)}")
        server.in_background(server.settle(params))

    @feature(requests.PREPARE)
    async def prepare(params: PrepareParams) -> PrepareResult:
        try:
            target = server.rewrites.target(RewriteParams(params.uri, "", params.range, params.version))
            name, model = server.rewrites.client_name, server.rewrites.options.model
            request = PrepareRequest(target=target, model=model, client=name)
            reply = await in_thread(lambda: daemon.connect(name=name).prepare(request))
        except (Refused, SpecdError) as error:
            raise RequestFailed(error) from None
        return PrepareResult(reply.reused, reply.new, reply.replaced)

    @feature(requests.REWRITE)
    async def rewrite(params: RewriteParams) -> RewriteResult:
        return await server.wait_for(params)

    @feature(requests.REVERT)
    async def revert(params: JobParams) -> RevertResult:
        return await server.revert(params)

    @feature(requests.STATUS)
    async def status(params: StatusParams | None) -> StatusResult:
        jobs = [
            {"job": job.number, "uri": job.document.uri, "running": not job.is_over}
            for job in server.rewrites.jobs.values()
        ]
        try:
            return StatusResult(await in_thread(daemon.running_status), jobs, "")
        except SpecdError as error:
            return StatusResult(None, jobs, str(error))


def _argument(kind: type[T], given: tuple[Any, ...]) -> T:
    """A command's one argument. Raises JsonRpcInvalidParams that names what is wrong."""
    if len(given) != 1:
        raise JsonRpcInvalidParams(f"one argument is expected, not {len(given)}")
    try:
        return requests.read(kind, given[0])
    except ValueError as error:
        raise JsonRpcInvalidParams(f"the argument {error}") from None


async def _exit_with(parent: int, every: float = 2.0) -> None:
    """End when the editor's process is gone: it may have left its end of the pipe to a child."""
    import psutil

    while psutil.pid_exists(parent):
        await asyncio.sleep(every)
    os._exit(1)
