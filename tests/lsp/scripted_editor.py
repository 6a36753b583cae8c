"""An editor for tests: the real server over stdio on one side, a buffer with real clients' habits on the other.

What real clients do was measured (see `Habits`); the text model is `slow_text`, which shares no code with the server.
"""

import contextlib
import itertools
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import slow_text
from daemon_home import Home, wait_for

from specd.lsp.positions import Encoding


@dataclass(frozen=True)
class Habits:
    """stale: what becomes of an edit for an older version. echo: when didChange comes, and `echo_seconds` late.
    answers: whether applyEdit is answered, and how late. merges: all edits of one applyEdit are told as a change of the
    whole text. takes: which edits of an applyEdit the user takes, being asked; without it nobody is asked.
    """

    name: str | None = "Visual Studio Code"
    encoding: Encoding = "utf-16"
    stale: str = "refuse"
    echo: str = "after"
    echo_seconds: float = 0.0
    answers: bool = True
    answer_seconds: float = 0.0
    merges: bool = False
    takes: tuple[int, ...] | None = None
    progress: bool = True
    progress_seconds: float = 0.0  # how late workDoneProgress/create is answered
    plugin: bool = False
    literals: bool = True  # code actions may be more than commands


VSCODE = Habits()
NEOVIM = Habits(name="Neovim", encoding="utf-8", stale="drop", echo="before")
SLOW_NEOVIM = Habits(name="Neovim", encoding="utf-8", stale="drop", echo="after", echo_seconds=0.15)
EGLOT = Habits(name=None, stale="error", echo_seconds=0.5)
MUTE = Habits(name="Helix", answers=False, echo_seconds=60)


@dataclass
class Buffer:
    text: str
    version: int


class Editor:
    """Starts the server and shakes hands. Everything that the server sends is kept in `received`."""

    def __init__(
        self, home: Home, habits: Habits = VSCODE, *, trace: str = "off", process_id: int | None = None, **options: Any
    ) -> None:
        self.home = home
        self.habits = habits
        self.buffers: dict[str, Buffer] = {}
        self.received: list[dict[str, Any]] = []
        self.edits = 0  # applyEdit requests that changed a buffer
        self.on_edit: Callable[[], None] = lambda: None  # called before an edit is looked at
        self.readonly = ""
        self.most_under_way = self._under_way = 0  # edits that were not answered yet
        self._answers: dict[int, dict[str, Any]] = {}
        self._number = 0
        self._is_corked = False
        self.lock = threading.RLock()
        self.process = subprocess.Popen(
            home.command("lsp"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=home.environ,
            cwd=home.work,
        )
        threading.Thread(target=self._read, daemon=True).start()
        hello = {**self._hello(trace, options), "processId": process_id or os.getpid()}
        self.initialized = self.request("initialize", hello)
        self.notify("initialized", {})

    def _hello(self, trace: str, options: dict[str, Any]) -> dict[str, Any]:
        capabilities: dict[str, Any] = {
            "general": {"positionEncodings": [self.habits.encoding]},
            "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": self.habits.name != "Neovim"}},
            "textDocument": {"codeAction": {"disabledSupport": self.habits.name == "Visual Studio Code"}},
            "window": {"workDoneProgress": self.habits.progress},
        }
        if self.habits.literals:
            kinds = {"valueSet": ["quickfix", "refactor.rewrite"]}
            capabilities["textDocument"]["codeAction"]["codeActionLiteralSupport"] = {"codeActionKind": kinds}
        if self.habits.takes is not None:
            capabilities["workspace"]["workspaceEdit"]["changeAnnotationSupport"] = {"groupsOnLabel": True}
        if self.habits.plugin:
            capabilities["experimental"] = {"specd": {"inputBox": True, "hunkAck": True, "undoJoin": True}}
        hello = {"rootUri": None, "capabilities": capabilities, "trace": trace}
        if self.habits.name:
            hello["clientInfo"] = {"name": self.habits.name}
        # Short for an editor that answers late on purpose only: a busy machine is no late editor.
        patience = 0.4 if self.habits.answer_seconds > 0.4 else 10
        return {**hello, "initializationOptions": {"warm": False, "applyTimeout": patience, **options}}

    # What a user does.

    def forget(self) -> None:
        """Close all documents and forget what was received, for the next test."""
        for uri in list(self.buffers):
            self.close_document(uri)
        self.request("specd/status", None)  # what was under way before has been answered
        self.received.clear()
        self.edits = 0
        self.on_edit = lambda: None
        self.readonly = ""
        self.most_under_way = self._under_way

    def close_document(self, uri: str) -> None:
        with self.lock:
            del self.buffers[uri]
            self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def open(self, text: str, uri: str = "", language: str = "python", version: int = 1) -> str:
        self._number += 1
        uri = uri or f"untitled:Untitled-{self._number}"
        self.buffers[uri] = Buffer(text, version)
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def type(self, uri: str, old: str, new: str) -> None:
        """Replace the first `old` of the buffer, as a user types."""
        with self.lock:
            buffer = self.buffers[uri]
            at = buffer.text.index(old)
            self._change(uri, [(at, at + len(old), new)])

    def insert(self, uri: str, where: float, new: str) -> None:
        """Type at a share 0..1 of the buffer."""
        with self.lock:
            at = int(where * len(self.buffers[uri].text))
            self._change(uri, [(at, at, new)])

    def rewrite(self, uri: str, instruction: str, **more: Any) -> str:
        """The command that code actions run; the job's name."""
        argument = {"uri": uri, "instruction": instruction, **more}
        answer = self.request("workspace/executeCommand", {"command": "specd.rewrite", "arguments": [argument]})
        return str(answer["result"]["job"])

    def text(self, uri: str) -> str:
        with self.lock:
            return self.buffers[uri].text

    # What it sees.

    def of(self, method: str) -> list[dict[str, Any]]:
        """Parameters of what came of this method, so far."""
        return [message["params"] for message in tuple(self.received) if message.get("method") == method]

    @property
    def shown(self) -> list[str]:
        return [params["message"] for params in self.of("window/showMessage")]

    def wait_shown(self, count: int = 1, seconds: float = 60) -> str:
        """The `count`th message that the user sees."""
        wait_for(lambda: len(self.shown) >= count, seconds)
        return self.shown[count - 1]

    def progress(self, kind: str) -> list[dict[str, Any]]:
        values = [params["value"] for params in self.of("$/progress")]
        return [value for value in values if value["kind"] == kind]

    # The wire.

    def request(self, method: str, params: Any, seconds: float = 60) -> dict[str, Any]:
        return self.answer(self.ask(method, params), seconds)

    def ask(self, method: str, params: Any) -> int:
        with self.lock:
            self._number += 1
            number = self._number
            self.send({"id": number, "method": method, "params": params})
        return number

    def answer(self, number: int, seconds: float = 60) -> dict[str, Any]:
        wait_for(lambda: number in self._answers, seconds)
        return self._answers[number]

    def has_answer(self, number: int) -> bool:
        return number in self._answers

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self.lock:
            assert self.process.stdin is not None
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            if not self._is_corked:
                self.process.stdin.flush()

    @contextlib.contextmanager
    def corked(self) -> Iterator[None]:
        """What is sent meanwhile goes out at once, at the end."""
        with self.lock:
            self._is_corked = True
            yield
            self._is_corked = False
            assert self.process.stdin is not None
            self.process.stdin.flush()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := stream.readline().strip()) or not length:
                if not line:
                    return
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            message = json.loads(stream.read(length))
            message["at"] = time.monotonic()
            if "method" not in message:
                self._answers[message["id"]] = message
                continue
            self.received.append(message)
            if "id" in message:
                with contextlib.suppress(ValueError, BrokenPipeError):  # the pipe was closed meanwhile
                    self._serve(message)

    def _serve(self, message: dict[str, Any]) -> None:
        if message["method"] == "workspace/applyEdit":
            self._under_way += 1
            self.most_under_way = max(self.most_under_way, self._under_way)
            if self.habits.answer_seconds:
                threading.Timer(self.habits.answer_seconds, self._edit, [message]).start()
            else:
                self._edit(message)
        elif self.habits.progress_seconds and message["method"] == "window/workDoneProgress/create":
            threading.Timer(self.habits.progress_seconds, self._answer_late, [message["id"]]).start()
        else:
            self.send({"id": message["id"], "result": None})

    def _answer_late(self, number: int) -> None:
        with contextlib.suppress(ValueError, BrokenPipeError):  # the server has ended meanwhile
            self.send({"id": number, "result": None})

    def _edit(self, message: dict[str, Any]) -> None:
        self.on_edit()
        with self.lock:
            self._under_way -= 1
            self._apply(message["id"], message["params"]["edit"])

    def _apply(self, number: int, edit: dict[str, Any]) -> None:
        if edit.get("documentChanges"):
            (change,) = edit["documentChanges"]
            uri, version, edits = change["textDocument"]["uri"], change["textDocument"]["version"], change["edits"]
        else:
            ((uri, edits),) = edit["changes"].items()
            version = None
        buffer = self.buffers.get(uri)
        if buffer is None:
            self.send({"id": number, "result": {"applied": False, "failureReason": "not open"}})
            return
        is_stale = version is not None and version != buffer.version
        if not self.habits.answers:
            return
        if is_stale or self.readonly:
            if self.habits.stale == "error":
                self.send({"id": number, "error": {"code": -32603, "message": f"version {version} is required"}})
            else:
                answer: dict[str, Any] = {"applied": self.habits.stale == "drop" and not self.readonly}
                if self.readonly:
                    answer["failureReason"] = self.readonly
                self.send({"id": number, "result": answer})
            return
        if self.habits.takes == () and "changeAnnotations" in edit:
            self.send({"id": number, "result": {"applied": False, "failureReason": "the user did not take it"}})
            return
        self.edits += 1
        encoding = self.habits.encoding
        places = []
        if self.habits.takes is not None and "changeAnnotations" in edit:
            edits = [one for at, one in enumerate(edits) if at in self.habits.takes]
        for one in edits:
            ends = [(one["range"][end]["line"], one["range"][end]["character"]) for end in ("start", "end")]
            start, end = (slow_text.offset(buffer.text, *place, encoding) for place in ends)
            places.append((start, end, one["newText"]))
        places.sort(reverse=True)
        for below, above in itertools.pairwise(places):
            assert above[1] <= below[0], "edits overlap"
        if self.habits.echo == "before":
            self._change(uri, places)
            self.send({"id": number, "result": {"applied": True}})
        else:
            self.send({"id": number, "result": {"applied": True}})
            self._change(uri, places, self.habits.echo_seconds)

    def _change(self, uri: str, places: list[tuple[int, int, str]], late: float = 0.0) -> None:
        """Change the buffer, last place first, and tell it."""
        buffer, encoding = self.buffers[uri], self.habits.encoding
        changes = []
        for start, end, new in places:
            ends = [slow_text.position(buffer.text, at, encoding) for at in (start, end)]
            span = dict(
                zip(("start", "end"), ({"line": line, "character": units} for line, units in ends), strict=True)
            )
            changes.append({"range": span, "text": new})
            buffer.text = buffer.text[:start] + new + buffer.text[end:]
        if self.habits.merges:
            changes = [{"text": buffer.text}]
        buffer.version += 1
        version = buffer.version

        def tell() -> None:
            identifier = {"uri": uri, "version": version}
            self.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": changes})

        if late:
            threading.Timer(late, tell).start()
        else:
            tell()

    def close(self) -> int:
        """`shutdown` and `exit`; the server's exit status."""
        if self.process.poll() is None:
            self.request("shutdown", None)
            self.notify("exit", None)
        return self.process.wait(10)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def errors(self) -> str:
        """What the server wrote to standard error, once it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


def span(text: str, part: str) -> dict[str, Any]:
    """The range of the first `part` in `text`, in UTF-16."""
    at = text.index(part)
    places = [slow_text.position(text, offset, "utf-16") for offset in (at, at + len(part))]
    return dict(zip(("start", "end"), ({"line": line, "character": units} for line, units in places), strict=True))
