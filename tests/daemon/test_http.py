"""The HTTP interface: its documented examples, what it refuses, its limits, and bytes that are no request."""

import asyncio
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from daemon_home import GRID, RENAME, Home, wait_for

from specd.daemon.errors import InputRefused, SpecdError
from specd.daemon.events import Failed
from specd.daemon.protocol import PrepareRequest, RewriteRequest, Target
from specd.daemon.server import Server
from specd.daemon.service import Service
from specd.daemon.settings import Settings

DOCS = Path(__file__).parents[2] / "docs" / "http.md"


def examples() -> dict[str, str]:
    """The shell examples of docs/http.md by their path."""
    blocks = re.findall(r"```sh\n(curl .*?)\n```", DOCS.read_text(), re.S)
    return {re.search(r"localhost(\S+)", block)[1]: block for block in blocks}  # type: ignore[index]


def run_example(home: Home, path: str) -> str:
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    environ = {**os.environ, "SOCKET": str(home.socket)}
    return subprocess.run(examples()[path], shell=True, capture_output=True, text=True, env=environ, check=True).stdout


def test_the_documented_rewrite_streams_hunks_and_an_outcome(warm: Home) -> None:
    out = run_example(warm, "/v1/rewrite")
    names = re.findall(r"^event: (\w+)$", out, re.M)
    assert names[0] == "region"
    assert names[-1] == "done"
    assert names.count("hunk") == 2
    data = json.loads(out.strip().splitlines()[-1].removeprefix("data: "))
    after = "class Mesh:\n    pass\n\n\ndef make() -> Mesh:\n    return Mesh()\n"
    assert data["sha256"] == hashlib.sha256(after.encode()).hexdigest()


@pytest.mark.parametrize("target", [Target(" \n"), Target(GRID, at=99)])
def test_a_text_that_is_refused_is_an_event_of_a_rewrite_and_a_status_of_a_prepare(noise: Home, target: Target) -> None:
    *_, outcome = noise.client.rewrite(RewriteRequest(target, RENAME))
    assert isinstance(outcome, Failed)
    assert outcome.code == "refused"
    with pytest.raises(InputRefused):
        noise.client.prepare(PrepareRequest(target))


def test_the_documented_prepare_reads_once(warm: Home) -> None:
    first = json.loads(run_example(warm, "/v1/prepare"))
    second = json.loads(run_example(warm, "/v1/prepare"))
    assert second["reused"] >= first["new"] + first["reused"] - 1 > 0
    assert second["new"] <= 1


def test_the_documented_status_and_metrics(warm: Home) -> None:
    status = json.loads(run_example(warm, "/v1/status"))
    assert status["state"] == "ready"
    assert status["models"][0]["state"] == "ready"
    for key in re.findall(
        r"`(\w+)`", DOCS.read_text().split("## `GET /v1/status`")[1].split("##")[0].split("`models`")[0]
    ):
        assert key in {**status, **status["jobs"], "ready": 0, "draining": 0, "v1": 0, "status": 0}
    parsed = metrics(run_example(warm, "/metrics"))
    assert parsed['specd_jobs_total{kind="rewrite",outcome="done"}'] >= 1
    assert parsed["specd_model_loaded"] == 1
    assert parsed['specd_job_seconds_bucket{le="+Inf"}'] == parsed["specd_job_seconds_count"] >= 1
    assert parsed["specd_tokens_total"] > parsed["specd_steps_total"] > 0


def test_the_documented_shutdown_ends_the_daemon(home: Home) -> None:
    home.run("edit", home.write("a.py", GRID).name, "-i", "x", "--max-tokens", 2)
    assert json.loads(run_example(home, "/v1/shutdown"))["stopping"] is True
    wait_for(lambda: not home.socket.exists())


def test_every_route_has_an_example() -> None:
    assert set(examples()) == {"/v1/rewrite", "/v1/prepare", "/v1/status", "/metrics", "/v1/shutdown"}


def metrics(text: str) -> dict[str, float]:
    """The samples of an exposition; fails on a line that is none."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(r'(\w+(?:\{\w+="[^"]*"(?:,\w+="[^"]*")*\})?) (\S+)', line)
            assert match, line
            found[match[1]] = float(match[2])
    return found


def send(home: Home, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, dict[str, Any]]:
    """A request by the standard library's HTTP client: status and JSON body."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(30)
    connection.sock.connect(str(home.socket))
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    data = json.loads(response.read())
    connection.close()
    return response.status, data


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100000, "not JSON"),
        (b"[]", "must be an object"),
        (b"", "is missing"),
        (b'{"target": {"text": 5}, "instruction": "x"}', "target.text"),
        (b'{"target": {"text": "a"}, "instruction": "x", "surprise": 1}', "surprise"),
        (b'{"target": {"text": "a"}, "instruction": "x", "model": "../model"}', "absolute"),
        (b'{"target": {"text": "a"}, "instruction": "x", "speculation": {"draft": "./model"}}', "speculation.draft"),
    ],
)
def test_a_request_that_is_wrong_is_answered_400_by_name(noise: Home, body: bytes, words: str) -> None:
    status, data = send(noise, "POST", "/v1/rewrite", body)
    assert (status, data["error"]["code"]) == (400, "usage")
    assert words in data["error"]["message"]


def test_unknown_paths_and_methods_are_named(noise: Home) -> None:
    assert send(noise, "GET", "/v1/nothing")[0] == 404
    status, data = send(noise, "GET", "/v1/rewrite")
    assert status == 405
    assert "docs/http.md" in data["error"]["message"]


def test_a_refused_text_is_an_error_event_that_says_why(noise: Home) -> None:
    (event,) = noise.client.rewrite(RewriteRequest(Target(" \n"), "x"))
    assert (event.code, "nothing to rewrite" in event.message) == ("refused", True)  # type: ignore[union-attr]


def test_a_request_larger_than_the_limit_is_refused(new_home: Callable[..., Home], slow_model: Path) -> None:
    home = new_home(f'model = "{slow_model}"\nmax_request = 1\nrequest_timeout = 1\n')
    home.run("edit", home.write("a.py", GRID).name, "-i", "x", "--max-tokens", 2)
    big = RewriteRequest(Target("x = 1\n" * 400_000), "x")
    with pytest.raises(SpecdError, match="1 MiB"):
        home.client.rewrite(big)
    status, data = send(home, "POST", "/v1/rewrite", b"{", **{"Content-Length": str(2**40)})  # and is not waited for
    assert (status, "1 MiB" in data["error"]["message"]) == (413, True)
    slow_clients_are_cut_off(home)


def slow_clients_are_cut_off(home: Home) -> None:
    """Who sends nothing, half a head, or half a body is hung up on, or told 408, soon after the limit (1 s)."""
    beginnings = [
        b"",
        b"POST /v1/rewrite HTTP/1.1\r\nHost",
        b"POST /v1/rewrite HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
    ]
    sockets = []
    for beginning in beginnings:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(10)
        connection.connect(str(home.socket))
        connection.sendall(beginning)
        sockets.append(connection)
    for connection, beginning in zip(sockets, beginnings, strict=True):
        try:
            answer = connection.recv(100)
        except ConnectionResetError:
            answer = b""
        assert answer == b"" or b"408" in answer, (beginning, answer)
        connection.close()
    assert home.client.status()["state"] == "ready"


def test_bytes_that_are_no_http_are_answered_or_hung_up_on(noise: Home) -> None:
    for raw in (
        b"\0\1\2\3\n\n",
        b"GET / SPDY/9\r\n\r\n",
        b"POST /v1/rewrite HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost: x\r\nmy private text\r\n\r\n",
        os.urandom(500) + b"\r\n\r\n",
    ):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(noise.socket))
            connection.sendall(raw)
            answer = connection.recv(1000)
            assert answer == b"" or b" 400 " in answer or b" 404 " in answer
    assert noise.client.status()["state"] == "ready"
    log = noise.log.read_text()
    assert "a request that is no HTTP" in log
    assert "Traceback" not in log
    assert "private" not in log


def test_an_error_of_our_own_is_an_answer_too_and_the_log_tells_where(tmp_path: Path) -> None:
    async def ask() -> str:
        service = Service(Settings())
        del service.metrics  # what /metrics needs
        server = Server(service, lambda drain: None)
        await server.runner.setup()
        site = web.UnixSite(server.runner, str(tmp_path / "s"))
        await site.start()
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = (await reader.read()).decode()
        writer.close()
        await server.runner.cleanup()
        await asyncio.to_thread(service.stop)
        return answer

    answer = asyncio.run(ask())
    assert answer.startswith("HTTP/1.1 500")
    assert json.loads(answer.rpartition("\n")[2])["error"] == {
        "code": "failed",
        "message": "an error inside specd (AttributeError); the log tells where.",
    }
