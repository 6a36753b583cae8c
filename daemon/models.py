"""Loaded models, kept by what they were loaded from. Loading runs on a thread of its own, so that jobs on models that
are there already go on meanwhile. Knows nothing of torch: `load` is given.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from specd.daemon.errors import EngineFailed, SpecdError
from specd.daemon.model_folder import Stamp, folder_stamp

_log = logging.getLogger(__name__)


class Unloadable(Protocol):
    """What the pool needs of a model: to give its memory back."""

    def unload(self) -> None: ...


M = TypeVar("M", bound=Unloadable)


@dataclass(frozen=True)
class ModelKey:
    """What a model is loaded from; two jobs with equal keys share it. draft, dflash: "" = none."""

    path: str
    draft: str = ""
    dflash: str = ""
    device: str = "auto"
    dtype: str = "auto"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Everything that it is loaded from: the model's folder and the drafters'. They may be hub names."""
        return tuple(Path(name) for name in (self.path, self.draft, self.dflash) if name)

    @property
    def stamp(self) -> Stamp:
        """Equal as long as nobody writes to these folders."""
        return tuple(file for folder in self.folders for file in folder_stamp(folder))


class Load(Generic[M]):
    """One loading of a model: running, done or failed. Read from any thread."""

    def __init__(self, key: ModelKey) -> None:
        self.key = key
        self.fraction = 0.0
        self.message = "waiting"
        self.began = time.monotonic()
        self.seconds = 0.0
        self.model: M | None = None
        self.error: SpecdError | None = None
        self.ended = threading.Event()
        self.users = 0
        self.last_used = time.monotonic()
        self.stamp: Stamp = ()  # of its folders, from before anything was read

    def result(self) -> M:
        """The model. Raises the error that ended the loading, or EngineFailed if the model was unloaded meanwhile."""
        self.ended.wait()
        if self.error is not None:
            raise self.error
        if self.model is None:
            raise EngineFailed("the model was unloaded while the job waited; try again.")
        return self.model

    @property
    def age(self) -> float:
        """Seconds since it ended or was last used."""
        return time.monotonic() - self.last_used

    @property
    def state(self) -> str:
        """loading, ready or failed."""
        if not self.ended.is_set():
            return "loading"
        return "failed" if self.error else "ready"


class ModelPool(Generic[M]):
    """At most `keep` models; the one unused longest goes first, never one that a job uses."""

    def __init__(self, load: Callable[[ModelKey, Callable[[float, str], None]], M], *, keep: int = 2) -> None:
        self._load_model = load
        self._keep = keep
        self._lock = threading.RLock()
        self._loads: dict[ModelKey, Load[M]] = {}
        self._loading = threading.Lock()  # one at a time: two would only slow each other down

    def request(self, key: ModelKey, then: Callable[[Load[M]], None] | None = None) -> Load[M]:
        """The load of `key`, begun now if there is none, or if the last one failed.

        then: called on the loader's thread when a load that begins now has ended.
        """
        with self._lock:
            found = self._loads.get(key)
            if found is not None and found.state != "failed":
                return found
            fresh: Load[M] = Load(key)
            self._loads[key] = fresh
            threading.Thread(target=self._run, args=(fresh, then), name="specd-load", daemon=True).start()
            return fresh

    def loads(self) -> list[Load[M]]:
        """All loads, running and ended, a failed one last."""
        with self._lock:
            return sorted(self._loads.values(), key=lambda load: load.state == "failed")

    def acquire(self, load: Load[M]) -> M:
        """The model, held by a job until `release`: it will not be unloaded."""
        with self._lock:
            model = load.result()
            load.users += 1
            return model

    def release(self, load: Load[M]) -> None:
        with self._lock:
            load.users -= 1
            load.last_used = time.monotonic()
            replaced = self._loads.get(load.key) is not load
        if replaced:
            self._unload(load)
        self._trim()

    def reload(self, key: ModelKey) -> Load[M] | None:
        """Load `key` anew beside the model in use, and put it in its place once it is there; jobs that run keep the
        old one to their end. A failed reload keeps the old one. None if `key` is not loaded.
        """
        with self._lock:
            old = self._loads.get(key)
            if old is None or old.state != "ready":
                return None
        fresh: Load[M] = Load(key)

        def run() -> None:
            self._run(fresh)
            with self._lock:
                if fresh.error is not None or self._loads.get(key) is not old:
                    return
                self._loads[key] = fresh
            _log.info("model %s was reloaded", Path(key.path).name)
            self._unload(old)

        threading.Thread(target=run, name="specd-load", daemon=True).start()
        return fresh

    def unload_unused(self, older_than: float = 0.0, *, keep: ModelKey | None = None) -> int:
        """Unload models but `keep` that no job uses and that were not used for `older_than` seconds; how many."""
        now = time.monotonic()
        with self._lock:
            unused = [
                load for load in self._loads.values() if load.state == "ready" and not load.users and load.key != keep
            ]
            old = [load for load in unused if now - load.last_used >= older_than]
            for load in old:
                del self._loads[load.key]
        for load in old:
            self._unload(load)
        return len(old)

    def _run(self, load: Load[M], then: Callable[[Load[M]], None] | None = None) -> None:
        def progress(fraction: float, message: str) -> None:
            load.fraction, load.message = fraction, message

        with self._loading:
            load.began = time.monotonic()
            load.stamp = load.key.stamp
            try:
                load.model = self._load_model(load.key, progress)
            except SpecdError as error:
                load.error = error
            except Exception as error:
                _log.exception("loading %s failed", load.key.path)
                load.error = EngineFailed(
                    f"cannot load the model {load.key.path}: {type(error).__name__}; see the log."
                )
        if load.error is None:
            load.message = ""
        load.seconds = time.monotonic() - load.began
        load.last_used = time.monotonic()
        load.ended.set()
        if load.error is not None:
            _log.warning("%s", load.error)
        else:
            _log.info("loaded %s in %.1f s", load.key.path, load.seconds)
        if then is not None:
            then(load)
        self._trim()

    def _trim(self) -> None:
        with self._lock:
            ready = [load for load in self._loads.values() if load.state == "ready"]
            unused = sorted((load for load in ready if not load.users), key=lambda load: load.last_used)
            extra = unused[: max(0, len(ready) - self._keep)]
            # of failed loads the latest is kept, to be told
            failed = [load for load in self._loads.values() if load.state == "failed"]
            for load in (*extra, *sorted(failed, key=lambda load: load.last_used)[:-1]):
                del self._loads[load.key]
        for load in extra:
            self._unload(load)

    def _unload(self, load: Load[M]) -> None:
        with self._lock:
            if load.users or load.model is None:
                return
            model, load.model = load.model, None
        model.unload()
