"""Who may use the daemon, where it listens, and what it never tells."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_home import GRID, Home, wait_for

from specd.daemon import transport
from specd.daemon.client import Client
from specd.daemon.errors import SpecdError, UsageError


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
