"""What can be done with a job's hunks once it is over: take back those that are in the buffer, or put one in that was
in conflict with what the user typed.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from specd.lsp import messages
from specd.lsp.delivery import Delivery
from specd.lsp.editor_traits import Traits
from specd.lsp.entry import Entry
from specd.lsp.job import Job
from specd.lsp.under_way import Apply, Timing


async def take_back(job: Job, apply: Apply, traits: Traits, timing: Timing) -> tuple[int, list[Entry]]:
    """Take the job's hunks out again; how many, and those that stay since the user has touched them. A job that runs is
    cancelled.
    """
    job.cancel(messages.TAKEN_BACK)
    await job.over.wait()  # an edit that was under way has come in by then, or does not count
    entries = [entry for entry in job.ledger.entries if entry.is_in]
    for entry in job.ledger.entries:
        entry.is_wanted = False
    async with _delivery(job, apply, traits, timing) as delivery:
        delivery.close()
        await delivery.run()
    kept = [entry for entry in entries if entry.is_in]
    for entry in kept:  # they are the user's now
        entry.is_wanted, entry.is_conflict = True, False
    return len(entries) - len(kept), kept


async def put_in(job: Job, entry: Entry, apply: Apply, traits: Traits, timing: Timing) -> str:
    """Put in a hunk that was in conflict, in place of what the user made of its lines. What kept it out, or empty."""
    job.ledger.adopt(entry)
    if entry.old == entry.new:  # the user has made the same change meanwhile
        entry.is_wanted = False
        return ""
    async with _delivery(job, apply, traits, timing) as delivery:
        delivery.close(again=False)
        await delivery.run()
    entry.is_conflict = not entry.is_in
    return "" if entry.is_in else delivery.reason or "the text changed meanwhile"


@asynccontextmanager
async def _delivery(job: Job, apply: Apply, traits: Traits, timing: Timing) -> AsyncIterator[Delivery]:
    document = job.document
    more = {"streams": False, "versioned": traits.versioned, "ignores_version_0": traits.ignores_version_0}
    delivery = Delivery(document, job.ledger, apply, job.spans, timing, **more)
    document.after.append(delivery.wake)
    try:
        yield delivery
    finally:
        with suppress(ValueError):
            document.after.remove(delivery.wake)
