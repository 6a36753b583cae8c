"""Parsing holds up the job that it is for, and no other."""

import json
import random
import string
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_home import GRID

from specd.daemon.events import OUTCOMES, Done, Event, Failed, Progress, RegionChosen
from specd.daemon.protocol import RewriteRequest, Target
from specd.daemon.service import Service
from specd.daemon.settings import Settings

_RANDOM = random.Random(1)
INTRICATE = "".join(_RANDOM.choice(string.printable) for _ in range(256 * 1024))  # given up after a second
LARGE = "def f(x):\n    return x\n\n\n" * 8000


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "replay.json"
    answers = [{"when": "hang", "end": "hang"}, {"when": "rename", "swap": [["(x)", "(y)"]], "characters": 200}]
    file.write_text(json.dumps({"answers": answers}))
    found = Service(Settings(model=str(file), max_lines=100_000))
    yield found
    found.stop()


class Events(list[Event]):
    """The events of a job; `over` is set by its outcome."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def __call__(self, event: Event) -> None:
        self.append(event)
        if isinstance(event, OUTCOMES):
            self.over.set()


def test_a_text_that_takes_long_to_parse_holds_up_no_other_job(service: Service) -> None:
    other, mine = Events(), Events()
    steady = service.rewrite(RewriteRequest(Target(GRID, "a.py"), "hang", client="steady"), other)

    def told() -> int:
        return sum(isinstance(event, Progress) for event in other)

    at_region: list[int] = []

    def emit(event: Event) -> None:
        if isinstance(event, RegionChosen):
            at_region.append(told())
        mine(event)

    while not told():
        time.sleep(0.01)
    before = told()
    service.rewrite(RewriteRequest(Target(INTRICATE, "noise.js", at=40), "else", client="mine"), emit)
    assert mine.over.wait(60)
    assert at_region[0] - before >= 5  # the steady job went on while the other one looked for its region
    service.cancel(steady)


def test_a_text_that_takes_the_guard_long_holds_up_no_other_job(service: Service) -> None:
    other, mine = Events(), Events()
    steady = service.rewrite(RewriteRequest(Target(GRID, "a.py"), "hang", client="steady"), other)
    told: list[int] = []

    def emit(event: Event) -> None:
        told.append(sum(isinstance(event, Progress) for event in other))
        mine(event)

    service.rewrite(RewriteRequest(Target(LARGE, "large.py", lines=(0, 6)), "rename", client="mine"), emit)
    assert mine.over.wait(60)
    service.cancel(steady)
    assert isinstance(mine[-1], Done)
    assert mine[-1].notes == ()
    assert told[-1] > told[-2]  # the steady job went on between the last hunk and the outcome


def test_a_region_that_is_too_long_is_named_with_how_it_was_found(service: Service) -> None:
    wide = f"var s = '{'abc ' * 1_200_000}';\nfunction f() {{ return s; }}\n"
    events = Events()
    service.rewrite(RewriteRequest(Target(wide, "wide.js", at=1), "rename"), events)
    assert events.over.wait(60)
    assert isinstance(events[-1], Failed)
    assert events[-1].message.startswith(
        "paragraph, lines 1-2, by indentation since the file is larger than 512 KiB: the"
    )
