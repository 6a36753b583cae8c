"""A target and a draft model that is right often, not always: both files of tests of the draft model use them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from drafters import ENGINE, a_little_off

from specd.engine import Loaded, load

Maker = Callable[..., Path]


@pytest.fixture(scope="module")
def loaded(tiny_folder: Maker) -> Loaded:
    return load(tiny_folder(21), engine=ENGINE)


@pytest.fixture(scope="module")
def near(tiny_folder: Maker) -> Loaded:
    return load(a_little_off(tiny_folder(21), 1), engine=ENGINE)
