"""A rewrite in this process, without a daemon (`--no-daemon`). Loads the model each time, so it is for a machine where
no daemon may run, and for tests.
"""

import contextlib
import queue
from collections.abc import Iterator

from specd.daemon import settings
from specd.daemon.events import OUTCOMES, Event
from specd.daemon.protocol import RewriteRequest, parse_rewrite
from specd.daemon.service import Service
from specd.daemon.wire import to_json

_services: list[Service] = []  # one a process: several files share the model


@contextlib.contextmanager
def local_events(request: RewriteRequest) -> Iterator[Iterator[Event]]:
    """The events of `request`, as the daemon would send them. Leaving early cancels the job."""
    if not _services:
        _services.append(Service(settings.load()))
    service = _services[0]
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    job = service.rewrite(parse_rewrite(to_json(request)), events.put)

    def until_outcome() -> Iterator[Event]:
        while True:
            event = events.get()
            yield event
            if isinstance(event, OUTCOMES):
                return

    try:
        yield until_outcome()
    finally:
        service.cancel(job)
        job.finished.wait()
