"""The HTTP interface: documented examples, refusals, limits, and clients that behave badly."""

import asyncio
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from daemon_home import GRID, RENAME, Home, wait_for

from specd.daemon import transport
from specd.daemon.client import Client
from specd.daemon.errors import Busy, InputRefused, SpecdError, UsageError
from specd.daemon.events import Cancelled, Done, Failed, HunkReady
from specd.daemon.protocol import PrepareRequest, RewriteRequest, Target
from specd.daemon.rewrite.lines import split_lines
from specd.daemon.server import Server
from specd.daemon.service import Service
from specd.daemon.settings import Settings

DOCS = Path(__file__).parents[2] / "docs" / "http.md"
LONG = RewriteRequest(Target(GRID), "x", max_tokens=20000)


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
        os.urandom(500) + b"\r\n\r\n",
    ):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(noise.socket))
            connection.sendall(raw)
            answer = connection.recv(1000)
            assert answer == b"" or b" 400 " in answer or b" 404 " in answer
    assert noise.client.status()["state"] == "ready"


def test_a_client_that_hangs_up_frees_the_engine_within_a_step(noise: Home) -> None:
    stream = noise.client.rewrite(LONG)
    next(stream)
    assert noise.client.status()["jobs"]["active"] == 1
    stream.close()
    began = time.monotonic()
    wait_for(lambda: noise.client.status()["jobs"]["active"] == 0)
    assert time.monotonic() - began < 5


def test_cancel_from_another_thread_ends_the_iterator_quietly(noise: Home) -> None:
    stream = noise.client.rewrite(LONG)
    threading.Timer(0.3, stream.cancel).start()
    events = list(stream)
    assert not any(isinstance(event, Cancelled) for event in events)
    wait_for(lambda: noise.client.status()["jobs"]["active"] == 0)


def test_a_client_that_leaves_in_the_middle_leaves_no_error_in_the_log(warm: Home) -> None:
    for number in range(12):
        stream = warm.client.rewrite(RewriteRequest(Target(GRID * 4 + f"# {number}\n", "a.py"), RENAME))
        for event in stream:
            if isinstance(event, HunkReady):
                stream.close()
                break
    wait_for(lambda: warm.client.status()["jobs"]["active"] == 0)
    log = warm.log.read_text()
    assert "Traceback" not in log
    assert "ERROR" not in log


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


def test_another_job_is_unharmed_by_a_cancel(warm: Home) -> None:
    victim = warm.client.rewrite(RewriteRequest(Target(GRID * 6, "a.py"), RENAME, client="victim"))
    next(victim)
    steady = warm.client.rewrite(RewriteRequest(Target(GRID, "b.py"), RENAME, client="steady"))
    next(steady)
    victim.close()
    rest = list(steady)
    assert isinstance(rest[-1], Done)
    lines = split_lines(GRID)
    for hunk in reversed([event for event in rest if isinstance(event, HunkReady)]):
        lines[hunk.start_line : hunk.end_line] = hunk.new_lines
    assert hashlib.sha256("".join(lines).encode()).hexdigest() == rest[-1].sha256


def test_a_shutting_down_daemon_takes_no_job(home: Home) -> None:
    home.run("edit", home.write("a.py", GRID).name, "-i", "x", "--max-tokens", 2)
    stream = home.client.rewrite(LONG)
    next(stream)
    home.client.shutdown()
    wait_for(lambda: home.client.status()["state"] == "draining")
    with pytest.raises(Busy):
        home.client.rewrite(LONG)
    stream.close()
    wait_for(lambda: not home.socket.exists())


def test_fifty_clients_at_once_all_get_an_outcome(noise: Home) -> None:
    outcomes: list[str] = []

    def one(number: int) -> None:
        client = Client(noise.client.address, name=f"client-{number}")
        events = list(client.rewrite(RewriteRequest(Target(GRID), "x", max_tokens=3)))
        outcomes.append(type(events[-1]).__name__ if not isinstance(events[-1], Failed) else events[-1].message)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(outcomes) == 50
    assert set(outcomes) <= {"Truncated", "Declined", "NoChange", "Done"}


def test_waiting_jobs_hear_their_position(noise: Home) -> None:
    streams = [Client(noise.client.address, name=f"c{number}").rewrite(LONG) for number in range(6)]
    names = [type(next(stream)).__name__ for stream in streams[4:]]
    assert names == ["Queued", "Queued"]
    for stream in streams:
        stream.close()
    wait_for(lambda: noise.client.status()["jobs"] == {"active": 0, "waiting": 0})


def test_a_newer_prepare_replaces_an_older_one(noise: Home) -> None:
    replies: list[Any] = []
    holder = noise.client.rewrite(LONG)  # rewrites go first, so that the prepares wait
    next(holder)

    def prepare(text: str) -> None:
        replies.append(noise.client.prepare(PrepareRequest(Target(text, "a.py"), client="typist")))

    threads = []
    for number in range(3):
        threads.append(threading.Thread(target=prepare, args=(GRID + "#" * number,)))
        threads[-1].start()
        time.sleep(0.2)
    holder.close()
    for thread in threads:
        thread.join(60)
    assert [reply.replaced for reply in replies] == [True, True, False]


def test_another_user_cannot_use_the_daemon(noise: Home) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can pose as another user")
    noise.socket.chmod(0o666)  # even where the file's mode would let him in
    noise.socket.parent.chmod(0o755)
    (noise.folder).chmod(0o755)
    (noise.folder / "run").chmod(0o755)
    script = (
        "import os, socket, sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "connection = socket.socket(socket.AF_UNIX); connection.connect(sys.argv[1])\n"
        "connection.sendall(b'GET /v1/status HTTP/1.0\\r\\n\\r\\n'); print(connection.recv(1000).decode())"
    )
    try:
        done = subprocess.run([sys.executable, "-c", script, str(noise.socket)], capture_output=True, text=True)
    finally:
        noise.socket.chmod(0o600)
        noise.socket.parent.chmod(0o700)
    assert " 403 " in done.stdout, done
    assert "another user" in done.stdout


@pytest.fixture
def tcp(new_home: Callable[..., Home], slow_model: Path) -> Iterator[Home]:
    home = new_home(f'model = "{slow_model}"\n')
    process = home.start("serve", "--tcp")
    wait_for(lambda: (home.socket.parent / "daemon.json").exists())
    yield home
    process.terminate()
    process.communicate(timeout=30)


def test_tcp_is_on_loopback_and_wants_the_token(tcp: Home) -> None:
    file = tcp.socket.parent / "daemon.json"
    assert file.stat().st_mode & 0o777 == 0o600
    address = transport.read_token_file(file)
    assert address is not None
    assert address.host == "127.0.0.1"
    assert Client(address).status()["state"] == "ready"
    for token in ("", "wrong"):
        with pytest.raises(SpecdError, match="token"):
            Client(address.replace(token=token)).status()
    environ = {**tcp.environ, "SPECD_DAEMON": str(address), "SPECD_TOKEN": address.token}
    assert tcp.run("status", env=environ).returncode == 0


def test_the_commands_that_a_tcp_daemon_names_reach_it(new_home: Callable[..., Home], slow_model: Path) -> None:
    home = new_home(f'model = "{slow_model}"\n')
    process = home.start("serve", "--tcp")
    assert process.stderr is not None
    told = "".join(process.stderr.readline() for _ in range(3))  # the log's first line is among them
    file = home.socket.parent / "daemon.json"
    address = transport.read_token_file(file)
    assert f"`SPECD_DAEMON={address} specd stop`" in told
    assert str(file) in told
    environ = {**home.environ, "SPECD_DAEMON": str(address)}
    assert "ready" in home.run("status", env=environ).stdout
    assert home.run("stop", env=environ).returncode == 0
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert home.run("status", env=environ).stdout == (
        f"no daemon runs at {address}; start it there, or unset SPECD_DAEMON.\n"
    )


def test_a_token_is_not_given_to_another_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("SPECD_TOKEN", raising=False)
    transport.write_token_file(transport.token_file(), transport.Address(host="127.0.0.1", port=4000, token="t"))
    assert transport.parse_address("http://127.0.0.1:4000").token == "t"
    for other in ("http://127.0.0.1:4001", "http://localhost:4000", "http://[::1]:4000"):
        assert transport.parse_address(other).token == ""


@pytest.mark.parametrize(
    "text", ["http://example.org:80", "http://0.0.0.0:80", "https://127.0.0.1:1", "http://127.0.0.1", ""]
)
def test_addresses_off_this_machine_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        transport.parse_address(text)


def test_the_log_and_the_traces_hold_none_of_the_users_text(warm: Home) -> None:
    secret = "very_private_name_4711"
    path = warm.write("secret.py", GRID.replace("make_grid", secret))
    done = warm.run("edit", path.name, "-i", f"rename {secret} to other")
    assert done.returncode in (0, 1), done.stderr
    kept = warm.log.read_text() + (warm.log.parent / "trace.jsonl").read_text()
    assert "secret" not in kept
    assert "very_private" not in kept
