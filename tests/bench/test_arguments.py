"""Wrong command lines of the benchmarks: one line that names the argument, status 2, before anything is loaded."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import edits
import steps

from specd.engine import SamplingParams, load

EDITS = [
    (["--model", "/nope"], "no such model folder: /nope"),
    (["--draft", "/nope"], "argument --draft: no such model folder: /nope"),
    (["--dflash", "/nope"], "argument --dflash: no such model folder: /nope"),
    (["--temperature", "-1"], "argument --temperature: '-1' is no number from 0 to 100"),
    (["--temperature", "nan"], "argument --temperature"),
    (["--repeats", "0"], "argument --repeats: '0' is no whole number of 1 or more"),
    (["--only", "policy,nonsense"], "no contender 'nonsense'; known are: plain, ngram k=7, "),
    (["--only", "draft model k=3"], "no contender 'draft model k=3'"),
    (["--json", "/nope/x.json"], "argument --json: no such folder: /nope"),
    (["--json", "/"], "argument --json: '/' is no name of a file"),
    (["--json", "x" * 5000], "argument --json"),
]
STEPS = [
    (["--model", "/nope"], "no such model folder: /nope"),
    (["--rows", "0"], "argument --rows: '0' is no whole number of 1 or more"),
    (["--rows", "1,x"], "argument --rows: 'x' is no whole number"),
    (["--rows", ""], "argument --rows"),
    (["--context", "-1"], "argument --context: '-1' is no whole number of 0 or more"),
    (["--context", "100000"], "exceed the model's context of 8192 tokens"),
    (["--repeats", "0"], "argument --repeats: '0'"),
    (["--json", "/nope/x.json"], "argument --json: no such folder: /nope"),
]


@pytest.mark.parametrize(
    ("module", "words", "says"), [*((edits, *case) for case in EDITS), *((steps, *case) for case in STEPS)]
)
def test_a_wrong_argument_is_one_line_and_nothing_runs(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: "SimpleNamespace",
    words: list[str],
    says: str,
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("something was loaded")

    monkeypatch.setattr(module, "load", never)
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    with pytest.raises(SystemExit) as end:
        module.main()
    out, err = capsys.readouterr()
    assert (end.value.code, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_the_drafter_of_another_model_is_refused_and_the_bundled_one_not_taken_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tiny_folder: Callable[..., Path]
) -> None:
    folder = str(tiny_folder())
    monkeypatch.setattr(sys, "argv", ["bench", "--model", folder])
    assert edits.arguments(edits.Parser()).dflash is None
    monkeypatch.setattr(sys, "argv", ["bench", "--model", folder, "--dflash", str(edits.dflash_path())])
    with pytest.raises(SystemExit):
        edits.arguments(edits.Parser())
    assert "the drafter of another model" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["bench"])
    assert edits.arguments(edits.Parser()).dflash == edits.dflash_path().resolve()


def test_every_known_contender_is_there(tiny_folder: Callable[..., Path]) -> None:
    folder = tiny_folder()
    loaded = load(folder)
    for draft in (None, folder):
        names = edits.known(None, draft)
        options = SimpleNamespace(dflash=None, draft=draft, only=names)
        assert list(edits.contenders(loaded, options, SamplingParams())) == names
    bundled = edits.known(edits.dflash_path(), None)
    assert [name for name in bundled if "dflash" in name] == list(edits.DFLASH)


def test_a_broken_model_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tiny_folder: Callable[..., Path]
) -> None:
    folder = tiny_folder()
    (folder / "model.safetensors").write_bytes(b"")
    for module in (edits, steps):
        monkeypatch.setattr(sys, "argv", ["bench", "--model", str(folder)])
        with pytest.raises(SystemExit) as end:
            module.main()
        err = capsys.readouterr().err
        assert (end.value.code, err.count("\n")) == (2, 1)
        assert "broken or cut short" in err
