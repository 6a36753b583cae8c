"""The settings file: defaults, errors that name key and line, documentation that cannot fall behind."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specd.daemon import settings
from specd.daemon.errors import SettingsError

DOCS = Path(__file__).parents[2] / "docs" / "settings.md"


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert settings.load(tmp_path / "config.toml") == settings.Settings()


def test_keys_are_read() -> None:
    found = settings.parse('model = "/m"\ntop_p = 1\nwatch = false\n[presets]\n"Add types" = "add type annotations"\n')
    assert (found.model, found.top_p, found.watch) == ("/m", 1.0, False)
    assert found.presets == {"Add types": "add type annotations"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('\nmodle = "x"', ("line 2", "'modle'", "unknown key", "'model'")),
        ("model = 3", ("line 1", "model", "must be a string, not a whole number")),
        ('device = "cpu"\n\nmax_lines = "many"', ("line 3", "max_lines", "must be a whole number, not a string")),
        ("max_lines = true", ("line 1", "max_lines", "not true or false")),
        ('guard = "maybe"', ("line 1", "guard", "'report', 'refuse', 'off'")),
        ("max_lines = 0", ("line 1", "max_lines", "1 or more")),
        ("temperature = nan", ("line 1", "temperature", "0 or more")),
        ("top_p = 1.5", ("line 1", "top_p", "1 or less")),
        ("\nx = y", ("not TOML", "line 2")),
        ('watch = false\n[presets]\na = "b"\nc = 4', ("line 4", "presets.c", "must be a string")),
        ("[model]\nname = 1", ("line 1", "model", "not a table")),
    ],
)
def test_an_error_names_the_key_and_the_line(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.parse(text, "config.toml")
    assert len(str(caught.value).splitlines()) <= 2
    for word in words:
        assert word in str(caught.value)


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b'model = "\xff"')
    with pytest.raises(SettingsError, match="UTF-8"):
        settings.load(path)


def test_the_documentation_has_every_key_with_its_default() -> None:
    assert settings.markdown() in DOCS.read_text(), "write it anew: python -m specd.daemon.settings"


def test_changed_keys_are_those_that_differ() -> None:
    old = settings.parse("max_lines = 5\nwatch = true")
    assert settings.changed_keys(old, settings.parse("max_lines = 6")) == ["max_lines"]


@given(st.text(max_size=60))
def test_no_text_raises_anything_but_a_settings_error(text: str) -> None:
    with contextlib.suppress(SettingsError):
        settings.parse(text)
