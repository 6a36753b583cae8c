"""The code of editors/*.md, run in the editors that are installed here."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "daemon"))  # for `import daemon_home`

from daemon_home import GRID, MESH, Home, wait_for

PAGES = Path(__file__).parents[2] / "editors"
ANSWERS = [{"when": "rename", "swap": [["Grid", "Mesh"]], "characters": 100000}, {"when": "nothing"}]
REGION = GRID.replace("grid = Grid", "grid = Mesh")

TRY_EMACS = """
(setq eglot-sync-connect 60 eglot-connect-timeout 60 create-lockfiles nil make-backup-files nil)
(defvar shown nil)
(require 'eglot)
(cl-defmethod eglot-handle-notification
  :before (_server (_method (eql window/showMessage)) &key message &allow-other-keys)
  (push message shown))
(defun wait (count) (let ((end (+ (float-time) 60)))
  (while (and (< (float-time) end) (< (length shown) count)) (accept-process-output nil 0.05)))
  (dotimes (_ 20) (accept-process-output nil 0.05)))
(find-file (nth 1 command-line-args-left))
(setq command-line-args-left nil)
(python-mode)
(apply #'eglot (eglot--guess-contact))
SELECT
(specd-rewrite "rename it")
(wait 1)
(princ (json-encode (buffer-string))) (princ "\\n")
(set-buffer-modified-p nil)
(ignore-errors (eglot-shutdown (eglot-current-server) nil 5))
"""


LINES = """(goto-char (point-min)) (search-forward "grid = Grid")
(transient-mark-mode 1) (push-mark (line-beginning-position) t t) (goto-char (1+ (line-beginning-position)))"""
DEFINITION = "(goto-char (point-max)) (forward-line -1)"


def code(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)


@pytest.fixture
def home() -> Iterator[Home]:
    """A home whose daemon answers ANSWERS, with `specd` on its PATH."""
    home = Home(Path(tempfile.mkdtemp(prefix="sh-", dir="/tmp")))
    file = home.work / "replay.json"
    file.write_text(json.dumps({"answers": ANSWERS}))
    home.settings.write_text(f'model = "{file}"\nwatch = false\n')
    program = home.folder / "bin" / "specd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m specd.daemon "$@"\n')
    program.chmod(0o755)
    home.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    home.environ["HOME"] = str(home.folder)
    home.start("serve")
    wait_for(home.client.is_reachable)
    yield home
    home.close()


def has_eglot() -> bool:
    emacs = shutil.which("emacs")
    return (
        emacs is not None
        and not subprocess.run([emacs, "-q", "--batch", "--eval", "(require 'eglot)"], capture_output=True).returncode
    )


@pytest.mark.skipif(not has_eglot(), reason="Emacs with eglot is not installed (emacs 29, or elpa-eglot)")
@pytest.mark.parametrize(
    ("select", "after"),
    [(LINES, REGION), (DEFINITION, GRID.replace("(grid: Grid)", "(grid: Mesh)"))],
    ids=["lines", "definition"],
)
def test_the_lisp_of_the_emacs_page_rewrites(home: Home, select: str, after: str) -> None:
    file = home.write("grid.py", GRID)
    script = TRY_EMACS.replace("SELECT", select)
    lisp = home.write("try.el", "\n".join([*code("emacs.md", "elisp"), script]))
    command = ["emacs", "-q", "--batch", "-l", str(lisp), "--", str(file)]
    done = subprocess.run(command, env=home.environ, cwd=home.work, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    texts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('"')]
    assert texts == [after]


@pytest.mark.skipif(shutil.which("kak") is None, reason="Kakoune is not installed")
@pytest.mark.parametrize(
    ("keys", "instruction", "path", "expected"),
    [
        ("%", "rename Grid 'to' \"Mesh\"", True, MESH),
        ("12g", "rename it", True, REGION),
        ("%", "nothing", True, GRID),
        ("%", "rename it", False, GRID),
    ],
    ids=["file", "line", "no change", "no program"],
)
def test_the_command_of_the_kakoune_page_rewrites_what_is_selected(
    home: Home, keys: str, instruction: str, path: bool, expected: str
) -> None:
    file = home.write("grid.py", GRID)
    definition = home.write("specd.kak", code("kakoune.md", "kak")[0])
    said = instruction.replace("'", "''")
    lines = [
        f"source {definition}",
        f"edit {file}",
        f"execute-keys '{keys}'",
        f"specd-rewrite '{said}'",
        "write",
        "quit!",
    ]
    environ = home.environ if path else {**home.environ, "PATH": "/usr/bin:/bin"}
    command = ["kak", "-n", "-ui", "dummy", "-e", "\n".join(lines)]
    done = subprocess.run(command, env=environ, cwd=home.work, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert file.read_text() == expected


def test_the_commands_of_the_zed_page_run_in_bash(home: Home) -> None:
    (tasks,) = code("zed.md", "json")
    for task, expected in zip(json.loads(tasks), [REGION, MESH], strict=True):
        file = home.write("grid.py", GRID)
        environ = {**home.environ, "ZED_FILE": str(file), "ZED_ROW": "12"}
        shell = task["shell"]["with_arguments"]
        command = [shell["program"], *shell["args"], "-c", task["command"]]
        done = subprocess.run(command, env=environ, input="rename it\n\n", capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert file.read_text() == expected


def test_the_configuration_of_the_helix_page_is_toml_and_names_the_server() -> None:
    (text,) = code("helix.md", "toml")
    read = tomllib.loads(text)
    assert read["language-server"]["specd"] == {"command": "specd", "args": ["lsp"]}
    assert read["language"][0]["language-servers"][-1]["name"] == "specd"
