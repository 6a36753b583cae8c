"""What the editor's settings say (`initializationOptions`), typed and checked. A wrong value is named to the user, and
the default stands in for it: an editor must not lose its server over a setting.
"""

from typing import Any, Final, Literal, get_args

import attrs

Stream = Literal["auto", "always", "never"]
Review = Literal["apply", "hunks"]

PRESETS: Final = {
    "Add type annotations": "add type annotations",
    "Add documentation": "document each function: what it does, its arguments and what it returns",
    "Simplify": "simplify this without changing what it does",
}


@attrs.frozen
class Options:
    """presets: name to instruction, offered as code actions; None takes the daemon's settings, or PRESETS.

    stream: whether hunks are sent as they come ("auto": as the client is known to take it). apply_timeout: seconds that
    the editor may take to answer an edit. warm: start the daemon with the editor, so that the first rewrite need not
    wait. model: a model in place of the daemon's setting. review: "hunks" makes one edit at the end, whose parts the
    user takes or leaves before anything changes, where the editor can show that.
    """

    presets: dict[str, str] | None = None
    stream: Stream = "auto"
    apply_timeout: float = 3.0
    warm: bool = True
    model: str | None = None
    review: Review = "apply"


def read_options(given: Any) -> tuple[Options, list[str]]:
    """The options, and what is wrong with those given, in words for the user. `given` may be {"specd": {...}}."""
    if given is None:
        return Options(), []
    if isinstance(given, dict) and isinstance(given.get("specd"), dict):
        given = given["specd"]
    if not isinstance(given, dict):
        return Options(), ["the options must be an object; the defaults are used."]
    values: dict[str, Any] = {}
    problems = []
    for key, value in given.items():
        if key not in _CHECKS:
            problems.append(f"unknown option {key!r}; known are {', '.join(_CHECKS)}.")
            continue
        name, what, holds = _CHECKS[key]
        if holds(value):
            values[name] = value
        else:
            problems.append(f"option {key!r} must be {what}; the default is used.")
    return Options(**values), problems


def _is_presets(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) and text.strip() for text in value.values())


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.05 <= value <= 600


_CHECKS: Final = {
    "presets": ("presets", "an object of names and instructions", _is_presets),
    "stream": ("stream", "auto, always or never", lambda value: value in get_args(Stream)),
    "applyTimeout": ("apply_timeout", "a number of seconds from 0.05 to 600", _is_seconds),
    "warm": ("warm", "true or false", lambda value: isinstance(value, bool)),
    "review": ("review", "apply or hunks", lambda value: value in get_args(Review)),
    "model": ("model", "a folder or a name", lambda value: isinstance(value, str) and bool(value)),
}
