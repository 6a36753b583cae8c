"""What clients and the daemon say to each other: requests, events, replies; each a frozen dataclass with a JSON form.

Transport is HTTP/1.1 (see docs/http.md). `POST /v1/rewrite` takes a RewriteRequest and streams events as server-sent
events, `event: NAME` and `data: JSON`; exactly one of them is an outcome (OUTCOMES), and it is the last one.
Lines are 0-based and half-open everywhere here, counted with LF, CRLF and CR as line ends (as LSP does).
No heavy imports: editors' servers and the shell command use this file as it is.
"""

from typing import Any, Final, Literal

from specd.daemon import wire
from specd.daemon.errors import UsageError
from specd.daemon.events import (
    OUTCOMES,
    Cancelled,
    Declined,
    Done,
    Event,
    Failed,
    HunkReady,
    Loading,
    NoChange,
    Outcome,
    Progress,
    Queued,
    RegionChosen,
    Summary,
    Truncated,
    decode_event,
    encode_event,
    event_name,
)
from specd.daemon.record import Record

__all__ = [
    "CLIENT_HEADER",
    "OUTCOMES",
    "VERSION_HEADER",
    "Cancelled",
    "ContextFile",
    "Declined",
    "Done",
    "Event",
    "Failed",
    "GuardMode",
    "HunkReady",
    "Loading",
    "NoChange",
    "Outcome",
    "PrepareReply",
    "PrepareRequest",
    "Progress",
    "Queued",
    "RegionChosen",
    "RewriteRequest",
    "Sampling",
    "Speculation",
    "Summary",
    "Target",
    "Truncated",
    "decode_event",
    "encode_event",
    "event_name",
    "parse_prepare",
    "parse_rewrite",
]

VERSION_HEADER: Final = "X-Specd-Version"
CLIENT_HEADER: Final = "X-Specd-Client"

_LONGEST_NAME: Final = 4096  # characters, as a path of Linux

GuardMode = Literal["report", "refuse", "off"]


class Sampling(Record):
    """How tokens are picked; None takes the daemon's setting. temperature 0 is greedy, top_k 0, top_p 1 and min_p 0 are
    off. The same seed gives the same answer.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None


class Speculation(Record):
    """What drafts. k: tokens drafted a step at most (None = the daemon's setting, 0 = plain decoding).

    draft, dflash: folders of a draft model and of a DFlash drafter ("" = none, None = the daemon's setting).
    proposer: None or "auto" lets the daemon choose; the others insist on one. sample_drafts: where tokens are sampled,
    judge drafts by min(1, p/q) and let the draft model sample its own: the answer then has the model's distribution,
    but what a seed gives depends on what was drafted. Without it the answer never does.
    """

    k: int | None = None
    draft: str | None = None
    dflash: str | None = None
    proposer: Literal["auto", "edit", "ngram", "draft_model", "dflash"] | None = None
    sample_drafts: bool = False


class ContextFile(Record):
    """Another text whose tokens may be drafted from. `text` as the client has it, or None: the daemon reads `path`."""

    path: str
    text: str | None = None


class Target(Record):
    """The text and the part of it to rewrite. `path` names it to the model and tells the language; it is never opened.

    lines: (first, end), 0-based, half-open. at: a 0-based line; the smallest definition around it is taken.
    Neither: the whole text.
    """

    text: str
    path: str | None = None
    language: str | None = None
    lines: tuple[int, int] | None = None
    at: int | None = None


class RewriteRequest(Record):
    """Rewrite a part of a text by instruction. None takes the daemon's setting.

    model: a folder (absolute) or a hub name. max_tokens: tokens the answer may have; 0 takes
    the setting too.
    client: whose job this is, for fairness between clients; any string, such as "nvim-4711".
    """

    target: Target
    instruction: str
    model: str | None = None
    max_tokens: int | None = None
    guard: GuardMode | None = None
    sampling: Sampling = Sampling()
    speculation: Speculation = Speculation()
    context: tuple[ContextFile, ...] = ()
    client: str = ""


class PrepareRequest(Record):
    """Warm what a later RewriteRequest with the same target and model begins with. Never delays a rewrite."""

    target: Target
    model: str | None = None
    client: str = ""


class PrepareReply(Record):
    """What `prepare` did, in tokens of the prompt's fixed part. `replaced`: a newer prepare took its place."""

    reused: int
    new: int
    seconds: float
    replaced: bool = False


def parse_rewrite(data: Any) -> RewriteRequest:
    """A RewriteRequest from decoded JSON. Raises UsageError naming the field that is wrong."""
    request = _parse(RewriteRequest, data)
    if not request.instruction.strip():
        raise UsageError("the instruction is empty; say what to change, such as 'rename Grid to Mesh'.")
    _check_target(request.target)
    _check_text(request.instruction, "instruction")
    names = request.speculation
    _check_names({"model": request.model, "speculation.draft": names.draft, "speculation.dflash": names.dflash})
    sampling = request.sampling
    _within("sampling.temperature", sampling.temperature, 0, 100)
    _within("sampling.top_k", sampling.top_k, 0, 2**31)
    _require(
        sampling.top_p is None or 0 < sampling.top_p <= 1,
        f"sampling.top_p must be above 0 and at most 1, not {sampling.top_p}",
    )
    _within("sampling.min_p", sampling.min_p, 0, 1)
    _within("sampling.seed", sampling.seed, 0, 2**63 - 1)
    _within("max_tokens", request.max_tokens, 0, 2**31)
    _within("speculation.k", request.speculation.k, 0, 4096)
    return request


def parse_prepare(data: Any) -> PrepareRequest:
    """A PrepareRequest from decoded JSON. Raises UsageError naming the field that is wrong."""
    request = _parse(PrepareRequest, data)
    _check_target(request.target)
    _check_names({"model": request.model})
    return request


def _parse(kind: type[wire.T], data: Any) -> wire.T:
    try:
        return wire.from_json(kind, data)
    except wire.WireError as error:
        raise UsageError(f"the request is wrong: {error}") from None


def _check_target(target: Target) -> None:
    _check_text(target.text, "target.text")
    if target.lines is not None:
        first, end = target.lines
        _require(0 <= first < end, "target.lines must be a first line and an end beyond it, 0-based")
        _require(target.at is None, "target.lines and target.at exclude each other")
    _require(target.at is None or target.at >= 0, "target.at must be 0 or more")


def _check_names(names: dict[str, str | None]) -> None:
    for field, name in names.items():
        is_name = not name or (len(name) <= _LONGEST_NAME and min(name) >= " ")
        _require(is_name, f"{field} must be a folder or a hub name, not {str(name)[:40]!r}")
        is_relative = bool(name) and str(name).split("/")[0] in (".", "..")  # to what? The daemon stands elsewhere
        _require(not is_relative, f"{field} must be an absolute folder or a hub name, not {str(name)[:40]!r}")


def _check_text(text: str, field: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{field} has half of a surrogate pair at character {error.start}; send whole characters."
        ) from None


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise UsageError(message)


def _within(field: str, value: float | None, least: float, most: float) -> None:
    bounds = (
        f"from {least} to {most}"
        if most < 2**31
        else f"{least} or more" + f", at most {most}" * bool(value and value > most)
    )
    # written so that NaN is outside too
    _require(value is None or least <= value <= most, f"{field} must be {bounds}, not {value}")
