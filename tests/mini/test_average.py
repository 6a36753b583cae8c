"""The mean of models: weight by weight, and only of models of one shape."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("safetensors")

from specd.mini import average
from specd.mini.checkpoint import save_tensors, tensors_of


def folder(path: Path, **tensors: list[float]) -> Path:
    path.mkdir()
    save_tensors({name: torch.tensor(values) for name, values in tensors.items()}, path / "model.safetensors")
    (path / "config.json").write_text(f'{{"of": "{path.name}"}}')
    return path


def test_the_mean_is_weight_by_weight_and_keeps_the_first_ones_files(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", x=[1.0, 4.0], y=[-2.0]), folder(tmp_path / "b", x=[3.0, 5.0], y=[2.0])
    average.average([a, b], tmp_path / "c")
    found = tensors_of(tmp_path / "c")
    assert found["x"].tolist() == [2.0, 4.5]
    assert found["y"].tolist() == [0.0]
    assert found["x"].dtype == torch.bfloat16
    assert (tmp_path / "c" / "config.json").read_text() == '{"of": "a"}'


def test_it_may_take_the_place_of_the_first(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", x=[1.0]), folder(tmp_path / "b", x=[3.0])
    average.average([a, b], a)
    assert tensors_of(a)["x"].tolist() == [2.0]
    assert tensors_of(b)["x"].tolist() == [3.0]


def test_models_of_two_shapes_have_none(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", x=[1.0]), folder(tmp_path / "b", x=[3.0, 1.0])
    with pytest.raises(ValueError, match="same shape"):
        average.average([a, b], tmp_path / "c")
    assert not (tmp_path / "c").exists()
