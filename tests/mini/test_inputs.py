"""Bad input to the training scripts ends in one line that says what to do, before anything is written."""

import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")


def said(monkeypatch: pytest.MonkeyPatch, module: str, *args: object) -> str:
    """What a script ends with that refuses its command line."""
    monkeypatch.setattr(sys, "argv", [module, *map(str, args)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"specd.mini.{module}", run_name="__main__", alter_sys=True)
    return str(ended.value.code)


@pytest.mark.parametrize(
    ("module", "args"),
    [
        ("train", ["--data", "nowhere", "--out", "out", "--tiny", "--steps", 1]),
        ("train_dflash", ["--data", "nowhere", "--model", "none", "--out", "out", "--tiny", "--steps", 1]),
        ("evaluate", ["run", "--data", "nowhere", "--model", "none"]),
        ("evaluate", ["make", "--data", "nowhere"]),
        ("tokenizer", ["--data", "nowhere"]),
        ("corpus", ["--shared", "nowhere/code.jsonl.xz", "--out", "out"]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_what_is_missing_is_named(
    module: str, args: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = said(monkeypatch, module, *args)
    assert words.startswith("nowhere/")
    assert "is missing" in words
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_another_tokenizer_is_no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("data", "model"):
        folder = tmp_path / name
        folder.mkdir()
        for file in ("train.jsonl.xz", "eval.jsonl.xz", "model.safetensors"):
            (folder / file).touch()
        (folder / "tokenizer.json").write_text(name)
    paths = ["--data", tmp_path / "data", "--model", tmp_path / "model"]
    for module, args in (("train_dflash", ["--tiny", "--steps", 1, "--out", tmp_path / "out"]), ("evaluate", [])):
        command = ["run", *paths] if module == "evaluate" else [*paths, *args]
        assert "is not the tokenizer of" in said(monkeypatch, module, *command)
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_numbers_that_mean_nothing_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(monkeypatch, "train", "--data", "d", "--out", "o", "--steps", 1, "--until", 3) == "2"
    assert "--until is a part" in capsys.readouterr().err
    assert said(monkeypatch, "average", "one", "--out", "o") == "2"
    assert "two models or more" in capsys.readouterr().err
