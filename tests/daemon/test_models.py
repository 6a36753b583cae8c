"""Loaded models: shared by key, never taken from a job, swapped without a gap."""

import threading
from collections.abc import Callable, Iterator

import pytest
from daemon_home import wait_for

from specd.daemon.errors import EngineFailed
from specd.daemon.models import ModelKey, ModelPool


class Thing:
    """Something loaded, as far as the pool is concerned."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_unloaded = False

    def unload(self) -> None:
        self.is_unloaded = True


class Store:
    """Loads Things, counts them, and can be told to fail or to wait."""

    def __init__(self) -> None:
        self.loaded = 0
        self.error: Exception | None = None
        self.go_on = threading.Event()
        self.go_on.set()
        self.pool: ModelPool[Thing] = ModelPool(self.load, keep=2)

    def load(self, key: ModelKey, progress: Callable[[float, str], None]) -> Thing:
        progress(0.5, "half way")
        self.go_on.wait(10)
        if self.error is not None:
            raise self.error
        self.loaded += 1
        return Thing(self.loaded)


@pytest.fixture
def store() -> Iterator[Store]:
    found = Store()
    yield found
    found.go_on.set()


def test_equal_keys_share_a_load(store: Store) -> None:
    first = store.pool.request(ModelKey("a"))
    assert store.pool.request(ModelKey("a")) is first
    assert first.result() is store.pool.request(ModelKey("a")).result()
    assert store.loaded == 1
    assert store.pool.request(ModelKey("a", draft="d")).result().number == 2


def test_a_load_tells_how_far_it_is(store: Store) -> None:
    store.go_on.clear()
    load = store.pool.request(ModelKey("a"))
    wait_for(lambda: load.fraction == 0.5)
    assert (load.state, load.message) == ("loading", "half way")
    store.go_on.set()
    load.result()
    assert (load.state, load.message) == ("ready", "")


def test_a_failed_load_is_tried_again_by_the_next_request(store: Store) -> None:
    store.error = EngineFailed("no such folder")
    load = store.pool.request(ModelKey("a"))
    with pytest.raises(EngineFailed, match="no such folder"):
        load.result()
    store.error = None
    assert store.pool.request(ModelKey("a")).result().number == 1


def test_of_failed_loads_only_the_latest_is_remembered(store: Store) -> None:
    good = store.pool.request(ModelKey("good"))
    good.result()
    store.error = EngineFailed("no such folder")
    for name in "abcde":
        with pytest.raises(EngineFailed):
            store.pool.request(ModelKey(name)).result()
    wait_for(lambda: [load.key.path for load in store.pool.loads()] == ["good", "e"])
    assert good.state == "ready"


def test_a_failed_load_is_listed_last_whatever_came_after_it(store: Store) -> None:
    store.error = EngineFailed("no such folder")
    with pytest.raises(EngineFailed):
        store.pool.request(ModelKey("bad")).result()
    store.error = None
    store.pool.request(ModelKey("good")).result()
    assert [load.key.path for load in store.pool.loads()] == ["good", "bad"]


def test_an_error_of_an_unknown_kind_becomes_one_for_the_user(store: Store) -> None:
    store.error = RuntimeError("secret detail")
    with pytest.raises(EngineFailed, match="RuntimeError"):
        store.pool.request(ModelKey("a")).result()


def test_the_one_unused_longest_goes_first_and_never_one_in_use(store: Store) -> None:
    loads = {name: store.pool.request(ModelKey(name)) for name in "ab"}
    for load in loads.values():
        load.result()
    held = store.pool.acquire(loads["a"])
    other = loads["b"].result()
    store.pool.request(ModelKey("c")).result()
    wait_for(lambda: other.is_unloaded)
    assert not held.is_unloaded
    store.pool.release(loads["a"])
    assert {load.key.path for load in store.pool.loads()} == {"a", "c"}


def test_unloading_the_unused_spares_what_a_job_holds(store: Store) -> None:
    load = store.pool.request(ModelKey("a"))
    held = store.pool.acquire(load)
    assert store.pool.unload_unused() == 0
    store.pool.release(load)
    assert store.pool.unload_unused(older_than=60) == 0
    assert store.pool.unload_unused(keep=ModelKey("a")) == 0
    assert store.pool.unload_unused() == 1
    assert held.is_unloaded


def test_a_reload_serves_the_old_model_until_the_new_one_is_there(store: Store) -> None:
    key = ModelKey("a")
    load = store.pool.request(key)
    old = store.pool.acquire(load)
    store.go_on.clear()
    store.pool.reload(key)
    assert store.pool.request(key).result() is old
    store.go_on.set()
    wait_for(lambda: store.pool.request(key).result() is not old)
    assert not old.is_unloaded  # the job that has it goes on
    store.pool.release(load)
    assert old.is_unloaded


def test_a_reload_that_fails_keeps_the_old_model(store: Store) -> None:
    key = ModelKey("a")
    old = store.pool.request(key).result()
    store.error = EngineFailed("broken")
    fresh = store.pool.reload(key)
    assert fresh is not None
    fresh.ended.wait(10)
    assert store.pool.request(key).result() is old
    assert not old.is_unloaded


def test_reloading_what_was_never_loaded_does_nothing(store: Store) -> None:
    assert store.pool.reload(ModelKey("a")) is None
    assert store.loaded == 0
