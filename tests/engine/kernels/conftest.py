"""The Triton kernels run in Triton's interpreter here, on the CPU: same code, same function, slowly.

It must be chosen before triton is imported; that is done when this folder is collected.
"""

import os
import platform
import sys
from typing import Any

import pytest

_WANTED = sys.platform == "linux" and platform.machine() == "x86_64"


def _interpreter() -> str | None:
    """Loads the kernels for the interpreter; why they cannot be, where they cannot."""
    before = os.environ.get("TRITON_INTERPRET")
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        import triton
        from triton.runtime import interpreter

        triton.knobs.runtime.interpret = True  # for kernels that are defined from now on

        from specd.engine.kernels import launch
    except ImportError as error:
        return f"triton is not installed ({error}): its kernels are tested on linux x86_64 only"
    finally:
        os.environ.pop("TRITON_INTERPRET")
        if before is not None:
            os.environ["TRITON_INTERPRET"] = before
    if not launch.INTERPRETED:
        return "triton was imported before its interpreter could be chosen: run `pytest tests/engine/kernels`"

    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:  # numpy 2.4 turns an array of one element into no scalar
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    def dot(self: Any, a: Any, b: Any, d: Any, *_: object) -> Any:
        """Adds up k by k, as the matrix unit's chain does; numpy's product sums in an order that shapes change."""
        kind, total = d.data.dtype, d.data.copy()
        for column, row in zip(a.data.T.astype(kind), b.data.astype(kind), strict=True):
            total += column[:, None] * row
        return interpreter.TensorHandle(total, d.dtype.scalar)

    interpreter._patch_lang_tensor = patched
    interpreter.InterpreterBuilder.create_dot = dot
    return None


_MISSING = _interpreter()


@pytest.fixture(autouse=True)
def _kernels() -> None:
    if _MISSING is not None:
        if _WANTED and "not installed" not in _MISSING:
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
