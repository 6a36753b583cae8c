"""JSON to typed records and back, with errors that name the field. Values only: no I/O.

Understands what the protocol and the settings use: str, int, float, bool, None, Literal, X | None, tuple[X, ...],
tuple[X, Y], dict[str, X] and records of these. An int is taken for a float; a bool never is an int.
"""

import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from specd.daemon.record import Record

T = TypeVar("T", bound=Record)


class WireError(ValueError):
    """A value has the wrong type, or a field is unknown or missing. `field` is its dotted name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


def to_json(value: Any) -> Any:
    """A record (or a tuple, dict, scalar) as what json.dumps takes. Fields that are None are left out."""
    if isinstance(value, Record):
        return {name: to_json(item) for name, item in vars(value).items() if item is not None}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return value


def from_json(kind: type[T], data: Any, field: str = "", *, ignore_unknown: bool = False) -> T:
    """Build a `kind` from a JSON object. Raises WireError on an unknown, missing or ill-typed field.

    ignore_unknown: skip fields that this version does not know (readers of events do; a server does not).
    """
    if not isinstance(data, Mapping):
        raise WireError(field, f"must be an object, not {_name(data)}")
    values: dict[str, Any] = {}
    for key, item in data.items():
        if key in kind.fields:
            values[key] = check(kind.__annotations__[key], item, _join(field, key), ignore_unknown=ignore_unknown)
        elif not ignore_unknown:
            raise WireError(_join(field, str(key)), "no such field")
    for name in kind.fields:
        if name not in kind.defaults and name not in values:
            raise WireError(_join(field, name), "is missing")
    return kind(**values)


def check(hint: Any, value: Any, field: str, *, ignore_unknown: bool = False) -> Any:
    """`value` as the annotated type `hint`, converted where JSON has no such type (list to tuple, int to float)."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        inner = [arg for arg in args if arg is not type(None)]
        return check(inner[0], value, field, ignore_unknown=ignore_unknown)
    if origin is Literal:
        if value not in args or isinstance(value, bool):
            raise WireError(field, "must be one of " + ", ".join(map(repr, args)) + f", not {value!r}"[:80])
        return value
    if origin is tuple:
        return _tuple(args, value, field, ignore_unknown)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise WireError(field, f"must be a table, not {_name(value)}")
        return {
            str(key): check(args[1], item, _join(field, str(key)), ignore_unknown=ignore_unknown)
            for key, item in value.items()
        }
    if isinstance(hint, type) and issubclass(hint, Record):
        return from_json(hint, value, field, ignore_unknown=ignore_unknown)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise WireError(field, f"must be {_KINDS[hint]}, not {_name(value)}")
    return value


def _tuple(args: tuple[Any, ...], value: Any, field: str, ignore_unknown: bool) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise WireError(field, f"must be a list, not {_name(value)}")
    hints = [args[0]] * len(value) if len(args) == 2 and args[1] is ... else list(args)
    if len(hints) != len(value):
        raise WireError(field, f"must have {len(hints)} items, not {len(value)}")
    return tuple(
        check(hint, item, f"{field}[{index}]", ignore_unknown=ignore_unknown)
        for index, (hint, item) in enumerate(zip(hints, value, strict=True))
    )


_KINDS = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


def _name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, Mapping):
        return "a table"
    return _KINDS.get(type(value), type(value).__name__)


def _join(field: str, key: str) -> str:
    return f"{field}.{key}" if field else key
