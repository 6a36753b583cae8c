"""The custom requests and notifications of editors/PROTOCOL.md, typed. JSON names are the camelCase of these."""

from typing import Any, Final

import attrs
from attrs.validators import instance_of, min_len
from lsprotocol import types

PREPARE: Final = "specd/prepare"
REWRITE: Final = "specd/rewrite"
REVERT: Final = "specd/revert"
STATUS: Final = "specd/status"
REGION: Final = "specd/region"
HUNK: Final = "specd/hunk"

_TEXT: Final = instance_of(str)
_FULL: Final[Any] = (instance_of(str), min_len(1))


@attrs.frozen
class RewriteParams:
    """Rewrite a part of an open document.

    range: a selection is widened to whole lines, an empty one stands for the smallest definition around it; None is the
    whole document. version: of the document that `range` counts in; an older one is refused. readonly: the buffer may
    not be changed. comment: the line of a comment that asks for this; it is removed with the edit.
    """

    uri: str = attrs.field(validator=[*_FULL])
    instruction: str = attrs.field(validator=_TEXT)
    range: types.Range | None = None
    version: int | None = None
    readonly: bool = False
    comment: int | None = None


@attrs.frozen
class HereParams:
    """Rewrite where code actions were last asked for: in that document, or in `uri`."""

    instruction: str = attrs.field(validator=_TEXT)
    uri: str | None = None


@attrs.frozen
class PrepareParams:
    """Read the prompt's fixed part of a coming rewrite; a newer one replaces an older one."""

    uri: str = attrs.field(validator=[*_FULL])
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
    """daemon: what `GET /v1/status` says, None if none runs. jobs: of this editor."""

    daemon: dict[str, Any] | None
    jobs: list[dict[str, Any]]


@attrs.frozen
class RewriteResult:
    """How a rewrite ended.

    outcome: done, no_change, declined, truncated, cancelled, refused, error or conflict (hunks were not applied).
    hunks: that are in the buffer. conflicts: lines, as the user counts them, of those that are not. message: what to
    show.
    """

    job: str
    outcome: str
    message: str
    hunks: int
    conflicts: list[str]
    summary: dict[str, Any]


@attrs.frozen
class RegionParams:
    """A job's region, once the daemon has chosen it, in lines of the buffer now; `endLine` is behind the last."""

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


@attrs.define(kw_only=True)
class _Request:
    id: int | str
    method: str
    jsonrpc: str = "2.0"


@attrs.define(kw_only=True)
class PrepareRequest(_Request):
    """`specd/prepare`."""

    params: PrepareParams


@attrs.define(kw_only=True)
class RewriteRequest(_Request):
    """`specd/rewrite`."""

    params: RewriteParams


@attrs.define(kw_only=True)
class RevertRequest(_Request):
    """`specd/revert`."""

    params: JobParams


@attrs.define(kw_only=True)
class StatusRequest(_Request):
    """`specd/status`."""

    params: StatusParams | None = None


MESSAGES: Final[dict[str, type]] = {
    PREPARE: PrepareRequest,
    REWRITE: RewriteRequest,
    REVERT: RevertRequest,
    STATUS: StatusRequest,
}
