"""What the benchmarks' command lines share: values that are checked before anything runs, and errors of one line.

Types for argparse: each reads a word of the command line, or raises ArgumentTypeError that says what it should be.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from specd.engine import ModelError
from specd.engine.config import model_config
from specd.engine.load import resolve


class Parser(argparse.ArgumentParser):
    """Wrong command lines end in one line on standard error and status 2; --help has the usage."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {' '.join(message.split())}", file=sys.stderr)
        raise SystemExit(2)


def _number(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of {least} or more")
    return value


def positive(text: str) -> int:
    """A whole number of 1 or more."""
    return _number(text, 1)


def whole(text: str) -> int:
    """A whole number of 0 or more."""
    return _number(text, 0)


def positives(text: str) -> list[int]:
    """Whole numbers of 1 or more, separated by commas."""
    return [positive(word) for word in text.split(",")]


def temperature(text: str) -> float:
    """A number from 0 to 100, what sampling takes."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 100.0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 100")
    return value


def model(text: str) -> Path:
    """The folder of a model that specd runs; hub names are looked up."""
    try:
        folder = resolve(text)
        model_config(folder)
    except ModelError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return folder


def out_file(text: str) -> Path:
    """A file that can be written. It is not touched: a run may fail, and what it held should stay."""
    path = Path(text)
    try:
        if not text or path.is_dir():
            raise argparse.ArgumentTypeError(f"{text!r} is no name of a file")
        if not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"no such folder: {path.parent}")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise argparse.ArgumentTypeError(f"{path} cannot be written")
    except (OSError, ValueError) as error:  # a name too long, a zero byte
        raise argparse.ArgumentTypeError(f"{text[:80]!r} cannot be written: {error}") from None
    return path
