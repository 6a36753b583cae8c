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
    try:
        before = os.environ.get("TRITON_INTERPRET")
        os.environ["TRITON_INTERPRET"] = "1"
        try:
            import triton.runtime.interpreter as interpreter

            from specd.engine.kernels import launch
        finally:
            if before is None:
                del os.environ["TRITON_INTERPRET"]
    except ImportError as error:
        return f"triton is not installed ({error}): its kernels are tested on linux x86_64 only"
    if not launch.INTERPRETED:
        return "triton was imported before its interpreter could be chosen: run `pytest tests/engine/kernels`"

    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:  # numpy 2.4 turns an array of one element into no scalar
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patched
    return None


_MISSING = _interpreter()


@pytest.fixture(autouse=True)
def _kernels() -> None:
    if _MISSING is not None:
        if _WANTED and "not installed" not in _MISSING:
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
