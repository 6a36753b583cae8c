"""Fixtures that several rooms' tests share. The tests run on a clone alone: what needs ../shared skips, saying so."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `import tiny`

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a folder with a random little Qwen: tiny_folder(seed=0, **config overrides)."""
    import tiny

    def make(seed: int = 0, **overrides: Any) -> Path:
        return tiny.write(tmp_path_factory.mktemp("tiny"), seed, **overrides)

    return make


@pytest.fixture(scope="session")
def bundled_folder() -> Path:
    """The bundled model's folder."""
    from specd.mini import weights_path

    return weights_path()


@pytest.fixture(scope="session")
def qwen_tokenizer_folder() -> Path:
    """Qwen3's own tokenizer, beside the checkout."""
    folder = SHARED / "qwen3-tokenizer"
    if not (folder / "tokenizer.json").exists():
        pytest.skip("Qwen3's tokenizer is not at ../shared/qwen3-tokenizer")
    return folder


@pytest.fixture(scope="session")
def edit_corpus() -> Path:
    """The edits to replay, beside the checkout."""
    path = SHARED / "edits" / "corpus.jsonl"
    if not path.exists():
        pytest.skip("the edit corpus is not at ../shared/edits")
    return path
