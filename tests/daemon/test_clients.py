"""Many clients of one daemon, and clients that leave: who waits hears it, who leaves frees the engine at once."""

import hashlib
import socket
import threading
import time
from typing import Any

import pytest
from daemon_home import GRID, RENAME, Home, wait_for

from specd.daemon.client import Client
from specd.daemon.errors import Busy
from specd.daemon.events import Cancelled, Done, Failed, HunkReady
from specd.daemon.protocol import PrepareRequest, RewriteRequest, Target
from specd.daemon.rewrite.lines import split_lines

LONG = RewriteRequest(Target(GRID), "x", max_tokens=20000)


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


def test_a_client_that_leaves_before_its_answer_leaves_no_error_in_the_log(noise: Home) -> None:
    holder = noise.client.rewrite(LONG)  # rewrites go first, so that the prepare waits
    next(holder)
    body = b'{"target": {"text": "x = 1", "path": "gone.py"}}'
    head = b"POST /v1/prepare HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    for sent in (head % len(body) + body, head % 1000 + body):  # all of a request, and a part
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(noise.socket))
            connection.sendall(sent)
            time.sleep(0.3)
    holder.close()
    wait_for(lambda: noise.client.status()["jobs"] == {"active": 0, "waiting": 0})
    log = noise.log.read_text()
    assert "prepare cancelled" in log
    assert "Traceback" not in log
    assert "ERROR" not in log


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
