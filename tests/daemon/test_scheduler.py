"""The queue: fair turns, priorities, cancel before the next step, and one job's trouble is nobody else's."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specd.daemon.errors import Busy
from specd.daemon.scheduler import End, Job, Priority, Scheduler, Steps


class Bench:
    """A scheduler held back by a gate until all jobs are in, and a record of who had which turn."""

    def __init__(self, **limits: int) -> None:
        self.scheduler = Scheduler(**limits)
        self.gate = threading.Event()
        self.turns: list[str] = []
        self.ends: dict[str, End | BaseException] = {}
        self.closed: list[str] = []
        holder = Job(self._hold, ended=lambda why: None, client="holder")
        self.scheduler.submit(holder)

    def _hold(self) -> Steps:
        self.gate.wait()
        yield True

    def job(self, name: str, steps: int, **more: object) -> Job:
        def run() -> Steps:
            try:
                for _ in range(steps):
                    self.turns.append(name)
                    yield True
            finally:
                self.closed.append(name)

        job = Job(run, ended=lambda why: self.ends.__setitem__(name, why), client=name[0], **more)  # type: ignore[arg-type]
        self.scheduler.submit(job)
        return job

    def finish(self) -> None:
        self.gate.set()
        assert self.scheduler.wait_idle(10)


@pytest.fixture
def bench() -> Iterator[Bench]:
    found = Bench(max_active=8)
    yield found
    found.gate.set()
    found.scheduler.stop()


def test_jobs_take_turns_step_by_step(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.job(name, 3)
    bench.finish()
    assert bench.turns == ["a", "b", "c"] * 3
    assert bench.ends == {}


def test_a_client_with_many_jobs_gets_no_more_turns_than_one_with_one(bench: Bench) -> None:
    for name in ("a1", "a2", "a3", "b"):
        bench.job(name, 3)
    bench.finish()
    assert bench.turns[:6].count("b") == 3


def test_background_jobs_run_only_while_nobody_waits(bench: Bench) -> None:
    bench.job("p", 3, priority=Priority.BACKGROUND)
    bench.job("f", 3)
    bench.finish()
    assert bench.turns == ["f"] * 3 + ["p"] * 3


def test_a_foreground_job_overtakes_a_background_job_that_is_running(bench: Bench) -> None:
    started = threading.Event()

    def slow() -> Steps:
        for _ in range(200):
            bench.turns.append("p")
            started.set()
            time.sleep(0.001)
            yield True

    bench.gate.set()
    bench.scheduler.submit(Job(slow, ended=lambda why: None, client="p", priority=Priority.BACKGROUND))
    assert started.wait(5)
    bench.job("f", 5)
    bench.finish()
    first = bench.turns.index("f")
    assert bench.turns[first : first + 5] == ["f"] * 5


def test_a_cancelled_job_has_no_further_turn(bench: Bench) -> None:
    reached = threading.Event()
    go_on = threading.Event()

    def run() -> Steps:
        bench.turns.append("first")
        reached.set()
        go_on.wait(5)
        yield True
        bench.turns.append("second")
        yield True

    job = Job(run, ended=lambda why: bench.ends.__setitem__("x", why), client="x")
    bench.scheduler.submit(job)
    bench.gate.set()
    assert reached.wait(5)
    bench.scheduler.cancel(job)
    go_on.set()
    assert job.finished.wait(5)
    assert bench.turns == ["first"]
    assert bench.ends == {"x": End.CANCELLED}


def test_a_job_cancelled_in_the_queue_never_starts(bench: Bench) -> None:
    job = bench.job("x", 3)
    bench.scheduler.cancel(job)
    bench.finish()
    assert bench.turns == []
    assert bench.ends == {"x": End.CANCELLED}


def test_cancelling_a_job_that_is_over_does_nothing(bench: Bench) -> None:
    job = bench.job("x", 1)
    bench.finish()
    bench.scheduler.cancel(job)
    bench.job("y", 1)
    bench.finish()
    assert (bench.turns, bench.ends) == (["x", "y"], {})


def test_an_error_ends_its_job_alone(bench: Bench) -> None:
    def fail() -> Steps:
        yield True
        raise ValueError("mine")

    bench.scheduler.submit(Job(fail, ended=lambda why: bench.ends.__setitem__("bad", why), client="bad"))
    bench.job("good", 5)
    bench.finish()
    assert bench.turns == ["good"] * 5
    assert isinstance(bench.ends["bad"], ValueError)


def test_an_error_in_a_callback_does_not_end_the_thread(bench: Bench) -> None:
    def fail(why: object) -> None:
        raise RuntimeError("in the callback")

    bench.scheduler.cancel(_submitted(bench, Job(lambda: iter(()), ended=fail)))  # type: ignore[arg-type, return-value]
    bench.job("good", 2)
    bench.finish()
    assert bench.turns == ["good"] * 2


def test_the_time_limit_ends_a_job_and_its_wait_in_the_queue_does_not_count(bench: Bench) -> None:
    def long() -> Steps:
        while True:
            time.sleep(0.01)
            yield True

    bench.scheduler.submit(
        Job(long, ended=lambda why: bench.ends.__setitem__("long", why), client="l", time_limit=0.05)
    )
    time.sleep(0.1)
    bench.finish()
    assert bench.ends == {"long": End.TIME_LIMIT}


def test_only_max_active_jobs_take_turns_and_the_others_hear_their_position() -> None:
    bench = Bench(max_active=2)
    moves: list[tuple[str, int]] = []

    def heard(name: str) -> Callable[[int], None]:
        return lambda position: moves.append((name, position))

    for name in ("a", "b", "c", "d"):
        bench.job(name, 2, moved=heard(name))
    bench.finish()
    bench.scheduler.stop()
    assert bench.turns.index("c") > bench.turns.index("a")
    assert moves[0] == ("b", 1) or ("c", 1) in moves
    assert [position for name, position in moves if name == "d"] == sorted(
        (position for name, position in moves if name == "d"), reverse=True
    )


def test_a_full_queue_refuses() -> None:
    bench = Bench(max_active=1, max_queue=2)
    bench.job("a", 1)
    bench.job("b", 1)
    with pytest.raises(Busy, match="max_queue"):
        bench.job("c", 1)
    bench.finish()
    bench.scheduler.stop()


def test_draining_finishes_what_is_there_and_refuses_more(bench: Bench) -> None:
    bench.job("a", 3)
    bench.scheduler.drain()
    with pytest.raises(Busy, match="shutting down"):
        bench.job("b", 1)
    bench.finish()
    assert bench.turns == ["a"] * 3


def test_stopping_ends_every_job(bench: Bench) -> None:
    bench.job("a", 10**9)
    bench.job("b", 10**9)
    bench.gate.set()
    time.sleep(0.02)
    bench.scheduler.stop()
    assert bench.ends == {"a": End.SHUTDOWN, "b": End.SHUTDOWN}
    assert sorted(bench.closed) == ["a", "b"]
    assert bench.scheduler.counts() == (0, 0)


def test_a_job_that_waits_lets_others_go_on(bench: Bench) -> None:
    ready = threading.Event()

    def waits() -> Steps:
        while not ready.is_set():
            yield False
        bench.turns.append("w")
        yield True

    bench.scheduler.submit(Job(waits, ended=lambda why: None, client="w"))
    bench.job("a", 3)
    bench.gate.set()
    time.sleep(0.05)
    assert bench.turns == ["a"] * 3
    ready.set()
    bench.finish()
    assert bench.turns[-1] == "w"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 6)), min_size=2, max_size=8))
def test_while_both_have_work_no_client_is_two_turns_behind(jobs: list[tuple[str, int]]) -> None:
    bench = Bench(max_active=32)

    def counted(client: str, steps: int) -> Callable[[], Steps]:
        def run() -> Steps:
            for _ in range(steps - 1):
                bench.turns.append(client)
                yield True
            bench.turns.append(client)  # the turn in which the job finds that it is over

        return run

    for client, steps in jobs:
        bench.scheduler.submit(Job(counted(client, steps), ended=lambda why: None, client=client))
    bench.finish()
    bench.scheduler.stop()
    left = {client: sum(steps for other, steps in jobs if other == client) for client, _ in jobs}
    had = dict.fromkeys(left, 0)
    for turn in bench.turns:
        had[turn] += 1
        left[turn] -= 1
        busy = [had[client] for client in left if left[client] > 0]
        assert max(busy, default=0) - min(busy, default=0) <= 1
    assert not any(left.values())


def _submitted(bench: Bench, job: Job) -> Job:
    bench.scheduler.submit(job)
    return job
