"""Immutable values with named, typed fields: a frozen dataclass to its user and to a type checker.

Not the standard library's `dataclasses`, since a shell command starts by defining these classes: `dataclasses` takes
11 ms to import and about 1 ms a class (Python 3.11), which is half of what `specd edit` needs until it is connected.
"""

from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class Record:
    """Subclasses list their fields as annotations, with or without a default, as in a dataclass."""

    fields: ClassVar[tuple[str, ...]] = ()
    defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        names = tuple(name for name in cls.__annotations__ if name not in Record.__annotations__)
        cls.fields = names
        setattr(cls, "__match_args__", names)  # noqa: B010  (type checkers make their own of the annotations)
        cls.defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}

    def __init__(self, *args: Any, **named: Any) -> None:
        kind = type(self)
        if len(args) > len(kind.fields):
            raise TypeError(f"{kind.__name__} takes {len(kind.fields)} values, not {len(args)}")
        given = dict(zip(kind.fields, args, strict=False))
        for name, value in named.items():
            if name in given or name not in kind.fields:
                raise TypeError(f"{kind.__name__} got {name!r} twice or has no such field")
            given[name] = value
        values = {**kind.defaults, **given}
        if len(values) < len(kind.fields):
            missing = [name for name in kind.fields if name not in values]
            raise TypeError(f"{kind.__name__} lacks {', '.join(missing)}")
        self.__dict__.update(values)

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; see replace()")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *(self.__dict__[name] for name in self.fields)))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self.fields)
        return f"{type(self).__name__}({inner})"
