"""The custom requests and notifications of editors/PROTOCOL.md, typed. JSON names are the camelCase of these."""

from typing import Any, Final, TypeVar

import attrs
from lsprotocol import types

PREPARE: Final = "specd/prepare"
REWRITE: Final = "specd/rewrite"
REVERT: Final = "specd/revert"
STATUS: Final = "specd/status"
REGION: Final = "specd/region"
HUNK: Final = "specd/hunk"

T = TypeVar("T")

NO_VERSION: Final = -(2**31)
_TOKENS: Final = ("workDoneToken", "partialResultToken")  # any request may have them ("Work Done Progress"); unused


@attrs.frozen
class RewriteParams:
    """Rewrite a part of an open document.

    range: a selection is widened to whole lines, an empty one stands for the smallest definition around it; None is the
    whole document. version: of the document that `range` counts in; an older one is refused. readonly: the buffer may
    not be changed. comment: the line of a comment that asks for this; it is removed with the edit. sha256: of the
    document's text in UTF-8, in hex; where the text here has another one the outcome is "unsynced".
    """

    uri: str
    instruction: str
    range: types.Range | None = None
    version: int | None = None
    readonly: bool = False
    comment: int | None = None
    sha256: str | None = None


@attrs.frozen
class HereParams:
    """Rewrite where code actions were last asked for: in that document, or in `uri`."""

    instruction: str
    uri: str | None = None


@attrs.frozen
class PrepareParams:
    """Read the prompt's fixed part of a coming rewrite; a newer one replaces an older one."""

    uri: str
    range: types.Range | None = None
    version: int | None = None


@attrs.frozen
class PrepareResult:
    """Tokens that were known already and that were read now; replaced: a newer prepare came between."""

    reused: int
    new: int
    replaced: bool


@attrs.frozen
class JobParams:
    """Names jobs: one, all of a document, or all."""

    job: str | None = None
    uri: str | None = None


@attrs.frozen
class ConflictParams:
    """Settles a hunk that was not applied. use: "specd" puts it in, "mine" drops it."""

    job: str
    hunk: int
    use: str


@attrs.frozen
class RevertResult:
    """How many hunks were taken back, and the lines of those that the user has changed since."""

    reverted: int
    refused: list[str]
    message: str


@attrs.frozen
class StatusParams:
    """Nothing is asked for by name."""


@attrs.frozen
class StatusResult:
    """daemon: what `GET /v1/status` says, None if that cannot be told: then problem says why. jobs: of this editor."""

    daemon: dict[str, Any] | None
    jobs: list[dict[str, Any]]
    problem: str


@attrs.frozen
class RewriteResult:
    """How a rewrite ended.

    outcome: done, no_change, declined, truncated, cancelled, refused, unsynced (refused, since the document here is not
    the editor's; open it again), error or conflict (hunks were not applied).
    severity: info, warning or error, how grave it is for the user. hunks: that are in the buffer. conflicts: lines of
    the buffer, as the user counts them, of those that are not. message: what to show.
    """

    job: str
    outcome: str
    severity: str
    message: str
    hunks: int
    conflicts: list[str]
    summary: dict[str, Any]


@attrs.frozen
class RegionParams:
    """A job's region, once the daemon has chosen it, in lines of `version`: the buffer as it was when the job began.
    end_line is behind the last.
    """

    job: str
    uri: str
    version: int
    start_line: int
    end_line: int
    label: str


@attrs.frozen
class HunkParams:
    """A hunk is in the buffer (or, removed, out of it again), seen in the editor's own change."""

    job: str
    uri: str
    version: int
    number: int
    start_line: int
    end_line: int
    old_text: str
    removed: bool


@attrs.frozen
class Request:
    """A request whose parameters have been read."""

    id: int | str
    method: str
    params: Any
    jsonrpc: str = "2.0"


PARAMS: Final[dict[str, type]] = {
    PREPARE: PrepareParams,
    REWRITE: RewriteParams,
    REVERT: JobParams,
    STATUS: StatusParams,
}


def read(kind: type[T], data: Any) -> T:
    """Parameters from decoded JSON. Raises ValueError that names the field that is wrong."""
    if not isinstance(data, dict):
        raise ValueError(f"must be an object, not {type(data).__name__}")
    values: dict[str, Any] = {}
    names = {camel(field.name): field for field in attrs.fields(kind)}  # type: ignore[arg-type]
    for key, value in data.items():
        if key in _TOKENS:
            continue
        if key not in names:
            raise ValueError(f"has no field {key!r}; known are {', '.join(names) or 'none'}")
        field = names[key]
        if value is None and field.default is None:
            continue
        values[field.name] = _range(key, value) if "Range" in str(field.type) else _scalar(key, value, str(field.type))
    for key, field in names.items():
        if field.default is attrs.NOTHING and field.name not in values:
            raise ValueError(f"lacks the field {key!r}")
    return kind(**values)


def _scalar(key: str, value: Any, annotation: str) -> Any:
    kind, what = next(found for name, found in _SCALARS.items() if name in annotation)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"field {key!r} must be {what}, not {type(value).__name__}")
    return value


_SCALARS: Final = {"str": (str, "a string"), "int": (int, "a whole number"), "bool": (bool, "true or false")}


def _range(key: str, value: Any) -> types.Range:
    try:
        places = [value[end][part] for end in ("start", "end") for part in ("line", "character")]
    except (TypeError, KeyError):
        places = []
    if len(places) != 4 or not all(is_count(place) for place in places):
        raise ValueError(f"field {key!r} must be an LSP range, {{start: {{line, character}}, end: ...}}")
    return types.Range(types.Position(*places[:2]), types.Position(*places[2:]))


def is_count(value: Any) -> bool:
    """Whether a decoded JSON value is what LSP calls a uinteger."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def are_changes(params: Any) -> bool:
    """Whether these are parameters of didChange: lsprotocol would make a text of whatever stands in place of one."""
    if not isinstance(params, dict) or not isinstance(document := params.get("textDocument"), dict):
        return False
    changes, version = params.get("contentChanges"), document.get("version")
    return isinstance(version, int | None) and isinstance(changes, list) and all(map(_is_change, changes))


def with_version(message: dict[str, Any]) -> dict[str, Any]:
    """didChange as lsprotocol reads it: NO_VERSION in place of a version that is not there."""
    params = message["params"]
    document = params["textDocument"]
    if document.get("version") is not None:
        return message
    return {**message, "params": {**params, "textDocument": {**document, "version": NO_VERSION}}}


def _is_change(change: Any) -> bool:
    if not isinstance(change, dict) or not isinstance(change.get("text"), str):
        return False
    where = change.get("range")
    try:
        places = (
            () if where is None else [where[end][part] for end in ("start", "end") for part in ("line", "character")]
        )
    except (TypeError, KeyError):
        return False
    return all(map(is_count, places))


def camel(name: str) -> str:
    """The JSON name of a field."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
