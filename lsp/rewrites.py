"""The rewrites of one editor: starts them, finds them by name, request or document, cancels them, takes them back."""

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from specd.daemon.protocol import ContextFile, RewriteRequest, Target
from specd.daemon.rewrite.lines import split_lines
from specd.lsp import after, messages
from specd.lsp.comments import is_request
from specd.lsp.documents import Document, Documents
from specd.lsp.editor_traits import Traits
from specd.lsp.job import Editor, Job
from specd.lsp.options import Options
from specd.lsp.outcomes import Ended
from specd.lsp.progress import Client, Progress
from specd.lsp.requests import RevertResult, RewriteParams
from specd.lsp.target import asked_of
from specd.lsp.under_way import Timing

_KEPT: Final = 8  # jobs that are over and can still be taken back
_OTHERS: Final = 3  # documents whose text may be drafted from
_OTHER_SIZE: Final = 1 << 15  # characters of each
_HALF: Final = re.compile("[\ud800-\udfff]")
_NO_CONTEXT: Final = re.compile("[\ud800-\udfff\ufffd]")
_LONGEST_AGAIN: Final = 2000  # characters of an instruction that is offered again: each menu holds it
_LARGEST_CHECK: Final = 16 * 2**20  # bytes of a file that are read to see whether it is UTF-8


class Refused(Exception):
    """The rewrite cannot be started; the message is for the user. is_unsynced: it could be, were the document here the
    editor's.
    """

    def __init__(self, message: str, *, is_unsynced: bool = False) -> None:
        super().__init__(message)
        self.is_unsynced = is_unsynced


class Rewrites:
    """All jobs of the editor. `ended` hears of each one's end, whether it was started or not."""

    def __init__(self, documents: Documents, editor: Editor, progress: Callable[[], Client | None]) -> None:
        self.documents = documents
        self.options = Options()
        self.traits = Traits()
        self.root: Path | None = None
        self.last_instruction = ""
        self.jobs: dict[str, Job] = {}
        self._editor = editor
        self._progress_client = progress
        self._number = 0
        self._taking_back = asyncio.Lock()

    @property
    def client_name(self) -> str:
        """Whose jobs these are, for the daemon's fairness."""
        return f"{self.traits.name}-{os.getpid()}"[:100]

    @property
    def _timing(self) -> Timing:
        return Timing(reply=self.options.apply_timeout)

    def start(self, params: RewriteParams) -> Job:
        """A job that is ready to run. Raises Refused."""
        document = self._known(params.uri)
        path = path_of(params.uri)
        if not params.instruction.strip():
            raise Refused(messages.NO_INSTRUCTION)
        if document.is_versioned and params.version not in (None, document.version):
            raise Refused(messages.STALE, is_unsynced=True)
        if reason := self.disabled(document, readonly=params.readonly):
            raise Refused(reason)
        if "\ufffd" in document.text and not _is_utf8(path):
            raise Refused(messages.NOT_UTF8)
        if params.sha256 is not None and not _is_text_of(params.sha256, document.text):
            raise Refused(messages.UNSYNCED, is_unsynced=True)
        _refuse_halves(document.text, "the text")
        _refuse_halves(params.instruction, "the instruction")
        comment = params.comment
        if comment is not None and not is_request(document.lines, comment, params.instruction):
            comment = None
        asked = asked_of(document, params.range, path=self._named(path), comment=comment)
        request = RewriteRequest(
            target=asked.target,
            instruction=params.instruction,
            model=self.options.model,
            context=tuple(self._others(document)),
            client=self.client_name,
        )
        self._number += 1
        number = f"{os.getpid()}-{self._number}"
        if len(params.instruction) <= _LONGEST_AGAIN:
            self.last_instruction = params.instruction
        progress = Progress(self._progress_client(), f"specd-{number}", "specd")
        job = Job(number, document, asked, request, self._editor, self.traits, self._timing, progress)
        self.jobs[number] = job
        self._forget_old()
        return job

    def disabled(self, document: Document, *, readonly: bool = False) -> str:
        """Why this document cannot be rewritten now; empty if it can."""
        if not self.traits.applies:
            return messages.NO_APPLY
        if document.uri in ("file://", "file:///"):  # Neovim's unnamed buffers: an edit would go to a new one
            return messages.NO_NAME
        return messages.READ_ONLY if readonly or _is_read_only(path_of(document.uri)) else ""

    def target(self, params: RewriteParams) -> Target:
        """What `prepare` reads. Raises Refused."""
        document = self._known(params.uri)
        _refuse_halves(document.text, "the text")
        return asked_of(document, params.range, path=self._named(path_of(params.uri))).target

    def _known(self, uri: str) -> Document:
        """The open document whose text is the editor's, line by line. Raises Refused."""
        document = self.documents.get(uri)
        if document is None:
            raise Refused(messages.NOT_OPEN, is_unsynced=True)
        if document.is_lost:
            raise Refused(messages.LOST, is_unsynced=True)
        if document.is_miscounted:
            raise Refused(messages.RETURNS, is_unsynced=True)
        return document

    def find(self, number: str | None, uri: str | None) -> list[Job]:
        """Jobs by name or document, all without either; the latest last."""
        document = self.documents.get(uri) if uri is not None else None
        return [
            job
            for job in self.jobs.values()
            if number in (None, job.number) and (uri is None or (document is not None and job.document is document))
        ]

    def cancel(self, jobs: list[Job], why: str = "") -> int:
        """Cancel those of `jobs` that run; how many."""
        running = [job for job in jobs if not job.is_over]
        for job in running:
            job.cancel(why)
        return len(running)

    def close(self, document: Document) -> None:
        """The document was closed: its jobs end, and nothing in it can be taken back."""
        for job in [job for job in self.jobs.values() if job.document is document]:
            job.cancel(messages.CLOSED)
            job.release()
            if job.is_over:
                del self.jobs[job.number]

    async def revert(self, number: str | None, uri: str | None) -> RevertResult:
        """Take back the hunks of the job named, or else of the latest that has some in the buffer or still runs; only
        those that the user has not touched since. One after the other: two at once would count the same hunks.
        """
        async with self._taking_back:
            jobs = [job for job in self.find(number, uri) if not job.is_over or job.has_hunks]
            if not jobs:
                return RevertResult(0, [], messages.reverted(0, []))
            job = jobs[-1]
            count, kept = await after.take_back(job, self._editor.apply, self.traits, self._timing)
            lost = [messages.lines_named(*job.ledger.lines_of(entry)) for entry in kept]
            return RevertResult(count, lost, messages.reverted(count, lost))

    async def settle(self, number: str, hunk: int, *, use: bool) -> tuple[Document | None, str]:
        """Settle a conflict: put the hunk in, or drop it. The document that it is in, and what went wrong, or empty."""
        job = self.jobs.get(number)
        entry = next((one for one in job.conflicts if one.number == hunk), None) if job else None
        if job is None or entry is None:
            return None, messages.SETTLED
        if use:
            reason = await after.put_in(job, entry, self._editor.apply, self.traits, self._timing)
            return job.document, messages.not_put_in(reason) if reason else ""
        entry.is_wanted = False
        return job.document, ""

    async def run(self, job: Job) -> Ended:
        ended = await job.run()
        if self.documents.get(job.document.uri) is not job.document or not job.has_traces:
            job.release()
            self.jobs.pop(job.number, None)
        self._forget_old()
        return ended

    def _forget_old(self) -> None:
        over = [job for job in self.jobs.values() if job.is_over]
        for job in over[: max(0, len(over) - _KEPT)]:
            job.release()
            del self.jobs[job.number]

    def _named(self, path: str | None) -> str | None:
        """The path as the model is told it: inside the workspace, else the name alone."""
        if path is None:
            return None
        with suppress(ValueError):
            if self.root is not None:
                return Path(path).relative_to(self.root).as_posix()
        return Path(path).name

    def _others(self, document: Document) -> Iterator[ContextFile]:
        alike = [
            other for other in self.documents if other is not document and other.language_id == document.language_id
        ]
        for other in alike[-_OTHERS:]:
            text = other.text if len(other.lines) < _OTHER_SIZE else ""
            if 0 < len(text) <= _OTHER_SIZE and not _NO_CONTEXT.search(text):
                yield ContextFile(unquote(other.uri), text)


def _is_text_of(sha256: str, text: str) -> bool:
    """Whether the text has this hash; True for one with U+FFFD, which may stand for bytes that are no UTF-8."""
    return "\ufffd" in text or hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == sha256


def _refuse_halves(text: str, what: str) -> None:
    """Half of a surrogate pair is no character and cannot be sent as UTF-8. Raises Refused."""
    half = _HALF.search(text)
    if half is not None:
        raise Refused(messages.half(what, len(split_lines(text[: half.start()] + "."))))


def path_of(uri: str) -> str | None:
    """The file of a `file:` URI; None for what is not on this machine's disk, or is no URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = url2pathname(parts.path) if parts.scheme == "file" else ""
    return path if path and "\0" not in path else None


def _is_read_only(path: str | None) -> bool:
    """Whether a file is there that may not be written; for root too, who may write everything."""
    with suppress(OSError):
        if path is not None:
            return not os.stat(path).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(
                path, os.W_OK
            )
    return False


def _is_utf8(path: str | None) -> bool:
    """Whether the file holds valid UTF-8, so that a U+FFFD in the buffer is the user's own; True without a file."""
    if path is None:
        return True
    try:
        if os.stat(path).st_size > _LARGEST_CHECK:
            return True
        Path(path).read_bytes().decode()
    except UnicodeDecodeError:
        return False
    except OSError:
        return True
    return True
