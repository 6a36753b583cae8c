"""Real Emacs with eglot as the client, in batch mode. Eglot asks before each edit and tells changes late, so it is
given one edit at the end.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from daemon_home import GRID, MESH, Home, wait_for

EMACS = shutil.which("emacs")
DRIVER = Path(__file__).parent / "eglot.el"


def has_eglot() -> bool:
    if EMACS is None:
        return False
    command = [EMACS, "-q", "--batch", "--eval", "(require 'eglot)"]
    return subprocess.run(command, capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not has_eglot(), reason="Emacs with eglot is not installed (emacs 29, or elpa-eglot)")


def edit_in_emacs(home: Home, instruction: str, *, meanwhile: str = "", answer: str = "unasked") -> dict[str, Any]:
    """What came of a rewrite of GRID in a new Emacs: text, text after one undo, messages, questions and edits."""
    file = home.write("grid.py", GRID)
    environ = {**home.environ, "HOME": str(home.folder)}
    arguments = [str(file), instruction, meanwhile, answer, *home.command("lsp")]
    command = [str(EMACS), "-q", "--batch", "-l", str(DRIVER), "--", *arguments]
    done = subprocess.run(command, env=environ, cwd=home.work, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert file.read_text() == GRID, "nobody saved it"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_eglot_gets_one_edit_at_the_end_and_one_undo_takes_it_back(replay: Home) -> None:
    seen = edit_in_emacs(replay, "stream it")
    assert seen["text"] == MESH
    assert seen["edits"] == 1
    assert seen["undone"] == GRID
    (message,) = seen["shown"]
    assert message.startswith("specd: 3 hunks")


def test_text_typed_meanwhile_stays(replay: Home) -> None:
    seen = edit_in_emacs(replay, "slowly", meanwhile="type")
    assert seen["text"] == MESH + "# typed\n"
    assert seen["shown"][0].startswith("specd: 3 hunks")


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_the_user_is_asked_once_and_a_no_is_a_no(replay: Home, answer: str) -> None:
    seen = edit_in_emacs(replay, "stream it", answer=answer)
    assert seen["asked"] == 1
    (message,) = seen["shown"]
    if answer == "yes":
        assert seen["text"] == MESH
    else:
        assert seen["text"] == GRID
        assert message == "specd: nothing was changed: you left all 3 hunks out"


def test_a_cancelled_rewrite_changes_nothing(replay: Home) -> None:
    seen = edit_in_emacs(replay, "hang", meanwhile="cancel")
    assert (seen["text"], seen["edits"]) == (GRID, 0)
    assert seen["shown"] == ["specd: cancelled (by the user); nothing was changed"]
    wait_for(lambda: replay.client.status()["jobs"]["active"] == 0, 5)
