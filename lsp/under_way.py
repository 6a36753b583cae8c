"""One edit under way: what the editor answers, and whether its own change shows the edit. The answer alone proves
nothing (Neovim says `applied` of edits that it drops), and a change can come before it, after it, or without one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from lsprotocol import types

from specd.lsp import messages
from specd.lsp.documents import Document

Apply = Callable[[types.WorkspaceEdit], Awaitable[types.ApplyWorkspaceEditResult]]
Reply = asyncio.Future[types.ApplyWorkspaceEditResult]
Result = Literal["applied", "refused", "unanswered", "not shown"]


@dataclass(frozen=True)
class Timing:
    """Seconds. coalesce: between two edits. reply: that the editor may take to answer. echo: from the answer to its own
    change. foreign_echo: the same once a change that is not ours has come after the answer. last_reply: for the edit at
    the end, which a user may be asked to confirm. unsaid: that a client with such an edit may keep a change to itself.
    """

    coalesce: float = 0.06
    reply: float = 3.0
    echo: float = 1.0
    foreign_echo: float = 0.25
    last_reply: float = 300.0
    unsaid: float = 5.0


@dataclass(frozen=True)
class Settled:
    """What became of an edit. reason: why it is not in the buffer, for the user. answered: seconds until the answer
    came, None if none did.
    """

    result: Result
    reason: str = ""
    answered: float | None = None


class Wake:
    """Something has changed: a bell that one task listens for."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self, *_: object) -> None:
        self._rung.set()

    async def wait(self, seconds: float | None) -> None:
        """Until it rings, for `seconds` at most."""
        try:
            await asyncio.wait_for(self._rung.wait(), seconds)
        except TimeoutError:
            return
        self._rung.clear()


async def settle(reply: Reply, is_shown: Callable[[], bool], document: Document, timing: Timing, wake: Wake) -> Settled:
    """Wait for the answer and the change, as long as `timing` allows. `wake` must ring when the document changes."""
    reply.add_done_callback(wake.ring)
    start = time.monotonic()
    deadline = start + timing.reply
    answered: float | None = None
    while True:
        if reply.done() and answered is None:
            answered = time.monotonic() - start
            if not is_shown():
                refusal = _refusal(reply)
                if refusal is not None:
                    return Settled("refused", refusal, answered)
                deadline = time.monotonic() + timing.echo
        is_late = time.monotonic() >= deadline
        if is_shown() and (reply.done() or is_late):
            return Settled("applied", "", answered)
        if is_late and reply.done():
            return Settled("not shown", messages.NOT_SHOWN, answered)
        if is_late:
            return Settled("unanswered", messages.NO_ANSWER)
        before = document.version
        await wake.wait(deadline - time.monotonic())
        if answered is not None and document.version != before:
            deadline = min(deadline, time.monotonic() + timing.foreign_echo)


def _refusal(reply: Reply) -> str | None:
    """Why the editor refused, for the user; None if it took the edit."""
    if reply.cancelled():
        return messages.NO_ANSWER
    error = reply.exception()
    if error is not None:
        return messages.refused(str(error))
    result = reply.result()
    return None if result is not None and result.applied else messages.refused(getattr(result, "failure_reason", None))
