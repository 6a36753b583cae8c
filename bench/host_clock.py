"""Where the host's time goes: calls are wrapped, and each part's own seconds counted, without those of parts inside."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, thread_time
from typing import Any

CLOCKS: dict[str, Callable[[], float]] = {"cpu": thread_time, "wall": perf_counter}

OTHER = "loop"  # what is inside no wrapped call
DEVICE = "device"  # what the host does in the device's place here
HIDDEN = "hidden"  # what it does while a device would work


class Clock:
    """`spent`: seconds by part since the last `start`, by one of CLOCKS: the thread's own time, to which other programs
    add nothing, or the wall's. A wrapped call costs a microsecond more, or two."""

    def __init__(self, clock: str = "cpu") -> None:
        self._now = CLOCKS[clock]
        self.spent: dict[str, float] = defaultdict(float)
        self._part = OTHER
        self._since = 0.0
        self._is_away = False  # a device works: what the host does is hidden

    def start(self) -> None:
        self.spent.clear()
        self._part, self._since, self._is_away = OTHER, self._now(), False

    def stop(self) -> dict[str, float]:
        """-> seconds by part since `start`."""
        self._account()
        return dict(self.spent)

    @contextmanager
    def timed(self, wrapped: list[tuple[object, str, str]], flights: object) -> Iterator[None]:
        """Inside: each (owner, attribute, part) counts as that part; owners are objects, classes or modules. From
        flights.launch to flights.wait all is HIDDEN."""
        new = [(owner, name, self._wrap(getattr(owner, name), part)) for owner, name, part in wrapped]
        launch, wait = (self._wrap(getattr(flights, name), DEVICE) for name in ("launch", "wait"))

        def leave(*shape: Any) -> None:
            launch(*shape)
            self._is_away = True

        def come_back() -> None:
            self._account()
            self._is_away = False
            wait()

        with self._replaced([*new, (flights, "launch", leave), (flights, "wait", come_back)]):
            yield

    def _account(self) -> None:
        now = self._now()
        self.spent[HIDDEN if self._is_away else self._part] += now - self._since
        self._since = now

    def _wrap(self, call: Callable[..., Any], part: str) -> Callable[..., Any]:
        @functools.wraps(call)
        def inside(*args: Any, **more: Any) -> Any:
            if not self._is_away:
                self._account()
            outer, self._part = self._part, part
            try:
                return call(*args, **more)
            finally:
                if not self._is_away:
                    self._account()
                self._part = outer

        return inside

    @staticmethod
    @contextmanager
    def _replaced(new: list[tuple[object, str, Any]]) -> Iterator[None]:
        old = [(owner, name, vars(owner).get(name)) for owner, name, _ in new]
        for owner, name, value in new:
            setattr(owner, name, value)
        try:
            yield
        finally:
            for owner, name, before in old:
                if before is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, before)
