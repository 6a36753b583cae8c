import io
import json
import tarfile
from pathlib import Path

import pytest

from specd.mini.corpus import HELD_OUT, is_permissive, is_usable, read_files, read_npm, split, write_files
from specd.mini.edits import SourceFile
from specd.mini.plot import read_log

CODE = "\n".join(f"function number{i}(value) {{ return value + {i}; }}" for i in range(40)) + "\n"


@pytest.mark.parametrize(
    "licence", ["MIT", "BSD-3-Clause", "Apache-2.0", "ISC", "MIT OR Apache-2.0", "(MIT AND BSD-2-Clause)"]
)
def test_permissive_licences_are_taken(licence: str) -> None:
    assert is_permissive(licence)


@pytest.mark.parametrize("licence", ["", "GPL-3.0", "MIT AND GPL-2.0", "LGPL-2.1", "UNLICENSED", "None", "CC-BY-4.0"])
def test_other_licences_are_not(licence: str) -> None:
    assert not is_permissive(licence)


def test_a_repository_is_in_training_or_held_out_never_both() -> None:
    held = sorted(HELD_OUT)[0]
    rows = [
        (held, "MIT", SourceFile(f"{held}/a.js", "javascript", CODE)),
        ("own", "MIT", SourceFile("own/b.js", "javascript", CODE[1:])),
    ]
    train, hold, sources = split(rows, capped=False)
    assert [f.source for f in train] == ["own/b.js"]
    assert [f.source for f in hold] == [f"{held}/a.js"]
    assert sources[held]["held_out"]


def test_a_copy_of_a_file_is_taken_once() -> None:
    rows = [(name, "MIT", SourceFile(f"{name}/a.js", "javascript", CODE)) for name in ("one", "two")]
    assert len(split(rows, capped=False)[0]) == 1


def test_a_package_without_a_permissive_licence_gives_no_file(tmp_path: Path) -> None:
    for licence, expected in (("MIT", 1), ("GPL-3.0", 0)):
        path = tmp_path / f"{licence}.tgz"
        with tarfile.open(path, "w:gz") as archive:
            for name, text in (("package.json", json.dumps({"name": "x", "license": licence})), ("lib/a.js", CODE)):
                member = tarfile.TarInfo(f"package/{name}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        assert len(list(read_npm(path))) == expected


def test_text_that_holds_special_tokens_or_very_long_lines_is_left_out() -> None:
    assert is_usable(CODE)
    assert not is_usable(CODE + "<|im_end|>")
    assert not is_usable(CODE + "x" * 300)


def test_written_files_read_back_equal(tmp_path: Path) -> None:
    files = [SourceFile("a/ä.js", "javascript", CODE + "// ∂\n")]
    write_files(tmp_path / "f.jsonl.xz", files)
    assert read_files(tmp_path / "f.jsonl.xz") == files


def test_the_log_is_read_with_the_places_where_legs_began(tmp_path: Path) -> None:
    rows = [
        {"event": "start"},
        {"loss": 2.0, "tokens": 1.0},
        {"event": "end", "tokens": 1.5},
        {"event": "start"},
        {"loss": 1.0, "tokens": 2.0},
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert read_log(tmp_path / "log.jsonl") == ([1.0, 2.0], [2.0, 1.0], [1.5])
    with (tmp_path / "log.jsonl").open("a") as log:  # a training that goes on from the weights counts from 0 again
        log.writelines(json.dumps(r) + "\n" for r in ({"event": "start", "step": 0}, {"loss": 0.5, "tokens": 1.0}))
    assert read_log(tmp_path / "log.jsonl") == ([1.0, 2.0, 3.0], [2.0, 1.0, 0.5], [1.5, 2.0])
