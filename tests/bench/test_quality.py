"""The quality bench: what it asks for, and how it tells a safe failure from garbage."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import quality_cases
import quality_classes

BEFORE = """import os


def size(path, limit):
    total = 0
    for name in os.listdir(path):
        if total > limit:
            break
        total += os.path.getsize(name)
    print(total)
    print(limit)
    return total


def other(path):
    return size(path, 10)
"""
LINES = (3, 12)


def kind(after: str, instruction: str = "make it better") -> str:
    return quality_classes.classify("python", BEFORE, after, LINES, instruction)


def test_a_file_as_it_was_is_unchanged() -> None:
    assert kind(BEFORE) == "unchanged"


def test_a_small_change_that_parses_is_a_partial_edit() -> None:
    assert kind(BEFORE.replace("limit", "most")) == "partial edit"
    assert kind(BEFORE.replace("    print(total)\n", "")) == "partial edit"


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (BEFORE.replace("break", "break)"), "broken syntax"),
        (BEFORE.replace("    return total\n", "    return total\n" + "    total += 1\n" * 3), "loop"),
        (BEFORE.replace("total += ", "total += " + "total + " * 5), "loop"),
        (BEFORE.replace("    print(total)\n    print(limit)\n    return total\n", ""), "lost code"),
        (BEFORE.replace("def size", "def other"), "lost code"),
        (
            BEFORE.replace("    ", "      ").replace("total", "t").replace("path", "p").replace("limit", "l"),
            "much changed",
        ),
    ],
)
def test_garbage_is_told_by_its_kind(after: str, what: str) -> None:
    assert kind(after) == what


def test_what_the_instruction_names_may_go() -> None:
    shorter = BEFORE.replace("\n\ndef other(path):\n    return size(path, 10)\n", "")
    assert kind(shorter, "delete other") != "broken syntax"
    assert kind(shorter) == "lost code"


def test_there_are_a_hundred_instructions_and_none_is_trained_on() -> None:
    from specd.mini.kinds import unable

    asked = [words for group in quality_cases.UNABLE.values() for words in group]
    trained = {t.lower() for t in (*unable._ABOUT_NAME.split("|"), *unable._ABOUT_CODE.split("|"))}
    assert len(asked) == len(set(asked)) == 100
    assert not {a.lower().replace("{f}", "{n}") for a in asked} & trained


def test_a_rename_is_wanted_within_the_lines_only() -> None:
    wanted = quality_cases.within(BEFORE, LINES, {"path": "folder"})
    assert wanted.startswith("import os\n\n\ndef size(folder, limit):")
    assert "os.path.getsize" not in wanted, "a whole word, wherever it stands in the lines"
    assert wanted.endswith("def other(path):\n    return size(path, 10)\n")


def test_cases_come_from_whole_definitions() -> None:
    row = {"id": "a", "language": "python", "before": BEFORE, "source": "own/a.py"}
    ((found, lines),) = quality_cases.definitions([row], 8, 45)
    assert found is row
    assert lines == LINES
