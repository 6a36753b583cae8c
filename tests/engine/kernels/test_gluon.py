"""What linear_gluon.py takes. Gluon has no interpreter: bench/compile.py builds it, bench/kernel_checks.py runs it."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor

linear_gluon = pytest.importorskip(
    "specd.engine.kernels.linear_gluon", reason="triton has no Gluon", exc_type=ImportError
)


def draw(rows: int, depth: int = 256, dtype: torch.dtype = torch.bfloat16) -> tuple[Tensor, Tensor]:
    """x [M, K] and a weight [64, K]."""
    return torch.zeros(rows, depth, dtype=dtype), torch.zeros(64, depth, dtype=dtype)


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_gluon.launching, "_generation", lambda: 9)
    monkeypatch.setattr(linear_gluon.triton, "__version__", "3.6.0")


@pytest.mark.usefixtures("hopper")
def test_few_rows_that_descriptors_hold_are_taken() -> None:
    assert linear_gluon.takes(*draw(1))
    assert linear_gluon.takes(*draw(linear_gluon.MOST))
    assert not linear_gluon.takes(*draw(linear_gluon.MOST + 1))
    assert not linear_gluon.takes(*draw(1, dtype=torch.float32))
    assert not linear_gluon.takes(*draw(1, 100))  # rows that do not begin at a multiple of 16 bytes
    x, weight = draw(9)
    assert not linear_gluon.takes(x.flatten()[1 : 1 + 8 * 256].view(8, 256), weight)


@pytest.mark.usefixtures("hopper")
@pytest.mark.parametrize("generation", [0, 8, 10])
def test_other_devices_go_without(monkeypatch: pytest.MonkeyPatch, generation: int) -> None:
    monkeypatch.setattr(linear_gluon.launching, "_generation", lambda: generation)
    assert not linear_gluon.takes(*draw(1))


@pytest.mark.usefixtures("hopper")
def test_a_triton_that_was_not_tried_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_gluon.triton, "__version__", "3.7.0")
    assert not linear_gluon.takes(*draw(1))


def test_a_triton_without_gluon_goes_without() -> None:
    code = (
        "import sys; sys.modules['triton.experimental'] = None\n"
        "from specd.engine.kernels import cuda; assert cuda.linear_gluon is None"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
