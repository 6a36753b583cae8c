"""What the shell command and editors' servers may import: nothing heavy, or every keystroke would wait for it."""

import subprocess
import sys
from pathlib import Path

import pytest
from daemon_home import GRID, RENAME, SOURCE, Home

HEAVY = {
    "torch", "transformers", "pygls", "numpy", "aiohttp", "asyncio", "tokenizers", "safetensors", "tree_sitter",
    "watchfiles", "psutil", "lsprotocol", "dataclasses", "inspect", "email", "ssl", "subprocess", "tempfile", "difflib",
}  # fmt: skip


def imported(code: str, *args: str, cwd: Path | None = None, environ: dict[str, str] | None = None) -> set[str]:
    """The modules that are there after `code` has run in a Python of its own."""
    code += "\nimport sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environ or {"PYTHONPATH": SOURCE},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())


@pytest.mark.parametrize(
    "module", ["specd.daemon.edit", "specd.daemon.cli", "specd.daemon.client", "specd.daemon.protocol"]
)
def test_importing_the_client_imports_nothing_heavy(module: str) -> None:
    assert imported(f"import {module}") & HEAVY == set()


def test_a_whole_edit_on_a_warm_daemon_imports_nothing_heavy(warm: Home) -> None:
    path = warm.write("light.py", GRID)
    code = f"from specd.daemon.cli import main; assert main(['edit', 'light.py', '-i', {RENAME!r}]) == 0"
    assert imported(code, cwd=warm.work, environ=warm.environ) & HEAVY == set()
    assert path.read_text() != GRID


def test_the_daemons_own_files_import_no_engine_before_a_model_is_loaded() -> None:
    found = imported("import specd.daemon.serve, specd.daemon.server, specd.daemon.worker, specd.daemon.local")
    assert found & {"torch", "transformers", "specd.engine"} == set()
