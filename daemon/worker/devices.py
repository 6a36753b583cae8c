"""The devices that torch can use, and the engine's errors in the daemon's words."""

import contextlib
from collections.abc import Iterator

from specd.daemon.errors import EngineFailed


def accelerators() -> list[tuple[str, str, int, int]]:
    """(name, model, free bytes, all bytes) of each GPU that torch can use."""
    try:
        import torch
    except ImportError:
        return []
    indices = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    return [(f"cuda:{at}", torch.cuda.get_device_name(at), *torch.cuda.mem_get_info(at)) for at in indices]


def check_device(name: str) -> None:
    """Raises EngineFailed for a device that torch knows and this machine, or this torch, has not."""
    import torch

    kind, _, index = name.partition(":")
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        is_there = int(index) < count if index.isdigit() else count > 0
    elif kind == "mps":
        is_there = torch.backends.mps.is_available()
    else:
        return
    if not is_there:
        raise EngineFailed(
            f"torch {torch.__version__} finds no device {name} here; set device to auto or cpu, or see `specd doctor`."
        )


@contextlib.contextmanager
def engine_errors(part: str = "") -> Iterator[None]:
    """The engine's errors, whose messages are for the user, as this room's. part: what they are about."""
    try:
        from specd.engine import EngineError
    except ImportError as error:
        raise EngineFailed(
            f"the engine cannot start: {error}. Install specd again; `specd doctor` tells more."
        ) from error
    try:
        yield
    except EngineError as error:
        raise EngineFailed(f"{part}: {error}" if part else str(error)) from error
