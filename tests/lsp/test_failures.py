"""What the log says of requests that fail: why, and never the user's text above the most verbose level."""

import asyncio
import json
import logging
from collections.abc import Callable

import pytest
from daemon_home import GRID, Home, wait_for
from lsprotocol import types
from scripted_editor import Editor, span

from specd.lsp import stdio
from specd.lsp.handlers import register
from specd.lsp.server import Server

GetEditor = Callable[..., Editor]
SECRET = "confidential_name"


def test_the_log_says_why_a_request_failed(replay: Home, editor_at: GetEditor) -> None:
    at = editor_at(replay)
    at.request("specd/prepare", {"uri": "untitled:none"})
    at.request("workspace/executeCommand", {"command": "specd.cancel", "arguments": [5]})
    at.request("textDocument/hover", {"textDocument": {"uri": "a"}, "position": {"line": 0, "character": 0}})
    at.close()
    told = at.errors().splitlines()
    assert told == [
        "specd lsp: a request failed: this document is not open in the editor, or the editor does not tell specd of it;"
        " open it first.",
        "specd lsp: a request failed: the argument must be an object, not int",
        "specd lsp: a request failed: Method Not Found: textDocument/hover",
    ]


@pytest.mark.parametrize("trace", ["messages", "verbose"])
def test_what_may_name_a_definition_is_logged_at_the_most_verbose_level_only(
    own_replay: Home, editor_at: GetEditor, trace: str
) -> None:
    own_replay.settings.write_text(own_replay.settings.read_text() + "max_lines = 2\n")
    own_replay.run("stop", "--now")
    at = editor_at(own_replay, trace=trace)
    uri = at.open(GRID.replace("make_grid", SECRET))
    here = span(at.text(uri), "grid = Grid")["start"]
    answer = at.request("specd/prepare", {"uri": uri, "range": {"start": here, "end": here}})
    assert SECRET in answer["error"]["message"]
    if trace == "verbose":
        wait_for(lambda: any(SECRET in one.get("verbose", "") for one in at.of("$/logTrace")))
    at.close()
    assert "specd lsp: a request failed: the daemon refused the text\n" in (errors := at.errors())
    assert SECRET not in errors
    assert SECRET not in json.dumps([one["message"] for one in at.of("$/logTrace")])
    assert trace == "verbose" or at.of("$/logTrace") == []


class Sink:
    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


def test_of_an_error_of_our_own_it_is_told_where_it_happened_and_not_what_it_quotes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(text: str) -> None:
        raise ValueError(text)

    async def serve() -> None:
        server = Server("0")
        register(server)
        server.protocol.set_writer(Sink())

        @server.feature("test/at_once")
        def at_once(params: types.ExecuteCommandParams) -> None:
            broken(SECRET)

        @server.feature("test/later")
        async def later(params: types.ExecuteCommandParams) -> None:
            broken(SECRET)

        for number, method in enumerate(("initialize", "test/at_once", "test/later"), 1):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"capabilities": {}}}
            stdio.handle(json.dumps(message).encode(), server.protocol)
            await asyncio.sleep(0.01)
        stdio.handle(json.dumps({"jsonrpc": "2.0", "method": "test/later", "params": {}}).encode(), server.protocol)
        await asyncio.sleep(0.01)

    with caplog.at_level(logging.WARNING, "specd.lsp.server"):
        asyncio.run(serve())
    told = [record.getMessage() for record in caplog.records if record.name == "specd.lsp.server"]
    begins = [text.splitlines()[0] for text in told]
    assert begins == [
        "a request failed: an error inside specd (ValueError)",
        "a request failed: an error inside specd (ValueError)",
        "a notification failed: an error inside specd (ValueError)",
    ]
    assert all(", in broken\n" in text for text in told)
    assert SECRET not in "\n".join(told)
